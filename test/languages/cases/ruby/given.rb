ARGV.each { |word| puts word }
puts "got: #{$stdin.gets.chomp}"
puts ENV.fetch('GREETING')
print File.read('data/input.txt')
exit 7

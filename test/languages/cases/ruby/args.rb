ARGV.each { |word| puts word }

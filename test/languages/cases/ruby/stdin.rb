puts "got: #{$stdin.gets.chomp}"

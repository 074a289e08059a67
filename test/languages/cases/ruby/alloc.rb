block = 'x' * (64 << 20)
puts "allocated #{block.bytesize}"

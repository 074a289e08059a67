print File.read('data/input.txt')

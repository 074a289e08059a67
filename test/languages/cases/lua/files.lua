io.write(io.open("data/input.txt"):read("a"))

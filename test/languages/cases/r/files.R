writeLines(readLines("data/input.txt"))

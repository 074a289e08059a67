line <- readLines(file("stdin"), n = 1)
cat("got: ", line, "\n", sep = "")

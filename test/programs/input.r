args <- commandArgs(trailingOnly = TRUE)
lines <- readLines(file("stdin"))
cat(args, sum(as.integer(lines)), "\n")
con <- textConnection("x,y\n1,2"); print(read.csv(con)); message("to stderr")
f <- tempfile(); saveRDS(list(1, "b"), f); str(readRDS(f))
for (i in 1:3) if (i == 2) next else cat(i, ""); cat("\n"); repeat break
quit(status = 7)

block <- rep(as.raw(120), 64 * 1024 * 1024)
cat("allocated", length(block), "\n")

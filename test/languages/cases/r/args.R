for (word in commandArgs(trailingOnly = TRUE)) cat(word, "\n", sep = "")

cat(Sys.getenv("GREETING"), "\n", sep = "")

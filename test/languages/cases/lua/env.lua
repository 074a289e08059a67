print(os.getenv("GREETING"))

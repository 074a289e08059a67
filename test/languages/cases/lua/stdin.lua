print("got: " .. io.read("l"))

print(open("data/input.txt").read(), end="")

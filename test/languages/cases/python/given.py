import os
import sys

for word in sys.argv[1:]:
    print(word)
print("got: " + input())
print(os.environ["GREETING"])
print(open("data/input.txt").read(), end="")
sys.exit(7)

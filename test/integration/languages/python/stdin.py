print("got: " + input())

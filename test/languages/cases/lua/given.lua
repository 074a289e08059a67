for _, word in ipairs(arg) do
  print(word)
end
print("got: " .. io.read("l"))
print(os.getenv("GREETING"))
io.write(io.open("data/input.txt"):read("a"))
os.exit(7)

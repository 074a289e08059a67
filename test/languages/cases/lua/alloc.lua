local block = string.rep("x", 64 << 20)
print("allocated " .. #block)

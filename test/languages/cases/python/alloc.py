block = bytearray(b"x") * (64 << 20)
print("allocated", len(block))

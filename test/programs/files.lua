local name = os.tmpname()
local f = assert(io.open(name, "w"))
for i = 1, 5 do f:write(i, "\n") end
f:close()
local total = 0
for line in io.lines(name) do total = total + tonumber(line) end
print(total, os.remove(name), os.getenv("HOME") ~= nil)
local p = io.popen("echo shell; exit 3")
print(p:read("a"), select(3, p:close()))
print(io.read("n", "l", "a"))
print(arg[1], arg[2])
io.stderr:write("to stderr\n")
print(load("return 1 +")) 
print(os.execute("exit 2"))
os.exit(4)

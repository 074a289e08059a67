local Stack = {}
Stack.__index = Stack
function Stack.new() return setmetatable({ items = {} }, Stack) end
function Stack:push(x) self.items[#self.items + 1] = x return self end
function Stack:pop() return table.remove(self.items) end
Stack.__len = function(s) return #s.items end
Stack.__tostring = function(s) return table.concat(s.items, ",") end
local s = Stack.new():push(1):push(2):push(3)
print(s, #s, s:pop(), #s)
local co = coroutine.wrap(function(a) for i = 1, 3 do a = coroutine.yield(a * i) end return "done" end)
print(co(10), co(20), co(30), co(40))
print(("hello world"):gsub("o", "0"), ("k=v; x=y"):match("(%w+)=(%w+)"), string.format("%05.2f|%-5s|%x", math.pi, "ab", 255))
local words = {}
for w in ("the cat and the hat"):gmatch("%a+") do words[w] = (words[w] or 0) + 1 end
local keys = {}
for k in pairs(words) do keys[#keys + 1] = k end
table.sort(keys)
for _, k in ipairs(keys) do io.write(k, "=", words[k], " ") end
print()
print(pcall(error, { code = 1 }), select("#", 1, nil, 3), 7 // 2, 7 % -3, 1 << 10, 2 ^ 0.5 == math.sqrt(2))
print(utf8.len("añ🎉"), #"añ🎉", utf8.char(241))
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(20), math.maxinteger + 1 == math.mininteger, 10 / 2)
goto last
print("skipped")
::last::
print(next({}), type(nil), #arg, os.time({ year = 1970, month = 1, day = 2, hour = 12 }) > 0)

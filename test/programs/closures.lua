local function counter() local n = 0 return { up = function() n = n + 1 return n end, get = function() return n end } end
local c = counter() c.up() c.up()
print(c.get())
local Account = {} Account.__index = Account
setmetatable(Account, { __call = function(class, b) return setmetatable({ balance = b }, class) end })
Account.__add = function(a, b) return Account(a.balance + b.balance) end
Account.__eq = function(a, b) return a.balance == b.balance end
Account.__lt = function(a, b) return a.balance < b.balance end
print((Account(1) + Account(2)).balance, Account(3) == Account(3), Account(1) < Account(2))
local proxy = setmetatable({}, { __index = function(_, k) return k .. "!" end, __newindex = function(t, k, v) rawset(t, k, v * 2) end })
proxy.x = 21
print(proxy.x, proxy.y)
local t = { 5, 2, 8, 1 }
table.sort(t, function(a, b) return a > b end)
print(table.concat(t, " "), table.unpack(t, 1, 2), #table.pack(1, nil, 3))
local gen = coroutine.create(function() for i = 1, 2 do coroutine.yield(i) end error("end") end)
print(coroutine.resume(gen)) print(coroutine.resume(gen)) print(coroutine.status(gen), select(1, coroutine.resume(gen)), coroutine.status(gen))
print(string.rep("ab", 3, "-"), ("%d items"):format(3), tostring(1e15), 2^53, 1e100, 0x10, "10" + 5, math.type(1), math.type(1.0))
print(string.pack("<i4", 100):byte(1, -1)) print(os.date("!%Y-%m-%d", 86400)) print(collectgarbage("count") > 0)

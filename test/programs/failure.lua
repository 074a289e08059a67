local ok, message = pcall(function() local t = nil; return t.x end)
print(ok, (message:gsub("^.-:%d+: ", "")))
print(xpcall(function() error("deep") end, function(m) return "handled: " .. m:gsub("^.-:%d+: ", "") end))
error({ code = 2 })

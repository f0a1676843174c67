-- SPDX-License-Identifier: MIT
-- Tables, strings, closures, coroutines, both collector modes. Lua calls realloc for everything.
local state = 42
local function rnd(n)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 256 % n + 1
end

local function sum(text)
  local a, b = 1, 0
  for i = 1, #text do
    a = (a + text:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b * 65536 + a
end

for _, mode in ipairs({ "incremental", "generational" }) do
  collectgarbage(mode)
  local slots, total = {}, 0
  for i = 1, 200000 do
    local slot = rnd(1000)
    total = total + #(slots[slot] or "")
    slots[slot] = string.rep(string.char(97 + i % 26), rnd(400) - 1)
  end
  local parts = {}
  for i = 1, 1000 do parts[i] = slots[i] or "" end
  print(mode, total, sum(table.concat(parts, "|")))

  local tree = {}
  for i = 1, 50000 do
    local key = "k" .. i % 997
    tree[key] = tree[key] or {}
    table.insert(tree[key], { id = i, name = "name " .. i })
  end
  local keys = {}
  for key in pairs(tree) do keys[#keys + 1] = key end
  table.sort(keys)
  print("tree", #keys, keys[1], #tree[keys[#keys]])

  local threads, count = {}, 0
  for i = 1, 5000 do
    threads[i] = coroutine.wrap(function()
      local mine = {}
      for j = 1, 5 do
        mine[j] = ("x"):rep(i % 50)
        coroutine.yield(#mine[j])
      end
    end)
  end
  for _ = 1, 5 do
    for i = 1, 5000 do count = count + threads[i]() end
  end
  print("coroutines", count)
  local text = ("alpha beta gamma "):rep(5000)
  print("gsub", sum((text:gsub("(%a+)", function(word) return word:upper() .. #word end))))
  collectgarbage()
end

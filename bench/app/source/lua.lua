-- SPDX-License-Identifier: MIT
-- Work for an allocator by way of Lua's garbage collector. Nothing here may depend on the order of pairs():
-- Lua's hash seed differs from run to run.
local size = tonumber(arg[1])

-- Random numbers that are the same everywhere.
local state = 42
local function random(limit)
    state = (state * 1103515245 + 12345) % 2147483648
    return (state >> 8) % limit
end

-- Binary trees: many equal tables, dropped at once.
local function tree(depth)
    if depth == 0 then return { leaf = true } end
    return { tree(depth - 1), tree(depth - 1) }
end

local function leaves(node)
    if node.leaf then return 1 end
    return leaves(node[1]) + leaves(node[2])
end

local function trees()
    local total = 0
    for _ = 1, size * 2 do total = total + leaves(tree(8)) end
    return total
end

-- Words: short strings, joined, cut, counted and sorted.
local syllables = { "an", "be", "co", "du", "el", "fa", "gi", "ho", "in", "jo" }
local function word()
    local parts = {}
    for i = 1, 1 + random(5) do parts[i] = syllables[1 + random(#syllables)] end
    return table.concat(parts)
end

local function words()
    local lines, counts, names = {}, {}, {}
    for i = 1, size * 30 do
        local line = {}
        for j = 1, 8 do line[j] = word() end
        lines[i] = table.concat(line, " ")
    end
    for found in table.concat(lines, "\n"):gmatch("%a+") do
        if not counts[found] then names[#names + 1] = found end
        counts[found] = (counts[found] or 0) + 1
    end
    table.sort(names, function(a, b)
        if counts[a] ~= counts[b] then return counts[a] > counts[b] end
        return a < b
    end)
    local report = {}
    for i = 1, math.min(50, #names) do report[i] = names[i] .. "=" .. counts[names[i]] end
    return table.concat(report, ",")
end

-- A growing and shrinking map of records with strings and small arrays of mixed sizes.
local function records()
    local live, sum = {}, 0
    for i = 1, size * 500 do
        local key = random(size * 40)
        local old = live[key]
        if old then sum = sum + #old.name + #old.list end
        local list = {}
        for j = 1, random(12) do list[j] = i + j end
        live[key] = { id = i, name = ("x"):rep(random(60)) .. i, list = list }
        if i % 3 == 0 then live[random(size * 40)] = nil end
    end
    return sum
end

-- Coroutines and closures that live as long as the queue they wait in.
local function closures()
    local queue, head, sum = {}, 1, 0
    local function task(n)
        local step = coroutine.wrap(function()
            for i = 1, n do coroutine.yield(i) end
            return 0
        end)
        return function() return step() end
    end
    local tail = size * 20
    for i = 1, tail do queue[i] = task(1 + random(6)) end
    while head <= tail do
        local run = queue[head]
        queue[head] = nil
        head = head + 1
        local result = run()
        sum = sum + result
        if result > 0 then
            tail = tail + 1
            queue[tail] = run
        end
    end
    return sum
end

print("trees " .. trees())
print("words " .. words())
print("records " .. records())
print("closures " .. closures())

-- history.lua - what happened to a lease: grants, ends and refusals, oldest first.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
-- use: shared/record/history.lua
-- use: lease/scripts/lib/ends.lua
-- use: lease/scripts/lib/many.lua
-- use: lease/scripts/lib/grant.lua
-- use: lease/scripts/lib/desk.lua
-- use: lease/scripts/lib/all.lua
-- use: lease/scripts/lib/line.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"history", seq, more, {item, ...}, {id, ...}}: the items as shared/record/history.lua packs
--             them, and the newest id that was dropped of each list that has dropped any; more: as
--             lib/line.lua says it
local lease = lease_open(KEYS[1], ARGV[1])

lease_settle(lease)
local more = lease_close(lease, ARGV[3])
local dropped = {}

-- {{epoch, seq, n, item}, ...} of one list.
local function kept(list)
    local items = {}
    for _, item in ipairs(redis.call('LRANGE', KEYS[1] .. ':' .. list .. ':' .. ARGV[1], 0, -1)) do
        local mark, epoch, seq, n = string.match(item, '^(%-?)(%d+)%.(%d+)%.(%d+)\t')
        if mark == '-' then
            dropped[#dropped + 1] = string.match(item, '^%-([^\t]*)')
        else
            items[#items + 1] = { tonumber(epoch), tonumber(seq), tonumber(n), item }
        end
    end
    return items
end

local function is_before(a, b)
    for i = 1, 3 do
        if a[i] ~= b[i] then
            return a[i] < b[i]
        end
    end
    return false
end

local items = kept('e')
for _, item in ipairs(kept('f')) do
    items[#items + 1] = item
end
table.sort(items, is_before)
for i, item in ipairs(items) do
    items[i] = item[4]
end
return { 'history', SEQ, more, items, dropped }

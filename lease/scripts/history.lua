-- history.lua - what happened to a lease: grants, ends and refusals, oldest first.
-- flags: allow-oom
-- reads: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"history", seq, more, {item, ...}, {id, ...}}: the items as shared/member/scripts/lib/history.lua packs
--             them, and the newest id that was dropped of each list that has dropped any, store time; more:
--             as lib/line.lua says it
--            {"off", seq}: nothing is noted
local noted, since_epoch, since = string.match(STRIPE[5] or '', ' (%l+) (%d+)%.(%d+)$')
if noted == 'off' then
    return { 'off', SEQ }
end
since_epoch, since = tonumber(since_epoch or 0), tonumber(since or 0)
local lease = lease_own()

lease_settle(lease)
local more = lease_close(lease, ARGV[3])
-- What was noted before the last change of what is noted counts as dropped.
local dropped = since_epoch > 0 and { string.format('%d.%d.0', since_epoch, since) } or {}
local items = {} -- {{epoch, seq, n, item}, ...}

local function take(item)
    local mark, epoch, seq, n = string.match(item, '^(%-?)(%d+)%.(%d+)%.(%d+)\t')
    local one = { tonumber(epoch), tonumber(seq), tonumber(n), item }
    local is_told = one[1] > since_epoch or one[1] == since_epoch and one[2] > since
    if is_told and mark == '-' then
        dropped[#dropped + 1] = string.match(item, '^%-([^\t]*)')
    elseif is_told then
        items[#items + 1] = one
    end
end

local function is_before(a, b)
    for i = 1, 3 do
        if a[i] ~= b[i] then
            return a[i] < b[i]
        end
    end
    return false
end

for _, list in ipairs({ ':e:', ':f:' }) do
    for _, item in ipairs(redis.call('LRANGE', KEYS[1] .. list .. ARGV[1], 0, -1)) do
        take(item)
    end
end
local pending = history_pending(lease.record, whole(lease.record.token))
if pending then
    take(pending)
end
table.sort(items, is_before)
for i, item in ipairs(items) do
    items[i] = item[4]
end
return { 'history', SEQ, more, items, dropped, NOW }

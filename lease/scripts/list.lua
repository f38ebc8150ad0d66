-- list.lua - the held leases of one stripe, in the order of their names, a bounded number at a time.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  what the key of every lease of this stripe begins with
--   ARGV[1]  prefix of the names, or ""   ARGV[2]  the name after which to go on, or ""
--   ARGV[3]  how many, 1 to 1000          ARGV[4]  remember_ms
--   returns  {"listed", seq, name after which to go on or "" when the stripe is done,
--             {{name, token, epoch, holder, expires in ms, held for ms, holds, meta or ""}, ...}}
--
-- The names are sorted here and not in an index of their own, which would cost every lease another 130
-- bytes: a stripe has 1/256 of the leases. One step looks at no more than LOOK_MAX records.
local LOOK_MAX = 1000
local prefix, after, limit, remember_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local names = {}
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    if name > after and string.sub(name, 1, #prefix) == prefix then
        names[#names + 1] = name
    end
end
table.sort(names)

local items, go_on = {}, ''
for i, name in ipairs(names) do
    if #items == limit or i > LOOK_MAX then
        go_on = names[i - 1]
        break
    end
    local record = hold_read(KEYS[3] .. name)
    hold_settle(record, KEYS[2], name, remember_ms)
    if record and record.live then
        local v = redis.call('HMGET', record.key, 'g', 'n', 'm')
        items[#items + 1] = { name, record.token, record.epoch, record.holder, record.left_ms,
            NOW - tonumber(v[1]), tonumber(v[2]), v[3] or '' }
    end
end
return { 'listed', SEQ, go_on, items }

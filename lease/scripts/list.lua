-- list.lua - the leases of one stripe in one state, in the order of their names, a bounded number at a time.
-- flags: allow-oom
-- reads: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  prefix of the names, or ""   ARGV[2]  remember_ms
--   ARGV[3]  the name after which to go on, or ""   ARGV[4]  how many, 1 to 1000
--   ARGV[5]  "held" | "waiting" | "delayed"   ARGV[6]  who holds it, among others perhaps, or "": anybody
--   ARGV[7]  of the search that goes on (lib/lowest.lua), or ""
--   returns  {"listed", seq, name after which to go on or "" when the stripe is done,
--             {{name, state, token, epoch, mode or "", how many wait, {holder, ...}: at most 16 of them, and so on,
--               as multi.tell() has it (lib/multi_hold.lua)}, ...}, store time, of the search or ""}
--
-- One step looks at no more than about LOOK_MAX records. What is over is said to be over, but handed on by others: a list
-- hands nothing on. A lease on whose record nothing may rest is in no state that could be listed; who asks for it by its
-- name is answered so.
local LOOK_MAX, HOLDERS_MAX, SEEK_MAX = 96, 16, 1000
local prefix, after, limit, wanted, holder = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local looked = 0

-- Until when nobody is granted, also when that begins with an end that nobody has noted yet.
local function delayed_until(record)
    return math.max(record.delayed_until, record.lapsed and delay_end(record, record.ended) or 0)
end

-- Whether the one who is asked for is among them; no more than HOLDERS_MAX of them are left.
local function has_holder(holders)
    local is_there = holder == ''
    for i, one in ipairs(holders) do
        is_there = is_there or one[2] == holder
        holders[i] = i <= HOLDERS_MAX and one or nil
    end
    return is_there
end

-- One item, if the lease is in the state that is wanted, and held by who is.
local function item_of(name)
    local lease = lease_open(KEYS[1], name)
    local record = lease.record
    looked = looked + 1
    if not record.text or wanted == 'waiting' and not record.queue then
        return nil
    end
    if record.many then
        looked = looked + (lease_settle(lease))
    end
    hold_void(record)
    local holders = multi.holders(lease, holder == '' and HOLDERS_MAX or SEEK_MAX)
    looked = looked + #holders
    if not has_holder(holders) then
        return nil
    end
    local item = multi.tell({ name }, lease, holders, delayed_until(record))
    return (wanted == 'waiting' or wanted == item[2]) and item or nil
end

local pattern = prefix == '' and '[^:]*' or prefix .. '*'
local names, go_on, search = lowest_names(pattern, 0, after, ARGV[7])
if not names then
    return { 'listed', SEQ, go_on, {}, NOW, search }
end

local items = {}
for i, name in ipairs(names) do
    if #items == limit or looked >= LOOK_MAX then
        go_on = names[i - 1]
        break
    end
    local _, item = lease_try(item_of, name)
    items[#items + 1] = item
end
return { 'listed', SEQ, go_on, items, NOW, '' }

-- sweep_early.lua - forget what was remembered long enough for the room that there is, a bounded number at a
-- time.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  how many to look at, 1 to 1000   ARGV[2]  remember_ms
--   ARGV[3]  for how many ms it must be over; 60 s at the least   ARGV[4]  how many to leave out first
--   returns  {"swept", seq, how many to leave out next or -1: all were looked at, how many are forgotten}
--
-- A duplicate of an acquire may be on the way for as long as that, and must find its lease_id over.
local LEAST_MS = 60000
local most, keep_ms = tonumber(ARGV[1]), math.max(LEAST_MS, tonumber(ARGV[3]))
local first, forgotten = tonumber(ARGV[4]), 0
local seen = redis.call('ZRANGE', KEYS[2], whole(first), whole(first + most - 1), 'WITHSCORES')
local has_more = #seen == 2 * most

local function is_old(since)
    return since and NOW - since >= keep_ms
end

local function forget(member, score)
    if string.sub(member, 1, 3) == ':k:' then
        return is_old(score - REMEMBER_MS) and own_keys.forget(member)
    elseif string.sub(member, 1, 1) == ':' then
        return false
    end
    local lease = lease_open(KEYS[1], member)
    if not is_old(lease_over_since(lease)) then
        return false
    end
    lease_forget(lease)
    return true
end

for i = 1, #seen, 2 do
    -- Nothing is due after the time when it is forgotten (hold.lua).
    if not is_old(seen[i + 1] - REMEMBER_MS) then
        has_more = false
        break
    end
    local _, is_forgotten = lease_try(forget, seen[i], seen[i + 1])
    forgotten = forgotten + (is_forgotten and 1 or 0)
end
return { 'swept', SEQ, has_more and first + most - forgotten or -1, forgotten }

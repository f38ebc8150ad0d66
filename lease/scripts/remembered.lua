-- remembered.lua - how many leases are held, and how much memory do those take that are over, and remembered?
-- Changes nothing.
--   KEYS[1]  the first of some stripes
--   ARGV[1]  its number, 0 to 255   ARGV[2]  remember_ms   ARGV[3]  how many, 1 to 64
--   returns  {"remembered", seq, {bytes, for how many ms it is over, ...}, held}: of some of what stands in the
--            due indices, the bytes as many times as others stand for it; 0 ms: it is waited for, or delayed.
--            held: a thousandth of a lease each
--
-- No count of them is kept: a release would have to keep it. Of each stripe a few are looked at, at equal
-- distances from one another, each time others; when there are not more, all of them.
local SAMPLES, COSTS = 4, 200 -- bytes in Redis of a key, or of an entry in a hash and one in an index
local part, sample, held = NOW % 997 / 997, {}, 0

-- {bytes, since when, nil: it must be remembered}; nil: it is not over, or an inbox or a session; true: held.
local function weigh(stripe, member, score)
    if string.sub(member, 1, 3) == ':k:' then
        return { COSTS * (1 + redis.call('HLEN', stripe .. member)), score - REMEMBER_MS }
    elseif string.sub(member, 1, 1) == ':' then
        return nil
    end
    local lease = lease_open(stripe, member)
    if lease.record.held then
        return true
    end
    local bytes = COSTS + 2 * #member + #(lease.record.text or '')
    for _, kind in ipairs({ ':e:', ':f:' }) do
        local items = redis.call('LRANGE', stripe .. kind .. member, 0, -1)
        bytes = bytes + (items[1] and COSTS + #table.concat(items) or 0)
    end
    return { bytes, lease_over_since(lease) }
end

for i = tonumber(ARGV[1]), ARGV[1] + ARGV[3] - 1 do
    local stripe = string.format('pawl:{%02x}', i)
    local count = redis.call('ZCARD', stripe .. ':due')
    local most = math.min(count, SAMPLES)
    for j = 0, most - 1 do
        local rank = whole(math.floor((j + part) * count / most))
        local one = redis.call('ZRANGE', stripe .. ':due', rank, rank, 'WITHSCORES')
        local _, found = lease_try(weigh, stripe, one[1], one[2])
        if found == true then
            held = held + count / most
        elseif found then
            sample[#sample + 1] = math.floor(found[1] * count / most)
            sample[#sample + 1] = found[2] and math.max(0, NOW - found[2]) or 0
        end
    end
end
return { 'remembered', SEQ, sample, math.floor(held * 1000) }

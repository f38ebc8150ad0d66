-- bars.lua - how much has happened in the last ten minutes, five seconds a bar.
--
--   pawl:{store}:bars  hash  place in the ring, 0 to 119 -> "BAR GRANTS REFUSED WAITING"
--     BAR      its number: store time (ms) / BAR_MS; a place with another one is over
--     WAITING  how many waited, at most, of each process added up
--
-- Each process brings what it has counted with its heartbeat, never with a request. For people alone: nothing rests
-- on it, and what a hand has put there stops no heartbeat.
local BARS, BAR_MS, BARS_KEPT = 'pawl:{store}:bars', 5000, 120

-- ARGV[23]: the same text, of what is new; its bar is that of the process's clock, which may be a little behind.
local function bars_add(now)
    local bar, grants, refused, waiting = string.match(ARGV[23], '^(%d+) (%d+) (%d+) (%d+)$')
    if not bar or math.abs(now / BAR_MS - bar) > 2 then
        return
    end
    local place = whole(bar % BARS_KEPT)
    local kept = redis.pcall('HGET', BARS, place)
    local its, g, r, w = string.match(type(kept) == 'string' and kept or '', '^(%d+) (%d+) (%d+) (%d+)$')
    if its ~= bar then
        g, r, w = 0, 0, 0
    end
    redis.pcall('HSET', BARS, place,
        bar .. ' ' .. whole(g + grants) .. ' ' .. whole(r + refused) .. ' ' .. whole(w + waiting))
end

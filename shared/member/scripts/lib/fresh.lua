-- fresh.lua - whether a member's last pulse is so young that it counts as live. Never a proof of anything.
local FRESH_MS = 10000

-- How long a member has said nothing, by Redis' own clock; at: when it last did. A pulse from the future
-- is no better than one as far in the past.
local function silent_ms(now_ms, at)
    return math.abs(now_ms - (tonumber(at) or 0))
end

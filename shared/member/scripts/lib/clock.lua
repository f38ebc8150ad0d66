-- clock.lua - Redis' own clock in milliseconds; a test puts another file in its place.
local function clock_ms()
    local now = redis.call('TIME')
    return now[1] * 1000 + math.floor(now[2] / 1000)
end

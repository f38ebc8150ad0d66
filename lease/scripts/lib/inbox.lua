-- inbox.lua - whether a desk lives: one worker of one lease service, where waiters' clients stand.
--   pawl:{SS}:d:ID  hash  at: store time when it last said that it lives (lease/scripts/inbox_heartbeat.lua)
local DESK_MS, PLACE_MS_MAX = 3000, 60000 -- PLACE_MS_MAX: for how long a place may be kept (line.lua)

-- Store time until which it is taken to live. at: as read, false: there is no such desk.
local function desk_lives_until(at)
    return at and at + DESK_MS or 0
end

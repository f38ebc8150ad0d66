-- call.lua - what a call on a node of a quorum knows, set anew when it begins.
local KEYS, ARGV
local node, lease -- node.lua

local function call_begins(keys, argv)
    KEYS, ARGV, node, lease = keys, argv, nil, nil
end

-- A test puts another one behind it.
local function clock_ms()
    local now = redis.call('TIME')
    return now[1] * 1000 + math.floor(now[2] / 1000)
end

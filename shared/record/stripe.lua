-- stripe.lua - what every script begins with: the stripe that it works on, and the store's time.
--   KEYS[1]  the stripe, a hash: id epoch seq counter clock schema
--   returns {"not-ours"} from the script when a field is missing or no number: nothing is ever created by
--   accident
--
-- Every other reply is {word, sequence number of the stripe after the script, ...}.
local STRIPE = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'counter', 'clock', 'id', 'schema')
if not (STRIPE[1] and STRIPE[2] and STRIPE[3] and STRIPE[4] and STRIPE[5] and STRIPE[6] == '1') then
    return { 'not-ours' }
end
local EPOCH, SEQ, COUNTER = tonumber(STRIPE[1]), tonumber(STRIPE[2]), tonumber(STRIPE[3])
local OFFSET = tonumber(STRIPE[4])
if not (EPOCH and SEQ and COUNTER and OFFSET)
    or EPOCH < 1 or EPOCH > 999999999999999 or COUNTER < 0 then
    return { 'not-ours' }
end
local NOW = clock_ms() + OFFSET

-- A time or a duration as text: Redis would print a Lua number as a floating-point one, at ten times the
-- cost.
local function whole(number)
    return string.format('%d', number)
end

-- Raises the sequence number, once for a script however much it changes.
local changed = false
local function touch()
    if not changed then
        changed = true
        SEQ = redis.call('HINCRBY', KEYS[1], 'seq', 1)
    end
end

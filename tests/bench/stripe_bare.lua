-- stripe_bare.lua - what the prelude costs is what a build with this in place of shared/record/stripe.lua is
-- faster by: is there a stripe of a store, its numbers and the store's time, and nothing else.
--   KEYS[1]  the stripe, a hash: id epoch seq counter ceiling clock alive (shared/record/keys.h)
--   returns {"not-ours"} from the script when a field is missing or no number
--
-- As it was before the restart gate: nothing that the caller knows of is compared, there is no ceiling, and
-- no hold is of a life that is over. As many fields are read as were then; the ceiling stands in for the
-- schema, which was a field of its own.
local STRIPE = redis.call('HMGET', KEYS[1], 'ceiling', 'seq', 'counter', 'clock', 'id', 'epoch')
if not (STRIPE[6] and STRIPE[2] and STRIPE[3] and STRIPE[4] and STRIPE[5] and STRIPE[1] ~= '') then
    return { 'not-ours' }
end
local EPOCH, SEQ, COUNTER = tonumber(STRIPE[6]), tonumber(STRIPE[2]), tonumber(STRIPE[3])
local OFFSET = tonumber(STRIPE[4])
if not (EPOCH and SEQ and COUNTER and OFFSET)
    or EPOCH < 1 or EPOCH > 999999999999999 or COUNTER < 0 then
    return { 'not-ours' }
end
local NOW = clock_ms() + OFFSET
local ALIVE, CEILING = 0, math.huge

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

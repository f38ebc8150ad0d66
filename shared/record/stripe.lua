-- stripe.lua - what every script on a stripe begins with: is this the store that the caller was admitted to,
-- and has it lost nothing that the caller knows of? Then: the stripe's numbers and the store's time.
--   KEYS[1]  the stripe, a hash: id epoch seq counter ceiling clock alive (shared/record/keys.h)
--   The last four arguments, which the services add by themselves (shared/record/call.h):
--   ARGV[#ARGV - 3]  schema and id of the store   ARGV[#ARGV - 2]  the epoch that the caller was admitted in
--   ARGV[#ARGV - 1]  highest sequence number of this stripe that the caller has seen
--   ARGV[#ARGV]      the store's time in ms that the caller knows to have passed, 0: none
--   returns {"not-ours"} from the script: the stripe is missing, another store's, or damaged; nothing is ever
--             created by accident
--           {"clock"}: Redis' clock has jumped ahead of what the caller knows; nothing may rest on that time
--             before a pulse has noted it, else it could go back unnoticed
--           {"not-admitted"}: it is ours, but of another life, or behind what the caller has seen
--
-- Every other reply is {word, sequence number of the stripe after the script, ...}.
local STRIPE = redis.call('HMGET', KEYS[1], 'seq', 'counter', 'ceiling', 'clock', 'alive', 'epoch', 'id')
-- Arithmetic makes a number of a text for less than tonumber() does (docs/bench.md), and fails where there is
-- none: then all but SEQ are nil.
local _, SEQ, COUNTER, CEILING, OFFSET, ALIVE, EPOCH = pcall(function()
    return STRIPE[1] + 0, STRIPE[2] + 0, STRIPE[3] + 0, STRIPE[4] + 0, STRIPE[5] + 0, STRIPE[6] + 0
end)
if STRIPE[7] ~= ARGV[#ARGV - 3] or not (SEQ and COUNTER and CEILING and OFFSET and ALIVE and EPOCH)
    or COUNTER < 0 then
    return { 'not-ours' }
end
if STRIPE[6] ~= ARGV[#ARGV - 2] or SEQ < tonumber(ARGV[#ARGV - 1]) then
    return { 'not-admitted' }
end
local KNOWN, AHEAD_MS = ARGV[#ARGV] + 0, 2000
local TIME = clock_ms() + OFFSET
if KNOWN > 0 and TIME > KNOWN + AHEAD_MS then
    return { 'clock' }
end
local NOW = TIME < KNOWN and KNOWN or TIME

-- A time or a duration as text: Redis would print a Lua number as a floating-point one, at ten times the
-- cost.
local function whole(number)
    return string.format('%d', number)
end

-- Raises the sequence number, once for a script however much it changes. By one, not to a value: whatever the
-- append-only file may lose, the number falls short of what was seen.
local changed = false
local function touch()
    if not changed then
        changed = true
        SEQ = redis.call('HINCRBY', KEYS[1], 'seq', 1)
    end
end

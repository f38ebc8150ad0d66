-- gateways_in_doubt.lua - who may have sent what a store that was not proven complete has lost, and has not
-- said yet that all is recorded again (lib/intent.lua); which route table is served; and by which one the
-- gateway that asks would serve, for pawl store status.
-- flags: allow-oom
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  stripe 0   ARGV[1]  how many to tell, 1 to 1000
--   ARGV[2]  gateway   ARGV[3]  its incarnation   ARGV[4]  hash of its route table, or "": it has none
--   returns  {"doubt", seq, how many there are,
--             {{gateway, incarnation, "open" | "dead", store time (ms) since when it is known to be dead, or
--               ""}, ...}: at most ARGV[1], in the order of their names,
--             hash of the table that is served, or ""}
local DOUBT = 'pawl:{store}:doubt'
local names, told = redis.call('HKEYS', DOUBT), {}
table.sort(names)
for i = 1, math.min(#names, tonumber(ARGV[1])) do
    local gateway, incarnation = string.match(names[i], '^(%S+) (%S+)$')
    local state, since = string.match(redis.call('HGET', DOUBT, names[i]), '^(%a+) (%d+)')
    told[i] = { gateway or names[i], incarnation or '', state or 'open', state == 'dead' and since or '' }
end
local MEMBER = 'pawl:{store}:m:' .. ARGV[2]
local me = redis.call('HMGET', MEMBER, 'incarnation', 'routes')
if me[1] == ARGV[3] and (me[2] or '') ~= ARGV[4] then
    redis.call('HSET', MEMBER, 'routes', ARGV[4])
end
return { 'doubt', SEQ, #names, told, redis.call('HGET', 'pawl:{store}', 'routes') or '' }

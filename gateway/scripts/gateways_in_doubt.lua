-- gateways_in_doubt.lua - who may have sent what a store that was not proven complete has lost, and has not
-- said yet that all is recorded again (lib/intent.lua); which route table is served; and which marks of other
-- stores are lost (lib/marks.lua). What the gateway that asks would serve is kept for pawl store status.
-- flags: allow-oom
--   KEYS[1]  stripe 0   ARGV[1]  how many to tell, 1 to 1000
--   ARGV[2]  gateway   ARGV[3]  its incarnation   ARGV[4]  hash of its route table, or "": it has none
--   ARGV[5]  ids of the stores whose tokens it takes by `mark`, with blanks between; perhaps its own, too
--   returns  {"doubt", seq, how many there are,
--             {{gateway, incarnation, "open" | "dead", store time (ms) since when it is known to be dead, or
--               ""}, ...}: at most ARGV[1], in the order of their names,
--             hash of the table that is served, or "",
--             the first of these stores whose marks are lost, or ""}
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
local MARKS, lost, first = 'pawl:{store}:marks', redis.call('HGET', 'pawl:{store}', 'lost') or '', ''
for of in string.gmatch(lost ~= '' and ARGV[5] or '', '%S+') do
    local word = redis.call('HGET', MARKS, of)
    if of ~= string.match(STORE_ID, ':(.*)$') and string.match(word or '', '^%d+') ~= lost then
        first = first == '' and of or first
        if not word then
            redis.call('HSET', MARKS, of, '0 0 0') -- nothing was named: as if it were not there
        end
    end
end
return { 'doubt', SEQ, #names, told, redis.call('HGET', 'pawl:{store}', 'routes') or '', first }

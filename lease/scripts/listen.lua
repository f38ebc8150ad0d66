-- listen.lua - somebody listens to what happens to leases: for so long it is published, of all of them.
-- flags: allow-oom
--   KEYS[1]  stripe 0
--   ARGV[1]  for how long, in ms; no less than half of it
--   returns  {"listens", seq, store time until which it was published before, 0: it was not; store time now;
--             store time until which it is from now on; what is noted of it, and since when, "": all}
--            {"off", seq}: nothing is noted, and nothing is to be heard
--
-- The time only rises, in every stripe: each listener sets one, and nobody's ends with another's. So who
-- has set it, and finds it later no lower and not yet passed, has missed nothing in between.
local wanted, before, after = NOW + ARGV[1], nil, nil
local noted = string.match(STRIPE[5] or '', ' (.*)$') or ''
if string.match(noted, '^off ') then
    return { 'off', SEQ }
end

for i = 0, 255 do
    local key = string.format('pawl:{%02x}', i)
    local v = redis.call('HMGET', key, 'life', 'listen')
    if life_parts(v[1]) == STORE_ID then
        local at, rest = string.match(v[2] or '0', '^(%d+)(.*)$')
        at = tonumber(at)
        before = math.min(before or at, at)
        if at < NOW + ARGV[1] / 2 then
            redis.call('HSET', key, 'listen', whole(wanted) .. rest)
            at = wanted
        end
        after = math.min(after or at, at)
    end
end
return { 'listens', SEQ, before, NOW, after, noted }

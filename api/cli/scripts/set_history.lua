-- set_history.lua - what is noted of what happens to leases, from now on (shared/member/scripts/lib/history.lua).
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}
--   ARGV[1]  "all" | "ends" | "off", or "": nothing is changed
--   returns  {"history", what is noted now, 1 if it was changed, else 0}   {"another", identity or ""}   {"empty"}
local store, stripes, unknown = store_known()
if unknown then
    return unknown
end
local is = string.match(redis.call('HGET', stripe_key(0), 'listen') or '', ' (%l+)') or 'all'
if ARGV[1] == '' or ARGV[1] == is then
    return { 'history', is, 0 }
end
for i = 0, STRIPES - 1 do
    local v = redis.call('HMGET', stripe_key(i), 'life', 'listen')
    if v[1] then
        local until_when = string.match(v[2] or '0', '^%d+')
        local since = whole(store.epoch) .. '.' .. whole(stripes.seq[i])
        redis.call('HSET', stripe_key(i), 'listen', until_when .. ' ' .. ARGV[1] .. ' ' .. since)
    end
end
return { 'history', ARGV[1], 1 }

-- init_store.lua - make a store: all 256 stripes in one step, or none.
--   KEYS[1]  the first stripe
--   ARGV[1]  id of the store   ARGV[2]  epoch, 1 to 999999999999999
--   returns  {"created"}
--            {"exists", id}: there is a store already, or a part of one; nothing was changed
--
-- The one script that does not begin with stripe.lua, and the only one that creates a stripe.
for i = 0, 255 do
    local key = string.format('pawl:{%02x}', i)
    if redis.call('EXISTS', key) == 1 then
        return { 'exists', redis.call('HGET', key, 'id') or '' }
    end
end
for i = 0, 255 do
    redis.call('HSET', string.format('pawl:{%02x}', i), 'id', ARGV[1], 'schema', 1, 'epoch', ARGV[2],
        'seq', 0, 'counter', 0, 'clock', 0)
end
return { 'created' }

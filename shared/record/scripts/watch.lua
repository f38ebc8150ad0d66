-- watch.lua - has anything changed that a pulse should look at? Changes nothing.
-- use: shared/record/stream.lua
--   KEYS[1]  pawl:{store}   KEYS[2]  the member   ARGV[1]  run_id of the Redis on this link
--   returns {"watched", epoch or 0, roll or 0, gate or "", ceiling or 0, the member's state or "",
--           "same" or "another" Redis or stream than the admitted one}
local s = redis.call('HMGET', KEYS[1], 'epoch', 'roll', 'gate', 'ceiling', 'run')
return { 'watched', tonumber(s[1] or 0), tonumber(s[2] or 0), s[3] or '', tonumber(s[4] or 0),
    redis.call('HGET', KEYS[2], 'state') or '', s[5] == redis_run(ARGV[1]) and 'same' or 'another' }

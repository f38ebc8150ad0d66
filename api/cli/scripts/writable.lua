-- writable.lua - would Redis take a write? If not, it refuses this script before it begins, since that has
-- on: store
-- flags and none of them says that it writes nothing (scriptPrepareForRun() of Redis 7.0.15).
-- flags:
--   KEYS[1]  pawl:{store}
--   returns  {"writable", 1 or 0: whether there is a store}
return { 'writable', redis.call('EXISTS', KEYS[1]) }

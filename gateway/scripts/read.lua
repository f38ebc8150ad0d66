-- read.lua - show a resource to anybody.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: gateway/scripts/lib/show.lua
--   KEYS[1]  stripe   KEYS[2]  lease   KEYS[3]  resource
--   ARGV[1]  If-None-Match as the header has it, or ""
--   returns  as lib/show.lua says
local v = redis.call('HMGET', KEYS[2], 'k', 'p')
return show(KEYS[3], tonumber(v[2] or 0) >= ALIVE and tonumber(v[1] or 0) or 0, ARGV[1])

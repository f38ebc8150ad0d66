-- read.lua - show a resource to anybody.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: gateway/scripts/lib/show.lua
--   KEYS[1]  stripe   KEYS[2]  lease   KEYS[3]  resource
--   ARGV[1]  If-None-Match as the header has it, or ""
--   returns  as lib/show.lua says
return show(KEYS[3], tonumber(redis.call('HGET', KEYS[2], 'k') or 0), ARGV[1])

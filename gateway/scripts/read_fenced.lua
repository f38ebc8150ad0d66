-- read_fenced.lua - show a resource to one who holds the lease; after it no older write lands.
-- flags: allow-oom
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
-- use: shared/record/history.lua
-- use: gateway/scripts/lib/fence.lua
-- use: gateway/scripts/lib/show.lua
--   KEYS[1]  stripe   KEYS[2]  lease   KEYS[3]  resource
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  If-None-Match as the header has it, or ""
--   returns  {"refused", ...} (lib/fence.lua), or as lib/show.lua says
local record = fence_read()
local reason = fence_reason(record, 'read')
if reason then
    return fence_refuse(record, reason)
end
local mark = fence_pass(record)
return show(KEYS[3], mark, ARGV[6])

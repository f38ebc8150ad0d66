-- read_fenced.lua - show a resource to the live holder; after it no older write lands.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
-- use: gateway/scripts/lib/fence.lua
-- use: gateway/scripts/lib/show.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease   KEYS[4]  resource
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, remember_ms
--   ARGV[6]  If-None-Match as the header has it, or ""
--   returns  {"refused", ...} (lib/fence.lua), or as lib/show.lua says
local record = hold_read(KEYS[3])
local reason = fence_reason(record)
if reason then
    return fence_refuse(record, reason)
end
local mark = fence_pass(record)
return show(KEYS[4], mark, ARGV[6])

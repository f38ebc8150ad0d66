-- check.lua - may this token act, for somebody else who will do the deed?
-- flags: allow-oom
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: gateway/scripts/lib/fence_plain.lua
-- use: gateway/scripts/lib/check_plain.lua
-- use: shared/record/hold.lua
-- use: shared/record/history.lua
-- use: gateway/scripts/lib/fence.lua
--   KEYS[1]  stripe   KEYS[2]  lease
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   returns  {"accepted", seq, mark} | {"refused", ...} (lib/fence.lua)
local record = fence_read()
local reason = fence_reason(record, 'write')
if reason then
    return fence_refuse(record, reason)
end
local mark = fence_pass(record)
return { 'accepted', SEQ, mark }

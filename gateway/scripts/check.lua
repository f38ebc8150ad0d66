-- check.lua - may this token act, for somebody else who will do the deed?
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   returns  {"accepted", seq, mark} | {"refused", ...} (lib/fence.lua)
local check = check_of_stored()
local record = check.read()
local reason = check.reason(record, 'write')
if reason then
    return check.refuse(record, reason)
end
local mark = check.pass(record)
return { 'accepted', SEQ, mark }

-- read_fenced.lua - show a resource to one who holds the lease; after it no older write lands.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  resource
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  If-None-Match as the header has it, or ""
--   returns  {"refused", ...} (lib/fence.lua), or as lib/version.lua says
local check = check_of_stored()
local record = check.read()
local reason = check.reason(record, 'read')
if reason then
    return check.refuse(record, reason)
end
local version = show_read(KEYS[2], ARGV[6])
return show(version, check.pass(record))

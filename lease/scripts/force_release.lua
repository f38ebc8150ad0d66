-- force_release.lua - an administrator ends every hold, or the one that has this token; and the lease is
-- handed on.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   ARGV[4]  the token that is expected, or ""   ARGV[5]  the reason, or ""
--   returns  {"forced", seq, more, highest token that was ended or 0: none held}; more: "more" when
--              handoff.lua has something left to do; "rest" when some still hold: to be sent again
--            {"moved-on", seq, last token or 0, more}: nobody holds with the token that is expected; nothing
--              was done
local FORCED_MAX = 250
local lease, expected = lease_own(), tonumber(ARGV[4])

-- Those that are to end, if they hold.
local function to_end()
    local record = lease.record
    if not record.held then
        return {}
    elseif not record.many then
        return { record }
    end
    return expected and multi.with_token(lease, expected) or multi.list(lease, FORCED_MAX)
end

lease_settle(lease)
local ended = 0
for _, hold in ipairs(to_end()) do
    if not expected or hold.token == expected then
        ended = math.max(ended, hold.token)
        lease_end_hold(lease, hold, 'forced', ARGV[5])
    end
end
if expected and ended == 0 then
    local more = lease_close(lease, ARGV[3])
    return { 'moved-on', SEQ, lease.record.token, more }
end
if not expected and lease.record.many then
    return { 'forced', SEQ, 'rest', ended } -- nobody is let in before the last of them has ended
end
local more = lease_close(lease, ARGV[3])
return { 'forced', SEQ, more, ended }

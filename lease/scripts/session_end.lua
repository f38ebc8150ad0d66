-- session_end.lua - end a session: none of its leases is held from this step on. They are freed and handed
-- on a bounded number at a time, here and in the same script sent again.
-- flags: allow-oom
--   KEYS[1]  stripe of the session   KEYS[2]  due index   KEYS[3]  session
--   ARGV[1]  its id   ARGV[2]  remember_ms   ARGV[3]  its secret, or "": an operator needs none
--   ARGV[4]  "grant" or "hold-off", as in acquire.lua   ARGV[5]  how many leases to free, 1 to 100
--   ARGV[6]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"ended", seq, more, held}: it is released, now or before; more: "more" when leases are left to be
--              freed, by this script or by the sweep; held: how many it held, 0: it had ended before
--            {"not-yours", seq}: its secret is another, or it is another's
--            {"lost", seq, how it ended otherwise, or "unknown"}
local session, most = session_read(KEYS[3]), tonumber(ARGV[5])

if not session then
    return { 'lost', SEQ, 'unknown' }
end
local asker = ARGV[6 + OWN_ARGS] and ARGV[6]
if ARGV[3] ~= '' and (session.secret ~= ARGV[3] or session_is_anothers(KEYS[3], asker)) then
    return { 'not-yours', SEQ }
end
local held = 0
if session.live then
    held = session_count(KEYS[3])
    session_end(KEYS[3], 'released', NOW)
elseif session.how ~= 'released' then
    return { 'lost', SEQ, session.how }
end
local left = session_leave(KEYS[3], most, ARGV[4])
return { 'ended', SEQ, left == most and 'more' or '', held }

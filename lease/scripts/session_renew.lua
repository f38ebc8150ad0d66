-- session_renew.lua - the session lives for its ttl from now on, and all its leases with it.
-- flags: allow-oom
--   KEYS[1]  stripe of the session   KEYS[2]  due index   KEYS[3]  session
--   ARGV[1]  its id   ARGV[2]  remember_ms   ARGV[3]  its secret
--   ARGV[4]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"renewed", seq, ttl_ms, expires in ms, for how long it lives, holder, meta or "", {holds},
--              identity or nothing}, as lib/session.lua has it
--            {"not-yours", seq}: its secret is another, or it is another's
--            {"lost", seq, how it ended, or "unknown"}
local session = session_read(KEYS[3])

if not session then
    return { 'lost', SEQ, 'unknown' }
end
local asker = ARGV[4 + OWN_ARGS] and ARGV[4]
if session.secret ~= ARGV[3] or session_is_anothers(KEYS[3], asker) then
    return { 'not-yours', SEQ }
end
if not session.live then
    return { 'lost', SEQ, session.how }
end
touch()
session.deadline = NOW + session.ttl_ms
redis.call('HSET', KEYS[3], 'd', whole(session.deadline))
return session_reply('renewed', KEYS[3], session, asker)

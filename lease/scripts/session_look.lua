-- session_look.lua - whose session it is, for how long it lives, what it holds; never its secret.
-- flags: allow-oom
-- reads: yes
--   KEYS[1]  stripe of the session   KEYS[2]  due index   KEYS[3]  session
--   ARGV[1]  its id   ARGV[2]  remember_ms
--   ARGV[3]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"looked", seq, ttl_ms, expires in ms, for how long it lives, holder, meta or "", {holds},
--              identity or nothing}, as lib/session.lua has it
--            {"not-yours", seq}: it is another's
--            {"lost", seq, how it ended, or "unknown"}
local session, asker = session_read(KEYS[3]), ARGV[3 + OWN_ARGS] and ARGV[3]

if session_is_anothers(KEYS[3], asker) then
    return { 'not-yours', SEQ }
end
if not (session and session.live) then
    return { 'lost', SEQ, session and session.how or 'unknown' }
end
return session_reply('looked', KEYS[3], session, asker)

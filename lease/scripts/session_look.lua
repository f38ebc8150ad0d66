-- session_look.lua - whose session it is, for how long it lives, what it holds; never its secret.
--   KEYS[1]  stripe of the session   KEYS[2]  due index   KEYS[3]  session
--   ARGV[1]  its id   ARGV[2]  remember_ms
--   returns  {"looked", seq, ttl_ms, expires in ms, for how long it lives, holder, meta or "", {holds}}, as
--              lib/session.lua has it
--            {"lost", seq, how it ended, or "unknown"}
local session = session_read(KEYS[3])

if not (session and session.live) then
    return { 'lost', SEQ, session and session.how or 'unknown' }
end
return session_reply('looked', KEYS[3], session)

-- intent_check.lua - may a later write of a token be sent by the intent that its worker has open
-- (lib/intent.lua, o~)? Nothing is recorded: the intent stays as it is.
-- flags: allow-oom
-- batch: yes
--   KEYS[1], ARGV[1..7]  as in intent_admit.lua
--   ARGV[8]  text of the intent, as it was recorded: of this lease and token, s, of this incarnation
--   returns  {"sending", seq, mark}: send it
--            {"missing", seq}: not by that intent; intent_admit.lua says what becomes of it
--
-- One that was closed, resolved, or taken over is not there under this text.
local check = check_of()
local record = check.read()
if not redis.call('ZSCORE', intents_of(KEYS[1]), ARGV[8]) or redis.call('HGET', STORE, 'routes') ~= ARGV[7]
    or redis.call('EXISTS', DOUBT) == 1 or check.reason(record, 'write') then
    return { 'missing', SEQ }
end
local mark = check.pass(record) -- raises SEQ
return { 'sending', SEQ, mark }

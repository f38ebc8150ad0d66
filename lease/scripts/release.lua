-- release.lua - end the hold of this lease_id, or leave it once; and hand the lease on.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id
--   ARGV[4]  name of the very hold that is meant, or "" for whichever it is
--   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  "one", or "all" however often it was entered
--   ARGV[7]  Idempotency-Key or ""   ARGV[8]  digest of the request, or ""
--   ARGV[9]  desk of the worker that sends it, or "": who is first in line there is granted in this step
--            (lib/line.lua)
--   returns  {"released", seq, more, desk, message}: free of it, now, or before and this is the same request
--              again; more: "more" when handoff.lua has something left to do; desk, message: what the desk to
--              which it was handed on is told as well, or none
--            {"handed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta or "", mode, more,
--             wid, lease_id, keep_place_ms}: released, and granted to who waits as wid at the desk of ARGV[9]
--            {"left", seq, holds that remain}
--            {"lost", seq, how the hold ended, or "unknown"}: nothing was released
--            {"key-reused", seq}: the Idempotency-Key came with another request   {"keys-full", seq}
local lease = lease_own()
local known = ARGV[7] ~= '' and own_hold.known(lease, ARGV[3], ARGV[7])
if known and known.digest ~= ARGV[8] then
    return { 'key-reused', SEQ }
end
if known then
    return known.holds > 0 and { 'left', SEQ, known.holds } or { 'released', SEQ, '' }
end
local hold = own_hold.find(lease, ARGV[3])
if hold and not hold.unclaimed and (ARGV[4] == '' or ARGV[4] == hold.hold) then
    return own_hold.release(lease, hold, ARGV[6], ARGV[7], ARGV[8], ARGV[5], ARGV[9])
end
lease_settle(lease)
local how = own_hold.ended_as(lease, ARGV[3], ARGV[4]) -- may end one of many: before it is handed on
local more = lease_close(lease, ARGV[5])
if how == 'released' then
    return { 'released', SEQ, more, handed_desk, handed_word }
end
return { 'lost', SEQ, how }

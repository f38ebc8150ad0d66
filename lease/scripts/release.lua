-- release.lua - end the hold of this lease_id, or leave it once; and hand the lease on.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id
--   ARGV[4]  name of the very hold that is meant, or "": any
--   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  "one", or "all" however often it was entered
--   ARGV[7]  Idempotency-Key or ""   ARGV[8]  digest of the request, or ""
--   ARGV[9]  inbox of the worker that sends it, or "": who is first in line there is granted in this step
--            (lib/line.lua)
--   ARGV[10]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"released", seq, more, inbox, message}: free of it, now, or before and this is the same request
--              again; more: "more" when handoff.lua has something left to do; inbox, message: what the inbox to
--              which it was handed on gets as a message too, or none
--            {"handed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta or "", mode, more,
--             wid, lease_id, keep_place_ms, identity or nothing}: released, and granted to who waits as wid at the
--             inbox of ARGV[9]
--            {"left", seq, holds that remain}
--            {"lost", seq, how the hold ended, or "unknown"}: nothing was released
--            {"key-reused", seq}: the Idempotency-Key came with another request   {"keys-full", seq}
--            {"not-yours", seq}: this lease_id is another's
local id, key, digest, may_grant = ARGV[3], ARGV[7], ARGV[8], ARGV[5]
local is_judged = ARGV[10 + OWN_ARGS] ~= nil
local strange = is_judged and own_hold.strange(id)
local lease = strange or lease_own()
if is_judged and not strange and own_hold.is_anothers(lease, id, ARGV[10]) then
    return { 'not-yours', SEQ }
end
local known = key ~= '' and own_keys.known(lease, id, key)
if known and known.digest ~= digest then
    return { 'key-reused', SEQ }
end
if known then
    return known.holds > 0 and { 'left', SEQ, known.holds } or { 'released', SEQ, '' }
end
if strange then
    return { 'lost', SEQ, 'unknown' }
end
local hold = own_hold.find(lease, id)
if not hold or hold.unclaimed or ARGV[4] ~= '' and ARGV[4] ~= hold.hold then
    local lost, rest = own_hold.lost(lease, id, ARGV[4], may_grant)
    local handed = seldom and seldom.handed or NO_MORE
    return lost[3] == 'released' and { 'released', SEQ, rest, handed.inbox, handed.word } or lost
end
if key ~= '' and own_keys.is_full(lease, id) then
    return { 'keys-full', SEQ }
end
local holds = ARGV[6] == 'all' and 0 or hold.holds - 1
if key ~= '' then
    own_keys.remember(lease, hold, key, holds, digest)
end
if holds > 0 then
    hold.holds, hold.claim = holds, false
    hold_write(hold)
    return { 'left', SEQ, holds }
end
if lease.record.many then
    multi.end_one(lease, hold, 'released', '')
else
    hold_over(lease, 'released', '')
    if lease.record.queue then
        hold_judge(lease.record)
    end
end
local rest = lease_close(lease, may_grant, ARGV[9])
local handed = seldom and seldom.handed or NO_MORE
if handed.hold then
    local reply = own_hold.reply('handed', handed.hold)
    reply[12], reply[13], reply[14] = rest, handed.wid, handed.hold.lease_id
    reply[15], reply[16] = handed.keep, identity_told(handed.hold.identity)
    return reply
end
return { 'released', SEQ, rest, handed.inbox, handed.word }

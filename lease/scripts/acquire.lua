-- acquire.lua - grant the lease to one holder, if it is free, or queue the request.
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms
--   ARGV[3]  lease_id
--   ARGV[4]  name of the new hold (12 to 16 characters)
--   ARGV[5]  holder, 1 to 128 bytes   ARGV[6]  ttl_ms, 100 to 86400000   ARGV[7]  meta as JSON, or ""
--   ARGV[8]  "grant", or "hold-off" when the store's settings forbid a new grant, or "full" when there is no
--            room for one, nor for another one in line: who stands there already waits on
--   ARGV[9]  "" or what few ask for, as JSON (lib/grant.lua), and beside it: secret (of the session),
--            reentrant, own_ttl (ttl_ms was stated)
--   ARGV[10]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"granted", seq, token, epoch, expires in ms, ttl_ms}
--            {"replayed" | "entered" | "claimed", seq, token, epoch, hold, holder, ttl_ms, expires in ms,
--             holds, meta or "", mode, identity or nothing}: it holds already; it has entered once more; it was
--             handed on to this lease_id before, which nobody had claimed yet
--            {"queued", seq}: its inbox gets a message  {"desk-gone", seq}: it was away for too long
--            {"held", seq, token, holder or "", expires in ms}: by another, or it is delayed or promised to
--             those in line ("")
--            {"over", seq, how}: this lease_id had the last hold, which is over
--            {"differs", seq}: this lease_id holds it with another mode, permits or session
--            {"mismatch", seq, permits}: it is held with another number of permits
--            {"key-reused", seq}: the Idempotency-Key came with another request   {"keys-full", seq}
--            {"session-lost", seq}   {"not-yours", seq}: the session's secret is another, or
--             the session or this lease_id is another's
--            {"session-full", seq}
--            {"exhausted", seq}: no token is left in this stripe
--            {"ceiling", seq}: would have been granted, but no higher token is recorded as reserved
--            {"held-off", seq}: would have been granted
--            {"quota", seq}: would have been granted, or put in line, but who asks has as much as it may have
local lease, may_grant = lease_own(), ARGV[8]
local terms = { lease_id = ARGV[3], hold = ARGV[4], holder = ARGV[5], ttl = ARGV[6], meta = ARGV[7],
    identity = ARGV[10 + OWN_ARGS] and ARGV[10], more = ARGV[9] ~= '' and cjson.decode(ARGV[9]) or nil }
local more = terms.more
local record = lease.record
if terms.identity and own_hold.is_anothers(lease, terms.lease_id, terms.identity) then
    return { 'not-yours', SEQ }
end

line.settle(lease)
if record.queue and may_grant ~= 'full' and (record.many or not record.live) then
    line.turn(lease, may_grant) -- who is first may have died; "full": the alarm stays for who may grant
end
local wrong = more and more.session and session_wrong(more, terms.identity)
if wrong == 'not-yours' then
    return { wrong, SEQ }
end
if record.many or record.last_ended or record.lease_id == terms.lease_id then
    local answer = own_hold.answer(lease, terms)
    if answer then
        if answer[1] == 'over' and may_grant ~= 'full' then
            lease_close(lease, may_grant) -- one of many may have been taken out just now
        end
        return answer
    end
end
if wrong then
    return { wrong, SEQ }
end
local over
if more then
    over, more.over, more.secret = more.over, nil, nil
end
local wanting = may_grant ~= 'grant' and 'held-off' or tokens_wanting(KEYS[1])
local desk = more and more.desk
-- What keeps newcomers out keeps nobody from the place in line that it has already.
local place = desk and record.queue and line.terms(lease, terms.lease_id)

if not place and record.many == 'permits' and more and more.mode == 'permits'
    and more.permits ~= record.permits then
    return { 'mismatch', SEQ, record.permits }
end
if place or not line.fits(record, terms) or record.queue and not wanting then
    if not desk then
        return lease_held(lease)
    elseif not line.lives(desk) then
        return { 'desk-gone', SEQ }
    elseif may_grant == 'full' and not place then
        return { 'held-off', SEQ }
    elseif over and not place then
        return { 'quota', SEQ }
    end
    line.join(lease, terms, place)
    return { 'queued', SEQ }
end
if wanting then
    return { wanting, SEQ }
elseif over == 'held' then
    return { 'quota', SEQ }
end
local token = grant(lease, terms, nil)
return { 'granted', SEQ, token, EPOCH, terms.deadline - NOW, terms.ttl }

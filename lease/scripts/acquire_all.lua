-- acquire_all.lua - grant several leases to one holder, all of them in this step or none; or queue the
-- request for each.
--   KEYS[1]  stripe   KEYS[2]  due index: of the first one; the keys of the others
--            are named after their stripes, which stand in ARGV[9]
--   ARGV[1]  name of the first lease   ARGV[2]  remember_ms
--   ARGV[3]  lease_id   ARGV[4]  name of the new holds, one for all of them
--   ARGV[5]  holder   ARGV[6]  ttl_ms   ARGV[7]  meta as JSON, or ""   ARGV[8]  "grant" or "hold-off": all
--            as in acquire.lua
--   ARGV[9]  JSON as there (lib/grant.lua), with all: [[key of the stripe, name], ...], 1 to 100, each once
--   ARGV[10]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"granted" | "replayed" | "claimed", seq, {{name, seq, token, epoch, hold, holder, ttl_ms,
--             expires in ms, holds, meta or "", mode, identity or nothing}, ...}} in the order of ARGV[9]:
--             granted now; it holds all of them already; they were handed on to this lease_id before, which
--             had not claimed them
--            {"queued", seq}: its inbox gets a message  {"desk-gone", seq}: it was away for too long
--            {"held", seq, {{name, seq, token, holder or "", expires in ms}, ...}}: those that are not free
--            {"over", seq, how, name}: this lease_id had the last hold of this one, which is over
--            {"differs", seq, name}: it holds this one, but not all, or with another mode, permits or session
--            {"mismatch", seq, permits, name}: this one is held with another number of permits
--            {"not-ours"}, {"key-reused", seq}, {"keys-full", seq}, {"session-lost", seq},
--             {"not-yours", seq}, {"session-full", seq}, {"exhausted", seq}, {"ceiling", seq},
--             {"held-off", seq}, {"quota", seq}: as there, of any of them
local terms = { lease_id = ARGV[3], hold = ARGV[4], holder = ARGV[5], ttl = ARGV[6], meta = ARGV[7],
    identity = ARGV[10 + OWN_ARGS] and ARGV[10], more = cjson.decode(ARGV[9]) }
local more = terms.more
local leases, are_ours = several.open(more.all)

-- The answer to a lease_id that holds one of them, or did; nil for any other.
local function answer()
    local holds, count, unclaimed, wrong, is_new, is_full = {}, 0, 0, nil, {}, false
    for i, lease in ipairs(leases) do
        local hold = own_hold.find(lease, terms.lease_id)
        local ended = not hold and own_hold.ended(lease, terms.lease_id)
        local known = hold and more.key and own_keys.known(lease, terms.lease_id, more.key)
        if ended then
            return { 'over', SEQ, ended, lease.name }
        elseif known and known.digest ~= more.digest then
            return { 'key-reused', SEQ }
        elseif hold and own_hold.differs(lease, hold, more) then
            wrong = wrong or { 'differs', SEQ, lease.name }
        end
        is_new[i] = hold and more.key and not known
        is_full = is_full or is_new[i] and own_keys.is_full(lease, terms.lease_id)
        if hold then
            holds[i], count, unclaimed = hold, count + 1, unclaimed + (hold.unclaimed and 1 or 0)
        end
    end
    if count == 0 or wrong then
        return wrong
    end
    for i, lease in ipairs(leases) do
        if holds[i] and count < #leases then
            return { 'differs', SEQ, lease.name }
        end
    end
    if is_full then
        return { 'keys-full', SEQ }
    end
    for i, lease in ipairs(leases) do
        if holds[i].unclaimed then
            own_hold.take_over(lease, holds[i], terms)
        end
        own_hold.answered(holds[i])
        if is_new[i] then
            own_keys.remember(lease, holds[i], more.key, holds[i].holds, more.digest)
        end
    end
    return several.reply(unclaimed > 0 and 'claimed' or 'replayed', leases, holds)
end

if not are_ours then
    return { 'not-ours' }
end
if terms.identity and several.is_anothers(leases, terms.lease_id, terms.identity) then
    return { 'not-yours', SEQ }
end
for _, lease in ipairs(leases) do
    line.settle(lease)
end
local wrong = more.session and session_wrong(more, terms.identity, #leases)
if wrong == 'not-yours' then
    return { wrong, SEQ }
end
local reply = answer()
if reply or wrong then
    return reply or { wrong, SEQ }
end
local over = more.over
more.over, more.secret = nil, nil

local wanting, not_free, in_line, counts = nil, {}, 0, several.counts(more.all)
for _, lease in ipairs(leases) do
    local record, word = lease.record, tokens_wanting(lease.stripe, counts[lease.stripe])
    if record.mode == 'permits' and more.mode == 'permits'
        and more.permits ~= record.permits then
        return { 'mismatch', SEQ, record.permits, lease.name }
    end
    wanting = wanting == 'exhausted' and wanting or word or wanting
    if not line.fits(record, terms) then
        not_free[#not_free + 1] = lease
    elseif record.queue and not line.is_empty(lease) then
        not_free[#not_free + 1], in_line = lease, in_line + 1
    end
end
wanting = ARGV[8] ~= 'grant' and 'held-off' or wanting
local waits = (over or ARGV[8] == 'full') and line.terms(leases[1], terms.lease_id)
-- Those that only somebody in line is in front of would be promised to it, if a token could be had.
if #not_free > in_line or in_line > 0 and not wanting or waits and more.desk then
    if not more.desk then
        local held = {}
        for i, lease in ipairs(not_free) do
            held[i] = lease_held(lease)
            held[i][1] = lease.name
        end
        return { 'held', SEQ, held }
    elseif not line.lives(more.desk) then
        return { 'desk-gone', SEQ }
    elseif ARGV[8] == 'full' and not waits then
        return { 'held-off', SEQ }
    elseif over and not waits then
        return { 'quota', SEQ }
    end
    several.join(leases, terms)
    return { 'queued', SEQ }
end
if wanting then
    return { wanting, SEQ }
elseif over == 'held' then
    return { 'quota', SEQ }
end
local grants = {}
for i, lease in ipairs(leases) do
    local token = grant(lease, terms, nil)
    grants[i] = { lease.name, SEQ, token, EPOCH, terms.hold, terms.holder, terms.ttl,
        terms.deadline - NOW, 1, terms.meta, more.mode or 'exclusive',
        identity_told(terms.identity or '') }
end
return { 'granted', SEQ, grants }

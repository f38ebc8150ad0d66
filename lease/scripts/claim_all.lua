-- claim_all.lua - take the grants of several leases that were handed on to this lease_id: from now on they
-- are holds, each for its whole ttl. All or none.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index: of the first lease
--   ARGV[1]  name of the first lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the
--            granted holds   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  all of them as JSON: [[key of the stripe, name], ...]
--   ARGV[7]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"claimed", seq, {{name, seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds,
--             meta or "", mode, identity or nothing}, ...}}
--            {"superseded", seq}: another request with this lease_id has claimed one of them
--            {"lost", seq, how it ended, or "unknown", name}: one of them went on to the next, or back; so do
--             the others now
--            {"not-ours"}: as in acquire_all.lua   {"not-yours", seq}: this lease_id is another's
local leases, are_ours = several.open(cjson.decode(ARGV[6]))
if not are_ours then
    return { 'not-ours' }
end
if ARGV[7 + OWN_ARGS] and several.is_anothers(leases, ARGV[3], ARGV[7]) then
    return { 'not-yours', SEQ }
end
local holds, count, is_superseded = several.holds(leases, ARGV[3], ARGV[4])
local lost = nil

for i, lease in ipairs(leases) do
    if holds[i] and not holds[i].unclaimed then
        return { 'superseded', SEQ }
    end
    lost = lost or not holds[i] and lease
end
if not lost then
    for i, lease in ipairs(leases) do
        own_hold.claim(lease, holds[i])
    end
    return several.reply('claimed', leases, holds)
end
local how = own_hold.ended(lost, ARGV[3]) or 'unknown'
if count > 0 then
    several.give_back(leases, holds, count)
end
several.close(leases, ARGV[5])
if is_superseded then
    return { 'superseded', SEQ }
end
return { 'lost', SEQ, how, lost.name }

-- forget_member.lua - a member that went away without a word is not asked any more when the store is admitted.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}   ARGV[1]  member id
--   returns  {"forgotten", role, who}: its record stays until the next admission, so that it is known again
--            {"empty"}   {"another", identity}   {"unknown"}   {"already"}
--            {"gated"}: what it knows may be needed   {"fresh", ms since its last heartbeat}
--            {"open", n}: so many writes that this gateway had under way are open: it is to be said to be dead first
--            {"last"}: no other lease service lives whose floor is as high: its own is the only proof of what
--            was granted
--            {"registrar"}: what a majority of the registrars has recorded is counted by their number
--            in all of them nothing was changed
local store, stripes, unknown = store_known()
local all, ids = members_read()
local one = all[ARGV[1]]
if unknown then
    return unknown
end
if not one then
    return { 'unknown' }
end
if registrars_of(store.registrars).is[ARGV[1]] then
    return { 'registrar' }
end
if not store_serves(store) then
    return { 'gated' }
end
if one.state == 'forgotten' then
    return { 'already' }
end
if is_fresh(one) and one.state ~= 'out' then
    return { 'fresh', RAW_MS - tonumber(one.at) }
end
-- What it had under way nobody would close any more, and each newer write behind it would wait.
local open = 0
for i = 0, one.role == 'gateway' and STRIPES - 1 or -1 do
    for _, text in ipairs(redis.call('ZRANGE', STRIPE_KEYS[i] .. ':i', 0, -1)) do
        local state, gateway = string.match(text, '^%S+ %d+ %d+ %d+ (%a) %S+ (%S+) ')
        open = open + ((state == 's' or state == 'q') and gateway == ARGV[1] and 1 or 0)
    end
end
if open > 0 then
    return { 'open', open }
end
-- One that never came in has granted nothing; but while nobody is in, its list may be the only one that leads
-- on.
local others = one.role ~= 'lease' or store.majority == '1'
for _, id in ipairs(ids) do
    local is_in = id ~= ARGV[1] and all[id].role == 'lease' and all[id].state == 'in'
    others = others or (is_in and one.state == 'pending') or (id ~= ARGV[1] and is_live_lease(all[id])
        and (tonumber(all[id].floor) or 0) >= math.max(store.ceiling, stripes.top))
end
if not others then
    return { 'last' }
end
epoch_raise(store, all, ids, ARGV[1]) -- nothing is acknowledged any more to one that was only stalled
-- A list of a lower roll that still names it is not followed (lease/scripts/admit.lua).
redis.call('HSET', member_key(ARGV[1]), 'state', 'forgotten', 'since', whole(members_changed(store)))
return { 'forgotten', one.role or '', one.who or '' }

-- overview.lua - who is on this store, and what has happened lately. Changes nothing, and asks no stripe.
-- on: store
--   KEYS[1]  pawl:{store}
--   returns  {"overview", store time (ms), id or "", epoch, ceiling, how many gateways are in doubt,
--             {id, role, state, who, about, ms since it was heard, counts, ... of each member}, {bar, grants, refused, waiting, ...: lib/bars.lua}}
--            counts: "all": every lease service is needed to admit the store; else a majority of the registrars:
--            "registrar": it is one of them, "": it is none
RAW_MS = clock_ms()
local store = redis.call('HMGET', KEYS[1], 'id', 'epoch', 'ceiling', 'clock', 'majority', 'registrars')
local is_registrar = registrars_of(store[6]).is
local members, bars, ids = {}, {}, redis.call('SMEMBERS', MEMBERS)
table.sort(ids)
for _, id in ipairs(ids) do
    local m = redis.call('HMGET', member_key(id), 'role', 'state', 'who', 'about', 'at')
    if m[2] and m[2] ~= 'forgotten' then
        local at = #members
        members[at + 1], members[at + 2], members[at + 3] = id, m[1] or '', m[2]
        members[at + 4], members[at + 5], members[at + 6] = m[3] or '', m[4] or '', silent_ms(RAW_MS, m[5])
        members[at + 7] = store[5] ~= '1' and 'all' or is_registrar[id] and 'registrar' or ''
    end
end
local kept, doubts = redis.pcall('HGETALL', BARS), redis.pcall('HLEN', DOUBT) -- an error has no elements
for i = 2, #kept, 2 do
    local at = #bars
    bars[at + 1], bars[at + 2], bars[at + 3], bars[at + 4] =
        string.match(kept[i], '^(%d+) (%d+) (%d+) (%d+)$')
end
return { 'overview', whole(RAW_MS + (tonumber(store[4]) or 0)), store[1] or '', store[2] or 0, store[3] or 0,
    type(doubts) == 'number' and doubts or 0, members, bars }

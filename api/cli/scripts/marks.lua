-- marks.lua - the word of an operator, who has looked at another store: since this one has lost the marks of
-- that one's tokens, none below this is let through (gateway/scripts/lib/marks.lua).
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}
--   ARGV[1]  id of the other store, 24 characters
--   ARGV[2]  epoch   ARGV[3]  token: each 1 to 999999999999999
--   ARGV[4]  "force": also below what was named before; else ""
--   returns  {"named", lost}: the epoch with which the marks were lost
--            {"not-lost"}: nothing was    {"own"}: it is this store's own id
--            {"lower", epoch, token}: this was named before    {"another", identity or ""} or {"empty"}
--            in all of them nothing was changed
local store, _, unknown = store_known()
if unknown then
    return unknown
elseif store.id == SCHEMA .. ARGV[1] then
    return { 'own' }
elseif (store.lost or '') == '' then
    return { 'not-lost' }
end
local epoch, token = tonumber(ARGV[2]), tonumber(ARGV[3])
local word = redis.call('HGET', KEYS[1] .. ':marks', ARGV[1]) or ''
local since, named_epoch, named = string.match(word, '^(%d+) (%d+) (%d+)$')
if ARGV[4] ~= 'force' and since == store.lost and (epoch < tonumber(named_epoch)
    or epoch == tonumber(named_epoch) and token < tonumber(named)) then
    return { 'lower', tonumber(named_epoch), tonumber(named) }
end
redis.call('HSET', KEYS[1] .. ':marks', ARGV[1], store.lost .. ' ' .. whole(epoch) .. ' ' .. whole(token))
return { 'named', store.lost }

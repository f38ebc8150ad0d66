-- mark.lua - the highest token that was let through for a lease, as far as this store can vouch for it.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  stripe   KEYS[2]  lease
--   returns  {"mark", seq, mark or 0, its epoch or 0, last token granted or 0, how many resources are stored
--             for it, their bytes}
local name = string.sub(KEYS[2], #KEYS[1] + 4)
local v = redis.call('HMGET', KEYS[2], 'k', 'p', 't')
local mark, epoch = tonumber(v[1] or 0), tonumber(v[2] or 0)
if epoch < ALIVE then
    mark, epoch = 0, 0
end
-- By the check `mark` (lib/marks.lua): of an exclusive token, and perhaps of a shared one.
local by_mark = redis.call('HGET', KEYS[1] .. ':marks', name) or ''
local m = { string.match(by_mark, '^(%d+) (%d+) %S+ ?(%d*) ?(%d*)$') }
for i = 1, #m, 2 do
    local its_epoch, token = tonumber(m[i]) or 0, tonumber(m[i + 1]) or 0
    if its_epoch > epoch or (its_epoch == epoch and token > mark) then
        mark, epoch = token, its_epoch
    end
end
local used = redis.call('HMGET', KEYS[1] .. ':u', name .. '/', name)
return { 'mark', SEQ, mark, epoch, tonumber(v[3] or 0), tonumber(used[1] or 0), tonumber(used[2] or 0) }

-- leaps.lua - by how many ms the store's clock has leapt forward: time that may not have passed. A grace does
-- not count it (intent.lua).
local function store_leaps()
    leaps_known = leaps_known or tonumber(redis.call('HGET', STORE, 'leaps') or 0)
    return leaps_known
end

-- scan.lua - some of the store's keys, and then of its leases: the highest token that one knows of, and what
-- does not belong.
-- on: store
--   ARGV[1]  where to go on, "0" at first; of the leases "STRIPE CURSOR"
--   ARGV[2]  "persist": whatever has a TTL loses it; "look": nothing is changed
--   returns  {"page", where to go on ("0": that was all), highest token or mark, name of the lease that has
--             it or "", highest epoch, how many keys have a TTL, one of them or "", a key of the wrong type
--             or "", its type}
--
-- Nothing of ours has a TTL, and a key of ours that has another type was made by somebody else.
local LOOK_MAX = 500
local top, lease, epoch, ending, one_ending, wrong, wrong_type = 0, '', 0, 0, '', '', ''

-- nil: not one of those that are looked at.
local function must_be(key)
    if key == 'pawl:{store}:members' then
        return 'set'
    end
    if string.match(key, '^pawl:{%x%x}:due$')
        or string.match(key, '^pawl:{%x%x}:gone$') or string.match(key, '^pawl:{%x%x}:g$')
        or string.match(key, '^pawl:{%x%x}:[xq]:') or key == 'pawl:{store}:alarm' then
        return 'zset'
    end
    if key == 'pawl:{store}' or string.match(key, '^pawl:{%x%x}$') or string.match(key, '^pawl:{%x%x}:[uo]$')
        or string.match(key, '^pawl:{store}:m:') or string.match(key, '^pawl:{%x%x}:[nwkdsyr]:') then
        return 'hash'
    end
    return string.match(key, '^pawl:{%x%x}:[ef]:') and 'list' or nil
end

local function take_lease(name, text)
    local _, _, token, its_epoch, _, _, _, marked, marked_epoch = pcall(cmsgpack.unpack, text)
    token = math.max(tonumber(token) or 0, tonumber(marked) or 0) -- a text of any release may say less
    if token > top then
        top, lease = token, name
    end
    epoch = math.max(epoch, tonumber(its_epoch) or 0, tonumber(marked_epoch) or 0)
end

-- Some of the leases of one stripe: how many it looked at, and where to go on there.
local function take_leases(key, from)
    if redis.call('TYPE', key).ok ~= 'hash' then
        return 1, '0'
    end
    local some = redis.call('HSCAN', key, from, 'MATCH', 'l:*', 'COUNT', LOOK_MAX)
    for i = 1, #some[2], 2 do
        take_lease(string.sub(some[2][i], 3), some[2][i + 1])
    end
    return math.min(LOOK_MAX, redis.call('HLEN', key)), some[1]
end

local looked, go_on, page, stripe, cursor = 0, '0', {}, string.match(ARGV[1], '^(%d+) (%d+)$')
if not stripe then
    local found = redis.call('SCAN', ARGV[1], 'MATCH', 'pawl:{*', 'COUNT', LOOK_MAX)
    page, go_on = found[2], found[1] == '0' and '0 0' or found[1]
end
stripe = tonumber(stripe or STRIPES)
while stripe < STRIPES and looked < LOOK_MAX do
    local count, rest = take_leases(stripe_key(stripe), cursor)
    looked, cursor, stripe = looked + count, rest, rest == '0' and stripe + 1 or stripe
    go_on = stripe < STRIPES and stripe .. ' ' .. cursor or '0'
end
for _, key in ipairs(page) do
    local must, is = must_be(key), redis.call('TYPE', key).ok
    if must and is ~= must and is ~= 'none' then
        wrong, wrong_type = key, is
    end
    if redis.call('PTTL', key) >= 0 then
        ending, one_ending = ending + 1, key
        if ARGV[2] == 'persist' then
            redis.call('PERSIST', key)
        end
    end
end
return { 'page', go_on, top, lease, epoch, ending, one_ending, wrong, wrong_type }

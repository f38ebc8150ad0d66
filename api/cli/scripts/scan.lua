-- scan.lua - some of the store's keys: the highest token that a lease knows of, and what does not belong.
--   ARGV[1]  where to go on, "0" at first
--   ARGV[2]  "persist": whatever has a TTL loses it; "look": nothing is changed
--   returns  {"page", where to go on ("0": that was all), highest token or mark, name of the lease that has
--             it or "", highest epoch, how many keys have a TTL, one of them or "", a key of the wrong type
--             or "", its type}
--
-- Nothing of ours has a TTL, and a key of ours that has another type was made by somebody else.
local page = redis.call('SCAN', ARGV[1], 'MATCH', 'pawl:{*', 'COUNT', 500)
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
    if key == 'pawl:{store}' or string.match(key, '^pawl:{%x%x}$') or string.match(key, '^pawl:{%x%x}:u$')
        or string.match(key, '^pawl:{store}:m:') or string.match(key, '^pawl:{%x%x}:[lhnwkdsyr]:') then
        return 'hash'
    end
    return string.match(key, '^pawl:{%x%x}:[ef]:') and 'list' or nil
end

local function take_lease(key, name)
    local v = redis.call('HMGET', key, 't', 'k', 'e', 'p')
    for i = 1, 2 do
        local number = tonumber(v[i]) or 0
        if number > top then
            top, lease = number, name
        end
        epoch = math.max(epoch, tonumber(v[i + 2]) or 0)
    end
end

for _, key in ipairs(page[2]) do
    local must, is = must_be(key), redis.call('TYPE', key).ok
    if must and is ~= must and is ~= 'none' then
        wrong, wrong_type = key, is
    end
    local name = string.match(key, '^pawl:{%x%x}:l:(.*)$')
    if name and is == 'hash' then
        take_lease(key, name)
    end
    if redis.call('PTTL', key) >= 0 then
        ending, one_ending = ending + 1, key
        if ARGV[2] == 'persist' then
            redis.call('PERSIST', key)
        end
    end
end
return { 'page', page[1], top, lease, epoch, ending, one_ending, wrong, wrong_type }

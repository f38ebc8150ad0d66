-- routes_adopt.lua - all gateways on this store are to serve another route table.
-- flags: allow-oom
--   KEYS[1]  stripe 0
--   ARGV[1]  hash of the table, not ""
--   returns  {"adopted", seq, hash of the one before, or ""}
--            {"open", seq, how many intents are open, how many gateways have yet to say what they have sent}:
--              nothing was changed. By other routes another lease may guard what these go to. Intents that
--              gateways keep open for later writes they are asked to close.
local open, doubtful = 0, redis.call('HLEN', 'pawl:{store}:doubt')
for i = 0, 255 do
    open = open + redis.call('ZCARD', string.format('pawl:{%02x}:i', i))
end
local before = redis.call('HGET', 'pawl:{store}', 'routes') or ''
if before == ARGV[1] then
    return { 'adopted', SEQ, before }
elseif open + doubtful > 0 then
    for _, id in ipairs(open > 0 and redis.call('SMEMBERS', 'pawl:{store}:members') or {}) do
        redis.call('PUBLISH', ASKED .. id, '')
    end
    return { 'open', SEQ, open, doubtful }
end
touch()
redis.call('HSET', 'pawl:{store}', 'routes', ARGV[1])
return { 'adopted', SEQ, before }

-- unreported_leave.lua - all that a gateway had sent, and that a store may have lost, is recorded again; or
-- an operator knows what has become of it.
-- flags: allow-oom
--   KEYS[1]  stripe 0
--   ARGV[1]  gateway   ARGV[2]  its incarnation   ARGV[3]  hash of the route table by which it had sent what is
--            open; of its own, where nothing is; or "": it has none
--   ARGV[4]  epoch of the epoch in which that is known: a doubt that a later one has begun stays
--   ARGV[5]  roll that all living lease services must have recorded, as unreported_dead.lua has told, 0: none
--   returns  {"left", seq, how many are left who have yet to say}
--            {"unrecorded", seq}: nothing was changed
--
-- What it had sent, it had sent by its table: a store that was put back may know another one. Then nobody's
-- is served until one is adopted (routes_adopt.lua), which is not before all that was sent has ended.
local doubt, store = 'pawl:{store}:doubt', 'pawl:{store}'
-- Who has entered others stays in doubt itself until state directories have them, or a store that is lost in
-- between takes them along.
local function is_recorded(roll)
    local recorded = roll == 0
    for _, id in ipairs(roll > 0 and redis.call('SMEMBERS', store .. ':members') or {}) do
        local one = redis.call('HMGET', store .. ':m:' .. id, 'role', 'state', 'at', 'roll')
        if one[1] == 'lease' and one[2] == 'in' and silent_ms(clock_ms(), one[3]) <= FRESH_MS then
            recorded = tonumber(one[4]) >= roll
            if not recorded then
                break
            end
        end
    end
    return recorded
end

if not is_recorded(tonumber(ARGV[5])) then
    return { 'unrecorded', SEQ }
end
local entry = ARGV[1] .. ' ' .. ARGV[2]
local state = redis.call('HGET', doubt, entry)
if state and tonumber(string.match(state, ' (%d+)$') or 0) <= tonumber(ARGV[4]) then
    touch()
    redis.call('HDEL', doubt, entry)
    local routes = redis.call('HGET', store, 'routes') or ''
    if ARGV[3] ~= '' and routes ~= ARGV[3] then
        redis.call('HSET', store, 'routes', routes == '' and ARGV[3] or '?')
    end
end
return { 'left', SEQ, redis.call('HLEN', doubt) }

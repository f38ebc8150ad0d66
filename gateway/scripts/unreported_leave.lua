-- unreported_leave.lua - all that a gateway had sent, and that a store may have lost, is recorded again; or
-- an operator knows what has become of it.
-- flags: allow-oom
--   KEYS[1]  stripe 0
--   ARGV[1]  gateway   ARGV[2]  its incarnation   ARGV[3]  hash of the route table by which it had sent what is
--            open; of its own, where nothing is; or "": it has none
--   ARGV[4]  epoch of the epoch in which that is known: a doubt that a later one has begun stays
--   ARGV[5]  roll that all living lease services must have recorded, as unreported_dead.lua answered, 0: none
--   ARGV[6]  "open" if anything of it is; or nothing, or ""
--   returns  {"left", seq, how many are left who have yet to say}
--            {"unrecorded", seq}: nothing was changed
--
-- What it had sent, it had sent by its table: a store that was put back may know another one. Then nobody's
-- is served until one is adopted (routes_adopt.lua), which is not before all that was sent has ended. So it is also
-- when nobody knows who had sent anything (api/cli/scripts/recover.lua), and this one has something open.
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
-- In doubt, and not since a later epoch only.
local function is_in_doubt(who)
    local state = redis.call('HGET', doubt, who)
    return state and tonumber(string.match(state, ' (%d+)$') or 0) <= tonumber(ARGV[4])
end

local entry = ARGV[1] .. ' ' .. ARGV[2]
local is_its = is_in_doubt(entry)
if is_its then
    touch()
    redis.call('HDEL', doubt, entry)
end
local routes = redis.call('HGET', store, 'routes') or ''
local has_open = ARGV[6 + OWN_ARGS] and ARGV[6] == 'open'
local counts = is_its or has_open and is_in_doubt('whichever_it_was whichever_it_was')
if counts and ARGV[3] ~= '' and routes ~= ARGV[3] then
    touch()
    redis.call('HSET', store, 'routes', routes == '' and ARGV[3] or '?')
end
return { 'left', SEQ, redis.call('HLEN', doubt) }

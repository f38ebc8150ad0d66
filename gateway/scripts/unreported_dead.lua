-- unreported_dead.lua - former incarnations of a gateway are known to be dead: what they had sent, and a
-- store may have lost, nobody will record again. From now on a grace counts.
-- flags: allow-oom
--   KEYS[1]  stripe 0
--   ARGV[1]  gateway   ARGV[2]  the incarnation that lives, or "": none
--   ARGV[3]  which are dead: "all" the others, "these", or "lost": these, and they are in doubt even if this
--            store knows nothing of it. Who has not seen what they had open before a store was lost (all of
--            intent_takeover.lua) must say so
--   ARGV[4..]  the incarnations, "-": none; with "all" nothing, or one: then not the one that is the member
--            by now, if it is another than that; else then perhaps "ended" and those that ended in order with
--            nothing open: they are in no doubt; with "lost", then perhaps "open" and those of which it is not
--            known whether they are dead: they are in doubt, as living ones are
--   returns  {"dead", seq, {those of them that are in doubt}, with "lost" the roll at which state
--            directories have those that are in doubt, else 0}; asked again, it says the same
local doubt, dead, these = 'pawl:{store}:doubt', {}, {}
local have_ended, are_unproven = false, false
for i = 4, #ARGV - OWN_ARGS do
    local entry = ARGV[1] .. ' ' .. ARGV[i]
    if ARGV[3] == 'lost' and ARGV[i] == 'open' then
        are_unproven = true
    elseif ARGV[3] ~= 'all' and ARGV[i] == 'ended' then
        have_ended = true
    elseif have_ended and not are_unproven then
        if redis.call('HGET', doubt, entry) then
            touch()
            redis.call('HDEL', doubt, entry)
        end
    elseif not are_unproven and ARGV[i] ~= '-' then
        these[ARGV[i]] = ARGV[3] == 'lost' and 'open ' .. whole(EPOCH) or ''
    elseif are_unproven and ARGV[i] ~= ARGV[2] and not redis.call('HGET', doubt, entry) then
        touch()
        redis.call('HSET', doubt, entry, 'open ' .. whole(EPOCH))
        redis.call('HINCRBY', STORE, 'roll', 1)
    end
end
local entries = redis.call('HGETALL', doubt)
for i = 1, #entries, 2 do
    local gateway, incarnation = string.match(entries[i], '^(%S+) (%S+)$')
    if gateway == ARGV[1] and (ARGV[3] == 'all' or these[incarnation]) then
        these[incarnation] = entries[i + 1]
    end
end
these[ARGV[2]] = nil
if ARGV[3] == 'all' and #ARGV == 4 + OWN_ARGS then
    local member = redis.call('HGET', 'pawl:{store}:m:' .. ARGV[1], 'incarnation')
    these[member ~= ARGV[4] and member or ''] = nil
end
for incarnation, state in pairs(these) do
    if state ~= '' then
        dead[#dead + 1] = incarnation
    end
    local life = string.match(state, '^open (%d+)$')
    if life then
        touch()
        local since = 'dead ' .. whole(NOW) .. ' ' .. whole(store_leaps()) .. ' ' .. life
        local entry = ARGV[1] .. ' ' .. incarnation
        if redis.call('HSET', doubt, entry, since) == 1 then
            redis.call('HINCRBY', STORE, 'roll', 1)
        end
    end
end
table.sort(dead)
return { 'dead', SEQ, dead, ARGV[3] == 'lost' and tonumber(redis.call('HGET', STORE, 'roll')) or 0 }

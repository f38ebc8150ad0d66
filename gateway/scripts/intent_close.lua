-- intent_close.lua - what has become of intents, of one stripe or of several.
-- flags: allow-oom
-- batch: yes
--   KEYS[1..]  the stripes, 1 to 32, each once
--   ARGV[1..]  1 to 32, each "INDEX WORD TEXT": number of the stripe among KEYS, from 1; word; text of the
--              intent (lib/intent.lua), also of before its state changed. The words:
--     close    it is over, or was never sent: removed, whatever its state is now
--     settle   the same, and it was a conditional write that was applied: no older one with a lower token can
--              be applied any more, since the version is another; those of kind c are removed, too
--     unknown  it was sent, and its gateway will not learn how it ended: s becomes u, with the KIND of TEXT
--     forget   TEXT is "NAME GATEWAY INCARNATION ID": whether it was recorded is not known, and it is never
--              sent: removed, whatever its state is. Until 2 s after its admission was sent (AHEAD_MS in
--              shared/member/scripts/lib/stripe.lua) that may still arrive, and then it must be forgotten once more
--   returns  {"closed", seq, how many there were to be changed}: what was not open any more is no error
--            {"not-ours"}: also when it is another of the stripes
--
-- The sequence number of every stripe that was changed rises, and then that of the first one, too: by it the
-- caller knows what a store has lost.
local count, exact, others = #ARGV - OWN_ARGS, {}, {}
for i = 1, count do
    local one = ARGV[i]
    local from, to = string.find(one, ' close ', 2, true)
    if from and from <= 3 then
        local index = string.sub(one, 1, from - 1) + 0
        local list = exact[index]
        if list then
            list[#list + 1] = string.sub(one, to + 1)
        else
            exact[index] = { string.sub(one, to + 1) }
        end
    else
        local index, word, text = string.match(one, '^(%d+) (%l+) (.+)$')
        others[#others + 1] = { KEYS[tonumber(index)], word, text }
    end
end
for i = 2, #KEYS do
    if not life_is_same(redis.call('HGET', KEYS[i], 'life')) then
        return { 'not-ours' }
    end
end

local closed, changes = 0, {}
for index, list in pairs(exact) do
    local key, stripe = KEYS[index] .. ':i', KEYS[index]
    local there = redis.call('ZREM', key, unpack(list))
    if there < #list then
        there = there + close_changed(key, list)
    end
    if there > 0 then
        closed, changes[stripe] = closed + there, true
    end
end
for _, one in ipairs(others) do
    local there = close_as(one[2], one[1] .. ':i', one[3])
    if there > 0 then
        closed, changes[one[1]] = closed + there, true
    end
end
for stripe in pairs(changes) do
    touch()
    if stripe ~= KEYS[1] then
        redis.call('HINCRBY', stripe, 'seq', 1)
    end
end
return { 'closed', SEQ, closed }

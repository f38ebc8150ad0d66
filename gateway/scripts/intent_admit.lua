-- intent_admit.lua - may this write be sent to the upstream? Then it is recorded in this very step that it is
-- being sent, or that it waits for something older.
-- batch: yes
--   KEYS[1]  stripe
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  "live" | "mark" ...: which check (lib/marks.lua)   ARGV[7]  hash of the route table, not ""
--   ARGV[8]  kind: o | o+ | o~ | c | k | a (lib/intent.lua)   ARGV[9]  gateway   ARGV[10]  its incarnation
--   ARGV[11]  number of the request there, [A-Za-z0-9.]{1,24}   ARGV[12]  h | p | g<ms>: what becomes of an
--             unknown outcome   ARGV[13]  "full", or nothing: the store is full, and nothing new is recorded
--   returns  {"sending", seq, mark, text}: send it
--            {"queued", seq, mark, text, text of the first that it waits for}: do not (intent_promote.lua)
--            {"refused", ...} (lib/fence.lua)
--            {"in-doubt", seq, mark, "store", "GATEWAY INCARNATION"}: this one has yet to say what it has
--              sent (kinds o, o+ and c)
--            {"full", seq, mark}: too many of this lease are open
--            {"routes-differ", seq, hash of the table that is served}   {"store-full", seq, mark}
--            Nothing is recorded in these last five. Who gets no reply must forget it (intent_close.lua).
local OPEN = intents_of(KEYS[1])
local OPEN_MAX = 1000
local routes, differ = routes_served()
if differ then
    return differ
end
local check, but = check_of(), waits_not_for(ARGV[8])
local record = check.read()
local reason = check.reason(record, 'write')
if reason then
    return check.refuse(record, reason)
end
local doubtful = but and doubt_of(ARGV[12])
if doubtful then
    return { 'in-doubt', SEQ, record.mark, 'store', doubtful }
end
if ARGV[13] == 'full' then
    return { 'store-full', SEQ, record.mark }
end
local own = presented_text()
local first, gone, open = nil, nil, redis.call('ZCARD', OPEN)
if but and open > 0 then
    local behind = '(' .. ARGV[1] .. ' ' .. own .. (ARGV[8] == 'o+' and '!' or '')
    first, gone = intent_look(own, behind, but)
end
if open >= OPEN_MAX then
    open = redis.call('ZLEXCOUNT', OPEN, '[' .. ARGV[1] .. ' ', '(' .. ARGV[1] .. '!')
    if open - (gone and #gone or 0) >= OPEN_MAX then
        return { 'full', SEQ, record.mark }
    end
end

touch()
if gone then
    intent_remove(gone)
end
if routes == '' then
    redis.call('HSET', STORE, 'routes', ARGV[7])
end
local mark = check.pass(record)
local whose = (record.identity or '') ~= '' and '@' .. record.identity or ''
local text = ARGV[1] .. ' ' .. own .. ' ' .. string.format('%016d', SEQ) .. (first and ' q ' or ' s ')
    .. ARGV[8] .. ' ' .. ARGV[9] .. ' ' .. ARGV[10] .. ' ' .. ARGV[11] .. ' ' .. ARGV[12] .. whose .. ' '
    .. whole_now()
redis.call('ZADD', OPEN, '0', text)
if first then
    return { 'queued', SEQ, mark, text, first }
end
return { 'sending', SEQ, mark, text }

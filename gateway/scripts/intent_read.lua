-- intent_read.lua - may this fenced read be sent to the upstream? After it no older write lands.
-- flags: allow-oom
--   KEYS[1]  stripe
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  "live" | "mark" ...: which check (lib/marks.lua)   ARGV[7]  hash of the route table, not ""
--   ARGV[8]  h | p | g<ms>: what becomes of an unknown outcome here
--   returns  {"accepted", seq, mark}
--            {"wait", seq, mark, text of the first that it waits for}; or "store", "GATEWAY INCARNATION" in
--              place of that: this one has yet to say what it has sent. The mark is raised already.
--            {"refused", ...} (lib/fence.lua)
--            {"routes-differ", seq, hash of the table that is served}
local OPEN = intents_of(KEYS[1])
local routes, differ = routes_served()
if differ then
    return differ
end
local check = check_of()
local record = check.read()
local reason = check.reason(record, 'read')
if reason then
    return check.refuse(record, reason)
end
local doubtful, first, gone = doubt_of(ARGV[8]), nil, nil
if redis.call('ZCARD', OPEN) > 0 then
    local own = presented_text()
    first, gone = intent_look(own, '(' .. ARGV[1] .. ' ' .. own, 'k')
end

if gone then
    intent_remove(gone)
end
if routes == '' then
    touch()
    redis.call('HSET', STORE, 'routes', ARGV[7])
end
local mark = check.pass(record)
if doubtful then
    return { 'wait', SEQ, mark, 'store', doubtful }
elseif first then
    return { 'wait', SEQ, mark, first }
end
return { 'accepted', SEQ, mark }

-- inspect.lua - what would the fence say to a write with this token now, and what became of its hold? Changes nothing.
-- reads: yes
--   KEYS[1]  stripe
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   returns  {"inspected", seq, store time (ms), reason or "", last token granted or 0,
--             granted later, -1: not known any more,
--             {holder, granted at or 0, how it ended or "", ended at or 0} or {}: nothing is known of it}
--
-- Of a hold that is over the history knows: of one that has gone from the list, nothing; nor is it known then how many
-- were granted since.
local record = fence_read()
local reason = fence_reason(record, 'write') or ''
local hold, later, count = {}, {}, 0

local function notes_later(token)
    if token > PRESENTED and not later[token] then
        later[token], count = true, count + 1
    end
end

-- Of the items of its grant and its end.
local function take(kind, holder, at)
    hold[1], hold[2], hold[3], hold[4] = hold[1] or holder, hold[2] or '0', hold[3] or '', hold[4] or '0'
    if kind == 'granted' then
        hold[2] = at
    else
        hold[3], hold[4] = kind, at
    end
end

local items = record and redis.call('LRANGE', KEYS[1] .. ':e:' .. ARGV[1], 0, -1) or {}
for _, item in ipairs(items) do
    local kind, token, holder, at = string.match(item, '^[^\t]*\t([^\t]*)\t(%d+)\t([^\t\31]*)[^\t]*\t(%d+)')
    if token then
        notes_later(tonumber(token))
    end
    if token == ARGV[2] then
        take(kind, holder, at)
    end
end
if record then
    notes_later(record.token)
    local one = record.presented or record.hold == HOLD and record.state == 'held' and record
    if one then
        hold[1], hold[2] = one.holder, whole(one.granted)
        hold[3], hold[4] = '', '0'
        if one.lapsed then
            hold[3], hold[4] = one.ended, whole(math.min(one.deadline, NOW))
        end
    end
end
return { 'inspected', SEQ, whole(NOW), reason, record and record.token or 0, hold[1] and count or -1, hold }

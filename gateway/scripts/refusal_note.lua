-- refusal_note.lua - notes in a lease's history what was refused, and whose token it was (lib/fence.lua says when).
-- It is a call of its own: its arguments cost a request that is let through nothing.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  reason   ARGV[7]  last token, as it was then   ARGV[8]  id of the gateway
--   ARGV[9]  instance of the problem, without "urn:uuid:"   ARGV[10]  key or path that was asked for, or ""
--   returns  {"noted", seq}: now, or another one within the last second
local record = fence_read()

-- HOLDER, as an item has it: of the hold that is presented, while it is known, else of its grant or end in the list.
local function presented_holder()
    local one = record.many and one_of_many() or record.held and record.hold == HOLD and record
    if one then
        return history_holder(one)
    end
    local items = redis.call('LRANGE', KEYS[1] .. ':e:' .. ARGV[1], 0, -1)
    for i = #items, 1, -1 do
        local token, holder = string.match(items[i], '^[^\t]*\t[^\t]*\t(%d+)\t([^\t]*)')
        if token == ARGV[2] then
            return holder
        end
    end
    return ''
end

if record and refusal_is_due() then
    local holder = ARGV[6] ~= 'unissued-token' and presented_holder() or ''
    local asked = ARGV[10] ~= '' and '\31p' .. ARGV[10] or ''
    history_add(KEYS[1], 'f', ARGV[1], 'refused', PRESENTED, holder,
        ARGV[6] .. '\31c' .. ARGV[7] .. '\31g' .. ARGV[8] .. '\31i' .. ARGV[9] .. asked)
end
return { 'noted', SEQ }

-- mark.lua - the highest token that was let through for a lease, as far as this store can vouch for it.
--   KEYS[1]  stripe   ARGV[1]  lease
--   returns  {"mark", seq, mark or 0, its epoch or 0, last token granted or 0, how many resources are stored
--             for it, their bytes}
local name = ARGV[1]
local record = hold_read(KEYS[1], 'l:' .. name)
local mark, epoch = record.mark, record.mark > 0 and record.marked_epoch or 0
-- By the check `mark` (lib/marks.lua): of an exclusive token, and perhaps of a shared one.
local by_mark = redis.call('HGET', KEYS[1] .. ':marks', name)
if by_mark then
    local its_epoch, token = mark_top(mark_read(by_mark))
    if above(its_epoch, token, epoch, mark) then
        mark, epoch = token, its_epoch
    end
end
local used = redis.call('HMGET', KEYS[1] .. ':u', name .. '/', name)
return { 'mark', SEQ, mark, epoch, record.token, tonumber(used[1] or 0), tonumber(used[2] or 0) }

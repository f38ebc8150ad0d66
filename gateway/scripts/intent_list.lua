-- intent_list.lua - the open intents of a lease, or of a stripe, page by page, in the order of lease, epoch,
-- token, arrival.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  stripe
--   ARGV[1]  name of the lease, or "": of all   ARGV[2]  text to go on behind, or ""
--   ARGV[3]  how many, 1 to 1000
--   returns  {"listed", seq, {texts (lib/intent.lua)}}: fewer than ARGV[3] on the last page
local from = ARGV[1] == '' and '-' or '[' .. ARGV[1] .. ' '
local to = ARGV[1] == '' and '+' or '(' .. ARGV[1] .. '!'
if ARGV[2] ~= '' then
    from = '(' .. ARGV[2]
end
return { 'listed', SEQ, redis.call('ZRANGEBYLEX', KEYS[1] .. ':i', from, to, 'LIMIT', 0, ARGV[3]) }

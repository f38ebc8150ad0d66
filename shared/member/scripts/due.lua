-- due.lua - which of some stripes are to be swept? Changes nothing.
--   KEYS[1]  the first of them
--   ARGV[1]  its number, 0 to 255   ARGV[2]  how many   ARGV[3]  "due" or "gone": the index
--   returns  {"due", seq, {number, ...}}: something is due there; or the stripe is missing, or has an end that
--            somebody else's EXPIRE has given it; or its index cannot be read: that is the sweep's to say
local first, now, found = tonumber(ARGV[1]), whole(NOW), {}
for i = first, first + ARGV[2] - 1 do
    local key = stripe_key(i)
    if redis.pcall('ZCOUNT', key .. ':' .. ARGV[3], '-inf', now) ~= 0 or redis.call('PTTL', key) ~= -1 then
        found[#found + 1] = i
    end
end
return { 'due', SEQ, found }

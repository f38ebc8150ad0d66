-- use_look.lua - what identities use in some stripes, as it is counted there (lib/use.lua). Changes nothing
-- in the store; from now on the kinds that are asked for are counted.
--   KEYS[1]  the first of them
--   ARGV[1]  its number, 0 to 255   ARGV[2]  how many   ARGV[3]  kinds, a letter each
--   ARGV[4]  "counted" where Redis has not loaded the library, so that what a call leaves behind is gone with it,
--            when all stripes were counted anew a moment ago; or ""
--   returns  {"looked", seq, {KIND IDENTITY, number, ...}}
--            {"new", seq}: until now nobody looked: to be counted anew first
if use_looked(ARGV[3]) and ARGV[4] ~= 'counted' then
    return { 'new', SEQ }
end
local first, counts, list = tonumber(ARGV[1]), {}, {}
for i = first, first + ARGV[2] - 1 do
    local kept = redis.pcall('HGETALL', stripe_key(i) .. ':o') -- an error has no elements
    for j = 1, #kept, 2 do
        counts[kept[j]] = (counts[kept[j]] or 0) + (tonumber(kept[j + 1]) or 0)
    end
end
for field, number in pairs(counts) do
    list[#list + 1], list[#list + 2] = field, number
end
return { 'looked', SEQ, list }

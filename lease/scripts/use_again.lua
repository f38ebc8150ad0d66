-- use_again.lua - count anew what identities hold, and have open, in one stripe (lib/use.lua).
--   KEYS[1]  stripe
--   returns  {"counted", seq, how many counts were wrong}
local counts, fields, scratch = {}, redis.call('HGETALL', KEYS[1]), hold_table()
for i = 1, #fields, 2 do
    local text = fields[i + 1]
    if string.sub(text, 2, 5) == 'held' then -- behind the byte that says how long the text is
        local is_sound, one = pcall(hold_unpack, scratch, text)
        if is_sound and one and not one.many and one.epoch >= ALIVE and one.identity ~= '' then
            use_add(counts, 'h', one.identity, 1)
        end
    end
end
for _, member in ipairs(redis.call('ZRANGE', KEYS[1] .. ':due', 0, -1)) do
    if string.sub(member, 1, 3) == ':s:' then
        local s = redis.call('HMGET', KEYS[1] .. member, 's', 'i', 'e')
        if s[1] == 'live' and s[2] and tonumber(s[3] or 0) >= ALIVE then
            use_add(counts, 's', s[2], 1)
        end
    end
end
return use_set('hs', counts)

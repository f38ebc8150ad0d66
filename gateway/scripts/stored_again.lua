-- stored_again.lua - count anew what identities have stored in one stripe
-- (shared/member/scripts/lib/use.lua).
--   KEYS[1]  stripe
--   returns  {"counted", seq, how many counts were wrong}
local counts = {}
for _, key in ipairs(redis.call('ZRANGE', KEYS[1] .. ':g', 0, -1)) do
    local is_sound, version = pcall(version_read, KEYS[1] .. ':r:' .. key)
    if is_sound and version.owner ~= '' then
        use_add(counts, 'b', version.owner, version.bytes)
    end
end
return use_set('b', counts)

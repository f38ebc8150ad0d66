-- stored_again.lua - count anew what identities have stored in one stripe
-- (shared/member/scripts/lib/use.lua).
--   KEYS[1]  stripe   KEYS[2]  what every resource of this stripe begins with
--   returns  {"counted", seq, how many counts were wrong}
local counts = {}
for _, key in ipairs(redis.call('ZRANGE', KEYS[1] .. ':g', 0, -1)) do
    local is_sound, version = pcall(version_unpack, KEYS[2] .. key, redis.call('HGET', KEYS[2] .. key, 'z'))
    if is_sound and version.owner ~= '' then
        use_add(counts, 'b', version.owner, version.bytes)
    end
end
return use_set('b', counts)

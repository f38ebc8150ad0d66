-- resource_list.lua - what is stored in one stripe, in the order of the keys, a bounded number at a time.
-- reads: yes
--   KEYS[1]  stripe   KEYS[2]  what every resource of this stripe begins with
--   ARGV[1]  prefix of the keys, or ""   ARGV[2]  the key after which to go on, or ""
--   ARGV[3]  how many, 1 to 1000
--   returns  {"listed", seq, key after which to go on or "" when the stripe is done,
--             {{key, bytes, ETag, Content-Type}, ...}}
local STEP_MAX = 100
local prefix, after, most = ARGV[1], ARGV[2], math.min(tonumber(ARGV[3]), STEP_MAX)
local from = after ~= '' and '(' .. after or prefix ~= '' and '[' .. prefix or '-'
local to = prefix ~= '' and '(' .. prefix .. '\255' or '+' -- no text has this byte
local keys = redis.call('ZRANGEBYLEX', KEYS[1] .. ':g', from, to, 'LIMIT', 0, most)

local items = {}
for i, key in ipairs(keys) do
    local version = version_unpack(KEYS[2] .. key, redis.call('HGET', KEYS[2] .. key, 'z'))
    items[i] = { key, version.bytes, version.etag, version.type }
end
return { 'listed', SEQ, #keys == most and keys[most] or '', items }

-- intent_plain.lua - most writes: with such a token (lib/fence_plain.lua), by the table that is served, and
-- nothing is in the way. Now and then it is left to the functions that count what is open.
local COUNTED = 32
local MARK_IS_BELOW = IS_MARKED or not PLAIN[7] or PLAIN[8] + 0 < ARGV[3] + 0
    or PLAIN[8] == ARGV[3] and PLAIN[7] + 0 < ARGV[2] + 0

if IS_PLAIN and MARK_IS_BELOW and ARGV[6] == 'live' and (SEQ + 1) % COUNTED ~= 0 and ARGV[13] ~= 'full'
    and redis.call('HGET', 'pawl:{store}', 'routes') == ARGV[7] then
    local kind, name = ARGV[8], ARGV[1]
    local head = string.format('%s %015d %015d', name, ARGV[3], ARGV[2])
    if kind == 'k' or kind == 'a' or redis.call('EXISTS', 'pawl:{store}:doubt') == 0
        and not redis.call('ZRANGEBYLEX', KEYS[1] .. ':i', '[' .. name .. ' ',
            '(' .. head .. (kind == 'o+' and '!' or ''), 'LIMIT', '0', '1')[1] then
        touch()
        if not IS_MARKED then
            redis.call('HSET', KEYS[2], 'k', ARGV[2], 'p', ARGV[3])
        end
        local text = string.format('%s %016d s %s %s %s %s %s %d', head, SEQ, kind, ARGV[9], ARGV[10],
            ARGV[11], ARGV[12], NOW)
        redis.call('ZADD', KEYS[1] .. ':i', '0', text)
        return { 'sending', SEQ, ARGV[2] + 0, text }
    end
end

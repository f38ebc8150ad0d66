-- session_open.lua - a new session: it lives for ttl_ms, and then as long as it is renewed.
--   KEYS[1]  stripe of the session   KEYS[2]  due index   KEYS[3]  session
--   ARGV[1]  its id   ARGV[2]  remember_ms
--   ARGV[3]  its secret   ARGV[4]  holder, 1 to 128 bytes   ARGV[5]  ttl_ms, 100 to 86400000
--   ARGV[6]  meta as JSON, or ""
--   ARGV[7]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"opened", seq}   {"taken", seq}: there is one of this id
local deadline = whole(NOW + tonumber(ARGV[5]))

if redis.call('EXISTS', KEYS[3]) == 1 then
    return { 'taken', SEQ }
end
touch()
redis.call('HSET', KEYS[3], 's', 'live', 'c', ARGV[3], 'o', ARGV[4], 'l', ARGV[5], 'g', whole(NOW),
    'd', deadline, 'e', EPOCH_TEXT)
if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[3], 'm', ARGV[6])
end
if ARGV[7 + OWN_ARGS] and ARGV[7] ~= '' then
    redis.call('HSET', KEYS[3], 'i', ARGV[7])
    use_count(KEYS[1], 's', ARGV[7], '1')
end
redis.call('ZADD', KEYS[2], deadline, ':s:' .. ARGV[1])
return { 'opened', SEQ }

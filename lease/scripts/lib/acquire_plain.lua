-- acquire_plain.lua - most acquires: nothing special is asked for, and there is nothing special about the
-- lease. These are granted or refused here, before the functions are made that others need: making them
-- costs as much as some commands.
local RECORD = hold_read(KEYS[3])

if ARGV[9] == '' and not (RECORD and (RECORD.more or RECORD.lapsed or RECORD.lease_id == ARGV[3])) then
    if RECORD and RECORD.live then
        return { 'held', SEQ, RECORD.token, RECORD.holder, RECORD.left_ms }
    end
    if ARGV[8] == 'grant' and COUNTER < CEILING and COUNTER < TOKEN_LAST then
        touch()
        local token, ttl_ms = redis.call('HINCRBY', KEYS[1], 'counter', 1), ARGV[6] + 0
        local deadline = whole(NOW + ttl_ms)
        local terms = { lease_id = ARGV[3], hold = ARGV[4], holder = ARGV[5], ttl = ARGV[6], meta = ARGV[7] }
        hold_begin(KEYS[3], terms, token, deadline)
        redis.call('ZADD', KEYS[2], deadline, ARGV[1])
        history_add(KEYS[1], SEQ, 'e', ARGV[1], 'granted', token, ARGV[5], '')
        return { 'granted', SEQ, token, EPOCH, ttl_ms, ttl_ms }
    end
end

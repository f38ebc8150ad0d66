-- release_plain.lua - most releases: of a hold with nothing special about it, and nobody waits. These are
-- done here, before the functions are made that others need (acquire_plain.lua).
local RECORD = hold_read(KEYS[3])

if RECORD and RECORD.live and not RECORD.more and RECORD.lease_id == ARGV[3] and ARGV[7] == ''
    and (ARGV[4] == '' or ARGV[4] == RECORD.hold) then
    local forget_at = whole(NOW + ARGV[2])
    touch()
    hold_stop(KEYS[3], 'released', forget_at)
    redis.call('ZADD', KEYS[2], forget_at, ARGV[1])
    history_add(KEYS[1], SEQ, 'e', ARGV[1], 'released', RECORD.token, RECORD.holder, '')
    return { 'released', SEQ, '' }
end

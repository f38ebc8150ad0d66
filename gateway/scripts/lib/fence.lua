-- fence.lua - may this token act? The one place where a stale writer is refused.
--   ARGV[1]  name of the lease
--   ARGV[2]  token
--   ARGV[3]  its epoch
--   ARGV[4]  name of its hold
--   ARGV[5]  remember_ms
--   KEYS[2]  due index           KEYS[3]  lease
local PRESENTED, PRESENTED_EPOCH, HOLD = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local function above(epoch_a, token_a, epoch_b, token_b)
    return epoch_a > epoch_b or (epoch_a == epoch_b and token_a > token_b)
end

-- nil when the token is that of the hold that is live now, else the reason in the contract's words.
local function fence_reason(record)
    if above(PRESENTED_EPOCH, PRESENTED, EPOCH, COUNTER) then
        return 'unissued-token'
    end
    if not record then
        return 'lease-expired' -- forgotten: no live hold
    end
    if above(PRESENTED_EPOCH, PRESENTED, record.epoch, record.token) then
        -- A store that has lost grants cannot call one of them never granted; but all holds of before are
        -- over.
        return PRESENTED_EPOCH < ALIVE and 'lease-expired' or 'unissued-token'
    end
    if above(record.epoch, record.token, PRESENTED_EPOCH, PRESENTED) then
        return 'stale-token'
    end
    if record.hold ~= HOLD then
        return 'unissued-token' -- the number alone, under another hold's name
    end
    if not record.live then
        return 'lease-expired'
    end
    return nil
end

-- What a refusal tells.
--   {"refused", seq, reason, last token or 0, its epoch or 0, mark or 0, holder or ""}
local function fence_refuse(record, reason)
    if not record then
        return { 'refused', SEQ, reason, 0, 0, 0, '' }
    end
    hold_settle(record, KEYS[2], ARGV[1], tonumber(ARGV[5]))
    local holder = record.live and record.holder or ''
    return { 'refused', SEQ, reason, record.token, record.epoch, record.mark, holder }
end

-- Raises the mark to the token that was let through: from here on it is the live one's.
local function fence_pass(record)
    if record.mark ~= PRESENTED or record.mark_epoch ~= PRESENTED_EPOCH then
        touch()
        redis.call('HSET', record.key, 'k', PRESENTED, 'p', PRESENTED_EPOCH)
    end
    return PRESENTED
end

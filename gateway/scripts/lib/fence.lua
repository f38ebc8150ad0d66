-- fence.lua - may this token act? The one place where a stale writer is refused.
--   ARGV[1]  name of the lease
--   ARGV[2]  token
--   ARGV[3]  its epoch
--   ARGV[4]  name of its hold
--   ARGV[5]  "exclusive" | "shared" | "permits": its mode, as the signed header has it; and behind a blank
--            the identity that must have begun the hold, of who may write with no other
--   KEYS[1]  stripe
local REFUSAL_APART_MS = 1000

-- What is presented. What a hold that is over is called: one of many is stale, with or without a later one
-- (docs/contract.md, "The check"). The store keeps nothing of it, so the header says what it was: only this
-- word hangs on that.
local function fence_begin()
    PRESENTED, PRESENTED_EPOCH, HOLD = ARGV[2] + 0, ARGV[3] + 0, ARGV[4]
    local mode = ARGV[5]
    if mode ~= 'exclusive' then
        mode, OWN = string.match(mode, '^(%l+) ?(.*)$')
        OWN = OWN ~= '' and OWN
    end
    OVER = mode == 'exclusive' and 'lease-expired' or 'stale-token'
end

local function above(epoch_a, token_a, epoch_b, token_b)
    return epoch_a > epoch_b or (epoch_a == epoch_b and token_a > token_b)
end

-- The lease, or nil: nothing is known of any grant, also when somebody waits for the first one.
local function fence_read()
    fence_begin()
    local record = hold_own()
    return record.token > 0 and record or nil
end

-- Which of many holds has the presented name, also when it is over; nil: none.
local function one_of_many()
    local lease_id = redis.call('HGET', KEYS[1] .. ':n:' .. ARGV[1], HOLD)
    local one = lease_id and hold_read(KEYS[1], 'h:' .. ARGV[1] .. '/' .. lease_id)
    return one and one.hold == HOLD and one or nil
end

-- nil when the token is that of a hold that is live now and may do this, "read" or "write"; else the reason
-- in the contract's words.
--
-- A grant that nobody has claimed yet passes like any other, and need not be kept apart: the name of its hold
-- is random, and no header with it is signed before the claim.
local function fence_reason(record, deed)
    local one = record and record.many and one_of_many()
    if one then
        record.presented = one
    end
    one = one and one.live and one or nil
    if one and deed ~= 'read' then
        return 'wrong-mode' -- by what the store has, whatever the header says
    end
    local is_last = record and record.token == PRESENTED and record.epoch == PRESENTED_EPOCH
    if not is_last and above(PRESENTED_EPOCH, PRESENTED, EPOCH, COUNTER) then
        return 'unissued-token'
    end
    if not record then
        return OVER -- forgotten: no live hold
    end
    if one then
        local is_its = one.token == PRESENTED and one.epoch == PRESENTED_EPOCH
        return not is_its and 'unissued-token' or nil -- later ones that share the lease with it fence nobody
    end
    if not is_last then
        if above(PRESENTED_EPOCH, PRESENTED, record.epoch, record.token) then
            -- A store that has lost grants cannot call one of them never granted; but all holds of before are
            -- over.
            return PRESENTED_EPOCH < ALIVE and OVER or 'unissued-token'
        end
        return 'stale-token'
    end
    if record.hold ~= HOLD then
        return 'unissued-token' -- the number alone, under another hold's name
    end
    if record.many or not record.live then
        return OVER
    end
    return OWN and OWN ~= record.identity and 'not-yours' or nil
end

-- Whether it is to be noted in the lease's history (refusal_note.lua), at most one a second: who hammers must
-- not fill the store. When the last one was, it says itself: the lease is not changed by a refusal.
local function refusal_is_due()
    if not history_notes('refused') then
        return false
    end
    local last = redis.call('LINDEX', KEYS[1] .. ':f:' .. ARGV[1], -1)
    return NOW - (last and tonumber(string.match(last, '\t(%d+)\t[^\t]*$')) or 0) >= REFUSAL_APART_MS
end

-- The answer of a refusal; "note" behind it: refusal_note.lua is to be called.
--   {"refused", seq, reason, last token or 0, its epoch or 0, mark or 0, holder or "", "note" or nothing}
local function fence_refuse(record, reason)
    if not record then
        return { 'refused', SEQ, reason, 0, 0, 0, '' }
    end
    hold_void(record)
    if record.presented then
        hold_void(record.presented)
    end
    local holder = record.live and reason ~= 'not-yours' and record.holder or ''
    return { 'refused', SEQ, reason, record.token, record.epoch, record.mark, holder,
        refusal_is_due() and 'note' or nil }
end

-- session_leave.lua - the leases of a session that is over are freed and handed on.

-- The hold of this lease_id, which its session's end has ended, is taken from the lease, and the lease goes
-- on to who waits.
local function session_leave_one(stripe, name, lease_id, may_grant)
    local lease = lease_open(stripe, name)
    local hold = lease.record.many and multi.read(lease, lease_id)
    if hold and hold.lapsed then
        multi.end_one(lease, hold, hold.ended, '')
    end
    lease_settle(lease)
    lease_close(lease, may_grant)
end

-- At most so many of them; how many.
local function session_leave(key, most, may_grant)
    local list = session_holds_key(key)
    local flat = redis.call('HRANDFIELD', list, most, 'WITHVALUES')
    for i = 1, #flat, 2 do
        local name, lease_id = string.match(flat[i], '^/?([^/]+)/(.+)$')
        if name then
            lease_try(session_leave_one, 'pawl:{' .. flat[i + 1] .. '}', name, lease_id, may_grant)
        end
    end
    for i = 1, #flat, 2 do
        touch()
        redis.call('HDEL', list, flat[i])
    end
    return #flat / 2
end

-- sweep.lua - end what is over its deadline, hand it on, and forget what was remembered long enough, a
-- bounded number at a time.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  how many, 1 to 1000   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"swept", seq, how many were due, how many of them expired}; also ARGV[1] were due when the
--            leases of a session are left to be freed
--
-- In the due index stand names of leases, and behind a colon, which no name begins with: ":d:ID" an inbox,
-- ":s:ID" a session, ":k:NAME/LEASE_ID" the Idempotency-Keys of a hold.
redis.call('PERSIST', KEYS[1]) -- nothing of ours gives a counter an end; somebody else's EXPIRE shall not
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, tonumber(ARGV[1]))
local expired = 0

local function again(member, at)
    touch()
    redis.call('ZADD', KEYS[2], whole(at), member)
end

local function drop(member, ...)
    touch()
    redis.call('DEL', ...)
    redis.call('ZREM', KEYS[2], member)
end

local sweep = {}

function sweep.d(member, key)
    if NOW <= inbox_lives_until(redis.call('HGET', key, 'at')) + PLACE_MS_MAX then
        again(member, NOW + PLACE_MS_MAX)
    else
        drop(member, key)
    end
end

-- A session that is over is remembered, and its leases are freed, in one script no more than a few.
local leaves = 64
function sweep.s(member, key)
    local session = session_read(key)
    if session and not session.live then
        leaves = leaves - session_leave(key, leaves, ARGV[3])
        if leaves == 0 then
            again(member, NOW)
            return
        end
    end
    if session and NOW < session.deadline then
        again(member, session.deadline)
    else
        drop(member, key, session_holds_key(key))
    end
end

function sweep.k(member)
    if not own_keys.forget(member) then
        again(member, NOW + REMEMBER_MS)
    end
end

-- A lease that is held, or that somebody waits for, or that is remembered; or it is forgotten whole.
local function sweep_lease(name)
    local lease = lease_open(KEYS[1], name)
    local record = lease.record
    record.due = false -- to be set anew
    if not (record.held or record.queue or record.left_ms > 0) then
        lease_forget(lease)
        return
    end
    local _, ended = lease_settle(lease)
    lease_close(lease, ARGV[3])
    expired = expired + ended
    if record.many then
        multi.write(lease)
    elseif not record.due then
        record.deadline = record.left_ms > 0 and record.deadline or NOW + REMEMBER_MS
        hold_write(record)
    end
end

for _, member in ipairs(due) do
    local kind = string.match(member, '^:(%a):')
    if not lease_try(kind and sweep[kind] or sweep_lease, member, KEYS[1] .. member) then
        again(member, NOW + REMEMBER_MS)
    end
end
return { 'swept', SEQ, leaves > 0 and #due or tonumber(ARGV[1]), expired }

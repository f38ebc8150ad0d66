-- node.lua - a node of a quorum, KEYS[1], and the record of a lease there, KEYS[2]. Each call brings in ARGV 1 to 3:
-- the node's id, the run_id of this Redis, and the highest number that the caller has seen of this node.
--   node   id; run: of the Redis that was last admitted, none in quarantine; highest: number that was ever voted for;
--          epoch: raised by each barrier; healed: the quarantine that it was healed of; max_ttl;
--          quarantine, of_run, since: the quarantine that it is in; access: a service with --access has used it
--   lease  attempt, lease_id, number, token ('': locked only), ttl, since, until, about, who: its identity; epoch,
--          healed: the node's of then
local function whole(number)
    return string.format('%d', number)
end

-- The one of two numbers that is higher, as the text that it came as.
local function higher(one, other)
    return tonumber(one) < tonumber(other) and other or one
end

-- The answer of a node that must not be asked; nil: go on. Who has lost numbers is in quarantine for everybody.
local function node_begins()
    local of = redis.call('HMGET', KEYS[1], 'id', 'run', 'highest', 'epoch', 'healed', 'max_ttl')
    node = { id = of[1], run = of[2], highest = of[3], epoch = of[4], healed = of[5], max_ttl = of[6] }
    if node.id and node.id ~= ARGV[1] then
        return { 'not-ours' }
    elseif not node.id or node.run ~= ARGV[2] then
        return { 'quarantine' }
    elseif tonumber(node.highest) < tonumber(ARGV[3]) then
        redis.call('HDEL', KEYS[1], 'run', 'quarantine')
        -- Else it is behind again when one that saw less has healed it.
        redis.call('HSET', KEYS[1], 'highest', ARGV[3])
        return { 'quarantine' }
    end
    return nil
end

-- A record of before a quarantine counts for nothing, and of a lease without one any number may have been voted for.
local function lease_read()
    local of = redis.call('HMGET', KEYS[2], 'attempt', 'lease_id', 'number', 'token', 'until', 'about',
        'epoch', 'healed', 'ttl', 'who', 'since')
    if of[8] ~= node.healed then
        of = {}
    end
    local now, ttl = clock_ms(), tonumber(of[9])
    local left = of[5] and of[5] - now or 0
    if ttl and left > ttl then -- the clock has gone back
        left = ttl
        redis.call('HSET', KEYS[2], 'until', whole(now + ttl))
    end
    return { is_live = left > 0, attempt = of[1], lease_id = of[2], token = of[4], left = whole(left),
        about = of[6], epoch = of[7], is_released = of[5] == '0', ttl = of[9], who = of[10],
        since = of[11], number = of[3] or node.highest }
end

-- What "on: node" begins with: both are read.
local function on_node(run)
    return function(keys, argv)
        call_begins(keys, argv)
        local refusal = node_begins()
        if refusal then
            return refusal
        end
        lease = KEYS[2] and lease_read()
        return run()
    end
end

-- {word, number, lease_id, attempt, token ("": locked), left (ms), ttl (ms), about, who, for how long (ms)}
local function lease_told(word)
    return { word, lease.number, lease.lease_id, lease.attempt, lease.token, lease.left, lease.ttl,
        lease.about, lease.who, higher(whole(clock_ms() - (lease.since or clock_ms())), '0') }
end

-- A vote: KEYS[2] is held, by this attempt. The number of a lease that was not known here may be above it.
local function lease_hold(attempt, lease_id, token, ttl, about, who)
    redis.call('HSET', KEYS[1], 'highest', higher(node.highest, token))
    redis.call('HSET', KEYS[2], 'attempt', attempt, 'lease_id', lease_id, 'token', token, 'ttl', ttl,
        'number', higher(lease.number, token), 'about', about, 'who', who, 'since', whole(clock_ms()),
        'epoch', node.epoch, 'healed', node.healed)
end

-- The record outlives what it is about: a number of its own keeps the lease's next tokens close to its last.
local function lease_until(ms)
    redis.call('HSET', KEYS[2], 'until', whole(clock_ms() + ms))
    redis.call('PEXPIRE', KEYS[2], whole(ms + 60000))
end

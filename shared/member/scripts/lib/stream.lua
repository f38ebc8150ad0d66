-- stream.lua - which Redis this is and which replication stream it goes on with: what an admission is for.
--
-- run_id alone does not tell: a primary that copies another Redis and is promoted again is the same process
-- with another content. Its master_replid is another one then: replicationUnsetMaster() (replication.c of
-- Redis 7.0.15) always makes a new one. It also becomes another one with redis-cli --rdb, with the first
-- replica and when repl-backlog-ttl is over, where nothing is lost. It is read in the step that rests on it.

local STREAM_LEN = 54 -- what is shorter would be found in more than one

-- "RUN_ID REPLID"; nil on a replica: nothing is admitted on one.
local function redis_run(run_id)
    local replid = string.match(redis.call('INFO', 'replication'), '\nrole:master.-\nmaster_replid:(%x+)')
    return replid and run_id .. ' ' .. replid or nil
end

-- Whether this is a primary that goes on with this stream, "master_replid:REPLID"; then it is known (call.lua). Plain
-- searches: a pattern costs more than Redis' answer.
local function stream_goes_on(admitted)
    local said = redis.call('INFO', 'replication')
    if #admitted ~= STREAM_LEN or not (string.find(said, '\nrole:master\r', 1, true)
        and string.find(said, admitted, 1, true)) then
        return false
    end
    stream_known = admitted
    return true
end

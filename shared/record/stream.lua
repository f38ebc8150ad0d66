-- stream.lua - which Redis this is and which replication stream it goes on with: what an admission is for.
--
-- run_id alone does not tell: a primary that copies another Redis and is promoted again is the same process
-- with another content. Its master_replid is another one then: replicationUnsetMaster() (replication.c of
-- Redis 7.0.15) always makes a new one. It also becomes another one with redis-cli --rdb, with the first
-- replica and when repl-backlog-ttl is over, where nothing is lost. It is read in the step that rests on it.

-- "RUN_ID REPLID"; nil on a replica: nothing is admitted on one.
local function redis_run(run_id)
    local said = redis.call('INFO', 'replication')
    local replid = string.match(said, '\nmaster_replid:(%x+)')
    return string.match(said, '\nrole:master') and replid and run_id .. ' ' .. replid or nil
end

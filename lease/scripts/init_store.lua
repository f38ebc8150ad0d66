-- init_store.lua - make a store: all 256 stripes and the record in one step, or none.
-- on: store
--   KEYS[1]  pawl:{store}
--   ARGV[1]  "SCHEMA:ID"   ARGV[2]  epoch, 1 to 999999999999999   ARGV[3]  run_id of this Redis
--   ARGV[4]  member id of the state directory that begins   ARGV[5]  floor that it has recorded
--   ARGV[6]  how many registrars there are to be; 0: all lease services count
--   ARGV[7]  how many nodes must have a copy of what is answered; 0: there is no in-sync set
--   returns  {"created"}
--            {"exists", identity or ""}: there is a store already, a part of one, or a node of a quorum; nothing was changed
--            {"forbidden", command}: the user may not do it; a store that is made halfway could not be mended
--
-- With pawl store recover the only one that creates a stripe.
local stripes = stripes_read()
if stripes.there > 0 or redis.call('EXISTS', KEYS[1], MEMBERS, 'pawl:{node}') > 0 then
    return { 'exists', stripes.id or redis.call('HGET', KEYS[1], 'id') or '' }
end
for _, command in ipairs({ { 'HSET', KEYS[1], 'id', '' }, { 'SADD', MEMBERS, ARGV[4] } }) do
    if not redis.acl_check_cmd(unpack(command)) then
        return { 'forbidden', command[1] }
    end
end
stripes_set('life', life_text(ARGV[1], ARGV[2], ARGV[2], 0, ARGV[5]), 'seq', 0, 'counter', 0)
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'epoch', ARGV[2], 'run', redis_run(ARGV[3]) or '',
    'roll', 1, 'time', whole(RAW_MS), 'alive', ARGV[2], 'clock', 0, 'ceiling', ARGV[5], 'gate', '',
    'gaterun', '', 'why', '', 'open', '0', 'how', 'initialised', 'registrars', ARGV[6], 'majority', '')
if ARGV[7] ~= '0' then
    local set = insync_begin(ARGV[2], redis_run(ARGV[3]), ARGV[7])
    redis.call('HSET', KEYS[1], 'copies', ARGV[7], 'insync', set, 'needed', '', 'growing', '', 'changed', 1,
        'syncs', '')
end
redis.call('SADD', MEMBERS, ARGV[4])
redis.call('HSET', member_key(ARGV[4]), 'role', 'lease', 'incarnation', '----------------', 'epoch', ARGV[2],
    'state', 'out', 'beats', 0, 'floor', ARGV[5], 'roll', 1, 'since', 1, 'at', 0,
    'who', 'pawl-lease --init-store')
return { 'created' }

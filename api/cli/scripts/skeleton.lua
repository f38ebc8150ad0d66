-- skeleton.lua - make a store in an empty Redis that nobody may use before lease services have admitted it:
-- they know the floors, and everything else is lost.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}
--   ARGV[1]  "SCHEMA:ID"
--   ARGV[2]  epoch, 1 to 999999999999999: not below any that the store has had, as far as is known
--   ARGV[3]  a random name for the gating
--   returns  {"made"}: also in place of another skeleton that nobody has come to
--            {"exists", identity or ""}: there is a store, a part of one, or a node of a quorum; nothing was changed
local stripes = stripes_read()
local store = store_read(stripes)
local empty = stripes.there == 0 and not store.id and redis.call('EXISTS', KEYS[1], MEMBERS) == 0
local unused = store.gate and store.why == 'empty' and stripes.top == 0 and redis.call('EXISTS', MEMBERS) == 0
if not (empty or unused) then
    return { 'exists', store.id or '' }
end
local epoch = math.max(store.epoch, tonumber(ARGV[2]))
stripes_set('life', life_text(ARGV[1], whole(-epoch), whole(epoch), 0, 0), 'seq', 0, 'counter', 0)
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'epoch', whole(epoch), 'run', '', 'roll', 0, 'time', 0,
    'alive', whole(epoch), 'clock', 0, 'ceiling', 0, 'gate', ARGV[3], 'gaterun', redis_run() or '',
    'why', 'empty', 'how', 'recovered', 'open', '0')
return { 'made' }

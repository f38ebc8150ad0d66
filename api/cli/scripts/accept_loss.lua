-- accept_loss.lua - by an operator's word this Redis, which may lack what was answered, is the store
-- (docs/decisions/0052). The order stands in the record until the lease service that admits acts by it (lease/scripts/admit.lua).
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}   ARGV[1]  "host:port" of this Redis, as /readyz has it
--   ARGV[2]  the loss that is accepted, as this script has named it; "": it is only looked for
--   returns  {"behind", the loss, this Redis and the nodes that it is behind, how many changes that services have seen
--              are missing; -1: a whole epoch}
--            {"ordered"}
--            {"empty"}   {"another", identity}   {"primary", the node that is}   {"in-step"}: it was not found to be behind
--            {"moved"}: this is another loss than the one that was named
--            in all but "ordered" nothing was changed
local store, stripes, unknown = store_known()
local all = members_read()
if unknown then
    return unknown
end
local text, known, newest = store.behind or '', insync_read(store.insync), insync_newest(store, all)
if text == '' or not (known and newest and store.gate and store.ballot and store.gaterun == redis_run()) then
    return { 'in-step' }
end
local name = string.match(text, '^(%S+)/')
if name ~= ARGV[1] then
    return { 'primary', name }
end
local loss = loss_of(store, newest)
if ARGV[2] == loss then
    redis.call('HSET', KEYS[1], 'order', loss)
    return { 'ordered' }
elseif ARGV[2] ~= '' then
    return { 'moved' }
end
local seen, missing = {}, newest.epoch > known.epoch and -1 or 0
for id, one in pairs(all) do
    local reported, i = has_reported(store, all, id), 0
    missing = reported and tonumber(one.repoch) > store.epoch and -1 or missing
    for number in string.gmatch(reported and one.rseqs or '', '%d+') do
        seen[i], i = math.max(seen[i] or stripes.seq[i], tonumber(number)), i + 1
    end
end
for i = 0, missing == 0 and #seen or -1 do
    missing = missing + (seen[i] or stripes.seq[i]) - stripes.seq[i]
end
return { 'behind', loss, text, missing }

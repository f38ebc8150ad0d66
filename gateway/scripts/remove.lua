-- remove.lua - delete a resource, if the writer's hold is the live one.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
-- use: gateway/scripts/lib/fence.lua
-- use: gateway/scripts/lib/version.lua
-- use: gateway/scripts/lib/admit.lua
--   KEYS[1]  stripe
--   KEYS[2]  due index
--   KEYS[3]  lease
--   KEYS[4]  resource
--   KEYS[5]  index of remembered deletions
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, remember_ms
--   ARGV[6]  key of the resource   ARGV[7]  If-Match   ARGV[8]  If-None-Match: as the header has it, or ""
--   ARGV[9]  Idempotency-Key or ""   ARGV[10]  digest of the request, or ""
--   returns  {"removed", seq, mark}
--            {"missing", seq, mark}: there was none
--            {"repeated", seq, status of the first answer, "", mark}: this request was done before
--            {"refused", ...} (lib/fence.lua)
--            {"key-reused", seq, mark}
--            {"mismatch", seq, ETag or "", mark}: the precondition does not hold
local record, version = hold_read(KEYS[3]), version_read(KEYS[4], ARGV[9])
local refusal = admit(record, version)
if refusal then
    return refusal
end
if not version.here then
    return { 'missing', SEQ, record.mark }
end

touch()
local mark = fence_pass(record)
redis.call('DEL', KEYS[4])
if ARGV[9] ~= '' then
    redis.call('HSET', KEYS[4], 'z', 'gone', 'k', ARGV[9], 'q', ARGV[10], 'a', '204', 't', ARGV[2],
        'p', ARGV[3], 'h', HOLD)
    redis.call('ZADD', KEYS[5], NOW + tonumber(ARGV[5]), ARGV[6])
end
return { 'removed', SEQ, mark }

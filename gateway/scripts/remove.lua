-- remove.lua - delete a resource, if the writer's hold is the live one.
-- flags: allow-oom
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
-- use: shared/record/history.lua
-- use: gateway/scripts/lib/fence.lua
-- use: gateway/scripts/lib/version.lua
-- use: gateway/scripts/lib/admit.lua
--   KEYS[1]  stripe
--   KEYS[2]  lease
--   KEYS[3]  resource
--   KEYS[4]  index of remembered deletions
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  key of the resource   ARGV[7]  If-Match   ARGV[8]  If-None-Match: as the header has it, or ""
--   ARGV[9]  Idempotency-Key or ""   ARGV[10]  digest of the request, or ""
--   ARGV[11]  remember_ms
--   returns  {"removed", seq, mark}
--            {"missing", seq, mark}: there was none
--            {"repeated", seq, status of the first answer, "", mark}: this request was done before
--            {"refused", ...} (lib/fence.lua)
--            {"key-reused", seq, mark}
--            {"mismatch", seq, ETag or "", mark}: the precondition does not hold
local record, version = fence_read(), version_read(KEYS[3], ARGV[9])
local refusal = admit(record, version)
if refusal then
    return refusal
end
if not version.here then
    return { 'missing', SEQ, record.mark }
end

touch()
local mark = fence_pass(record)
version_counted(ARGV[6], ARGV[1], -1, -redis.call('HSTRLEN', KEYS[3], 'v'))
redis.call('DEL', KEYS[3])
if ARGV[9] ~= '' then
    redis.call('HSET', KEYS[3], 'z', 'gone', 'k', ARGV[9], 'q', ARGV[10], 'a', '204', 't', ARGV[2],
        'p', ARGV[3], 'h', HOLD)
    redis.call('ZADD', KEYS[4], NOW + tonumber(ARGV[11]), ARGV[6])
end
return { 'removed', SEQ, mark }

-- remove.lua - delete a resource, if the writer's hold is the live one (or its token not below the mark).
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe
--   KEYS[2]  resource
--   KEYS[3]  index of remembered deletions
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
local check = check_of_stored()
local record, version = check.read(), version_read(KEYS[2])
local refusal = admit(check, record, version)
if refusal then
    return refusal
end
if not version.here then
    -- By marks a token is known from its first use on, and this is one: nothing older is to come behind it.
    local known = check.marks and check.pass(record) or record.mark
    return { 'missing', SEQ, known }
end

touch()
local mark = check.pass(record)
version_counted(ARGV[6], ARGV[1], -1, -version.bytes)
if version.owner ~= '' then
    use_count(KEYS[1], 'b', version.owner, -version.bytes)
end
redis.call('DEL', KEYS[2])
if ARGV[9] ~= '' then
    redis.call('HSET', KEYS[2], 'z', version_pack('gone', '', 0, 204, '', ''))
    redis.call('ZADD', KEYS[3], NOW + tonumber(ARGV[11]), ARGV[6])
end
return { 'removed', SEQ, mark }

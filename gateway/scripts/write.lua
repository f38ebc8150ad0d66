-- write.lua - put a resource, if the writer's hold is the live one (or its token not below the mark).
-- batch: yes
--   KEYS[1]  stripe
--   KEYS[2]  resource
--   KEYS[3]  index of remembered deletions
--   ARGV[1..5]  the fence (lib/fence.lua): lease, token, epoch, hold, mode
--   ARGV[6]  key of the resource   ARGV[7]  If-Match   ARGV[8]  If-None-Match: as the header has it, or ""
--   ARGV[9]  Idempotency-Key or ""   ARGV[10]  digest of the request, or ""
--   ARGV[11]  ETag of the new version
--   ARGV[12]  Content-Type
--   ARGV[13]  Content-Encoding or ""
--   ARGV[14]  body
--   ARGV[15]  "full", or nothing: the store is full, and nothing new is written
--   ARGV[16]  of services with --access: who writes, "" nobody; ARGV[15] is "" then if it is not full
--   ARGV[17]  how many bytes more it may have, "": as many as it likes
--   returns  {"written", seq, 201 or 204, ETag, mark}
--            {"repeated", seq, status of the first answer, its ETag, mark}: this request was done before
--            {"refused", ...} (lib/fence.lua)
--            {"key-reused", seq, mark}
--            {"mismatch", seq, ETag or "", mark}: the precondition does not hold
--            {"full", seq, mark}: it would have been written
--            {"quota", seq, mark}: the same, but it may not have so many bytes
local check = check_of_stored()
local record, version = check.read(), version_read(KEYS[2])
local refusal = admit(check, record, version)
if refusal then
    return refusal
end
if ARGV[15] == 'full' then
    return { 'full', SEQ, record.mark }
end

local who = ARGV[17 + OWN_ARGS] and ARGV[16] or ''
if who ~= '' and ARGV[17] ~= '' then
    local more = #ARGV[14] - (version.owner == who and version.bytes or 0)
    if more > 0 and more > ARGV[17] + 0 then
        return { 'quota', SEQ, record.mark }
    end
end

touch()
local mark = check.pass(record)
local answer = version.here and 204 or 201
if version.gone then
    redis.call('ZREM', KEYS[3], ARGV[6])
end
local state = who ~= '' and 'here@' .. who or 'here'
redis.call('HSET', KEYS[2], 'z', version_pack(state, ARGV[11], #ARGV[14], answer, ARGV[13], ARGV[12]), 'v',
    ARGV[14])
local grown = #ARGV[14]
if version.owner == who then
    grown = grown - version.bytes
elseif version.owner ~= '' then
    use_count(KEYS[1], 'b', version.owner, -version.bytes)
end
if who ~= '' and grown ~= 0 then
    use_count(KEYS[1], 'b', who, grown)
end
if not version.here or version.bytes ~= #ARGV[14] then
    version_counted(ARGV[6], ARGV[1], version.here and 0 or 1, #ARGV[14] - version.bytes)
end
return { 'written', SEQ, answer, ARGV[11], mark }

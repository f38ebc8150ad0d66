-- admit.lua - what speaks against a change of a resource, in the contract's order: its repetition, the fence,
-- its Idempotency-Key, its preconditions. All of it comes before the first write.
--   ARGV[7]  If-Match   ARGV[8]  If-None-Match   ARGV[9]  Idempotency-Key   ARGV[10]  digest of the request

-- nil when the change may be made, else the reply.
local function admit(record, version)
    local mark = record and record.mark or 0
    if version_made_by(version, ARGV[9], ARGV[10]) then
        return { 'repeated', SEQ, version.answer, version.etag, mark }
    end
    local reason = fence_reason(record, 'write')
    if reason then
        return fence_refuse(record, reason)
    end
    local repeated = version_repeated(version, ARGV[9], ARGV[10], mark)
    if repeated then
        return repeated
    end
    if not version_matches(version, ARGV[7], ARGV[8]) then
        return { 'mismatch', SEQ, version.here and version.etag or '', mark }
    end
    return nil
end

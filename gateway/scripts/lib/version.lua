-- version.lua - the stored version of a resource, its preconditions, and the repetition of the write that
-- made it.
--
--   pawl:{SS}:r:KEY, a hash:
--     v  body
--     z  the rest, one text, so that nothing of the version before is left when it is written. Its parts, a
--        line feed between; no header that comes in has one:
--          state     "here", or "gone" after a deletion that is remembered; "here@IDENTITY" if its writer had one
--          etag      without quotes   bytes  of the body
--          encoding  Content-Encoding, "": none   type  Content-Type
--        and behind them, only when the write came with an Idempotency-Key:
--          key       that   digest  of the request   answer  status of its answer
--          token, epoch, hold   of the writer

local VERSION_TEXT = '^(%l+)@?([^\n]*)\n(%S*)\n(%d+)\n([^\n]*)\n([^\n]*)(.*)$'
local VERSION_KEY = '^\n([^\n]+)\n([^\n]*)\n(%d+)\n(%d+)\n(%d+)\n([^\n]*)$'

-- What is stored: pawl:{SS}:g has the key of each version that is here, in their order; pawl:{SS}:u has
-- NAME -> bytes and NAME/ -> number of those that belong to a lease. Only what changes is written.
local function version_counted(key, lease, more, bytes)
    local used = KEYS[1] .. ':u'
    if bytes ~= 0 then
        redis.call('HINCRBY', used, lease, bytes)
    end
    if more > 0 then
        redis.call('ZADD', KEYS[1] .. ':g', 0, key)
        redis.call('HINCRBY', used, lease .. '/', 1)
    elseif more < 0 then
        redis.call('ZREM', KEYS[1] .. ':g', key)
        if redis.call('HINCRBY', used, lease .. '/', -1) == 0 then
            redis.call('HDEL', used, lease, lease .. '/')
        end
    end
end

-- Of the write that made it, with an Idempotency-Key; nil: of another release.
local function version_take_key(version, more)
    local key, digest, answer, token, epoch, hold = string.match(more, VERSION_KEY)
    if not key then
        return nil
    end
    version.idempotency_key, version.digest, version.answer, version.hold = key, digest, answer + 0, hold
    version.token, version.epoch = token + 0, epoch + 0
    -- The key of an epoch before ALIVE is void (docs/contract.md, "Restart of the store"); who made the
    -- version that is here is not a matter of keys.
    version.key_is_void = version.epoch < ALIVE
    return version
end

-- The parts of z, as read from this key; false: there is no version.
local function version_unpack(key, text)
    if not text then
        return { here = false, owner = '', etag = '', bytes = 0 }
    end
    local state, owner, etag, bytes, encoding, type_of, more = string.match(text, VERSION_TEXT)
    local version = state and { here = state == 'here', gone = state == 'gone', owner = owner,
        etag = etag, bytes = bytes + 0, encoding = encoding, type = type_of }
    if not version or more ~= '' and not version_take_key(version, more) then
        hold_not_ours(KEYS[1], key)
    end
    return version
end

local function version_read(key)
    return version_unpack(key, redis.call('HGET', key, 'z'))
end

-- What z says of a version that this request makes, or of its deletion.
local function version_pack(state, etag, bytes, answer, encoding, type_of)
    local text = state .. '\n' .. etag .. '\n' .. whole(bytes) .. '\n' .. encoding .. '\n' .. type_of
    if ARGV[9] == '' then
        return text
    end
    return text .. '\n' .. ARGV[9] .. '\n' .. ARGV[10] .. '\n' .. whole(answer) .. '\n' .. ARGV[2] .. '\n'
        .. ARGV[3] .. '\n' .. HOLD
end

-- Whether a list of tags ("*", or as the header has it, checked by the service) names this version. Ours are
-- strong and of characters that need no quoting, so a plain find cannot be misled. strong: W/"x" does not
-- count (RFC 9110 section 8.8.3.2).
local function version_listed(version, list, strong)
    local tag = '"' .. version.etag .. '"'
    local at = string.find(list, tag, 1, true)
    while at and strong and string.sub(list, at - 2, at - 1) == 'W/' do
        at = string.find(list, tag, at + 1, true)
    end
    return at ~= nil or list == '*'
end

-- What speaks against a change of a resource, in the contract's order: its repetition, the fence, its
-- Idempotency-Key, its preconditions. All of it comes before the first write, but that a repetition is let
-- through. nil when the change may be made, else the reply.
--   ARGV[7]  If-Match   ARGV[8]  If-None-Match   ARGV[9]  Idempotency-Key   ARGV[10]  digest of the request
local function admit(check, record, version)
    local mark = record and record.mark or 0
    -- The very request that made this version? Then what it did is done, and is answered again, also when another
    -- holds the lease now: to call it stale would call a write that happened a "no".
    local is_its = version.idempotency_key == ARGV[9] -- one that has none has no member, and is of no request
    if is_its and version.digest == ARGV[10]
        and version.token == PRESENTED and version.epoch == PRESENTED_EPOCH and version.hold == HOLD then
        return { 'repeated', SEQ, version.answer, version.etag, mark }
    end
    local reason = check.reason(record, 'write')
    if reason then
        return check.refuse(record, reason)
    end
    -- Epochs of another store say nothing of this one's losses; its version stands.
    if is_its and not (version.key_is_void and not check.of) then
        if version.digest ~= ARGV[10] then
            return { 'key-reused', SEQ, mark }
        end
        mark = check.pass(record) -- the writer goes on from here, as after a write of its own
        return { 'repeated', SEQ, version.answer, version.etag, mark }
    end
    if ARGV[7] ~= '' and not (version.here and version_listed(version, ARGV[7], true))
        or ARGV[8] ~= '' and version.here and version_listed(version, ARGV[8], false) then
        return { 'mismatch', SEQ, version.here and version.etag or '', mark }
    end
    return nil
end

-- What a reader gets of a resource.
--   {"found", seq, mark, ETag, Content-Type, Content-Encoding or "", body}
--   {"unchanged", seq, mark, ETag}: If-None-Match names this version
--   {"missing", seq, mark}

-- The version, with its body where that will be wanted.
local function show_read(key, if_none_match)
    local v = if_none_match == '' and redis.call('HMGET', key, 'z', 'v') or { redis.call('HGET', key, 'z') }
    local version = version_unpack(key, v[1])
    version.unchanged = version.here and if_none_match ~= '' and version_listed(version, if_none_match)
    version.body = version.here and not version.unchanged and (v[2] or redis.call('HGET', key, 'v'))
    return version
end

local function show(version, mark)
    if not version.here then
        return { 'missing', SEQ, mark }
    elseif version.unchanged then
        return { 'unchanged', SEQ, mark, version.etag }
    end
    return { 'found', SEQ, mark, version.etag, version.type, version.encoding, version.body }
end

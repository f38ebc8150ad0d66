-- version.lua - the stored version of a resource, its preconditions, and the repetition of the write that
-- made it.
--
--   z  "here", or "gone" after a deletion that is remembered      e  ETag, without quotes
--   v  body   c  Content-Type   n  Content-Encoding (absent: none)
--   t  token of the writer
--   p  its epoch   h  its hold           (only with an Idempotency-Key, as are the next three)
--   k  Idempotency-Key   q  digest of the request   a  status of its first answer

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

-- The record of the write that made it is read only for a request that may be its repetition.
local function version_read(key, idempotency_key)
    local v = redis.call('HMGET', key, 'z', 'e', 'n', 'k')
    local version = {
        here = v[1] == 'here', gone = v[1] == 'gone', etag = v[2] or '', encoded = v[3],
        idempotency_key = v[4],
    }
    if idempotency_key ~= '' and idempotency_key == v[4] then
        v = redis.call('HMGET', key, 'q', 'a', 't', 'p', 'h')
        version.digest, version.answer, version.hold = v[1], tonumber(v[2]), v[5]
        version.token, version.epoch = tonumber(v[3]), tonumber(v[4])
        -- The key of a life before ALIVE is void (docs/contract.md, "Restart of the store"); who made the
        -- version that is here is not a matter of keys.
        version.key_is_void = version.epoch < ALIVE
    end
    return version
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

-- Whether If-Match and If-None-Match ("" when absent) let the write through.
local function version_matches(version, if_match, if_none_match)
    if if_match ~= '' and not (version.here and version_listed(version, if_match, true)) then
        return false
    end
    return if_none_match == '' or not (version.here and version_listed(version, if_none_match, false))
end

-- Is this request the very one that made this version? Then what it did is done, and is told again whoever
-- holds the lease now: to call it stale would call a write that happened a "no".
local function version_made_by(version, idempotency_key, digest)
    return idempotency_key ~= '' and version.idempotency_key == idempotency_key and version.digest == digest
        and version.token == PRESENTED and version.epoch == PRESENTED_EPOCH and version.hold == HOLD
end

-- nil, or the reply to a request whose key is the one that made this version.
--   {"repeated", seq, status, ETag, mark} | {"key-reused", seq, mark}
local function version_repeated(version, idempotency_key, digest, mark)
    if idempotency_key == '' or version.idempotency_key ~= idempotency_key or version.key_is_void then
        return nil
    end
    if version.digest ~= digest then
        return { 'key-reused', SEQ, mark }
    end
    return { 'repeated', SEQ, version.answer, version.etag, mark }
end

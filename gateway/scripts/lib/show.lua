-- show.lua - what a reader gets of a resource.
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

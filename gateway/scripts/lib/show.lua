-- show.lua - what a reader gets of a resource.
--   {"found", seq, mark, ETag, Content-Type, Content-Encoding or "", body}
--   {"unchanged", seq, mark, ETag}: If-None-Match names this version
--   {"missing", seq, mark}
local function show(key, mark, if_none_match)
    local v = redis.call('HMGET', key, 'z', 'e', 'c', 'n')
    if v[1] ~= 'here' then
        return { 'missing', SEQ, mark }
    end
    if if_none_match == '*' or string.find(if_none_match, '"' .. v[2] .. '"', 1, true) then
        return { 'unchanged', SEQ, mark, v[2] }
    end
    return { 'found', SEQ, mark, v[2], v[3], v[4] or '', redis.call('HGET', key, 'v') }
end

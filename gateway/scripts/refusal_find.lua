-- refusal_find.lua - the refusal of a lease that has this instance, if it is still kept. Changes nothing.
--   KEYS[1]  stripe
--   ARGV[1]  lease   ARGV[2]  instance of the problem, without "urn:uuid:"
--   returns  {"found", seq, store time (ms), code, at, token, holder or "", last token as it was then or "",
--             id of the gateway or "", what was asked for or ""} | {"none", seq, store time (ms)}
for _, item in ipairs(redis.call('LRANGE', KEYS[1] .. ':f:' .. ARGV[1], 0, -1)) do
    local at = string.find(item, '\31i' .. ARGV[2], 1, true)
    local token, holder, time, code =
        string.match(item, '^[^-][^\t]*\trefused\t(%d+)\t([^\t\31]*)[^\t]*\t(%d+)\t([%l-]+)')
    if at and token then
        return { 'found', SEQ, whole(NOW), code, time, token, holder, string.match(item, '\31c(%d+)') or '',
            string.match(item, '\31g([%w_-]+)') or '', string.match(item, '\31p([^\t\31]*)') or '' }
    end
end
return { 'none', SEQ, whole(NOW) }

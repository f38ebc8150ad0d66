-- read.lua - show a resource to anybody.
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  resource
--   ARGV[1]  lease   ARGV[2]  If-None-Match as the header has it, or ""
--   ARGV[3]  "mark" | "mark STORE" (lib/marks.lua), or nothing
--   returns  as lib/version.lua says
local mark = hold_read(KEYS[1], 'l:' .. ARGV[1]).mark
if ARGV[3 + OWN_ARGS] then
    local by_mark = redis.call('HGET', check_by(ARGV[3]).marks, ARGV[1])
    mark = select(2, mark_top(mark_read(by_mark or '0 0 -')))
end
return show(show_read(KEYS[2], ARGV[2]), mark)

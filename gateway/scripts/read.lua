-- read.lua - show a resource to anybody.
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  resource
--   ARGV[1]  lease   ARGV[2]  If-None-Match as the header has it, or ""
--   returns  as lib/version.lua says
return show(show_read(KEYS[2], ARGV[2]), hold_read(KEYS[1], 'l:' .. ARGV[1]).mark)

-- Scripts run inside Redis (Lua 5.1). Lint gives luacheck the assembled text of each script, preludes first.
std = 'lua51'
read_globals = { 'redis', 'cjson', 'KEYS', 'ARGV' }
max_line_length = 110

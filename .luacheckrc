-- Scripts run inside Redis (Lua 5.1). Lint gives luacheck the library that all files make.
std = 'lua51'
read_globals = { 'redis', 'cjson', 'cmsgpack', 'KEYS', 'ARGV' }
max_line_length = 110

-- lowest.lua - the lowest names in a stripe's due index behind one. The index has no order of names: one of their own would cost
-- every lease another 130 bytes, and a stripe has 1/256 of the leases. What stands in it is searched SCAN_MAX at a time,
-- so no step is long; of what was found the lowest go from step to step, as one text:
--   "CURSOR NAME NAME ...", or "CURSOR< NAME ..." when others above the last of them were left out: CURSOR is that of
--   ZSCAN, which meets all that stays there, some of it twice.
local SCAN_MAX, FOUND_MAX = 1000, 1000 -- FOUND_MAX: bytes of names, with the blanks in front of them
local BEFORE_ALL = '!' -- where a search goes on that began at ""

-- pattern: of the members; skipped: how many bytes of each stand in front of its name; search: of the step before, or "".
-- returns {name, ...} in their order, and the last of them when there may be more behind it, else ""; or nil, and what the same
--   is to be called with again: after, search
local function lowest_names(pattern, skipped, after, search)
    local cursor, cut, found = string.match(search, '^(%d+)(<?)(.*)$')
    local last = cut == '<' and string.match(found, '%S+$') or nil
    local names, is_there = {}, {}
    local function take(name)
        if name > after and not (last and name > last) and not is_there[name] then
            names[#names + 1], is_there[name] = name, true
        end
    end
    for name in string.gmatch(found or '', '%S+') do
        take(name)
    end
    local some = redis.call('ZSCAN', KEYS[2], cursor or '0', 'COUNT', SCAN_MAX, 'MATCH', pattern)
    for i = 1, #some[2], 2 do
        take(string.sub(some[2][i], skipped + 1))
    end
    table.sort(names)
    if some[1] == '0' then
        return names, last or ''
    end
    local fit, len = 0, 0
    while names[fit + 1] and len + #names[fit + 1] < FOUND_MAX do
        fit, len = fit + 1, len + #names[fit + 1] + 1
    end
    local is_cut = last or names[fit + 1]
    return nil, after ~= '' and after or BEFORE_ALL,
        some[1] .. (is_cut and '<' or '') .. ' ' .. table.concat(names, ' ', 1, fit)
end

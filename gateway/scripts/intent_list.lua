-- intent_list.lua - the open intents of a lease, or of a stripe, page by page, in the order of lease, epoch,
-- token, arrival.
--   KEYS[1]  stripe
--   ARGV[1]  name of the lease, or "": of all   ARGV[2]  what to go on behind, or ""
--   ARGV[3]  how many, 1 to 1000
--   returns  {"listed", seq, what to go on behind, or "" when these were the last,
--             {texts (lib/intent.lua)}: at most ARGV[3], if none is longer than ours are}
--
-- What to go on behind is "NAME EPOCH TOKEN SEQ GATEWAY INCARNATION ID": what of an intent never changes. So
-- one that is open throughout is listed exactly once, whatever becomes of its state between two pages, also
-- when several gateways' have one number (a store that was set back, intent_again.lua).
local OPEN, most, PLACE_MAX = KEYS[1] .. ':i', tonumber(ARGV[3]), 256
local from = ARGV[1] == '' and '-' or '[' .. ARGV[1] .. ' '
local to = ARGV[1] == '' and '+' or '(' .. ARGV[1] .. '!'

-- Adds a page to texts; what to go on behind.
local function page(texts, behind)
    local behind_head, behind_owner = string.match(behind, '^(%S+ %d+ %d+ %d+) (%S+ %S+ %S+)$')
    local all, rank, count, last = {}, 0, 0, ''

    -- In the order of their numbers; those with one number, by whose they are.
    local function add(list)
        for _, text in ipairs(list) do
            local head, owner = string.match(text, '^(%S+ %d+ %d+ %d+) %a %S+ (%S+ %S+ %S+) ')
            rank = rank + (all[1] and all[#all].head == head and 0 or 1)
            all[#all + 1] = { text = text, head = head, owner = owner, rank = rank }
        end
    end

    -- Those with the number of the last page's last may not have been listed yet.
    if behind_head then
        add(redis.call('ZRANGEBYLEX', OPEN, '[' .. behind_head .. ' ', '(' .. behind_head .. '!'))
    end
    -- One more than asked for, and what has its number.
    local after = behind_head and '(' .. behind_head .. '!' or from
    local list = redis.call('ZRANGEBYLEX', OPEN, after, to, 'LIMIT', 0, most + 1)
    add(list)
    local is_end = #list <= most
    if not is_end then
        add(redis.call('ZRANGEBYLEX', OPEN, '(' .. list[#list], '(' .. all[#all].head .. '!'))
    end
    table.sort(all, function(a, b)
        return a.rank < b.rank or a.rank == b.rank and a.owner < b.owner
    end)

    for _, one in ipairs(all) do
        if one.head ~= behind_head or one.owner > behind_owner then
            if count == most then
                is_end = false
                break
            end
            count, last = count + 1, one.head .. ' ' .. one.owner
            texts[#texts + 1] = one.text
        end
    end
    return is_end and '' or last
end

local texts, behind = {}, ARGV[2]
repeat
    behind = page(texts, behind)
until #behind <= PLACE_MAX -- what a caller has room for; a hand may have made one longer
return { 'listed', SEQ, behind, texts }

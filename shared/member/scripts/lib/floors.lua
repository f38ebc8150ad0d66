-- floors.lua - whose floors an admission needs (lease/scripts/admit.lua; pawl store status tells whom it waits
-- for): what the state directories of those that have reported say of each other. all: as members_read().

local function sorted(set)
    local list = {}
    for id in pairs(set) do
        list[#list + 1] = id
    end
    table.sort(list)
    return list
end

local function has_reported(store, all, id)
    return store.gate ~= nil and all[id] ~= nil and all[id].rgate == store.gate
end

-- Whether somebody who stands in a list was forgotten by the operator after that list was recorded.
local function was_forgotten(one, roll)
    return one ~= nil and one.state == 'forgotten' and tonumber(roll) < tonumber(one.since)
end

-- Everybody in the list that the state directory of a member has recorded: f(role, id, incarnation). Whether
-- a lease service in it was forgotten.
local function each_listed(all, id, f)
    local skipped = false
    for role, other, incarnation in string.gmatch(all[id].rlist, '(%l+) ([%w_-]+) ([%w_-]+)') do
        if role ~= 'doubt' and not was_forgotten(all[other], all[id].rroll) then
            f(role, other, incarnation)
        else
            skipped = skipped or role == 'lease'
        end
    end
    return skipped
end

-- The lease services whose floors are needed: the one that asks, those in its list, those in theirs, and so
-- on; and those of them that have not reported. Every state directory's list leads to one that was counted
-- when the last token was granted (docs/decisions/0009).
local function floors_needed(store, all, asker)
    local order, needed, missing = { asker }, { [asker] = true }, {}
    local next_one = 1
    while order[next_one] do
        local id = order[next_one]
        next_one = next_one + 1
        local function follow(role, other)
            if role == 'lease' and not needed[other] then
                needed[other] = true
                order[#order + 1] = other
            end
        end
        if not has_reported(store, all, id) then
            missing[id] = true
        elseif each_listed(all, id, follow) then
            -- To all that the forgotten one led to: a store that knows of the forgetting knows them.
            for other, one in pairs(all) do
                follow((one.state == 'in' or one.state == 'out') and one.role, other)
            end
        end
    end
    return order, needed, missing
end

-- In from the beginning are those that stand in the list of every one of them: if any of them is left, its
-- list leads to all that may grant. The others join as newcomers do. A state directory that has not recorded
-- a list with itself was never in: it names nobody, and joins anew.
local function firm_ones(all, order)
    local listing, named = {}, {}
    for _, id in ipairs(order) do
        local names = {}
        each_listed(all, id, function(role, other)
            names[other] = role == 'lease' or nil
        end)
        listing[#listing + 1] = names[id] and id or nil
        for other in pairs(names[id] and names or {}) do
            named[other] = (named[other] or 0) + 1
        end
    end
    local firm = {}
    for _, id in ipairs(listing) do
        firm[id] = named[id] == #listing or nil
    end
    return firm
end

-- When nobody is firm: the lease services that the store knows of beside the one that asks.
local function floors_known(all, asker)
    local known = {}
    for id, one in pairs(all) do
        known[id] = id ~= asker and one.role == 'lease' and (one.state == 'in' or one.state == 'out') or nil
    end
    return known
end

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
    for line in string.gmatch(all[id].rlist, '[^,]+') do
        local role, other, incarnation = string.match(line, '^(%l+) ([%w_-]+) ([%w_-]+)')
        local is_member = role == 'lease' or role == 'gateway'
        if is_member and not was_forgotten(all[other], all[id].rroll) then
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
-- a list with itself was never in: it names nobody, and joins anew. Of registrars each counts for itself.
local function firm_ones(all, order, registrars)
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
        firm[id] = registrars ~= nil or named[id] == #listing or nil
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

-- The registrars, if a majority of them counts: as the newest state directory of one of them has it that has
-- reported. That the store says so is not enough, nor another lease service: both may know what was before an epoch
-- that was admitted by all (tests/model/registrars.pml). nil: all lease services that are listed are needed; also
-- when somebody knows of a later epoch without registrars, which an operator has begun.
local function registrars_newest(store, all)
    local newest, epoch, roll = nil, 0, 0
    local later = store.majority ~= '1' and store.epoch or 0
    for id, one in pairs(all) do
        if has_reported(store, all, id) then
            local its_epoch, its_roll = tonumber(one.rwater) or 0, tonumber(one.rroll) or 0
            local ids, is_one = {}, false
            for other in string.gmatch(one.rlist, 'registrar (%S+)') do
                ids[#ids + 1], is_one = other, is_one or other == id
            end
            if is_one and (its_epoch > epoch or (its_epoch == epoch and its_roll > roll)) then
                newest, epoch, roll = #ids .. ' ' .. table.concat(ids, ' '), its_epoch, its_roll
            elseif #ids == 0 then
                later = math.max(later, its_epoch)
            end
        end
    end
    return newest and later <= epoch and registrars_of(newest) or nil
end

-- Whether somebody has seen more of this registrar than it says of itself: its state directory is an old copy.
local function was_set_back(store, all, id)
    local roll, floor = tonumber(all[id].rroll), tonumber(all[id].rfloor)
    local seen_roll, seen_floor = tonumber(all[id].roll) or 0, tonumber(all[id].floor) or 0
    for other in pairs(all) do
        local list = has_reported(store, all, other) and all[other].rlist or ''
        for of, its_roll, its_floor in string.gmatch(list, 'registrar (%S+) (%d+) (%d+)') do
            if of == id then
                seen_roll = math.max(seen_roll, tonumber(its_roll))
                seen_floor = math.max(seen_floor, tonumber(its_floor))
            end
        end
    end
    return seen_roll > roll or seen_floor > floor
end

-- Those of the registrars that have reported and were not set back: {id = true}, how many, and the ids of the others.
local function registrars_heard(store, all, registrars)
    local heard, count, missing = {}, 0, {}
    for _, id in ipairs(registrars.ids) do
        if has_reported(store, all, id) and not was_set_back(store, all, id) then
            heard[id], count = true, count + 1
        else
            missing[id] = true
        end
    end
    return heard, count, missing
end

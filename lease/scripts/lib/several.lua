-- several.lua - what the scripts on several leases at once share.

-- The leases of a list [[key of the stripe, name], ...], in order, and whether all their stripes are ours.
function several.open(list)
    local leases, are_ours = {}, true
    for i, one in ipairs(list) do
        leases[i] = lease_open(one[1], one[2])
        are_ours = are_ours and tokens_wanting(one[1]) ~= 'not-ours'
    end
    return leases, are_ours
end

-- What a grant of all is told as; holds[i] is that of leases[i].
function several.reply(word, leases, holds)
    local grants = {}
    for i, lease in ipairs(leases) do
        grants[i] = own_hold.reply(lease.name, holds[i])
    end
    return { word, SEQ, grants }
end

-- Of the holds of this lease_id those with this name, holds[i] of leases[i] or nil; how many they are, and
-- whether another request with this lease_id holds one of them, or waits for one.
function several.holds(leases, lease_id, name)
    local holds, count, is_superseded = {}, 0, false
    for i, lease in ipairs(leases) do
        local hold = own_hold.find(lease, lease_id)
        if hold and hold.hold == name and (hold.unclaimed or hold.unanswered) then
            holds[i], count = hold, count + 1
        end
        is_superseded = is_superseded or hold and not holds[i]
    end
    for i = 1, count < #leases and #leases or 0 do
        local terms = leases[i].record.queue and line.terms(leases[i], lease_id)
        is_superseded = is_superseded or terms and terms.hold ~= name
    end
    return holds, count, is_superseded
end

-- What was handed on and is not claimed, or not told, goes back.
function several.give_back(leases, holds, count)
    line.works(count)
    for i, lease in ipairs(leases) do
        if holds[i] and lease.record.many then
            multi.end_one(lease, holds[i], 'returned', '')
        elseif holds[i] then
            hold_end(lease, 'returned', '')
        end
    end
end

-- The last of a script: ends what is over, and hands on what is free. "more" when handoff.lua has something
-- left to do on the first; on the others alarms say so.
function several.close(leases, may_grant)
    local more, set = '', {}
    for i, lease in ipairs(leases) do
        lease_settle(lease)
        local waits = lease.record.queue
        if waits and line.works(0) then
            set[#set + 1], set[#set + 2] = whole(NOW), lease.name
            more = i == 1 and 'more' or more
        elseif waits then
            local left = lease_close(lease, may_grant)
            more = i == 1 and left or more
        end
    end
    line.alarms({}, set)
    return more
end

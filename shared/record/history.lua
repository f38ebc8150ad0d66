-- history.lua - what happened to a lease, kept for those who ask and told to those who listen.
--
--   pawl:{SS}:e:NAME, a list of grants and ends, oldest first; pawl:{SS}:f:NAME, one of refusals, which the
--   gateway writes (a client that hammers it must not push out who held the lease). Both go with the lease.
--   An item is one text, its parts separated by tabs, none of which can stand in them:
--     ID   "EPOCH.SEQ.N": order within a stripe   TYPE   TOKEN   HOLDER   AT (store time, ms)   REASON or ""
--   A list that has dropped any begins with the newest that it dropped, a "-" in front: who knows an id can
--   tell whether something is missing behind it.
--   Types: granted | released | expired | forced | session | store-restarted | returned | refused.
--   Each item is also published, to "pawl:e:NAME" behind the stripe in front: "SS ITEM".
local HISTORY_MAX, REFUSALS_MAX, HISTORY_ALL, HISTORY_MIN, HISTORY_LOOK = 32, 16, 16384, 2, 4
local history_count = 0

-- stripe: the key of the lease's stripe. seq: its sequence number, raised. list: 'e' or 'f'.
local function history_add(stripe, seq, list, name, kind, token, holder, reason)
    history_count = history_count + 1
    local item = string.format('%d.%d.%d\t%s\t%d\t%s\t%d\t%s', EPOCH, seq, history_count, kind, token, holder,
        NOW, reason)
    local key = stripe .. ':' .. list .. ':' .. name
    local len = redis.call('RPUSH', key, item)
    -- In total, too: with many leases in a stripe each keeps less. Looked at now and then: a trim each time
    -- would be another command in the append-only file.
    if len % HISTORY_LOOK == 0 then
        local share = math.floor(HISTORY_ALL / redis.call('ZCARD', stripe .. ':due'))
        local most = list == 'f' and REFUSALS_MAX or HISTORY_MAX
        most = math.max(HISTORY_MIN, math.min(most, share))
        if len > most + 1 + math.max(HISTORY_MIN, most / 4) then -- not at every look
            redis.call('LTRIM', key, -most - 1, -1)
            redis.call('LSET', key, 0, '-' .. redis.call('LINDEX', key, 0))
        end
    end
    redis.call('PUBLISH', 'pawl:e:' .. name, string.sub(stripe, 7, 8) .. ' ' .. item)
end

-- intent.lua - what is being sent to upstreams: the open intents of a stripe.
--
--   pawl:{SS}:i, a zset, every score 0, one member for each open intent, its parts separated by one space:
--     NAME EPOCH TOKEN SEQ STATE KIND GATEWAY INCARNATION ID UNKNOWN AT [LEAPS]
--   EPOCH, TOKEN  15 digits each, SEQ 16, zeros in front: the order of bytes is lease, epoch, token, arrival
--   SEQ      sequence number of the stripe after the script that recorded it
--   STATE    q  waits for its turn; nothing is sent, and nothing is to be before intent_promote.lua says so
--            s  being sent, or about to be
--            u  as s, and its gateway will not learn how it ended
--            d  as s, and its gateway's incarnation is known to be dead, since AT
--   KIND     o  ordered (o+: serial, also among equal tokens)
--            o~  ordered, and perhaps not of one write: it stays open over the writes that one worker sends with
--                this token (intent_check.lua), and ID is the first one's. Of u, and of d if it was u before,
--                behind that the IDs of those whose end is unknown: o~ID,ID; at most 16, then "more"
--            c  conditional: the upstream compares If-Match
--            k  the upstream compares the token   a  admitted
--   GATEWAY, INCARNATION, ID  whose it is, and its number there
--   UNKNOWN  what becomes of it when nobody will learn its end: h  hold   p  probe   g<ms>  grace
--   AT       store time (ms) of the last change of STATE
--   LEAPS    of d only: all leaps of the store's clock until then
--
-- A change of the state is another text in place of the old one. Who knows an intent by an older text finds
-- it by its first four parts and by whose it is.
--
--   pawl:{store}: routes, the hash of the route table that all gateways serve ("" or absent: none yet);
--     leaps, by how many ms the store's clock has leapt forward (shared/member/scripts/heartbeat.lua): a grace
--     counts time that has passed, and in a leap none may have
--   pawl:{store}:doubt, a hash: "GATEWAY INCARNATION" -> "open LIFE" | "dead AT LEAPS LIFE": who may have
--     sent what a store that was not proven complete has forgotten, and has not said yet that all is recorded
--     again; LIFE: no life before this one has begun the doubt, and what ended it there does not end it here.
--     The lease services' state directories have it, too (lease/scripts/admit.lua), and get from the store
--     what has been removed here
--   pawl:{store}:given-up, a hash: "GATEWAY INCARNATION ID" -> "lives ASKED" | "silent SINCE ASKED", store time (ms):
--     an operator gives up what that process is sending; it looks, and closes the connection
--     (intent_given_up.lua). given-up in pawl:{store} rises with each one more
--   pawl:{store}:i:GATEWAY, a channel: NAME, or "" for all: it is asked to close what is o~, as soon as nothing
--     of it is under way. A message that is lost costs time: it is said again by who waits, and what is idle
--     is closed anyhow (gateway/forward/admit.c)
local STORE, GIVEN_UP, ASKED = 'pawl:{store}', 'pawl:{store}:given-up', 'pawl:{store}:i:'
local INTENTS_A_WORK = 8

local function intents_of(stripe)
    return stripe .. ':i'
end

-- The text of an intent as it stands now; nil: it is not open.
local function intent_find(key, text)
    local head, owner = string.match(text, '^(%S+ %d+ %d+ %d+) %a %S+ (%S+ %S+ %S+) ')
    local found = head and redis.call('ZRANGEBYLEX', key, '[' .. head .. ' ', '(' .. head .. '!') or {}
    for _, one in ipairs(found) do
        if string.match(one, '^%S+ %d+ %d+ %d+ %a %S+ (%S+ %S+ %S+) ') == owner then
            return one
        end
    end
    return nil
end

-- The same intent in another state, from now on. leaps: of state d.
local function intent_as(text, state, leaps)
    local head, rest = string.match(text, '^(%S+ %d+ %d+ %d+) %a (%S+ %S+ %S+ %S+ %S+) ')
    return head .. ' ' .. state .. ' ' .. rest .. ' ' .. whole(NOW) .. (leaps and ' ' .. whole(leaps) or '')
end

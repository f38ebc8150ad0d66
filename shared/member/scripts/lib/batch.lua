-- batch.lua - several operations in one call, one behind the other, each as if it had come alone.
--   ARGV[1..]  1 to 64 operations, each packed (call.lua)
--   returns    for each in its place: the reply of its script; or an error: what it has written stays, and
--              nobody knows what that is; or {"again"}: it was not run, for those before it had much to do
--
-- Each is judged by what those before it have written: it reads all of it anew. The time and the stream are
-- read once for all. An error ends its operation alone. It is handed back inside the list, where none of
-- Redis' own refusals can stand: those come before the first operation, in place of the list.
local BATCH_WORK = 128 -- a grant, an end, a waiter that was taken out, a lease that was looked at count 1

local function batch_of(scripts)
    local function run(packed)
        call_forgets()
        local name = call_takes(cmsgpack.unpack(packed))
        return stripe_begins() or scripts[name]()
    end

    return function(keys, argv)
        call_begins(keys, argv)
        local replies, work = {}, 0
        for i = 1, #argv do
            if work >= BATCH_WORK then
                replies[i] = { 'again' }
            else
                local is_done, reply = pcall(run, argv[i])
                work = work + history_count
                local done = seldom and seldom.done
                if done then -- most ends are in the history, too
                    local ended = math.max((done.ends or 0) - history_count, 0)
                    work = work + (done.work or 0) + (done.purged or 0) + ended
                end
                replies[i] = (is_done or reply == NOT_OURS) and reply
                    or { err = type(reply) == 'string' and reply or 'ERR' }
            end
        end
        return replies
    end
end

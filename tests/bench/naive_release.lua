-- naive_release.lua - ends a lock that SET NX PX made, if it is still its own: the lock that people write themselves.
--   KEYS[1]  lock   ARGV[1]  what its holder wrote into it
--   returns  1, or 0: it is another's by now
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0

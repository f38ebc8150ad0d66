-- unreported_look.lua - is it in doubt what a gateway had sent, since the store may have lost it? Changes
-- nothing.
--   KEYS[1]  stripe 0
--   ARGV[1]  gateway   ARGV[2]  its incarnation
--   returns  {"doubt", seq, 1 or 0, hash of the table that is served, or ""}: also when nobody knows whose it was
--             (api/cli/scripts/recover.lua)
local doubt = 'pawl:{store}:doubt'
local is_so = redis.call('HGET', doubt, ARGV[1] .. ' ' .. ARGV[2])
    or redis.call('HGET', doubt, 'whichever_it_was whichever_it_was')
return { 'doubt', SEQ, is_so and 1 or 0, redis.call('HGET', STORE, 'routes') or '' }

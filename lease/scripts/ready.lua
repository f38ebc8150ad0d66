-- ready.lua - is this store ours?
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  any stripe
--   returns  {"ours", seq} | {"not-ours"}
return { 'ours', SEQ }

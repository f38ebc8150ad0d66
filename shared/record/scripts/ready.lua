-- ready.lua - may scripts run on this stripe?
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  any stripe
--   returns  {"ours", seq} | as shared/record/stripe.lua says
return { 'ours', SEQ }

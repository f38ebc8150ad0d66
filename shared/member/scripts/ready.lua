-- ready.lua - may scripts run on this stripe?
--   KEYS[1]  any stripe
--   returns  {"ours", seq} | as shared/member/scripts/lib/stripe.lua says
return { 'ours', SEQ }

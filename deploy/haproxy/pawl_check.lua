-- pawl_check.lua - the action lua.pawl_check ADDR:PORT: asks pawl-gateway whether this token may act.
--
-- Reads txn.pawl_lease. If the gateway says yes, it sets txn.pawl_token (the number that was verified)
-- and txn.pawl_verdict (Fencing-Status), and the request goes on. Otherwise it answers, and the request
-- ends here: with the gateway's refusal as it is, or with 503 when there is no verdict.
--
-- Such a check is "admitted", not "ordered": see haproxy.cfg.

-- Beyond the gateway's --store-timeout of 2 s.
local TIMEOUT_S = 3
local REFUSALS = {[400] = true, [403] = true, [412] = true, [428] = true}
local UNAVAILABLE = '{"type":"/problems/store-unavailable","title":"The check could not be made",'
    .. '"status":503,"code":"store-unavailable","retryable":true}'

-- All of them: the gateway refuses a token that comes twice. Header tables of HAProxy begin at 0.
local function tokens_of(txn)
    local sent, found = {}, txn.http:req_get_headers()["fencing-token"]
    local at = 0
    while found and found[at] do
        sent[at + 1] = found[at]
        at = at + 1
    end
    return sent
end

-- The whole answer, or nil. Not core.httpclient(): before HAProxy 2.8 it asks four times when the gateway
-- hangs.
local function exchange(gateway, request)
    local socket = core.tcp()
    socket:settimeout(TIMEOUT_S)
    local whole
    if socket:connect(gateway) and socket:send(request) then
        whole = socket:receive("*a")
    end
    socket:close()
    return whole
end

-- {status, headers by lower-case name, body}; no status if the answer is not complete.
local function parse(whole)
    local status, lines, body = (whole or ""):match("^HTTP/1%.1 (%d%d%d) [^\r\n]*(\r\n.-)\r\n\r\n(.*)$")
    local headers = {}
    for name, value in (lines or ""):gmatch("\r\n([^:\r\n]+):[ \t]*([^\r\n]*)") do
        headers[name:lower()] = value
    end
    if #(body or "") ~= tonumber(headers["content-length"]) then
        return {headers = {}}
    end
    return {status = tonumber(status), headers = headers, body = body}
end

local function ask(txn, gateway)
    local lines = {"GET /v1/check/" .. txn:get_var("txn.pawl_lease") .. "?deny=native HTTP/1.1",
                   "Host: pawl-gateway", "Connection: close"}
    for _, token in ipairs(tokens_of(txn)) do
        lines[#lines + 1] = "Fencing-Token: " .. token
    end
    return parse(exchange(gateway, table.concat(lines, "\r\n") .. "\r\n\r\n"))
end

local function answer(txn, status, body, verdict, retry_after)
    local headers = {["content-type"] = {"application/problem+json"}, ["cache-control"] = {"no-store"}}
    if verdict then
        headers["fencing-status"] = {verdict}
    end
    if retry_after then
        headers["retry-after"] = {retry_after}
    end
    txn:done(txn:reply{status = status, headers = headers, body = body})
end

local function pawl_check(txn, gateway)
    local said = ask(txn, gateway)
    local token, verdict = said.headers["fencing-token-verified"], said.headers["fencing-status"]
    if said.status == 200 and token and verdict then
        txn:set_var("txn.pawl_verdict", verdict)
        txn:set_var("txn.pawl_token", token)
    elseif REFUSALS[said.status] and verdict then
        answer(txn, said.status, said.body, verdict)
    elseif said.status == 429 then
        answer(txn, 429, said.body, verdict, said.headers["retry-after"])
    else
        answer(txn, 503, UNAVAILABLE, verdict)
    end
end

core.register_action("pawl_check", {"http-req"}, pawl_check, 1)

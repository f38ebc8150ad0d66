/* grant.c - what a holder is told of its hold. */
#include "lease/grant.h"

void grant_read(struct grant *grant, const struct store_reply *reply)
{
    grant->token.number = store_reply_integer(reply, 2);
    grant->token.epoch = store_reply_integer(reply, 3);
    grant->hold = store_reply_text(reply, 4);
    grant->holder = store_reply_text(reply, 5);
    grant->ttl_ms = store_reply_integer(reply, 6);
    grant->expires_in_ms = store_reply_integer(reply, 7);
    grant->holds = store_reply_integer(reply, 8);
    grant->meta = store_reply_text(reply, 9);
}

/* A record that is not one of ours must not reach the signature, which asserts. */
static bool grant_is_sound(const struct grant *grant)
{
    const struct token *token = &grant->token;

    return token->number >= 1 && token->number <= TOKEN_NUMBER_MAX && token->epoch >= 1 &&
           token->epoch <= TOKEN_NUMBER_MAX && grant->hold.len >= TOKEN_HOLD_MIN &&
           grant->hold.len <= TOKEN_HOLD_MAX;
}

enum step grant_answer(struct lease_call *call, const struct grant *grant, unsigned status)
{
    struct json_out *json = http_json(call->req);

    if (!grant_is_sound(grant)) {
        return http_refuse(call->req, PROBLEM_INTERNAL);
    }
    struct token_claim claim = {grant->token, call->name, TOKEN_EXCLUSIVE, grant->hold};
    char header[TOKEN_HEADER_SIZE];
    struct bytes fencing_token = {header, token_sign(worker_of(call->req)->keys, &claim, header)};

    json_object(json, NULL);
    json_text(json, "lease", call->name);
    json_int(json, "token", grant->token.number);
    json_text(json, "fencing_token", fencing_token);
    json_text(json, "lease_id", grant->lease_id);
    json_text(json, "holder", grant->holder);
    json_text(json, "mode", bytes_of(token_mode_name(TOKEN_EXCLUSIVE)));
    json_int(json, "holds", grant->holds);
    json_int(json, "epoch", grant->token.epoch);
    json_int(json, "ttl_ms", grant->ttl_ms);
    json_int(json, "expires_in_ms", grant->expires_in_ms);
    json_int(json, "renew_in_ms", grant->ttl_ms / 3);
    json_int(json, "waited_ms", 0);
    json_raw(json, "meta", grant->meta.len > 0 ? grant->meta : BYTES("{}"));
    json_object_end(json);
    http_reply_header(call->req, "Fencing-Token", fencing_token);
    http_reply_json(call->req);
    return http_answer(call->req, status);
}

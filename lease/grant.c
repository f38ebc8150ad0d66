/* grant.c - what a holder is told of its hold. */
#include "lease/grant.h"

#include "shared/member/member.h"

/* Its name; false: it is none. */
static bool mode_read(struct bytes name, enum token_mode *mode)
{
    for (*mode = TOKEN_EXCLUSIVE; *mode <= TOKEN_PERMITS; (*mode)++) {
        if (bytes_are(name, token_mode_name(*mode))) {
            return true;
        }
    }
    return false;
}

void grant_read(struct grant *grant, const struct store_reply *reply)
{
    *grant = (struct grant){
        .token = {.number = store_reply_integer(reply, 2), .epoch = store_reply_integer(reply, 3)},
        .hold = store_reply_text(reply, 4),
        .holder = store_reply_text(reply, 5),
        .ttl_ms = store_reply_integer(reply, 6),
        .expires_in_ms = store_reply_integer(reply, 7),
        .holds = store_reply_integer(reply, 8),
        .meta = store_reply_text(reply, 9),
    };
    if (!mode_read(store_reply_text(reply, 10), &grant->mode)) {
        grant->mode = TOKEN_EXCLUSIVE;
        grant->token.number = 0; /* not sound */
    }
}

bool grant_is_sound(const struct grant *grant)
{
    const struct token *token = &grant->token;

    return token->number >= 1 && token->number <= TOKEN_NUMBER_MAX && token->epoch >= 1 &&
           token->epoch <= TOKEN_NUMBER_MAX && grant->hold.len >= TOKEN_HOLD_MIN &&
           grant->hold.len <= TOKEN_HOLD_MAX;
}

struct bytes grant_write(struct http_request *req, const struct grant *grant, char header[TOKEN_HEADER_SIZE])
{
    struct json_out *json = http_json(req);
    struct token_claim claim = {.token = grant->token,
                                .lease = grant->lease,
                                .store = bytes_of(epoch_store(member_line_of(req)->store_epoch)),
                                .mode = grant->mode,
                                .hold = grant->hold};
    struct bytes fencing_token = {header, token_sign(worker_of(req)->keys, &claim, header)};

    json_object(json, NULL);
    json_text(json, "lease", grant->lease);
    json_int(json, "token", grant->token.number);
    json_text(json, "fencing_token", fencing_token);
    json_text(json, "lease_id", grant->lease_id);
    json_text(json, "holder", grant->holder);
    json_text(json, "mode", bytes_of(token_mode_name(grant->mode)));
    json_int(json, "holds", grant->holds);
    json_int(json, "epoch", grant->token.epoch);
    json_int(json, "ttl_ms", grant->ttl_ms);
    json_int(json, "expires_in_ms", grant->expires_in_ms);
    json_int(json, "renew_in_ms", grant->ttl_ms / 3);
    json_int(json, "waited_ms", grant->waited_ms);
    json_raw(json, "meta", grant->meta.len > 0 ? grant->meta : BYTES("{}"));
    json_object_end(json);
    return fencing_token;
}

enum step grant_answer(struct http_request *req, const struct grant *grant, unsigned status)
{
    char header[TOKEN_HEADER_SIZE];

    if (!grant_is_sound(grant)) {
        return http_refuse(req, PROBLEM_INTERNAL);
    }
    http_reply_header(req, "Fencing-Token", grant_write(req, grant, header));
    http_reply_json(req);
    return http_answer(req, status);
}

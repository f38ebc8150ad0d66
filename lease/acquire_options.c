/* acquire_options.c - the rarer parts of an acquire, packed as JSON for the scripts. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "lease/request.h"
#include "shared/member/member.h"
#include "shared/text/ascii.h"
#include "shared/token/keys.h"
#include "shared/token/random.h"

/* -- what the headers say */

static void key_digest(struct acquire_options_key *key, const struct http_request *req)
{
    const char method = (char)http_method(req); /* at most 127 */
    const char *identity = http_identity(req);
    const struct bytes parts[] = {{&method, 1},
                                  http_path(req),
                                  http_query(req),
                                  http_body(req), /* so far for nobody */
                                  bytes_of(identity != NULL ? identity : "")};
    char text[DIGEST_TEXT + 1];

    digest_text(parts, sizeof(parts) / sizeof(parts[0]) - (identity == NULL), text);
    memcpy(key->digest, text, ACQUIRE_OPTIONS_DIGEST);
    key->digest[ACQUIRE_OPTIONS_DIGEST] = '\0';
}

const char *acquire_options_key_read(struct acquire_options_key *key, const struct http_request *req)
{
    unsigned count = 0;

    key->key = http_header(req, "Idempotency-Key", &count);
    key->digest[0] = '\0';
    if (count > 1 || (count == 1 && !name_is_idempotency_key(key->key)))
        return "The header Idempotency-Key must come once, with 1 to 128 visible ASCII characters.";
    if (count == 1)
        key_digest(key, req);
    return NULL;
}

const char *acquire_options_secret_read(const struct http_request *req, char digest[DIGEST_SECRET + 1])
{
    unsigned count = 0;
    struct bytes secret = http_header(req, "Session-Secret", &count);

    if (count == 0)
        return "The header Session-Secret is missing: send the session_secret that came with the session.";
    if (count > 1 || secret.len < ACQUIRE_OPTIONS_SECRET_MIN || secret.len > ACQUIRE_OPTIONS_SECRET_MAX ||
        !ascii_is_word(secret, BYTES("_-")))
        return "The header Session-Secret must come once, with 22 to 64 characters of A-Z a-z 0-9 _ -.";
    digest_secret(bytes_of(epoch_store(member_line_of(req)->store_epoch)), secret, digest);
    return NULL;
}

const char *acquire_options_read(struct acquire_options *acquire_options, const struct lease_request *request,
                                 const struct http_request *req)
{
    const char *wrong = acquire_options_key_read(&acquire_options->key, req);
    unsigned count = 0;

    if (wrong != NULL)
        return wrong;
    if (acquire_options->key.key.len > 0 && request->lease_id_len == 0)
        return "An acquire with an Idempotency-Key needs a lease_id of yours in its body.";
    if (request->keep_place_ms > 0 && request->lease_id_len == 0)
        return "The member keep_place_ms needs a lease_id of yours: by it the place is found again.";
    if (request->session_len > 0)
        return acquire_options_secret_read(req, acquire_options->secret);
    http_header(req, "Session-Secret", &count);
    return count > 0 ? "The header Session-Secret came without the member session." : NULL;
}

/* -- packing */

/* [[stripe, name], ...] */
static void write_names(struct json_out *out, const struct lease_names *names)
{
    char stripe[KEYS_STRIPE_SIZE];

    json_list(out, "all");
    for (unsigned i = 0; i < names->count; i++) {
        json_list(out, NULL);
        json_text(out, NULL, keys_stripe(stripe, keys_stripe_of(names->name[i])));
        json_text(out, NULL, names->name[i]);
        json_list_end(out);
    }
    json_list_end(out);
}

static void write_requested(struct json_out *out, const struct lease_request *request, struct bytes secret)
{
    char key[ACQUIRE_OPTIONS_SESSION_KEY_SIZE];

    if (request->mode != TOKEN_EXCLUSIVE)
        json_text(out, "mode", bytes_of(token_mode_name(request->mode)));
    if (request->mode == TOKEN_PERMITS)
        json_int(out, "permits", request->permits);
    if (request->lock_delay_ms > 0)
        json_int(out, "delay", request->lock_delay_ms);
    if (request->session_len > 0) {
        json_text(out, "session",
                  acquire_options_session_key(key, (struct bytes){request->session, request->session_len}));
        json_text(out, "secret", secret);
    }
    if (request->reentrant)
        json_bool(out, "reentrant", true);
    if (request->reentrant && request->ttl_stated)
        json_bool(out, "own_ttl", true);
}

bool acquire_options_are_asked(const struct acquire_options *options, const struct lease_request *request)
{
    return request->mode != TOKEN_EXCLUSIVE || request->lock_delay_ms > 0 || request->session_len > 0 ||
           request->reentrant || options->key.key.len > 0 || options->over != NULL;
}

struct bytes acquire_options_write(const struct acquire_options *options, const struct lease_request *request,
                                   struct bytes inbox, uint64_t wid, const struct lease_names *names,
                                   struct json_out *out)
{
    char text[24];

    json_out_reset(out);
    json_object(out, NULL);
    write_requested(out, request, bytes_of(options->secret));
    if (options->key.key.len > 0) {
        json_text(out, "key", options->key.key);
        json_text(out, "digest", bytes_of(options->key.digest));
    }
    if (wid != 0) {
        json_text(out, "desk", inbox);
        snprintf(text, sizeof(text), "%" PRIu64, wid); /* a text: a double would lose digits */
        json_text(out, "wid", bytes_of(text));
    }
    if (wid != 0)
        json_int(out, "wait", request->wait_ms);
    if (options->over != NULL)
        json_text(out, "over", bytes_of(options->over));
    if (wid != 0 && request->keep_place_ms > 0)
        json_int(out, "keep", request->keep_place_ms);
    if (names != NULL)
        write_names(out, names);
    json_object_end(out);
    return json_out_bytes(out);
}

struct bytes acquire_options_session_key(char buf[ACQUIRE_OPTIONS_SESSION_KEY_SIZE], struct bytes id)
{
    char stripe[KEYS_STRIPE_SIZE];

    assert(id.len <= REQUEST_SESSION_MAX);
    keys_stripe(stripe, keys_stripe_of(id));
    int len = snprintf(buf, ACQUIRE_OPTIONS_SESSION_KEY_SIZE, "%s:s:%.*s", stripe, (int)id.len, id.at);

    return (struct bytes){buf, (size_t)len};
}

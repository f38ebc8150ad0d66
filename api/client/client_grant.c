/* client_grant.c - what an answer grants, and until when. */
#include <errno.h>
#include <sys/random.h>

#include "api/client/client.h"
#include "shared/text/ascii.h"

enum { NAME_MAX_BYTES_CLIENT = PAWL_NAME_SIZE - 1, LEASE_ID_MIN = 22, RANDOM_MAX = 64 };

#define TOKEN_MOST 999999999999999

bool client_is_name(const char *name)
{
    return name != NULL && strlen(name) <= NAME_MAX_BYTES_CLIENT && ascii_is_name(bytes_of(name));
}

bool client_is_lease_id(const char *text)
{
    size_t len = strlen(text);

    return len >= LEASE_ID_MIN && len < PAWL_LEASE_ID_SIZE && ascii_is_word(bytes_of(text), BYTES("_-"));
}

bool client_random_text(char *buf, size_t chars)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[RANDOM_MAX];
    ssize_t got;

    do {
        got = getrandom(bytes, chars, 0); /* so few bytes come whole or not at all (getrandom(2)) */
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)chars) {
        return false;
    }
    for (size_t i = 0; i < chars; i++) {
        buf[i] = alphabet[bytes[i] & 63];
    }
    buf[chars] = '\0';
    explicit_bzero(bytes, sizeof(bytes));
    return true;
}

int64_t client_random_between(int64_t low, int64_t high)
{
    uint32_t some = 0;

    if (high <= low) {
        return low;
    }
    /* Only for spreading: without randomness they are not spread. */
    return getrandom(&some, sizeof(some), GRND_NONBLOCK) == (ssize_t)sizeof(some)
               ? low + (int64_t)(some % (uint64_t)(high - low + 1))
               : low;
}

int64_t grant_deadline(int64_t sent_ms, int64_t answered_ms, int64_t waited_ms, int64_t expires_in_ms)
{
    int64_t passed_ms = answered_ms - sent_ms;

    /* What was waited for lies between question and answer, whatever the answer says. */
    return sent_ms + (waited_ms < passed_ms ? waited_ms : passed_ms) + expires_in_ms;
}

static bool read_mode(const struct json *json, enum pawl_mode *mode)
{
    struct bytes text = client_member(json, "mode");

    *mode = bytes_are(text, "shared")    ? PAWL_SHARED
            : bytes_are(text, "permits") ? PAWL_PERMITS
                                         : PAWL_EXCLUSIVE;
    return *mode != PAWL_EXCLUSIVE || bytes_are(text, "exclusive");
}

/* The value goes into a header again. */
static bool read_fencing_token(const struct json *json, struct pawl_grant *grant)
{
    struct bytes text = client_member(json, "fencing_token");

    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] <= ' ' || text.at[i] == 0x7f) {
            return false;
        }
    }
    client_text(grant->fencing_token, sizeof(grant->fencing_token), text);
    return text.len > 0 && text.len < sizeof(grant->fencing_token);
}

bool grant_take(const struct call *call, enum grant_kind kind, struct pawl_grant *grant)
{
    const struct json *json = call->json;
    int64_t token, epoch, expires_in_ms, waited_ms, answered_ms = pawl_now_ms();
    struct pawl_grant fresh = *grant;

    if ((call->answer.status != 200 && (kind != GRANT_NEW || call->answer.status != 201)) || json == NULL ||
        !bytes_are(client_member(json, "lease"), grant->name) ||
        !bytes_are(client_member(json, "lease_id"), grant->lease_id)) {
        return false;
    }
    token = client_number(json, "token");
    epoch = client_number(json, "epoch");
    expires_in_ms = client_number(json, "expires_in_ms");
    fresh.ttl_ms = client_number(json, "ttl_ms");
    /* Only who is granted now can have waited for it in this very request. */
    waited_ms = call->answer.status == 201 ? client_number(json, "waited_ms") : 0;
    fresh.renew_in_ms = client_number(json, "renew_in_ms");
    fresh.holds = (unsigned)client_number(json, "holds");
    if (token < 1 || token > TOKEN_MOST || epoch < 1 || expires_in_ms < 0 ||
        expires_in_ms > CLIENT_TTL_MAX_MS || waited_ms < 0 || fresh.ttl_ms < 1 ||
        fresh.ttl_ms > CLIENT_TTL_MAX_MS) {
        return false;
    }
    /* A hold keeps its token: another one is another hold's. */
    if (kind == GRANT_RENEWED && (token != grant->token || epoch != grant->epoch)) {
        return false;
    }
    fresh.token = token;
    fresh.waited_ms = kind == GRANT_NEW ? waited_ms : grant->waited_ms;
    fresh.epoch = epoch;
    fresh.deadline_ms = grant_deadline(call->sent_ms, answered_ms, waited_ms, expires_in_ms);
    if (!read_mode(json, &fresh.mode) || !read_fencing_token(json, &fresh)) {
        return false;
    }
    *grant = fresh;
    return true;
}

/* ask.c - what a client may ask of an acquire or a renew, read and bounded (docs/contract.md, "Limits"). */
#include "lease/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/json.h"

enum {
    TTL_MS_MIN = 100,
    TTL_MS_MAX = 86400000,
    WAIT_MS_MAX = 600000,
    DELAY_MS_MAX = 600000,
    PERMITS_MAX = 1000000
};

static void ask_members(const struct json *json, struct lease_ask *ask, struct ask_wrong *wrong);

__attribute__((format(printf, 3, 4))) static void refuse(struct ask_wrong *wrong, enum problem problem,
                                                         const char *format, ...)
{
    va_list args;

    if (wrong->problem != PROBLEM_NONE) {
        return; /* the first fault is told */
    }
    wrong->problem = problem;
    va_start(args, format);
    vsnprintf(wrong->detail, sizeof(wrong->detail), format, args);
    va_end(args);
}

static void refuse_type(struct ask_wrong *wrong, const char *member, const char *type)
{
    refuse(wrong, PROBLEM_INVALID_REQUEST, "The member %s must be %s.", member, type);
}

static void refuse_later(struct ask_wrong *wrong, const char *member)
{
    refuse(wrong, PROBLEM_INVALID_REQUEST,
           "The member %s asks for something that is not in this version. Leave it out.", member);
}

static struct json *body_parse(struct bytes body, const char *const *names, struct ask_wrong *wrong)
{
    const char *why = NULL;
    struct json *json = json_parse(body, ASK_LEVELS, &why);
    const char *unknown = json != NULL ? json_unknown(json, names) : NULL;

    if (json == NULL) {
        refuse(wrong, PROBLEM_INVALID_REQUEST, "The body must be one JSON object. %s", why);
    } else if (unknown != NULL) {
        refuse(wrong, PROBLEM_INVALID_REQUEST, "The member %.64s is not known here. Leave it out.", unknown);
    }
    return json;
}

/* An integer member within its limits. 0 when it is not there. */
static int64_t member_int(const struct json *json, const char *name, int64_t min, int64_t max,
                          struct ask_wrong *wrong)
{
    int64_t value = 0;

    switch (json_get_int(json, name, &value)) {
    case JSON_ABSENT: return 0;
    case JSON_MISTYPED: refuse_type(wrong, name, "an integer"); return 0;
    case JSON_FOUND: break;
    }
    if (value < min || value > max) {
        refuse(wrong, PROBLEM_OUT_OF_RANGE, "The member %s must be %lld to %lld.", name, (long long)min,
               (long long)max);
    }
    return value;
}

static void member_text(const struct json *json, const char *name, bool (*fits)(struct bytes),
                        const char *limit, char *buf, size_t *len, struct ask_wrong *wrong)
{
    struct bytes value = {NULL, 0};
    enum json_found found = json_get_text(json, name, &value);

    if (found == JSON_MISTYPED) {
        refuse_type(wrong, name, "a text");
    } else if (found == JSON_FOUND && !fits(value)) {
        refuse(wrong, PROBLEM_OUT_OF_RANGE, "The member %s must be %s.", name, limit);
    } else if (found == JSON_FOUND) {
        memcpy(buf, value.at, value.len);
        *len = value.len;
    }
}

static void member_meta(const struct json *json, struct lease_ask *ask, struct ask_wrong *wrong)
{
    enum json_found found = json_get_object_raw(json, "meta", ask->meta, sizeof(ask->meta), &ask->meta_len);

    if (found == JSON_MISTYPED) {
        refuse_type(wrong, "meta", "an object");
    } else if (found == JSON_FOUND && ask->meta_len > sizeof(ask->meta)) {
        refuse(wrong, PROBLEM_OUT_OF_RANGE, "The member meta must have at most %d bytes as minified text.",
               ASK_META_MAX);
    } else if (found == JSON_ABSENT) {
        ask->meta_len = 0;
    }
}

/* Members that the contract has and this version has not: understood, so that nothing that was asked for
 * is ignored. */
static void members_of_later(const struct json *json, struct ask_wrong *wrong)
{
    struct bytes mode = BYTES("exclusive"), session = {NULL, 0};
    bool reentrant = false;

    if (json_get_text(json, "mode", &mode) == JSON_MISTYPED ||
        !(bytes_are(mode, "exclusive") || bytes_are(mode, "shared"))) {
        refuse_type(wrong, "mode", "\"exclusive\" or \"shared\"");
    } else if (!bytes_are(mode, "exclusive")) {
        refuse_later(wrong, "mode");
    }
    if (member_int(json, "permits", 1, PERMITS_MAX, wrong) != 0) {
        refuse_later(wrong, "permits");
    }
    if (member_int(json, "wait_ms", 0, WAIT_MS_MAX, wrong) != 0) {
        refuse_later(wrong, "wait_ms");
    }
    if (member_int(json, "lock_delay_ms", 0, DELAY_MS_MAX, wrong) != 0) {
        refuse_later(wrong, "lock_delay_ms");
    }
    if (json_get_bool(json, "reentrant", &reentrant) == JSON_MISTYPED) {
        refuse_type(wrong, "reentrant", "true or false");
    } else if (reentrant) {
        refuse_later(wrong, "reentrant");
    }
    switch (json_get_text(json, "session", &session)) {
    case JSON_MISTYPED: refuse_type(wrong, "session", "a text"); break;
    case JSON_FOUND: refuse_later(wrong, "session"); break;
    case JSON_ABSENT: break;
    }
}

static void ask_members(const struct json *json, struct lease_ask *ask, struct ask_wrong *wrong)
{
    ask->ttl_ms = member_int(json, "ttl_ms", TTL_MS_MIN, TTL_MS_MAX, wrong);
    member_text(json, "holder", name_is_holder, "1 to 128 bytes of printable UTF-8", ask->holder,
                &ask->holder_len, wrong);
    member_text(json, "lease_id", name_is_lease_id, "22 to 64 characters of A-Z a-z 0-9 _ -", ask->lease_id,
                &ask->lease_id_len, wrong);
    member_meta(json, ask, wrong);
    members_of_later(json, wrong);
}

void lease_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong)
{
    static const char *const names[] = {"holder",  "ttl_ms",   "wait_ms",   "mode",
                                        "permits", "lease_id", "reentrant", "lock_delay_ms",
                                        "meta",    "session",  NULL};
    struct json *json;

    wrong->problem = PROBLEM_NONE;
    if (body.len == 0) {
        return;
    }
    json = body_parse(body, names, wrong);
    if (wrong->problem == PROBLEM_NONE) {
        ask_members(json, ask, wrong);
    }
    json_free(json);
}

void renew_ask_read(struct bytes body, struct lease_ask *ask, struct ask_wrong *wrong)
{
    static const char *const names[] = {"ttl_ms", NULL};
    struct json *json;

    wrong->problem = PROBLEM_NONE;
    if (body.len == 0) {
        return;
    }
    json = body_parse(body, names, wrong);
    if (wrong->problem == PROBLEM_NONE) {
        ask->ttl_ms = member_int(json, "ttl_ms", TTL_MS_MIN, TTL_MS_MAX, wrong);
    }
    json_free(json);
}

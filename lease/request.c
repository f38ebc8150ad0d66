/* request.c - what a client may ask of an acquire or a renew, read and bounded (docs/contract.md, "Limits").
 */
#include "lease/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/text/ascii.h"
#include "shared/text/json.h"

enum {
    TTL_MS_MIN = 100,
    TTL_MS_MAX = 86400000,
    TTL_MS_DEFAULT = 30000,
    WAIT_MS_MAX = 600000,
    DELAY_MS_MAX = 600000,
    PLACE_MS_MAX = 60000,
    PERMITS_MAX = 1000000
};

__attribute__((format(printf, 3, 4))) static void refuse(struct request_fault *fault, enum problem problem,
                                                         const char *format, ...)
{
    va_list args;

    if (fault->problem != PROBLEM_NONE)
        return; /* the first fault is reported */
    fault->problem = problem;
    va_start(args, format);
    vsnprintf(fault->detail, sizeof(fault->detail), format, args);
    va_end(args);
}

static void refuse_type(struct request_fault *fault, const char *member, const char *type)
{
    refuse(fault, PROBLEM_INVALID_REQUEST, "The member %s must be %s.", member, type);
}

/* NULL: the body says nothing, or wrong says why. */
static struct json *body_parse(struct bytes body, const char *const *names, struct request_fault *fault)
{
    struct json_fault wrong;
    const char *unknown;
    struct json *json;

    fault->problem = PROBLEM_NONE;
    if (body.len == 0)
        return NULL;
    json = json_parse(body, REQUEST_LEVELS, &wrong);
    if (json == NULL) {
        if (wrong.no_memory)
            refuse(fault, PROBLEM_OVERLOADED, "%s", wrong.why);
        else
            refuse(fault, wrong.has_nul ? PROBLEM_OUT_OF_RANGE : PROBLEM_INVALID_REQUEST,
                   "The body must be one JSON object. %s", wrong.why);
        return NULL;
    }
    unknown = json_unknown(json, names);
    if (unknown != NULL) {
        refuse(fault, PROBLEM_INVALID_REQUEST, "The member %.64s is not known here. Leave it out.", unknown);
        json_free(json);
        return NULL;
    }
    return json;
}

/* An integer member within its limits. 0 when it is not there. */
static int64_t member_int(const struct json *json, const char *name, int64_t min, int64_t max,
                          struct request_fault *fault)
{
    int64_t value = 0;

    switch (json_get_int(json, name, &value)) {
    case JSON_ABSENT: return 0;
    case JSON_MISTYPED: refuse_type(fault, name, "an integer"); return 0;
    case JSON_FOUND: break;
    }
    if (value < min || value > max) {
        refuse(fault, PROBLEM_OUT_OF_RANGE, "The member %s must be %lld to %lld.", name, (long long)min,
               (long long)max);
    }
    return value;
}

static void member_text(const struct json *json, const char *name, bool (*fits)(struct bytes),
                        const char *limit, char *buf, unsigned short *len, struct request_fault *fault)
{
    struct bytes value = {NULL, 0};
    enum json_found found = json_get_text(json, name, &value);

    if (found == JSON_MISTYPED) {
        refuse_type(fault, name, "a text");
    } else if (found == JSON_FOUND && !fits(value)) {
        refuse(fault, PROBLEM_OUT_OF_RANGE, "The member %s must be %s.", name, limit);
    } else if (found == JSON_FOUND) {
        memcpy(buf, value.at, value.len);
        *len = (unsigned short)value.len;
    }
}

static void member_meta(const struct json *json, struct lease_request *request, struct request_fault *fault)
{
    size_t len = 0;
    enum json_found found = json_get_object_raw(json, "meta", request->meta, sizeof(request->meta), &len);

    if (found == JSON_MISTYPED) {
        refuse_type(fault, "meta", "an object");
    } else if (found == JSON_FOUND && len > sizeof(request->meta)) {
        refuse(fault, PROBLEM_OUT_OF_RANGE, "The member meta must have at most %d bytes as minified text.",
               REQUEST_META_MAX);
    } else {
        request->meta_len = (unsigned short)(found == JSON_FOUND ? len : 0);
    }
}

/* One permit is what an exclusive hold is. */
static void member_mode(const struct json *json, struct lease_request *request, struct request_fault *fault)
{
    struct bytes mode = BYTES("exclusive");
    enum json_found found = json_get_text(json, "mode", &mode);
    int64_t permits = member_int(json, "permits", 1, PERMITS_MAX, fault);

    if (found == JSON_MISTYPED || !(bytes_are(mode, "exclusive") || bytes_are(mode, "shared"))) {
        refuse_type(fault, "mode", "\"exclusive\" or \"shared\"");
    } else if (found == JSON_FOUND && permits != 0) {
        refuse(fault, PROBLEM_INVALID_REQUEST,
               "Give mode or permits, not both: permits is a mode of its own.");
    } else if (permits > 1) {
        request->mode = TOKEN_PERMITS;
        request->permits = permits;
    } else {
        request->mode = bytes_are(mode, "shared") ? TOKEN_SHARED : TOKEN_EXCLUSIVE;
    }
}

static void members_of_hold(const struct json *json, struct lease_request *request,
                            struct request_fault *fault)
{
    request->ttl_ms = member_int(json, "ttl_ms", TTL_MS_MIN, TTL_MS_MAX, fault);
    request->ttl_stated = request->ttl_ms != 0;
    member_text(json, "holder", name_is_holder, "1 to 128 bytes of printable UTF-8", request->holder,
                &request->holder_len, fault);
    member_meta(json, request, fault);
}

static void members_of_acquire(const struct json *json, struct lease_request *request,
                               struct request_fault *fault)
{
    members_of_hold(json, request, fault);
    request->wait_ms = member_int(json, "wait_ms", 0, WAIT_MS_MAX, fault);
    request->lock_delay_ms = member_int(json, "lock_delay_ms", 0, DELAY_MS_MAX, fault);
    member_mode(json, request, fault);
    member_text(json, "lease_id", name_is_lease_id, "22 to 64 characters of A-Z a-z 0-9 _ -",
                request->lease_id, &request->lease_id_len, fault);
    member_text(json, "session", request_is_session_id, "16 to 64 characters of A-Z a-z 0-9 _ -",
                request->session, &request->session_len, fault);
    if (json_get_bool(json, "reentrant", &request->reentrant) == JSON_MISTYPED)
        refuse_type(fault, "reentrant", "true or false");
}

void lease_request_read(struct bytes body, struct lease_request *request, struct request_fault *fault)
{
    static const char *const names[] = {"holder",  "ttl_ms",   "wait_ms",       "mode",
                                        "permits", "lease_id", "reentrant",     "lock_delay_ms",
                                        "meta",    "session",  "keep_place_ms", NULL};
    struct json *json = body_parse(body, names, fault);

    if (json != NULL) {
        members_of_acquire(json, request, fault);
        request->keep_place_ms = member_int(json, "keep_place_ms", 0, PLACE_MS_MAX, fault);
        json_free(json);
    }
}

/* -- several leases */

static bool is_among(struct bytes name, const struct lease_names *names)
{
    for (unsigned i = 0; i < names->count; i++)
        if (bytes_equal(name, names->name[i]))
            return true;
    return false;
}

static void names_add(struct lease_names *names, struct bytes name, struct request_fault *fault)
{
    char *at = names->text + (size_t)names->count * NAME_MAX_BYTES;

    if (!name_is_lease(name)) {
        refuse(fault, PROBLEM_OUT_OF_RANGE,
               "The member names must have names of leases: [A-Za-z0-9][A-Za-z0-9._:-]{0,127}.");
    } else if (is_among(name, names)) {
        refuse(fault, PROBLEM_OUT_OF_RANGE, "The member names must have each name once; %.*s comes twice.",
               (int)name.len, name.at);
    } else {
        memcpy(at, name.at, name.len);
        names->name[names->count++] = (struct bytes){at, name.len};
    }
}

static void member_names(const struct json *json, struct lease_names *names, struct request_fault *fault)
{
    enum json_found found;
    size_t count = json_list_count(json, "names", &found);
    struct bytes name;

    if (found != JSON_FOUND)
        refuse_type(fault, "names", "there, a list of names of leases");
    else if (count < 1 || count > REQUEST_NAMES_MAX)
        refuse(fault, PROBLEM_OUT_OF_RANGE, "The member names must have 1 to %d names.", REQUEST_NAMES_MAX);
    for (size_t i = 0; i < count && fault->problem == PROBLEM_NONE; i++)
        if (json_list_text(json, "names", i, &name))
            names_add(names, name, fault);
        else
            refuse_type(fault, "names", "a list of texts");
}

void lease_request_several_read(struct bytes body, struct lease_request *request, struct lease_names *names,
                                struct request_fault *fault)
{
    static const char *const known[] = {"names",         "holder",  "ttl_ms",   "wait_ms",
                                        "mode",          "permits", "lease_id", "reentrant",
                                        "lock_delay_ms", "meta",    "session",  NULL};
    struct json *json = body_parse(body.len > 0 ? body : BYTES("{}"), known, fault);

    if (json != NULL) {
        member_names(json, names, fault);
        members_of_acquire(json, request, fault);
        json_free(json);
    }
}

/* -- the others */

void renew_request_read(struct bytes body, int64_t *ttl_ms, struct request_fault *fault)
{
    static const char *const names[] = {"ttl_ms", NULL};
    struct json *json = body_parse(body, names, fault);

    if (json != NULL) {
        *ttl_ms = member_int(json, "ttl_ms", TTL_MS_MIN, TTL_MS_MAX, fault);
        json_free(json);
    }
}

void session_request_read(struct bytes body, struct lease_request *request, struct request_fault *fault)
{
    static const char *const names[] = {"ttl_ms", "holder", "meta", NULL};
    struct json *json = body_parse(body, names, fault);

    if (json != NULL) {
        members_of_hold(json, request, fault);
        json_free(json);
    }
}

static void force_read(struct bytes body, const char *const *names, struct force_request *request,
                       struct request_fault *fault)
{
    struct json *json = body_parse(body, names, fault);

    if (json != NULL) {
        member_text(json, "reason", name_is_reason, "1 to 256 bytes of printable UTF-8", request->reason,
                    &request->reason_len, fault);
        request->expect_token = member_int(json, "expect_token", 1, TOKEN_NUMBER_MAX, fault);
        json_free(json);
    }
}

void force_request_read(struct bytes body, struct force_request *request, struct request_fault *fault)
{
    static const char *const names[] = {"reason", "expect_token", NULL};

    force_read(body, names, request, fault);
}

void reason_request_read(struct bytes body, struct force_request *request, struct request_fault *fault)
{
    static const char *const names[] = {"reason", NULL};

    force_read(body, names, request, fault);
}

void lease_request_defaults(struct lease_request *request, const char *identity)
{
    if (request->ttl_ms == 0)
        request->ttl_ms = TTL_MS_DEFAULT;
    if (request->holder_len == 0) {
        struct bytes_out holder = {request->holder, 0, sizeof(request->holder), false};

        bytes_put(&holder, identity != NULL ? bytes_of(identity) : BYTES("anonymous"));
        request->holder_len = (unsigned short)holder.len;
    }
    if (request->lease_id_len == 0) {
        name_new_lease_id(request->lease_id);
        request->lease_id_len = (unsigned short)strlen(request->lease_id);
    }
}

bool request_is_session_id(struct bytes text)
{
    return text.len >= REQUEST_SESSION_MIN && text.len <= REQUEST_SESSION_MAX &&
           ascii_is_word(text, BYTES("_-"));
}

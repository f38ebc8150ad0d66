/* access.c - who asks, and may it? What a service with --access does with a request before its handler runs,
 * and what handlers ask that know more: the names in a body, in a table of routes, in a list.
 *
 *   access_enter    the credential that was shown             401, 400, or the identity
 *   access_permits  the name in the path, then the rules      400, 403, 401, or go on
 *   access_stands   later: the credential that was shown, by the file and the certificates of then
 *
 * The first credential that is there decides alone: Pawl-Authorization, Authorization, the certificate, the
 * uid at the other end of a unix socket. A bad one is 401, and never falls back to another, or to nobody. A
 * caller who shows none is nobody: judged by the rules for nobody, and what nobody may not do is 401, for a
 * credential might help. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "shared/service/service.h"
#include "shared/text/ascii.h"
#include "shared/tls/tls_server.h"
#include "shared/token/name.h"

#define CHALLENGE "Bearer realm=\"pawl\""

struct credential {
    const char *identity, *by; /* NULL: nobody */
    const char *detail;        /* of why; NULL: the usual one */
    enum access_why why;       /* ACCESS_GOOD, ACCESS_NONE: nothing was shown, or why it is refused */
    struct bytes bearer;       /* behind "Bearer"; at NULL: it was not that */
    bool is_put_off;           /* a JWT that is not looked at now: limits_is_forging() */
    bool has_begun;            /* access_stands() */
};

struct access *service_access_load(const struct service *service, char why[ACCESS_WHY_SIZE])
{
    struct access *access = access_load(service->settings.access, why, ACCESS_WHY_SIZE);

    if (access != NULL && access_load_keys(access, why, ACCESS_WHY_SIZE))
        return access;
    access_free(access);
    return NULL;
}

/* -- 401, 403 */

/* detail: NULL: the usual one. */
static enum problem access_unauthenticated(struct http_request *req, enum access_why why, const char *detail)
{
    static const char *const details[ACCESS_WHYS] = {
        [ACCESS_NONE] =
            "Nothing was done: who asks? Send an access token (Authorization: Bearer ...), or ask over "
            "a unix socket or with a certificate that the access file names.",
        [ACCESS_UNKNOWN] =
            "Nothing was done: this credential is not in the access file. It may have been taken "
            "out: ask whoever runs the service.",
        [ACCESS_MALFORMED] = "Nothing was done: this is neither an access token nor a JWT that is taken "
                             "here. Send Authorization: "
                             "Bearer and the access token, whole, as pawl access new has shown it.",
        [ACCESS_EXPIRED] = "Nothing was done: the JWT has expired. Get a new one from its issuer.",
        [ACCESS_NOT_YET] = "Nothing was done: the JWT is not good yet, by this machine's clock.",
        [ACCESS_ISSUER] = "Nothing was done: the JWT's iss is that of no issuer of the access file.",
        [ACCESS_AUDIENCE] =
            "Nothing was done: the JWT's aud is not the one that the access file has for its issuer.",
        [ACCESS_SIGNATURE] = "Nothing was done: the JWT's signature is wrong, or its issuer has new keys.",
        [ACCESS_CERTIFICATE] = "Nothing was done: the certificate is not good, or the one that the JWT's cnf "
                               "names was not shown.",
    };
    const char *name = access_why_name(why);

    if (limits_fails(req))
        return limits_failing(req);
    http_reply_header(req, "WWW-Authenticate",
                      why == ACCESS_NONE ? BYTES(CHALLENGE) : BYTES(CHALLENGE ", error=\"invalid_token\""));
    http_refusal_detail(req, detail != NULL ? detail : details[why]);
    http_refusal_member(req, "why", bytes_of(name));
    http_note_why(req, name);
    return PROBLEM_UNAUTHENTICATED;
}

enum problem service_forbidden(struct http_request *req, enum access_verb verb, struct bytes lease)
{
    const char *identity = http_identity(req);

    if (identity == NULL)
        return access_unauthenticated(req, ACCESS_NONE, NULL);
    http_refusal_member(req, "identity", bytes_of(identity));
    http_refusal_member(req, "verb", bytes_of(access_verb_name(verb)));
    http_refusal_member(req, "lease", lease);
    http_note_why(req, access_verb_name(verb));
    http_note_lease(req, lease);
    return PROBLEM_FORBIDDEN;
}

/* -- who asks */

/* Whether an access token stands there, at its begin, once it is decoded as an upstream would. */
static bool begins_formed(struct bytes text)
{
    char token[ACCESS_TOKEN_SIZE - 1];
    size_t len = 0, taken = 1;

    for (; len < sizeof(token) && text.len > 0 && taken > 0; text.at += taken, text.len -= taken)
        taken = ascii_percent_decode(text, &token[len++]);
    return access_token_is_formed((struct bytes){token, len});
}

/* Anywhere, as a name too: who reads it may know of other separators. */
static bool is_formed_in(struct bytes text)
{
    for (; text.len > 0; text.at++, text.len--)
        if ((text.at[0] == 'p' || text.at[0] == '%') && begins_formed(text))
            return true;
    return false;
}

/* What stands behind a scheme, which has a blank at its end; {NULL, 0}: another one. */
static struct bytes credentials_of(struct bytes value, struct bytes scheme)
{
    if (value.len <= scheme.len || strncasecmp(value.at, scheme.at, scheme.len) != 0)
        return (struct bytes){NULL, 0};
    return bytes_trim((struct bytes){value.at + scheme.len, value.len - scheme.len});
}

/* As user or password (RFC 7617), which is what curl -u makes of it. */
static bool is_formed_in_basic(struct bytes value)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct bytes text = credentials_of(value, BYTES("Basic "));
    char plain[SERVICE_HEAD_MAX];
    unsigned bits = 0, count = 0;
    const char *digit;
    size_t len = 0;

    for (size_t i = 0; i < text.len && len < sizeof(plain); i++) {
        digit = memchr(digits, text.at[i], sizeof(digits) - 1);
        if (digit == NULL)
            break;
        bits = (bits << 6 | (unsigned)(digit - digits)) & 0xffff;
        count += 6;
        if (count >= 8) {
            count -= 8;
            plain[len++] = (char)(bits >> count);
        }
    }
    return is_formed_in((struct bytes){plain, len});
}

bool service_sends_away_token(const struct http_request *req)
{
    struct bytes name, value;

    for (unsigned i = 0; service_judges(req) && i < http_field_count(req); i++) {
        http_field_at(req, i, &name, &value);
        if (bytes_equal_nocase(name, BYTES("Authorization")) &&
            (is_formed_in(value) || is_formed_in_basic(value)))
            return true;
    }
    return false;
}

/* Of Pawl-Authorization, or of Authorization where that is Pawl's. count: how often it came. */
static struct bytes authorization_of(struct http_request *req, unsigned *count)
{
    const struct service_plan *plan = worker_of(req)->service->plan;
    struct bytes own = http_header(req, "Pawl-Authorization", count);

    if (*count > 0)
        return own;
    own = http_header(req, "Authorization", count);
    if (*count == 1 && plan->authorization_is_upstreams != NULL && plan->authorization_is_upstreams(req))
        *count = 0;
    return own;
}

/* It goes on while the machine is suspended: what ends meanwhile has ended then. */
static uint64_t steady_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct access_moment moment_of(const struct http_request *req, const struct credential *shown)
{
    const struct http_route *route = http_route(req);

    return (struct access_moment){.now_s = (int64_t)time(NULL),
                                  .steady_ms = steady_ms(),
                                  .keeps = route != NULL && (route->methods & HTTP_KEEPS) != 0,
                                  .has_begun = shown->has_begun,
                                  .known_only = !shown->has_begun && limits_is_forging(req)};
}

static bool certificate_passes(const struct tls_certificate *certificate, const struct access_moment *moment)
{
    bool is_good = certificate->certified == TLS_CERTIFIED_GOOD;

    return (is_good || certificate->certified == TLS_CERTIFIED_OUTDATED) &&
           access_dates_pass(certificate->sha256, is_good ? ACCESS_GOOD : ACCESS_CERTIFICATE,
                             certificate->ends, moment);
}

static void jwt_read(const struct http_request *req, struct credential *shown)
{
    static const char
        malformed[] =
            "Nothing was done: such a JWT is not taken here. It has iss, sub, aud, and exp and iat at "
            "most 24 h apart, no crit, and alg and kid of a key of its issuer.",
        unknown[] = "Nothing was done: the JWT is good, but no identity of the access file has its sub.";
    const struct tls_certificate *certificate = http_client_certificate(req);
    struct access_moment moment = moment_of(req, shown);

    if (certificate != NULL && certificate_passes(certificate, &moment))
        moment.certificate = certificate->sha256;
    shown->by = "jwt";
    shown->identity = access_of_jwt(worker_of(req)->access, shown->bearer, &moment, &shown->why);
    shown->detail = shown->why == ACCESS_MALFORMED ? malformed
                    : shown->why == ACCESS_UNKNOWN ? unknown
                                                   : NULL;
    shown->is_put_off = shown->why == ACCESS_NONE;
    if (!shown->has_begun &&
        (shown->why == ACCESS_SIGNATURE || shown->why == ACCESS_AUDIENCE || shown->why == ACCESS_UNKNOWN))
        limits_forges(req);
}

static void bearer_read(const struct http_request *req, struct credential *shown)
{
    shown->why = ACCESS_MALFORMED;
    if (shown->bearer.at != NULL && access_is_jwt(shown->bearer)) {
        jwt_read(req, shown);
        return;
    }
    shown->by = "access-token";
    if (shown->bearer.at != NULL)
        shown->identity = access_of_token(worker_of(req)->memo, worker_of(req)->access, shown->bearer,
                                          &shown->why);
}

/* The identity of all its names that have one; NULL: none has, or they are of several. */
static const char *identity_of_names(const struct access *access, const char *names)
{
    const char *found = NULL;

    for (; *names != '\0'; names += strlen(names) + 1) {
        const char *identity = access_of_certificate(access, bytes_of(names));

        if (identity != NULL && found != NULL && identity != found)
            return NULL;
        found = identity != NULL ? identity : found;
    }
    return found;
}

static void certificate_read(const struct http_request *req, const struct tls_certificate *certificate,
                             struct credential *shown)
{
    struct access_moment moment = moment_of(req, shown);

    shown->by = "certificate";
    shown->why = ACCESS_CERTIFICATE;
    shown->detail = certificate->why;
    if (!certificate_passes(certificate, &moment))
        return;
    shown->identity = identity_of_names(worker_of(req)->access, certificate->names);
    shown->why = ACCESS_UNKNOWN;
}

/* The first that is there. */
static void credential_judge(const struct http_request *req, bool has_bearer, struct credential *shown)
{
    const struct tls_certificate *certificate = http_client_certificate(req);
    uid_t uid;

    if (has_bearer) {
        bearer_read(req, shown);
    } else if (certificate != NULL && certificate->certified != TLS_CERTIFIED_NONE) {
        certificate_read(req, certificate, shown);
    } else if (http_client_uid(req, &uid)) {
        shown->by = "socket";
        shown->identity = access_of_uid(worker_of(req)->access, uid);
    }
    if (shown->identity != NULL)
        shown->why = ACCESS_GOOD;
}

/* NULL, or why the request is 400. */
static const char *credential_read(struct http_request *req, struct credential *shown)
{
    unsigned count = 0;
    struct bytes value = authorization_of(req, &count);

    *shown = (struct credential){.why = ACCESS_NONE};
    if (count > 1)
        return "The header that says who asks came more than once: send it once.";
    if (is_formed_in(http_query(req)))
        return "An access token stands in the query, where logs keep it. Send it as Authorization: Bearer, "
               "and have this one replaced.";
    if (count == 1)
        shown->bearer = credentials_of(value, BYTES("Bearer "));
    credential_judge(req, count == 1, shown);
    return NULL;
}

enum problem access_enter(struct http_request *req)
{
    const struct http_route *route = http_route(req);
    bool is_open = route != NULL && route->needs == ACCESS_OPEN;
    struct credential shown;
    const char *wrong = credential_read(req, &shown);

    if (wrong != NULL) {
        http_refusal_detail(req, wrong);
        return PROBLEM_INVALID_REQUEST;
    }
    if (shown.is_put_off && !is_open)
        return limits_failing(req);
    http_identify(req, shown.identity, shown.by, shown.bearer);
    if (shown.why == ACCESS_GOOD)
        return limits_rate(req);
    if (is_open)
        return PROBLEM_NONE;
    if (shown.why == ACCESS_NONE && bytes_are(http_path(req), "/"))
        return PROBLEM_NONE; /* the index, unless a route of the table matches: then its handler asks */
    if (shown.why != ACCESS_NONE || route == NULL || !access_has_nobody(worker_of(req)->access))
        return access_unauthenticated(req, shown.why, shown.detail);
    return PROBLEM_NONE;
}

bool access_stands(struct http_request *req)
{
    struct credential shown = {.why = ACCESS_NONE, .bearer = http_shown(req), .has_begun = true};

    if (http_identity(req) == NULL) /* nobody stays nobody: that is for the rules */
        return true;
    credential_judge(req, shown.bearer.len > 0, &shown);
    return shown.identity == http_identity(req);
}

/* -- may it? */

bool service_allows(const struct http_request *req, enum access_verb verb, struct bytes lease)
{
    const struct access *access = worker_of(req)->access;

    return access == NULL || access_allows(access, http_identity(req), verb, lease);
}

bool service_still_allows(struct http_request *req, enum access_verb verb, struct bytes lease)
{
    return http_stands(req) && service_allows(req, verb, lease);
}

bool service_allows_some(const struct http_request *req, enum access_verb verb)
{
    const struct access *access = worker_of(req)->access;

    return access == NULL || access_allows_some(access, http_identity(req), verb);
}

bool service_covers(const struct http_request *req, enum access_verb verb, struct bytes prefix)
{
    const struct access *access = worker_of(req)->access;

    return access == NULL || access_covers(access, http_identity(req), verb, prefix);
}

struct bytes service_holder(const struct http_request *req, struct bytes lease, struct bytes holder)
{
    if (service_allows(req, ACCESS_LOOK, lease) || access_identity(worker_of(req)->access, holder) == NULL)
        return holder;
    return (struct bytes){NULL, 0};
}

bool service_judges(const struct http_request *req)
{
    return worker_of(req)->access != NULL;
}

/* write, or write-own, which is then asked of the store: it knows whose hold it is. Nobody has none of its
 * own. */
static bool allows(const struct http_request *req, enum access_verb verb, struct bytes lease)
{
    return service_allows(req, verb, lease) || (verb == ACCESS_WRITE && http_identity(req) != NULL &&
                                                service_allows(req, ACCESS_WRITE_OWN, lease));
}

static enum problem permits_name(struct http_request *req, unsigned place, enum access_verb verb)
{
    char text[RESOURCE_KEY_MAX_BYTES + 1];
    struct bytes key, lease = http_path_part(req, 0);
    const char *wrong;
    char *kept = http_scratch(req); /* no handler runs */

    if (place == ACCESS_FIRST)
        lease = bytes_cut(&(struct bytes){lease.at, lease.len}, '/');
    wrong = place == ACCESS_KEY ? resource_key_from_path(lease, text, &key, &lease)
                                : name_from_path(lease, text, &lease);
    if (wrong != NULL) {
        http_refusal_detail(req, wrong);
        return PROBLEM_INVALID_REQUEST;
    }
    if (allows(req, verb, lease))
        return PROBLEM_NONE;
    memcpy(kept, lease.at, lease.len);
    return service_forbidden(req, verb, (struct bytes){kept, lease.len});
}

enum problem access_permits(struct http_request *req)
{
    unsigned needs = http_route(req)->needs, place = needs & ((1U << ACCESS_VERB_SHIFT) - 1);
    enum access_verb verb = (enum access_verb)(needs >> ACCESS_VERB_SHIFT);
    bool is_known = http_identity(req) != NULL;

    switch ((enum access_need)place) {
    case ACCESS_OPEN:
    case ACCESS_HANDLER: return PROBLEM_NONE;
    case ACCESS_KNOWN: return is_known ? PROBLEM_NONE : access_unauthenticated(req, ACCESS_NONE, NULL);
    case ACCESS_SOME:
        return service_allows_some(req, verb) ? PROBLEM_NONE
                                              : service_forbidden(req, verb, (struct bytes){NULL, 0});
    case ACCESS_HOLD: return is_known ? PROBLEM_NONE : permits_name(req, place, verb);
    case ACCESS_NAME:
    case ACCESS_FIRST:
    case ACCESS_KEY: return permits_name(req, place, verb);
    }
    abort(); /* a route that does not say what it needs */
}

enum step service_forbid(struct http_request *req, enum access_verb verb, struct bytes lease)
{
    static const char taken_out[] =
        "Nothing was done: the credential that you have shown is not good any more. Show another one.";

    return http_refuse_detail(req, service_forbidden(req, verb, lease), http_stands(req) ? NULL : taken_out);
}

/* -- GET /v1/access: what the rules say of the caller */

enum step access_page(struct http_request *req)
{
    static const char *const names[] = {"lease", NULL};
    const struct access *access = worker_of(req)->access;
    char lease[NAME_MAX_BYTES + 1];
    int len = http_query_text(req, names, "lease", lease, sizeof(lease));
    struct json_out *json;

    if (access == NULL)
        return http_refuse_detail(req, PROBLEM_NOT_FOUND,
                                  "This service runs without --access: everybody may do everything.");
    if (len < -1 || (len >= 0 && !name_is_lease((struct bytes){lease, (size_t)len})))
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST,
                                  "The query is lease, a lease name, at most once.");
    json = http_json_begin(req);
    json_text(json, "identity", bytes_of(http_identity(req)));
    json_text(json, "by", bytes_of(http_identified_by(req)));
    json_text(json, "hash", bytes_of(access_hash(access)));
    json_list(json, "may");
    for (enum access_verb verb = 0; verb < ACCESS_VERBS; verb++)
        if (len >= 0 && verb < ACCESS_SESSION ? service_allows(req, verb, (struct bytes){lease, (size_t)len})
                                              : service_allows_some(req, verb))
            json_text(json, NULL, bytes_of(access_verb_name(verb)));
    json_list_end(json);
    return http_json_end(req, 200);
}

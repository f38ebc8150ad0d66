/* read.c - the members of one route: what is there, of the right kind and within its limits. */
#include <inttypes.h>

#include "gateway/route/route_internal.h"
#include "shared/text/ascii.h"
#include "shared/token/token.h"

_Static_assert((int)ROUTE_STORE_SIZE == (int)TOKEN_STORE_CHARS + 1, "it fits");

enum {
    GRACE_MS_MIN = 1000,
    GRACE_MS_MAX = 86400000,
    TIMEOUT_MS_MIN = 100,
    TIMEOUT_MS_MAX = 600000,
    TIMEOUT_MS_DEFAULT = 30000
};
static const int64_t body_max = (int64_t)1 << 40;

/* The words of a choice, in the order of its enum. */
static const char *const guarantees[] = {"committed", "ordered", "admitted", NULL};
static const char *const checks[] = {"live", "mark", NULL};
static const char *const reads_words[] = {"open", "fenced", NULL};
static const char *const bodies[] = {"whole", "stream", NULL};
static const char *const incompletes[] = {"in-doubt", "never-applied", NULL};

/* -- kinds of members */

/* text is empty when the member is absent. */
static bool member_text(struct route_reading *reading, const struct json *json, const char *name,
                        struct bytes *text)
{
    enum json_found found = json_get_text(json, name, text);

    if (found == JSON_MISTYPED || (found == JSON_FOUND && text->len == 0)) {
        return route_wrong(reading, "%s must be a text that is not empty", name);
    }
    if (found == JSON_ABSENT) {
        *text = (struct bytes){NULL, 0};
    }
    return true;
}

static bool member_needed(struct route_reading *reading, const struct json *json, const char *name,
                          struct bytes *text)
{
    return member_text(reading, json, name, text) &&
           (text->len > 0 || route_wrong(reading, "%s is missing", name));
}

static bool member_int(struct route_reading *reading, const struct json *json, const char *name, int64_t min,
                       int64_t max, uint64_t *value)
{
    int64_t number = 0;

    switch (json_get_int(json, name, &number)) {
    case JSON_ABSENT: return true;
    case JSON_MISTYPED: return route_wrong(reading, "%s must be an integer", name);
    case JSON_FOUND: break;
    }
    if (number < min || number > max) {
        return route_wrong(reading, "%s must be %" PRId64 " to %" PRId64, name, min, max);
    }
    *value = (uint64_t)number;
    return true;
}

static bool member_bool(struct route_reading *reading, const struct json *json, const char *name, bool *value)
{
    return json_get_bool(json, name, value) != JSON_MISTYPED ||
           route_wrong(reading, "%s must be true or false", name);
}

/* One of words; word stays as it is when the member is absent. */
static bool member_word(struct route_reading *reading, const struct json *json, const char *name,
                        const char *const *words, int *word)
{
    struct bytes text;

    if (!member_text(reading, json, name, &text)) {
        return false;
    }
    for (int i = 0; text.len > 0 && words[i] != NULL; i++) {
        if (bytes_are(text, words[i])) {
            *word = i;
            return true;
        }
    }
    if (text.len == 0) {
        return true;
    }
    return route_wrong(reading, "%s must be one of: %s, %s%s%s", name, words[0], words[1],
                       words[2] != NULL ? ", " : "", words[2] != NULL ? words[2] : "");
}

/* -- the members */

static bool is_lease_text(struct bytes text)
{
    return ascii_is_word(text, BYTES("._:-"));
}

static bool read_where(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    struct bytes match, lease, upstream, ca_file;

    if (!member_needed(reading, json, "match", &match)) {
        return false;
    }
    route->match = route_text(match); /* from here on what is told names it */
    if (!route_pattern_read(reading, match, &route->own->pattern) ||
        !member_needed(reading, json, "lease", &lease) ||
        !route_template_read(reading, "lease", lease, is_lease_text, &route->own->lease) ||
        !member_needed(reading, json, "upstream", &upstream) ||
        !member_text(reading, json, "ca_file", &ca_file)) {
        return false;
    }
    route->upstream = route_upstream_read(reading, upstream, ca_file);
    return route->upstream != NULL;
}

static bool read_promise(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    int guarantee = -1, check = ROUTE_LIVE, reads = ROUTE_READS_OPEN;
    bool checks_itself = false, if_match = false;

    if (!member_word(reading, json, "guarantee", guarantees, &guarantee) ||
        !member_word(reading, json, "check", checks, &check) ||
        !member_word(reading, json, "reads", reads_words, &reads) ||
        !member_bool(reading, json, "upstream_checks", &checks_itself) ||
        !member_bool(reading, json, "if_match", &if_match) ||
        !member_bool(reading, json, "serial", &route->serial)) {
        return false;
    }
    if (guarantee < 0) {
        return route_wrong(reading, "guarantee is missing");
    }
    if (checks_itself && if_match) {
        return route_wrong(reading,
                           "upstream_checks or if_match, not both: one of them makes check and write one");
    }
    route->guarantee = (enum route_guarantee)guarantee;
    route->check = (enum route_check)check;
    route->reads = (enum route_reads)reads;
    route->aid = checks_itself ? ROUTE_AID_CHECKS : if_match ? ROUTE_AID_IF_MATCH : ROUTE_AID_NONE;
    return true;
}

static bool read_store(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    struct bytes store;

    if (!member_text(reading, json, "store", &store)) {
        return false;
    }
    if (store.len > 0 && route->check != ROUTE_MARK) {
        return route_wrong(reading,
                           "store is for check mark: a hold is live in the gateway's own store only");
    }
    if (store.len > 0 && !token_is_store(store)) {
        return route_wrong(reading, "store must be the id of a store: %d characters of A-Z a-z 0-9 _ -",
                           TOKEN_STORE_CHARS);
    }
    snprintf(route->store, sizeof(route->store), "%.*s", (int)store.len, store.len > 0 ? store.at : "");
    snprintf(route->check_text, sizeof(route->check_text), "%s%s%s", checks[route->check],
             store.len > 0 ? " " : "", route->store);
    return true;
}

static bool is_path_text(struct bytes text)
{
    return text.len > 0 && memchr(text.at, '}', text.len) == NULL;
}

static bool probe_read(struct route_reading *reading, struct bytes probe)
{
    struct route *route = reading->route;
    struct bytes path = probe;

    if (probe.len > 4 && memcmp(probe.at, "GET ", 4) == 0) {
        route->probe_method = "GET";
    } else if (probe.len > 5 && memcmp(probe.at, "HEAD ", 5) == 0) {
        route->probe_method = "HEAD";
    } else {
        return route_wrong(reading, "unknown: a probe is \"GET /path\" or \"HEAD /path\"");
    }
    path.at += strlen(route->probe_method) + 1;
    path.len -= strlen(route->probe_method) + 1;
    route->unknown = ROUTE_PROBE;
    route->probe = route_text(path);
    return route_template_read(reading, "unknown: the probe", path, is_path_text, &route->own->probe);
}

static bool unknown_object_read(struct route_reading *reading, const struct json *json)
{
    static const char *const names[] = {"grace_ms", "probe", NULL};
    struct route *route = reading->route;
    struct bytes probe;

    if (json_unknown(json, names) != NULL) {
        return route_wrong(reading, "unknown has grace_ms or probe and nothing else");
    }
    if (!member_int(reading, json, "grace_ms", GRACE_MS_MIN, GRACE_MS_MAX, &route->grace_ms) ||
        !member_text(reading, json, "probe", &probe)) {
        return false;
    }
    if ((route->grace_ms > 0) == (probe.len > 0)) {
        return route_wrong(reading, "unknown must have grace_ms or probe, one of them");
    }
    if (probe.len > 0) {
        return probe_read(reading, probe);
    }
    route->unknown = ROUTE_GRACE;
    return true;
}

static bool read_unknown(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    struct bytes word;
    enum json_found found = json_get_text(json, "unknown", &word);

    route->unknown = ROUTE_HOLD;
    route->own->unknown_stated = found != JSON_ABSENT;
    if (found == JSON_MISTYPED) {
        const struct json *object = json_get_object(json, "unknown", &found);

        if (object == NULL || !unknown_object_read(reading, object)) {
            return route_wrong(reading,
                               "unknown must be \"hold\", {\"grace_ms\":n} or {\"probe\":\"GET /path\"}");
        }
    } else if (found == JSON_FOUND && !bytes_are(word, "hold")) {
        return route_wrong(reading,
                           "unknown must be \"hold\", {\"grace_ms\":n} or {\"probe\":\"GET /path\"}");
    }
    if (route->unknown == ROUTE_GRACE) {
        snprintf(route->unknown_text, sizeof(route->unknown_text), "g%" PRIu64, route->grace_ms);
    } else {
        snprintf(route->unknown_text, sizeof(route->unknown_text), route->unknown == ROUTE_PROBE ? "p" : "h");
    }
    return true;
}

static bool read_limits(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;

    route->timeout_ms = TIMEOUT_MS_DEFAULT;
    return member_int(reading, json, "timeout_ms", TIMEOUT_MS_MIN, TIMEOUT_MS_MAX, &route->timeout_ms) &&
           member_int(reading, json, "max_body", 0, body_max, &route->max_body);
}

static bool read_body(struct route_reading *reading, const struct json *json)
{
    int body = ROUTE_BODY_WHOLE, incomplete = -1;

    if (!member_word(reading, json, "body", bodies, &body) ||
        !member_word(reading, json, "incomplete", incompletes, &incomplete)) {
        return false;
    }
    if ((body == ROUTE_BODY_WHOLE) != (incomplete < 0)) {
        return route_wrong(reading, "body stream and incomplete go together: what does a request mean whose "
                                    "end was never sent? in-doubt, or never-applied if you know it");
    }
    reading->route->body = (enum route_body)(incomplete + 1);
    return true;
}

bool route_read(struct route_reading *reading, const struct json *json)
{
    static const char *const names[] = {
        "match",           "lease",   "upstream",        "guarantee", "check",
        "read_methods",    "reads",   "serial",          "unknown",   "timeout_ms",
        "max_body",        "headers", "upstream_checks", "if_match",  "ca_file",
        "unsure_statuses", "body",    "incomplete",      "store",     NULL};
    const char *unknown;

    if (!read_where(reading, json)) {
        return false;
    }
    unknown = json_unknown(json, names);
    if (unknown != NULL) {
        return route_wrong(reading, "the member %.64s is not known here", unknown);
    }
    return read_promise(reading, json) && read_store(reading, json) && read_unknown(reading, json) &&
           read_limits(reading, json) && read_body(reading, json) && route_methods_read(reading, json) &&
           route_headers_read(reading, json) && route_statuses_read(reading, json);
}

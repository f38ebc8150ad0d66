/* read.c - the members of one route: what is there, of the right kind and within its limits; and its lists:
 * which methods read, which headers pass, which statuses are final; and what a header is by its name. */
#include "gateway/route/route_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "shared/text/ascii.h"
#include "shared/token/token.h"

/* == what a header is by its name */

enum form { EXACT, BEGIN, END };

static bool row_fits(enum form form, struct bytes text, struct bytes name)
{
    if (form == EXACT ? name.len != text.len : name.len < text.len)
        return false;
    return strncasecmp(form == END ? name.at + name.len - text.len : name.at, text.at, text.len) == 0;
}

/* Asked for each header that comes or goes: one comparison of a letter for almost every row. */
unsigned field_kinds(struct bytes name)
{
    bool is_private = name.len > 2 && (name.at[0] | 0x20) == 'x' && name.at[1] == '-';
    struct bytes bare = is_private ? (struct bytes){name.at + 2, name.len - 2} : name;
    int first = name.at[0] | 0x20, bare_first = bare.at[0] | 0x20, last = name.at[name.len - 1] | 0x20;
    unsigned kinds = 0;

#define FIELD(kind, form, text, known)                                                                       \
    if ((FIELD_##kind == FIELD_OWN && (form) != END)                                                         \
            ? ((text)[0] | 0x20) == bare_first && row_fits(form, BYTES(text), bare)                          \
            : ((form) == END ? ((text)[sizeof(text) - 2] | 0x20) == last : ((text)[0] | 0x20) == first) &&   \
                  row_fits(form, BYTES(text), name))                                                         \
        kinds |= FIELD_##kind;
#include "gateway/fields.def"
#undef FIELD
    return kinds;
}

bool field_is_plain(struct bytes name)
{
    return ascii_is_word(name, BYTES("-"));
}

/* == the lists */

/* RFC 9110, section 9.2.1: these change something by their definition, so they never only read. POST may: a
 * search, GraphQL. */
static const char *const writing_methods[] = {"PUT",  "PATCH", "DELETE", "MKCOL",     "MKCALENDAR", "COPY",
                                              "MOVE", "LOCK",  "UNLOCK", "PROPPATCH", "ACL",        NULL};
static const char *const refused_methods[] = {"CONNECT", "TRACE", NULL};

/* Without these a message means something else: they pass an allow list, and cannot be denied. */
static const char *const request_meaning[] = {"content-encoding",
                                              "content-range",
                                              "content-type",
                                              "depth",
                                              "destination",
                                              "if",
                                              "if-match",
                                              "if-modified-since",
                                              "if-none-match",
                                              "if-range",
                                              "if-unmodified-since",
                                              "overwrite",
                                              NULL};
static const char *const answer_meaning[] = {"content-encoding", "content-range", "content-type", NULL};
/* The same, but they may be denied: without them a cache keeps what it must not. */
static const char *const answer_caching[] = {"cache-control", "vary", NULL};

static const unsigned unsure_default[] = {202, 408, 502, 503, 504, 520, 521, 522,
                                          523, 524, 525, 526, 527, 530, 598, 599};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The length of a list that may be absent. False: it is no list, or a longer one. */
static bool list_begin(struct route_reading *reading, const struct json *json, const char *name, size_t max,
                       size_t *count, bool *absent)
{
    enum json_found found;

    *count = json_list_count(json, name, &found);
    *absent = found == JSON_ABSENT;
    if (found == JSON_MISTYPED)
        return route_wrong(reading, "%s must be a list", name);
    return *count <= max || route_wrong(reading, "%s must have at most %zu entries", name, max);
}

struct side;

/* Names of a list, each of which is_good(), which may write it in another way; sorted, and none twice. where:
 * in front of the list's own name in a report. */
static bool names_take(struct route_reading *reading, const struct json *json, const char *where,
                       const char *list, size_t count, const struct side *side,
                       bool (*is_good)(struct route_reading *, const struct side *, struct bytes, char *),
                       char **names, unsigned *names_count)
{
    for (size_t i = 0; i < count; i++) {
        struct bytes name;

        if (!json_list_text(json, list, i, &name))
            return route_wrong(reading, "%s%s must be a list of texts", where, list);
        names[*names_count] = route_text(reading->table, name);
        if (!is_good(reading, side, name, names[(*names_count)++]))
            return false;
    }
    qsort(names, *names_count, sizeof(*names), compare_texts);
    for (unsigned i = 1; i < *names_count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return route_wrong(reading, "%s%s has %s twice", where, list, names[i]);
    return true;
}

/* -- methods */

static bool method_is_good(struct route_reading *reading, const struct side *side, struct bytes method,
                           char *text)
{
    (void)side;
    if (method.len > ROUTE_METHOD_MAX || !ascii_is_token(method)) {
        return route_wrong(reading, "read_methods must have names of methods, of at most %d characters",
                           ROUTE_METHOD_MAX);
    }
    for (size_t i = 0; i < method.len; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            return route_wrong(reading, "read_methods: %s is no method; they are written in capitals", text);
    if (bytes_are_among(method, refused_methods))
        return route_wrong(reading, "read_methods: %s is never forwarded", text);
    return !bytes_are_among(method, writing_methods) ||
           route_wrong(reading, "read_methods: %s is a write by its definition", text);
}

static bool read_methods(struct route_reading *reading, const struct json *json)
{
    static const char *const usual[] = {"GET", "HEAD", "OPTIONS"};
    struct route_own *own = reading->route->own;
    size_t count;
    bool absent;

    if (!list_begin(reading, json, "read_methods", ROUTE_METHODS_MAX, &count, &absent))
        return false;
    own->reads = route_alloc(reading->table, ROUTE_METHODS_MAX, sizeof(*own->reads));
    for (size_t i = 0; absent && i < sizeof(usual) / sizeof(usual[0]); i++)
        own->reads[own->read_count++] = route_text(reading->table, bytes_of(usual[i]));
    return names_take(reading, json, "", "read_methods", count, NULL, method_is_good, own->reads,
                      &own->read_count);
}

bool route_reads(const struct route *route, struct bytes method)
{
    for (unsigned i = 0; i < route->own->read_count; i++)
        if (bytes_are(method, route->own->reads[i]))
            return true;
    return false;
}

/* -- headers */

enum { REQUEST_OWN = FIELD_HOP | FIELD_OWN };

struct side {
    const char *name;
    const char *const *meaning;
    unsigned own; /* kinds that no list can name: forward/send.c makes or drops them on every route */
    struct route_fields *fields;
};

static bool field_is_good(struct route_reading *reading, const struct side *side, struct bytes name,
                          char *text)
{
    if (name.len > ROUTE_FIELD_MAX || !ascii_is_token(name)) {
        return route_wrong(reading, "headers must have names of headers, of at most %d characters",
                           ROUTE_FIELD_MAX);
    }
    for (char *c = text; *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    if ((field_kinds(name) & side->own) != 0 || (side->own == REQUEST_OWN && !field_is_plain(name)))
        return route_wrong(reading, "headers: %s is not for a list: Pawl makes or drops it by itself", text);
    if (side->fields->kind == ROUTE_LIST_DENY && bytes_are_among(name, side->meaning)) {
        return route_wrong(reading, "headers: %s cannot be denied in a%s: it would mean something else", text,
                           side->name[0] == 'a' ? "n answer" : " request");
    }
    return true;
}

static bool fields_take(struct route_reading *reading, const struct side *side, const struct json *json,
                        const char *list)
{
    struct route_fields *fields = side->fields;
    size_t count;
    bool absent;

    if (!list_begin(reading, json, list, ROUTE_FIELDS_MAX, &count, &absent))
        return false;
    if (absent)
        return true;
    if (fields->kind != ROUTE_LIST_NONE)
        return route_wrong(reading, "headers: %s has allow or deny, not both", side->name);
    fields->kind = list[0] == 'a' ? ROUTE_LIST_ALLOW : ROUTE_LIST_DENY;
    fields->names = route_alloc(reading->table, ROUTE_FIELDS_MAX, sizeof(*fields->names));
    return names_take(reading, json, "headers: ", list, count, side, field_is_good, fields->names,
                      &fields->count);
}

static bool side_read(struct route_reading *reading, const struct side *side, const struct json *headers)
{
    static const char *const names[] = {"allow", "deny", NULL};
    enum json_found found;
    const struct json *json = json_get_object(headers, side->name, &found);

    if (found == JSON_MISTYPED)
        return route_wrong(reading, "headers: %s must be an object", side->name);
    if (found == JSON_ABSENT)
        return true;
    if (json_unknown(json, names) != NULL)
        return route_wrong(reading, "headers: %s has allow or deny and nothing else", side->name);
    return fields_take(reading, side, json, "allow") && fields_take(reading, side, json, "deny");
}

static bool read_headers(struct route_reading *reading, const struct json *json)
{
    static const char *const names[] = {"request", "answer", NULL};
    struct route_own *own = reading->route->own;
    struct side request = {"request", request_meaning, REQUEST_OWN, &own->request};
    struct side answer = {"answer", answer_meaning, FIELD_HOP | FIELD_ANSWER, &own->answer};
    enum json_found found;
    const struct json *headers = json_get_object(json, "headers", &found);

    if (found == JSON_MISTYPED)
        return route_wrong(reading, "headers must be an object");
    if (found == JSON_ABSENT)
        return true;
    if (json_unknown(headers, names) != NULL)
        return route_wrong(reading, "headers has request and answer and nothing else");
    return side_read(reading, &request, headers) && side_read(reading, &answer, headers);
}

static bool fields_have(const struct route_fields *fields, struct bytes name)
{
    for (unsigned i = 0; i < fields->count; i++)
        if (bytes_equal_nocase(name, bytes_of(fields->names[i])))
            return true;
    return false;
}

bool route_passes_request(const struct route *route, struct bytes header_name)
{
    const struct route_fields *fields = &route->own->request;

    if (fields->kind == ROUTE_LIST_ALLOW)
        return bytes_are_among(header_name, request_meaning) || fields_have(fields, header_name);
    return !fields_have(fields, header_name);
}

bool route_passes_answer(const struct route *route, struct bytes header_name)
{
    const struct route_fields *fields = &route->own->answer;

    if (fields->kind == ROUTE_LIST_ALLOW) {
        return bytes_are_among(header_name, answer_meaning) || bytes_are_among(header_name, answer_caching) ||
               fields_have(fields, header_name);
    }
    return !fields_have(fields, header_name);
}

/* -- statuses */

static void status_set(struct route_own *own, unsigned status)
{
    unsigned bit = status - ROUTE_STATUS_MIN;

    own->unsure[bit / 8] |= (unsigned char)(1U << bit % 8);
}

bool route_is_final(const struct route *route, unsigned status)
{
    unsigned bit = status - ROUTE_STATUS_MIN;

    return status >= ROUTE_STATUS_MIN && status <= ROUTE_STATUS_MAX &&
           !(route->own->unsure[bit / 8] >> bit % 8 & 1);
}

static bool status_take(struct route_reading *reading, const struct json *json, size_t i)
{
    int64_t status;

    if (!json_list_int(json, "unsure_statuses", i, &status) || status < ROUTE_STATUS_MIN ||
        status > ROUTE_STATUS_MAX) {
        return route_wrong(reading, "unsure_statuses must be a list of statuses, %d to %d", ROUTE_STATUS_MIN,
                           ROUTE_STATUS_MAX);
    }
    if (!route_is_final(reading->route, (unsigned)status))
        return route_wrong(reading, "unsure_statuses has %d twice", (int)status);
    status_set(reading->route->own, (unsigned)status);
    return true;
}

static bool read_statuses(struct route_reading *reading, const struct json *json)
{
    struct route_own *own = reading->route->own;
    size_t count;
    bool absent;

    if (!list_begin(reading, json, "unsure_statuses", ROUTE_UNSURE_MAX, &count, &absent))
        return false;
    for (size_t i = 0; absent && i < sizeof(unsure_default) / sizeof(unsure_default[0]); i++)
        status_set(own, unsure_default[i]);
    for (size_t i = 0; i < count; i++)
        if (!status_take(reading, json, i))
            return false;
    return true;
}

/* == the members */

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
static const char *const credentials[] = {"own", "upstream", NULL};

/* -- kinds of members */

/* text is empty when the member is absent. */
static bool member_text(struct route_reading *reading, const struct json *json, const char *name,
                        struct bytes *text)
{
    enum json_found found = json_get_text(json, name, text);

    if (found == JSON_MISTYPED || (found == JSON_FOUND && text->len == 0))
        return route_wrong(reading, "%s must be a text that is not empty", name);
    if (found == JSON_ABSENT)
        *text = (struct bytes){NULL, 0};
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
    if (number < min || number > max)
        return route_wrong(reading, "%s must be %" PRId64 " to %" PRId64, name, min, max);
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

    if (!member_text(reading, json, name, &text))
        return false;
    for (int i = 0; text.len > 0 && words[i] != NULL; i++) {
        if (bytes_are(text, words[i])) {
            *word = i;
            return true;
        }
    }
    if (text.len == 0)
        return true;
    return route_wrong(reading, "%s must be one of: %s, %s%s%s", name, words[0], words[1],
                       words[2] != NULL ? ", " : "", words[2] != NULL ? words[2] : "");
}

/* -- the members */

static bool is_lease_text(struct bytes text)
{
    return ascii_is_word(text, BYTES("._:-"));
}

/* The path of a file. */
static bool member_path(struct route_reading *reading, const struct json *json, const char *name,
                        struct bytes *path)
{
    if (!member_text(reading, json, name, path))
        return false;
    return path->len == 0 || (path->at[0] == '/' && path->len <= ROUTE_FILE_MAX) ||
           route_wrong(reading, "%s must be the path of a file, beginning with a slash", name);
}

static bool read_tls(struct route_reading *reading, const struct json *json,
                     struct bytes files[ROUTE_TLS_FILES])
{
    static const char *const names[] = {"ca_file", "cert_file", "key_file", NULL};
    enum json_found found;
    const struct json *tls = json_get_object(json, "upstream_tls", &found);

    for (unsigned i = 0; i < ROUTE_TLS_FILES; i++)
        files[i] = (struct bytes){NULL, 0};
    if (found == JSON_MISTYPED)
        return route_wrong(reading, "upstream_tls must be an object");
    if (found == JSON_ABSENT)
        return true;
    if (json_unknown(tls, names) != NULL)
        return route_wrong(reading, "upstream_tls has ca_file, cert_file and key_file and nothing else");
    for (unsigned i = 0; i < ROUTE_TLS_FILES; i++)
        if (!member_path(reading, tls, names[i], &files[i]))
            return false;
    if ((files[ROUTE_CERT_FILE].len > 0) != (files[ROUTE_KEY_FILE].len > 0))
        return route_wrong(reading, "upstream_tls: cert_file and key_file go together");
    return files[ROUTE_CA_FILE].len + files[ROUTE_CERT_FILE].len > 0 ||
           route_wrong(reading, "upstream_tls must have ca_file, or cert_file and key_file");
}

static bool read_where(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    struct bytes match, lease, upstream, tls_files[ROUTE_TLS_FILES];

    if (!member_needed(reading, json, "match", &match))
        return false;
    route->match = route_text(reading->table, match); /* from here on the report of a fault names it */
    if (!route_pattern_read(reading, match, &route->own->pattern) ||
        !member_needed(reading, json, "lease", &lease) ||
        !route_template_read(reading, "lease", lease, is_lease_text, &route->own->lease) ||
        !member_needed(reading, json, "upstream", &upstream) || !read_tls(reading, json, tls_files))
        return false;
    route->upstream = route_upstream_read(reading, upstream, tls_files);
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
        !member_bool(reading, json, "serial", &route->serial))
        return false;
    if (guarantee < 0)
        return route_wrong(reading, "guarantee is missing");
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

    if (!member_text(reading, json, "store", &store))
        return false;
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

    if (probe.len > 4 && memcmp(probe.at, "GET ", 4) == 0)
        route->probe_method = "GET";
    else if (probe.len > 5 && memcmp(probe.at, "HEAD ", 5) == 0)
        route->probe_method = "HEAD";
    else
        return route_wrong(reading, "unknown: a probe is \"GET /path\" or \"HEAD /path\"");
    path.at += strlen(route->probe_method) + 1;
    path.len -= strlen(route->probe_method) + 1;
    route->unknown = ROUTE_PROBE;
    return route_template_read(reading, "unknown: the probe", path, is_path_text, &route->own->probe);
}

static bool unknown_object_read(struct route_reading *reading, const struct json *json)
{
    static const char *const names[] = {"grace_ms", "probe", NULL};
    struct route *route = reading->route;
    struct bytes probe;

    if (json_unknown(json, names) != NULL)
        return route_wrong(reading, "unknown has grace_ms or probe and nothing else");
    if (!member_int(reading, json, "grace_ms", GRACE_MS_MIN, GRACE_MS_MAX, &route->grace_ms) ||
        !member_text(reading, json, "probe", &probe))
        return false;
    if ((route->grace_ms > 0) == (probe.len > 0))
        return route_wrong(reading, "unknown must have grace_ms or probe, one of them");
    if (probe.len > 0)
        return probe_read(reading, probe);
    route->unknown = ROUTE_GRACE;
    return true;
}

static bool read_unknown(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    struct bytes word;
    enum json_found found = json_get_text(json, "unknown", &word), as_object;
    const struct json *object = found == JSON_MISTYPED ? json_get_object(json, "unknown", &as_object) : NULL;

    route->unknown = ROUTE_HOLD;
    route->own->unknown_stated = found != JSON_ABSENT;
    if (object != NULL ? !unknown_object_read(reading, object)
                       : found != JSON_ABSENT && (found != JSON_FOUND || !bytes_are(word, "hold"))) {
        return route_wrong(reading,
                           "unknown must be \"hold\", {\"grace_ms\":n} or {\"probe\":\"GET /path\"}");
    }
    if (route->unknown == ROUTE_GRACE)
        snprintf(route->unknown_text, sizeof(route->unknown_text), "g%" PRIu64, route->grace_ms);
    else
        snprintf(route->unknown_text, sizeof(route->unknown_text), route->unknown == ROUTE_PROBE ? "p" : "h");
    return true;
}

static bool read_credential(struct route_reading *reading, const struct json *json)
{
    struct route *route = reading->route;
    int credential = ROUTE_CREDENTIAL_OWN;
    struct bytes path;

    if (!member_word(reading, json, "credential", credentials, &credential) ||
        !member_path(reading, json, "upstream_authorization_file", &path))
        return false;
    route->credential = (enum route_credential)credential;
    route->authorization_file = path.len > 0 ? route_text(reading->table, path) : NULL;
    return path.len == 0 || credential == ROUTE_CREDENTIAL_OWN ||
           route_wrong(reading, "upstream_authorization_file is for credential own: with credential upstream "
                                "Authorization is the caller's");
}

static bool read_body(struct route_reading *reading, const struct json *json)
{
    int body = ROUTE_BODY_WHOLE, incomplete = -1;

    if (!member_word(reading, json, "body", bodies, &body) ||
        !member_word(reading, json, "incomplete", incompletes, &incomplete))
        return false;
    if ((body == ROUTE_BODY_WHOLE) != (incomplete < 0)) {
        return route_wrong(reading, "body stream and incomplete go together: what does a request mean whose "
                                    "end was never sent? in-doubt, or never-applied if you know it");
    }
    reading->route->body = (enum route_body)(incomplete + 1);
    return true;
}

bool route_read(struct route_reading *reading, const struct json *json)
{
    static const char *const names[] = {"match",
                                        "lease",
                                        "upstream",
                                        "guarantee",
                                        "check",
                                        "read_methods",
                                        "reads",
                                        "serial",
                                        "unknown",
                                        "timeout_ms",
                                        "max_body",
                                        "headers",
                                        "upstream_checks",
                                        "if_match",
                                        "upstream_tls",
                                        "unsure_statuses",
                                        "body",
                                        "incomplete",
                                        "store",
                                        "credential",
                                        "upstream_authorization_file",
                                        NULL};
    struct route *route = reading->route;
    const char *unknown;

    if (!read_where(reading, json))
        return false;
    unknown = json_unknown(json, names);
    if (unknown != NULL)
        return route_wrong(reading, "the member %.64s is not known here", unknown);
    route->timeout_ms = TIMEOUT_MS_DEFAULT;
    return read_promise(reading, json) && read_store(reading, json) && read_unknown(reading, json) &&
           member_int(reading, json, "timeout_ms", TIMEOUT_MS_MIN, TIMEOUT_MS_MAX, &route->timeout_ms) &&
           member_int(reading, json, "max_body", 0, body_max, &route->max_body) && read_body(reading, json) &&
           read_credential(reading, json) && read_methods(reading, json) && read_headers(reading, json) &&
           read_statuses(reading, json);
}

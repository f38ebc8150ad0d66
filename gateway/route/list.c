/* list.c - the lists of a route: which methods read, which headers pass, which statuses are final. */
#include <stdlib.h>
#include <strings.h>

#include "gateway/fields.h"
#include "gateway/route/route_internal.h"
#include "shared/text/ascii.h"

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
/* The same, but denying them harms nobody who wants it: without them a cache keeps what it must not. */
static const char *const answer_caching[] = {"cache-control", "vary", NULL};

static const unsigned unsure_default[] = {202, 408, 502, 503, 504, 520, 521, 522,
                                          523, 524, 525, 526, 527, 530, 598, 599};

static bool is_among(const char *text, const char *const *names)
{
    while (*names != NULL && strcasecmp(*names, text) != 0) {
        names++;
    }
    return *names != NULL;
}

/* RFC 9110, section 5.6.2. */
static bool is_token(struct bytes text)
{
    return text.len > 0 && ascii_is_word(text, BYTES("!#$%&'*+-.^_`|~"));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void texts_free(char **texts, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        free(texts[i]);
    }
    free(texts);
}

/* Sorts, and says which text stands there twice, or NULL. */
static const char *texts_sort(char **texts, unsigned count)
{
    qsort(texts, count, sizeof(*texts), compare_texts);
    for (unsigned i = 1; i < count; i++) {
        if (strcmp(texts[i - 1], texts[i]) == 0) {
            return texts[i];
        }
    }
    return NULL;
}

/* The length of a list that may be absent: false: it is no list, or a longer one. */
static bool list_begin(struct route_reading *reading, const struct json *json, const char *name, size_t max,
                       size_t *count, bool *absent)
{
    enum json_found found;

    *count = json_list_count(json, name, &found);
    *absent = found == JSON_ABSENT;
    if (found == JSON_MISTYPED) {
        return route_wrong(reading, "%s must be a list", name);
    }
    return *count <= max || route_wrong(reading, "%s must have at most %zu entries", name, max);
}

/* -- methods */

static bool method_is_good(struct route_reading *reading, struct bytes method)
{
    char text[ROUTE_METHOD_MAX + 1] = "";

    if (method.len > ROUTE_METHOD_MAX || !is_token(method)) {
        return route_wrong(reading, "read_methods must have names of methods, of at most %d characters",
                           ROUTE_METHOD_MAX);
    }
    memcpy(text, method.at, method.len);
    for (size_t i = 0; i < method.len; i++) {
        if (text[i] >= 'a' && text[i] <= 'z') {
            return route_wrong(reading, "read_methods: %s is no method; they are written in capitals", text);
        }
    }
    if (is_among(text, refused_methods)) {
        return route_wrong(reading, "read_methods: %s is never forwarded", text);
    }
    return !is_among(text, writing_methods) ||
           route_wrong(reading, "read_methods: %s is a write by its definition", text);
}

static bool methods_take(struct route_reading *reading, const struct json *json, size_t count)
{
    struct route_own *own = reading->route->own;
    const char *twice;

    for (size_t i = 0; i < count; i++) {
        struct bytes method;

        if (!json_list_text(json, "read_methods", i, &method)) {
            return route_wrong(reading, "read_methods must be a list of texts");
        }
        if (!method_is_good(reading, method)) {
            return false;
        }
        own->reads[own->read_count++] = route_text(method);
    }
    twice = texts_sort(own->reads, own->read_count);
    return twice == NULL || route_wrong(reading, "read_methods has %s twice", twice);
}

bool route_methods_read(struct route_reading *reading, const struct json *json)
{
    static const char *const usual[] = {"GET", "HEAD", "OPTIONS"};
    struct route_own *own = reading->route->own;
    size_t count;
    bool absent;

    if (!list_begin(reading, json, "read_methods", ROUTE_METHODS_MAX, &count, &absent)) {
        return false;
    }
    own->reads = route_alloc(ROUTE_METHODS_MAX, sizeof(*own->reads));
    if (!absent) {
        return methods_take(reading, json, count);
    }
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        own->reads[own->read_count++] = route_text(bytes_of(usual[i]));
    }
    return true;
}

bool route_reads(const struct route *route, struct bytes method)
{
    for (unsigned i = 0; i < route->own->read_count; i++) {
        if (bytes_are(method, route->own->reads[i])) {
            return true;
        }
    }
    return false;
}

/* -- headers */

enum { REQUEST_OWN = FIELD_HOP | FIELD_OWN };

struct side {
    const char *name;
    const char *const *meaning;
    unsigned own; /* kinds that no list can name: forward/head.c makes or drops them on every route */
    struct route_fields *fields;
};

static bool field_take(struct route_reading *reading, const struct side *side, struct bytes name)
{
    char *text;

    if (name.len > ROUTE_FIELD_MAX || !is_token(name)) {
        return route_wrong(reading, "headers must have names of headers, of at most %d characters",
                           ROUTE_FIELD_MAX);
    }
    text = side->fields->names[side->fields->count++] = route_text(name);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    if ((field_kinds(name) & side->own) != 0 || (side->own == REQUEST_OWN && !field_is_plain(name))) {
        return route_wrong(reading, "headers: %s is not for a list: Pawl makes or drops it by itself", text);
    }
    if (side->fields->kind == ROUTE_LIST_DENY && is_among(text, side->meaning)) {
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
    const char *twice;

    if (!list_begin(reading, json, list, ROUTE_FIELDS_MAX, &count, &absent)) {
        return false;
    }
    if (absent) {
        return true;
    }
    if (fields->kind != ROUTE_LIST_NONE) {
        return route_wrong(reading, "headers: %s has allow or deny, not both", side->name);
    }
    fields->kind = list[0] == 'a' ? ROUTE_LIST_ALLOW : ROUTE_LIST_DENY;
    fields->names = route_alloc(ROUTE_FIELDS_MAX, sizeof(*fields->names));
    for (size_t i = 0; i < count; i++) {
        struct bytes name;

        if (!json_list_text(json, list, i, &name)) {
            return route_wrong(reading, "headers: %s must be a list of texts", list);
        }
        if (!field_take(reading, side, name)) {
            return false;
        }
    }
    twice = texts_sort(fields->names, fields->count);
    return twice == NULL || route_wrong(reading, "headers: %s has %s twice", list, twice);
}

static bool side_read(struct route_reading *reading, const struct side *side, const struct json *headers)
{
    static const char *const names[] = {"allow", "deny", NULL};
    enum json_found found;
    const struct json *json = json_get_object(headers, side->name, &found);

    if (found == JSON_MISTYPED) {
        return route_wrong(reading, "headers: %s must be an object", side->name);
    }
    if (found == JSON_ABSENT) {
        return true;
    }
    if (json_unknown(json, names) != NULL) {
        return route_wrong(reading, "headers: %s has allow or deny and nothing else", side->name);
    }
    return fields_take(reading, side, json, "allow") && fields_take(reading, side, json, "deny");
}

bool route_headers_read(struct route_reading *reading, const struct json *json)
{
    static const char *const names[] = {"request", "answer", NULL};
    struct route_own *own = reading->route->own;
    struct side request = {"request", request_meaning, REQUEST_OWN, &own->request};
    struct side answer = {"answer", answer_meaning, FIELD_HOP | FIELD_ANSWER, &own->answer};
    enum json_found found;
    const struct json *headers = json_get_object(json, "headers", &found);

    if (found == JSON_MISTYPED) {
        return route_wrong(reading, "headers must be an object");
    }
    if (found == JSON_ABSENT) {
        return true;
    }
    if (json_unknown(headers, names) != NULL) {
        return route_wrong(reading, "headers has request and answer and nothing else");
    }
    return side_read(reading, &request, headers) && side_read(reading, &answer, headers);
}

static bool fields_have(const struct route_fields *fields, struct bytes name)
{
    for (unsigned i = 0; i < fields->count; i++) {
        if (strlen(fields->names[i]) == name.len && strncasecmp(fields->names[i], name.at, name.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool bytes_among(struct bytes name, const char *const *names)
{
    while (*names != NULL && (strlen(*names) != name.len || strncasecmp(*names, name.at, name.len) != 0)) {
        names++;
    }
    return *names != NULL;
}

bool route_passes_request(const struct route *route, struct bytes header_name)
{
    const struct route_fields *fields = &route->own->request;

    if (fields->kind == ROUTE_LIST_ALLOW) {
        return bytes_among(header_name, request_meaning) || fields_have(fields, header_name);
    }
    return !fields_have(fields, header_name);
}

bool route_passes_answer(const struct route *route, struct bytes header_name)
{
    const struct route_fields *fields = &route->own->answer;

    if (fields->kind == ROUTE_LIST_ALLOW) {
        return bytes_among(header_name, answer_meaning) || bytes_among(header_name, answer_caching) ||
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
    if (!route_is_final(reading->route, (unsigned)status)) {
        return route_wrong(reading, "unsure_statuses has %d twice", (int)status);
    }
    status_set(reading->route->own, (unsigned)status);
    return true;
}

bool route_statuses_read(struct route_reading *reading, const struct json *json)
{
    struct route_own *own = reading->route->own;
    size_t count;
    bool absent;

    if (!list_begin(reading, json, "unsure_statuses", ROUTE_UNSURE_MAX, &count, &absent)) {
        return false;
    }
    for (size_t i = 0; absent && i < sizeof(unsure_default) / sizeof(unsure_default[0]); i++) {
        status_set(own, unsure_default[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (!status_take(reading, json, i)) {
            return false;
        }
    }
    return true;
}

void route_lists_done(struct route_own *own)
{
    texts_free(own->reads, own->read_count);
    texts_free(own->request.names, own->request.count);
    texts_free(own->answer.names, own->answer.count);
}

/* read.c - what is asked of a stream of events: the query, Last-Event-ID, Accept. */
#include <strings.h>

#include "lease/events/events.h"

static const char *const query_names[] = {"lease", "since", NULL};

static int query(const struct http_request *req, const char *name, char *buf, size_t size)
{
    int len = http_query(req).len > 0 ? http_query_get(req, query_names, name, buf, size - 1) : -1;

    buf[len > 0 ? len : 0] = '\0';
    return len > 0 && strlen(buf) != (size_t)len ? -2 : len; /* %00 cuts no value short */
}

/* An id that is not ours is 400, wherever it stands; the header wins. */
static const char *since_read(const struct http_request *req, char since[HISTORY_ID_SIZE])
{
    unsigned count = 0, stripe;
    struct bytes header = http_header(req, "Last-Event-ID", &count);
    struct history_id id;
    int len = query(req, "since", since, HISTORY_ID_SIZE);

    if (len != -1 && (len < 0 || !history_id_read_told(bytes_of(since), &stripe, &id))) {
        return "The query is lease and since, each at most once; since is the id of an event.";
    }
    if (count == 0) {
        return NULL;
    }
    if (count > 1 || header.len >= HISTORY_ID_SIZE || !history_id_read_told(header, &stripe, &id)) {
        return "The header Last-Event-ID is the id of an event, and comes at most once.";
    }
    memcpy(since, header.at, header.len);
    since[header.len] = '\0';
    return NULL;
}

const char *events_read(const struct http_request *req, char name[NAME_MAX_BYTES + 1],
                        char since[HISTORY_ID_SIZE])
{
    int len = query(req, "lease", name, NAME_MAX_BYTES + 1);

    if (len == -2) {
        return "The query is lease and since, each at most once; lease is the name of a lease.";
    }
    if (len != -1 && !name_is_lease(bytes_of(name))) {
        return "The query member lease is not the name of a lease: 1 to 128 characters of A-Z a-z 0-9 . _ : "
               "-, the "
               "first a letter or a digit.";
    }
    return since_read(req, since);
}

#define NDJSON "application/x-ndjson"

/* Parameters are not looked at: whoever names the type can read it. */
enum events_form events_form_read(const struct http_request *req)
{
    struct bytes accept = http_header(req, "Accept", NULL);
    size_t len = sizeof(NDJSON) - 1;

    for (size_t i = 0; i + len <= accept.len; i++) {
        char before = i > 0 ? accept.at[i - 1] : ',', after = i + len < accept.len ? accept.at[i + len] : ',';

        if (strncasecmp(accept.at + i, NDJSON, len) == 0 && strchr(", \t", before) != NULL &&
            strchr(",; \t", after) != NULL) {
            return EVENTS_NDJSON;
        }
    }
    return EVENTS_SSE;
}

/* events.h - how a stream of events is asked for, and how it is written. */
#ifndef PAWL_LEASE_EVENTS_H
#define PAWL_LEASE_EVENTS_H

#include "lease/events/history_item.h"
#include "shared/http/http.h"
#include "shared/token/name.h"

enum events_form { EVENTS_SSE, EVENTS_NDJSON, EVENTS_FORMS };

/* name: of the one lease, or empty; since: "SS.EPOCH.SEQ.N", or empty: from now on; each ends with NUL.
 * Last-Event-ID wins over the query. NULL, or what is wrong: 400, also of an id that is none of ours. */
const char *events_read(const struct http_request *req, char name[NAME_MAX_BYTES + 1],
                        char since[HISTORY_ID_SIZE]);
/* By the Accept header. The contract does not say what becomes of types that it does not name: they get SSE,
 * as does a request without the header. */
enum events_form events_form_read(const struct http_request *req);
struct bytes events_type(enum events_form form);

/* The writers are false when the stream does not take it: it is to be ended.
 * The first bytes leave at once, so that a client knows that it listens. last: "SS.EPOCH.SEQ.N" of what came
 * before, or empty: an SSE client that is cut off before anything happens goes on from there (an id without
 * data is no event). */
bool events_write_begin(struct http_response_writer *stream, enum events_form form, struct bytes last);
/* An item behind what is in text, which goes to many. */
void events_put_item(struct json_out *text, enum events_form form, struct bytes lease,
                     const struct history_item *item);
/* One item or several. false: the client has gone, or is too slow: it is told so, if it ever reads again. */
bool events_write_text(struct http_response_writer *stream, enum events_form form, struct bytes text);
/* A sign of epoch. */
bool events_write_alive(struct http_response_writer *stream, enum events_form form);

/* What a request goes through: stream.c has the drawing. */
enum events_state { EVENTS_SUBSCRIBER, EVENTS_STORE, EVENTS_STREAM, EVENTS_DONE, EVENTS_STATES };
bool events_allows(enum events_state from, enum events_state to);

#endif

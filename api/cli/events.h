/* events.h - server-sent events out of a stream of bytes (WHATWG HTML, "Server-sent events", 9.2.6).
 *
 * A stream may begin with an id alone: the place from which the next connection goes on, before anything
 * happened. */
#ifndef PAWL_CLI_EVENTS_H
#define PAWL_CLI_EVENTS_H

#include <stdbool.h>

#include "shared/text/bytes.h"

enum { SSE_LINE_MAX = 64 * 1024, SSE_ID_SIZE = 128 };

struct sse {
    /* Called at the empty line behind each event that has data; the text ends with a NUL. */
    void (*event)(struct sse *sse, struct bytes data);
    char id[SSE_ID_SIZE]; /* of the last event, or "": to be sent as Last-Event-ID */
    /* its own */
    char next_id[SSE_ID_SIZE];
    char *line, *data;
    size_t line_len, data_len;
    bool has_data, carriage;
};

void sse_init(struct sse *sse, void (*event)(struct sse *sse, struct bytes data));
void sse_done(struct sse *sse);
/* A new stream: what was begun is forgotten, the id stays. */
void sse_restart(struct sse *sse);
/* false: a line, or an event, is longer than SSE_LINE_MAX. */
bool sse_feed(struct sse *sse, struct bytes text);

#endif

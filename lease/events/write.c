/* write.c - how a stream of events is written: SSE (WHATWG HTML, "Server-sent events"), or JSON, one
 * object a line. */
#include "lease/events/events.h"

struct bytes events_type(enum events_form form)
{
    return form == EVENTS_NDJSON ? BYTES("application/x-ndjson") : BYTES("text/event-stream");
}

static bool write_text(struct http_response_writer *stream, struct json_out *text)
{
    bool taken = http_stream_write(stream, (struct bytes){text->at, text->len});

    json_out_done(text);
    return taken;
}

static void put(struct json_out *text, const char *before, struct bytes value, const char *after)
{
    json_out_append(text, bytes_of(before));
    json_out_append(text, value);
    json_out_append(text, bytes_of(after));
}

bool events_write_begin(struct http_response_writer *stream, enum events_form form, struct bytes last)
{
    struct json_out text;

    if (form == EVENTS_NDJSON) {
        return http_stream_write(stream, BYTES("\n"));
    }
    json_out_init(&text);
    json_out_append(&text, BYTES(": listening\n"));
    if (last.len > 0) {
        put(&text, "id: ", last, "\n");
    }
    json_out_append(&text, BYTES("\n"));
    return write_text(stream, &text);
}

void events_put_item(struct json_out *text, enum events_form form, struct bytes lease,
                     const struct history_item *item)
{
    char id[HISTORY_ID_SIZE];
    struct json_out json;

    json_out_init(&json);
    history_item_write(&json, lease, item);
    if (form == EVENTS_SSE) {
        put(text, "id: ", history_id_write(id, lease, item->id_text), "\n");
        put(text, "event: ", item->type, "\n");
        put(text, "data: ", json_out_bytes(&json), "\n\n");
    } else {
        put(text, "", json_out_bytes(&json), "\n");
    }
    json_out_done(&json);
}

/* With the members of every other item, so that nothing that reads them stumbles; but no id as the stream's
 * own: the client comes back with that of the last item that it was told. */
#define LAGGING                                                                                              \
    "{\"id\":\"\",\"type\":\"lagging\",\"lease\":\"\",\"token\":0,\"holder\":\"\",\"at_ms\":0,\"reason\":"   \
    "\"too slow\"}\n"

bool events_write_text(struct http_response_writer *stream, enum events_form form, struct bytes text)
{
    if (http_stream_write(stream, text)) {
        return true;
    }
    http_stream_write(stream,
                      form == EVENTS_SSE ? BYTES("event: lagging\ndata: " LAGGING "\n") : BYTES(LAGGING));
    return false;
}

bool events_write_alive(struct http_response_writer *stream, enum events_form form)
{
    return http_stream_write(stream, form == EVENTS_NDJSON ? BYTES("\n") : BYTES(": alive\n\n"));
}

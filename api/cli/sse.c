/* sse.c - server-sent events out of a stream of bytes. */
#include "api/cli/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"

void sse_init(struct sse *sse, void (*event)(struct sse *sse, struct bytes data))
{
    *sse = (struct sse){.event = event, .line = cli_alloc(SSE_LINE_MAX), .data = cli_alloc(SSE_LINE_MAX + 1)};
}

void sse_done(struct sse *sse)
{
    free(sse->line);
    free(sse->data);
    sse->line = sse->data = NULL;
}

void sse_restart(struct sse *sse)
{
    sse->line_len = sse->data_len = 0;
    sse->has_data = sse->carriage = false;
    memcpy(sse->next_id, sse->id, sizeof(sse->id));
}

static bool data_add(struct sse *sse, struct bytes value)
{
    size_t more = value.len + sse->has_data;

    if (sse->data_len + more > SSE_LINE_MAX) {
        return false;
    }
    if (sse->has_data) {
        sse->data[sse->data_len++] = '\n';
    }
    if (value.len > 0) {
        memcpy(sse->data + sse->data_len, value.at, value.len);
    }
    sse->data_len += value.len;
    sse->has_data = true;
    return true;
}

/* It goes back as the value of a header. */
static void id_take(struct sse *sse, struct bytes value)
{
    bool plain = value.len < SSE_ID_SIZE;

    for (size_t i = 0; plain && i < value.len; i++) {
        plain = value.at[i] > ' ' && value.at[i] < 0x7f;
    }
    if (plain) {
        snprintf(sse->next_id, sizeof(sse->next_id), "%.*s", (int)value.len, value.len > 0 ? value.at : "");
    }
}

/* The id counts from here on, and not before: half an event has not been seen. */
static void dispatch(struct sse *sse)
{
    memcpy(sse->id, sse->next_id, sizeof(sse->id));
    if (sse->has_data) {
        sse->data[sse->data_len] = '\0';
        sse->event(sse, (struct bytes){sse->data, sse->data_len});
    }
    sse->has_data = false;
    sse->data_len = 0;
}

static bool line_take(struct sse *sse)
{
    struct bytes line = {sse->line, sse->line_len}, name = line, value = {NULL, 0};
    const char *colon = line.len > 0 ? memchr(line.at, ':', line.len) : NULL;

    sse->line_len = 0;
    if (line.len == 0) {
        dispatch(sse);
        return true;
    }
    if (colon != NULL) {
        name.len = (size_t)(colon - line.at);
        value = (struct bytes){colon + 1, line.len - name.len - 1};
    }
    if (value.len > 0 && value.at[0] == ' ') {
        value = (struct bytes){value.at + 1, value.len - 1};
    }
    if (bytes_are(name, "data")) {
        return data_add(sse, value);
    }
    if (bytes_are(name, "id")) {
        id_take(sse, value);
    }
    return true; /* a comment, or a field that says nothing to us */
}

bool sse_feed(struct sse *sse, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool second = c == '\n' && sse->carriage; /* of "\r\n" */

        sse->carriage = c == '\r';
        if (second) {
            continue;
        }
        if (c == '\n' || c == '\r') {
            if (!line_take(sse)) {
                return false;
            }
        } else if (sse->line_len == SSE_LINE_MAX) {
            return false;
        } else {
            sse->line[sse->line_len++] = c;
        }
    }
    return true;
}

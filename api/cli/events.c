/* events.c - pawl watch: what happens to a lease, or to all, as it happens.
 *
 *   watch_check    flags                                                              64, or go on
 *   watch_stream   one stream, until it ends
 *   watch_after    how it ended: again after a pause, from the last id; or give up    69 | 1 ...
 *
 * Nothing is skipped in silence. Every stream begins behind the last id that the one before it had; where
 * there is no such id, or the service does not keep what came after it (410 cursor-expired), an item of type
 * "missed" is shown. Ctrl-C ends it with 0. */
#include "api/cli/events.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/verb.h"
#include "shared/text/ascii.h"
#include "shared/text/json_write.h"
#include "shared/token/name.h"

/* -- server-sent events out of a stream of bytes */

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

    if (sse->data_len + more > SSE_LINE_MAX)
        return false;
    if (sse->has_data)
        sse->data[sse->data_len++] = '\n';
    if (value.len > 0)
        memcpy(sse->data + sse->data_len, value.at, value.len);
    sse->data_len += value.len;
    sse->has_data = true;
    return true;
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
    struct bytes value = {sse->line, sse->line_len}, name = bytes_cut(&value, ':');

    if (sse->line_len == 0) {
        dispatch(sse);
        return true;
    }
    sse->line_len = 0;
    bytes_take(&value, BYTES(" "));
    if (bytes_are(name, "data"))
        return data_add(sse, value);
    /* An id goes back as the value of a header. */
    if (bytes_are(name, "id") && value.len < SSE_ID_SIZE && ascii_is_visible(value))
        snprintf(sse->next_id, sizeof(sse->next_id), "%.*s", (int)value.len, value.len > 0 ? value.at : "");
    return true; /* a comment, or a field that says nothing to us */
}

bool sse_feed(struct sse *sse, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool second = c == '\n' && sse->carriage; /* of "\r\n" */

        sse->carriage = c == '\r';
        if (second)
            continue;
        if (c == '\n' || c == '\r') {
            if (!line_take(sse))
                return false;
        } else if (sse->line_len == SSE_LINE_MAX) {
            return false;
        } else {
            sse->line[sse->line_len++] = c;
        }
    }
    return true;
}

/* -- the command */

enum {
    ITEM_LEVELS = 4,
    PAUSE_FIRST_MS = 100,
    PAUSE_MAX_MS = 5000,
    IDLE_MS = 45 * 1000, /* the service says that it is alive every 15 s */
    FOR_EVER_MS = INT32_MAX
};

struct watching {
    struct call call;
    struct sse sse;
    int idle_fd;     /* a timer: readable when nothing has come for idle_ms */
    bool begun;      /* this stream */
    bool ever;       /* any stream */
    const char *gap; /* why the next stream does not begin where the last one ended; NULL: it does */
    unsigned pause_ms;
};

static int watch_check(struct call *call)
{
    const struct watching *w = container_of(call, struct watching, call);
    struct given *g = &call->given;

    g->idle_ms = g->idle_ms > 0 ? g->idle_ms : IDLE_MS;
    call->request.name = call->name;
    call->request.http.sink_needs = (struct http_client_header){"Content-Type", BYTES("text/event-stream")};
    call->request.http.timeout_ms = FOR_EVER_MS;
    if (call->name != NULL && !name_is_lease(bytes_of(call->name)))
        return cli_fail(CLI_USAGE, "\"%s\" is not the name of a lease", call->name);
    if (g->since != NULL && strlen(g->since) >= sizeof(w->sse.id))
        return cli_fail(CLI_USAGE, "--since takes the id of an item");
    return flags_check_line("--since", g->since);
}

static const struct verb watch = {
    .name = "watch",
    .flags = "since idle output trace lease-url",
    .asks = {OF_ITS_OWN, "GET", NULL, REQUEST_STREAM, NULL},
    .check = watch_check,
};

/* -- showing */

static void item_show(const struct watching *w, struct bytes text)
{
    struct json_fault fault;
    struct json *item = json_parse(text, ITEM_LEVELS, &fault);

    if (item == NULL)
        cli_fail(CLI_BUG, "an item of the stream cannot be read: %s", fault.why);
    else if (bytes_are(request_text(item, "type"), "line"))
        ; /* who waits: nothing that happened to the lease */
    else if (w->call.given.output == OUTPUT_JSON)
        printf("%.*s\n", (int)text.len, text.at);
    else if (w->call.given.output == OUTPUT_ENV)
        show_env_line(show_event, item);
    else
        show_event_line(item);
    json_free(item);
    fflush(stdout);
}

static void item_came(struct sse *sse, struct bytes data)
{
    item_show(container_of(sse, struct watching, sse), data);
}

/* With the members of every other item, so that nothing that reads them stumbles. */
static void missed_show(const struct watching *w, const char *reason)
{
    struct json_out out;

    json_out_init(&out);
    json_object(&out, NULL);
    json_text(&out, "id", BYTES(""));
    json_text(&out, "type", BYTES("missed"));
    json_text(&out, "lease", bytes_of(w->call.name != NULL ? w->call.name : ""));
    json_int(&out, "token", 0);
    json_text(&out, "holder", BYTES(""));
    json_int(&out, "at_ms", 0);
    json_text(&out, "reason", bytes_of(reason));
    json_object_end(&out);
    item_show(w, json_out_bytes(&out));
    json_out_done(&out);
}

/* -- one stream */

static void idle_begin(const struct watching *w)
{
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(w->call.given.idle_ms / 1000),
                                                 .tv_nsec = (long)(w->call.given.idle_ms % 1000) * 1000000}};

    timerfd_settime(w->idle_fd, 0, &when, NULL);
}

static void stream_begin(struct watching *w)
{
    w->begun = true;
    w->pause_ms = PAUSE_FIRST_MS;
    if (w->gap != NULL) { /* only now: what happens while somebody looks after it is not missed */
        missed_show(w, w->gap);
    } else if (w->ever) {
        cli_fail(CLI_OK, "watch: connected again; nothing was missed");
    } else if (isatty(STDERR_FILENO)) {
        cli_fail(CLI_OK, "watch: connected; what happens to %s is shown here until Ctrl-C",
                 w->call.name != NULL ? w->call.name : "any lease");
    }
    w->ever = true;
    w->gap = NULL;
}

/* The stream, as it comes. 0: it cannot be read any more. */
static ssize_t stream_take(void *cookie, const char *text, size_t len)
{
    struct watching *w = cookie;

    idle_begin(w);
    if (!w->begun)
        stream_begin(w);
    if (!sse_feed(&w->sse, (struct bytes){text, len}) || ferror(stdout))
        return 0;
    return (ssize_t)len;
}

/* CLI_GO_ON: once more. */
static int watch_after(struct watching *w, const struct request *request, enum http_client_outcome outcome)
{
    const struct http_client_answer *answer = &request->answer;
    bool refused = outcome == HTTP_CLIENT_ANSWERED && answer->status >= 300;

    if (ferror(stdout))
        return CLI_REFUSED; /* main() says it */
    if (refused && request_is_problem(request, "cursor-expired")) {
        w->gap = "the service does not keep what came after the last item any more";
        w->sse.id[0] = '\0';
        w->pause_ms = 0;
        return CLI_GO_ON;
    }
    if (!w->ever || (refused && answer->status < 500 && answer->status != 429))
        return request_tell(request, outcome);
    if (w->begun) {
        cli_fail(CLI_OK, "watch: the stream has ended%s%s; connecting again",
                 answer->stopped || outcome != HTTP_CLIENT_ANSWERED ? ": " : "",
                 answer->stopped                   ? "no sign of life came"
                 : outcome != HTTP_CLIENT_ANSWERED ? answer->why
                                                   : "");
    }
    if (w->gap == NULL && w->sse.id[0] == '\0')
        w->gap = "the connection was lost before there was an item to go on from";
    return CLI_GO_ON;
}

static int watch_stream(struct watching *w)
{
    const cookie_io_functions_t io = {.write = stream_take};
    const int stops[] = {w->idle_fd, -1};
    FILE *sink = fopencookie(w, "w", io);
    struct request request = w->call.request;
    int status;

    if (sink == NULL)
        abort();
    setvbuf(sink, NULL, _IONBF, 0);
    request.http.sink = sink;
    request.http.stop_fds = stops;
    w->begun = false;
    sse_restart(&w->sse);
    request_header(&request, "Accept", BYTES("text/event-stream"));
    request_header(&request, "Last-Event-ID", bytes_of(w->sse.id));
    status = request_service(&request, REQUEST_LEASE_SERVICE, w->call.given.lease_url, "/v1/events");
    if (status == CLI_GO_ON) {
        request_query(&request, "lease", bytes_of(w->call.name));
        idle_begin(w);
        status = watch_after(w, &request, request_try(&request));
    }
    fclose(sink);
    request_done(&request);
    return status;
}

/* -- until Ctrl-C */

int cli_watch(int argc, char **argv)
{
    struct watching w = {.call.verb = &watch, .pause_ms = PAUSE_FIRST_MS};
    int status = verb_read(&w.call, argc, argv);

    if (status != CLI_GO_ON)
        return status;
    cli_until_interrupted();
    sse_init(&w.sse, item_came);
    snprintf(w.sse.id, sizeof(w.sse.id), "%s", w.call.given.since != NULL ? w.call.given.since : "");
    w.idle_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (w.idle_fd < 0)
        status = cli_fail(CLI_REFUSED, "watch: no timer: %s", strerror(errno));
    while (status == CLI_GO_ON) {
        status = watch_stream(&w);
        if (status == CLI_GO_ON) {
            poll(NULL, 0, (int)w.pause_ms);
            w.pause_ms = w.pause_ms * 2 < PAUSE_MAX_MS ? w.pause_ms * 2 : PAUSE_MAX_MS;
            w.pause_ms = w.pause_ms > 0 ? w.pause_ms : PAUSE_FIRST_MS;
        }
    }
    close(w.idle_fd);
    sse_done(&w.sse);
    return status;
}

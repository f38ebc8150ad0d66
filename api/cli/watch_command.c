/* watch_command.c - pawl watch: what happens to a lease, or to all, as it happens.
 *
 *   watch_read     flags                                                              64, or go on
 *   watch_stream   one stream, until it ends
 *   watch_after    how it ended: again after a pause, from the last id; or give up    69 | 1 ...
 *
 * Nothing is skipped in silence. Every stream begins behind the last id that the one before it had; where
 * there is no such id, or the service does not keep what came after it (410 cursor-expired), an item of type
 * "missed" is shown. Ctrl-C ends it with 0. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/event.h"
#include "api/cli/flags.h"
#include "api/cli/sse.h"
#include "shared/json_write.h"
#include "shared/record/name.h"

enum {
    ITEM_LEVELS = 4,
    PAUSE_FIRST_MS = 100,
    PAUSE_MAX_MS = 5000,
    IDLE_MS = 45 * 1000, /* the service says that it is alive every 15 s */
    FOR_EVER_MS = INT32_MAX
};

struct watching {
    const char *lease_url, *name, *since;
    uint64_t idle_ms;
    enum output output;
    bool trace;
    struct sse sse;
    int idle_fd; /* a timer: readable when nothing has come for idle_ms */
    bool begun;  /* this stream */
    bool ever;   /* any stream */
    bool gap;    /* the next stream does not begin where the last one ended */
    unsigned pause_ms;
};

static int watch_read(struct watching *w, int argc, char **argv)
{
    const struct flag flags[] = {
        {.name = "since",
         .value = "ID",
         .help = "begin behind this item (its id, as -o json tells it)",
         .text = &w->since,
         .where = FLAG_COMMAND_LINE},
        {.name = "idle",
         .value = "DUR",
         .help = "connect anew when nothing has come for so long (default 45s)",
         .ms = &w->idle_ms,
         .where = FLAG_COMMAND_LINE},
        flag_output(&w->output, "text|json|env"),
        flag_trace(&w->trace),
        flag_lease_url(&w->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "watch",
        .arguments = "[NAME]",
        .examples = "  pawl watch orders:42\n"
                    "  pawl watch -o json | jq -r 'select(.type == \"expired\") | .lease'\n",
        .summary =
            "Shows what happens to the lease NAME, or to all leases, as it happens, until Ctrl-C "
            "(exit status\n"
            "0). The items are those of pawl history. When the connection is lost it connects again "
            "and goes\n"
            "on where it was. What could not be made up for is told as an item of type \"missed\". On a "
            "terminal\n"
            "standard error says when it is connected. Exit status 69: the service could not be reached "
            "at the\n"
            "beginning.",
        .flags = flags,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    w->name = arguments[0];
    w->idle_ms = w->idle_ms > 0 ? w->idle_ms : IDLE_MS;
    if (w->name != NULL && !name_is_lease(bytes_of(w->name))) {
        return cli_fail(CLI_USAGE, "\"%s\" is not the name of a lease", w->name);
    }
    if (w->since != NULL && strlen(w->since) >= sizeof(w->sse.id)) {
        return cli_fail(CLI_USAGE, "--since takes the id of an item");
    }
    return flags_check_line("--since", w->since);
}

/* -- showing */

static void item_show(const struct watching *w, struct bytes text)
{
    const char *why = NULL;
    struct json *item = json_parse(text, ITEM_LEVELS, &why);

    if (item == NULL) {
        cli_fail(CLI_BUG, "an item of the stream cannot be read: %s", why);
    } else if (w->output == OUTPUT_JSON) {
        printf("%.*s\n", (int)text.len, text.at);
    } else if (w->output == OUTPUT_ENV) {
        event_print_env(item);
    } else {
        event_print_line(item);
    }
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
    json_text(&out, "lease", bytes_of(w->name != NULL ? w->name : ""));
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
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(w->idle_ms / 1000), .tv_nsec = (long)(w->idle_ms % 1000) * 1000000}};

    timerfd_settime(w->idle_fd, 0, &when, NULL);
}

static void stream_begin(struct watching *w)
{
    w->begun = true;
    w->pause_ms = PAUSE_FIRST_MS;
    if (w->gap) {
        missed_show(w, "the connection was lost before there was an item to go on from");
    } else if (w->ever) {
        cli_fail(CLI_OK, "watch: connected again; nothing was missed");
    } else if (isatty(STDERR_FILENO)) {
        cli_fail(CLI_OK, "watch: connected; what happens to %s is shown here until Ctrl-C",
                 w->name != NULL ? w->name : "any lease");
    }
    w->ever = true;
    w->gap = false;
}

/* The stream, as it comes. 0: it cannot be read any more. */
static ssize_t stream_take(void *cookie, const char *text, size_t len)
{
    struct watching *w = cookie;

    idle_begin(w);
    if (!w->begun) {
        stream_begin(w);
    }
    if (!sse_feed(&w->sse, (struct bytes){text, len}) || ferror(stdout)) {
        return 0;
    }
    return (ssize_t)len;
}

static int stream_ask(const struct watching *w, struct ask *ask)
{
    int status = ask_lease_service(ask, w->lease_url, "/v1/events");

    if (status == CLI_GO_ON && w->name != NULL) {
        ask_query(ask, "lease", bytes_of(w->name));
    }
    ask_header(ask, "Accept", BYTES("text/event-stream"));
    ask_header(ask, "Last-Event-ID", bytes_of(w->sse.id));
    return status;
}

/* CLI_GO_ON: once more. */
static int watch_after(struct watching *w, const struct ask *ask, enum http_client_outcome outcome,
                       struct http_client_answer *answer)
{
    bool refused = outcome == HTTP_CLIENT_ANSWERED && answer->status >= 300;

    if (ferror(stdout)) {
        return CLI_REFUSED; /* main() says it */
    }
    if (refused && ask_is_problem(answer, "cursor-expired")) {
        missed_show(w, "the service does not keep what came after the last item any more");
        w->sse.id[0] = '\0';
        w->gap = false;
        w->pause_ms = 0;
        return CLI_GO_ON;
    }
    if (!w->ever || (refused && answer->status < 500 && answer->status != 429)) {
        return ask_tell(ask, outcome, answer);
    }
    if (w->begun) {
        cli_fail(CLI_OK, "watch: the stream has ended%s%s; connecting again",
                 answer->stopped || outcome != HTTP_CLIENT_ANSWERED ? ": " : "",
                 answer->stopped                   ? "no sign of life came"
                 : outcome != HTTP_CLIENT_ANSWERED ? answer->why
                                                   : "");
    }
    w->gap = w->gap || w->sse.id[0] == '\0';
    return CLI_GO_ON;
}

static int watch_stream(struct watching *w)
{
    const cookie_io_functions_t io = {.write = stream_take};
    const int stops[] = {w->idle_fd, -1};
    FILE *sink = fopencookie(w, "w", io);
    struct ask ask = {
        .what = "watch",
        .name = w->name,
        .wants = ASK_STREAM,
        .output = w->output,
        .trace = w->trace,
        .request = {.method = "GET", .sink_needs = {"Content-Type", BYTES("text/event-stream")}}};
    struct http_client_answer answer = {0};
    enum http_client_outcome outcome;
    int status;

    if (sink == NULL) {
        abort();
    }
    setvbuf(sink, NULL, _IONBF, 0);
    ask.request.sink = sink;
    ask.request.timeout_ms = FOR_EVER_MS;
    ask.request.stop_fds = stops;
    w->begun = false;
    sse_restart(&w->sse);
    status = stream_ask(w, &ask);
    if (status == CLI_GO_ON) {
        idle_begin(w);
        outcome = ask_try(&ask, &answer);
        status = watch_after(w, &ask, outcome, &answer);
    }
    fclose(sink);
    http_client_answer_done(&answer);
    ask_done(&ask);
    return status;
}

/* -- until Ctrl-C */

static void interrupted(int number)
{
    (void)number;
    _exit(CLI_OK); /* every item has been flushed as it came */
}

static void pause_for(struct watching *w)
{
    const struct timespec pause = {.tv_sec = w->pause_ms / 1000, .tv_nsec = w->pause_ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
    w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
    w->pause_ms = w->pause_ms > 0 ? w->pause_ms : PAUSE_FIRST_MS;
}

int cli_watch(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = interrupted};
    struct watching w = {.pause_ms = PAUSE_FIRST_MS};
    int status = watch_read(&w, argc, argv);

    if (status != CLI_GO_ON) {
        return status;
    }
    sigaction(SIGINT, &action, NULL);
    sse_init(&w.sse, item_came);
    snprintf(w.sse.id, sizeof(w.sse.id), "%s", w.since != NULL ? w.since : "");
    w.idle_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (w.idle_fd < 0) {
        status = cli_fail(CLI_REFUSED, "watch: no timer: %s", strerror(errno));
    }
    while (status == CLI_GO_ON) {
        status = watch_stream(&w);
        if (status == CLI_GO_ON) {
            pause_for(&w);
        }
    }
    close(w.idle_fd);
    sse_done(&w.sse);
    return status;
}

/* deferred.c - what pawl run says on standard error while its command runs. */
#include "api/cli/run/deferred.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/trace.h"

enum { WHY_SIZE = 512 };

/* A pipe that is ready takes PIPE_BUF bytes at least (pipe(7)), and no line is longer. */
static bool fits_now(void)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&ready, 1, 0) == 1;
}

/* -- lines for people */

static void line_say(const struct run_line *line)
{
    if (line->kind == RUN_LINE_WRONG) {
        cli_fail(0, "%s", line->text);
    } else {
        cli_hint("%s", line->text);
    }
}

void run_tell(struct run_untold *untold, enum run_line_kind kind, const char *format, ...)
{
    struct run_line line = {.kind = kind};
    va_list args;

    va_start(args, format);
    vsnprintf(line.text, sizeof(line.text), format, args);
    va_end(args);
    if (untold->count == 0 && fits_now()) {
        line_say(&line);
    } else if (untold->count < RUN_UNTOLD_MAX) {
        untold->lines[untold->count++] = line;
    }
}

void run_tell_rest(struct run_untold *untold)
{
    for (unsigned i = 0; i < untold->count; i++) {
        line_say(&untold->lines[i]);
    }
    untold->count = 0;
}

/* -- --trace */

void run_trace_request(const struct http_client_request *request)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL) {
        return;
    }
    trace_curl(out, request, NULL);
    if (fclose(out) == 0 && len <= PIPE_BUF && fits_now()) {
        (void)!write(STDERR_FILENO, text, len); /* in one piece, whichever thread it is */
    }
    free(text);
}

void run_tell_catch(struct run_untold *untold, const struct run_group *group, enum run_orphans orphans,
                    enum run_trace trace)
{
    char why[WHY_SIZE] = "";

    if (group->without != NULL) {
        snprintf(why, sizeof(why), "%s%s%s", group->without, group->error != 0 ? ": " : "",
                 group->error != 0 ? strerrordesc_np(group->error) : "");
    }
    if (group->without == NULL && trace == RUN_TRACE_YES) {
        run_tell(untold, RUN_LINE_WRONG, "what leaves the command's process group is caught by the cgroup %s",
                 group->path);
    } else if (group->without != NULL && orphans == RUN_ORPHANS_ADOPTED && trace == RUN_TRACE_YES) {
        run_tell(untold, RUN_LINE_WRONG,
                 "what leaves the command's process group is caught when the command has ended, and only "
                 "while pawl run lives; there is no cgroup (%s)",
                 why);
    } else if (group->without != NULL && orphans == RUN_ORPHANS_NOT_OURS) {
        run_tell(untold, RUN_LINE_WRONG,
                 "what leaves the command's process group is not caught: there is no cgroup (%s), and pawl "
                 "run had children before, so that orphans are not surely the command's",
                 why);
    }
}

/* line.c - who waits for the leases that somebody listens to.
 *
 *   event_line_due  the line may have changed: it is to be asked for
 *   line_run        run line.lua for the first that is to be asked for: now, or when its time comes
 *   line_answer     sent, if it is another than was sent last; then the next one */
#include <stdlib.h>

#include "lease/events/events.h"
#include "lease/operation.h"
#include "scripts.h"
#include "shared/text/memory.h"

struct event_lines {
    struct lease_call call;    /* of one lease at a time */
    struct event_line *asking; /* whose it is; NULL: it was forgotten meanwhile */
    bool asked, is_stopped;
    struct worker *worker;
    event_line_fn *changed;
    struct loop_timer timer;
    TAILQ_HEAD(, event_line) due;
};

static member_done_fn line_answer;

static void line_run(struct event_lines *lines)
{
    struct event_line *line = TAILQ_FIRST(&lines->due);
    struct lease_call *call = &lines->call;
    uint64_t now_ms = loop_now_ms();

    if (line == NULL || lines->asked || lines->is_stopped)
        return;
    if (line->at_ms > now_ms) {
        loop_timer_arm(&lines->timer, line->at_ms - now_ms, 0);
        return;
    }
    line->at_ms = now_ms + EVENT_LINE_APART_MS;
    lease_call_fill(call, lines->worker, line->name);
    lines->asked = lease_call_begin(call, lines->worker, &script_line, 2, line_answer) == PROBLEM_NONE;
    if (!lines->asked) {
        loop_timer_arm(&lines->timer, EVENT_LINE_APART_MS, 0);
        return;
    }
    lines->asking = line;
    line->is_due = false;
    TAILQ_REMOVE(&lines->due, line, entry);
}

static void line_again(struct loop_timer *timer)
{
    line_run(container_of(timer, struct event_lines, timer));
}

void event_line_due(struct event_lines *lines, struct event_line *line)
{
    if (line->is_due)
        return;
    line->is_due = true;
    TAILQ_INSERT_TAIL(&lines->due, line, entry);
    line_run(lines);
}

void event_line_tell(struct event_lines *lines, struct event_line *line)
{
    line->is_wanted = true;
    event_line_due(lines, line);
}

void event_line_forget(struct event_lines *lines, struct event_line *line)
{
    if (line->is_due)
        TAILQ_REMOVE(&lines->due, line, entry);
    if (lines->asking == line)
        lines->asking = NULL;
}

/* The same as long as nobody comes, goes or stays for longer; "": nobody waits. */
static void line_digest(const struct worker *worker, const struct store_reply *reply,
                        char digest[DIGEST_TEXT + 1])
{
    struct json_out json;
    struct bytes text;

    digest[0] = '\0';
    if (store_reply_integer(reply, 2) == 0)
        return;
    json_out_init(&json);
    json_object(&json, NULL);
    json_int(&json, "waiting", store_reply_integer(reply, 2));
    look_line_write(&json, worker, store_reply_list(reply, 3), 0); /* at no time: all by the store's */
    json_object_end(&json);
    text = json_out_bytes(&json);
    digest_text(&text, 1, digest);
    json_out_done(&json);
}

static enum step line_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct event_lines *lines = container_of(call, struct event_lines, call.record);
    struct event_line *line = lines->asking;
    char digest[DIGEST_TEXT + 1];

    lines->asked = false;
    lines->asking = NULL;
    if (line != NULL && bad == PROBLEM_NONE && store_reply_is(reply, "line")) {
        line_digest(lines->worker, reply, digest);
        bool is_new = strcmp(digest, line->told) != 0, is_wanted = line->is_wanted && digest[0] != '\0';
        memcpy(line->told, digest, sizeof(digest));
        line->is_wanted = false;
        if (is_new || is_wanted)
            lines->changed(line, reply, is_new);
    } else if (line != NULL) {
        event_line_due(lines, line);
    }
    line_run(lines);
    return ANSWERED;
}

struct event_lines *event_lines_new(struct worker *worker, event_line_fn *changed)
{
    struct event_lines *lines = must_have(calloc(1, sizeof(*lines)));

    lines->worker = worker;
    lines->changed = changed;
    TAILQ_INIT(&lines->due);
    loop_timer_init(worker->loop, &lines->timer, line_again);
    return lines;
}

void event_lines_stop(struct event_lines *lines)
{
    lines->is_stopped = true;
    loop_timer_done(&lines->timer);
}

/* program.c - a program that uses libpawl as its tests tell it: a command a line on standard input, a line of
 * "word=value" on standard output. test_*.py drives it. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/client/pawl.h"

enum { WORDS_MAX = 16, LINE_SIZE = 4096 };

static struct pawl *pawl;
static struct pawl_grant grant = {.size = sizeof(grant)};
static struct pawl_guard *guard;
static struct pawl_problem problem; /* of the command that runs */
static int cancel_pipe[2] = {-1, -1};
static _Atomic int lost_times, renewed_times;
static pthread_mutex_t texts = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static char lost_code[PAWL_CODE_SIZE], lost_ended[PAWL_ENDED_SIZE], tried[256];
static _Atomic int64_t lost_at_ms, told_deadline_ms;
static char *words[WORDS_MAX + 1];

/* -- time */

static int64_t began_ms, speed = 1;

/* In place of the library's own. "speed times=10": its time goes ten times as fast from then on. */
int64_t pawl_now_ms(void)
{
    struct timespec now;
    int64_t now_ms;

    clock_gettime(CLOCK_BOOTTIME, &now);
    now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return now_ms + (now_ms - began_ms) * (speed - 1);
}

/* -- words */

static const char *word(const char *name)
{
    size_t len = strlen(name);

    for (int i = 1; words[i] != NULL; i++)
        if (strncmp(words[i], name, len) == 0 && words[i][len] == '=')
            return words[i] + len + 1;
    return NULL;
}

static int64_t number(const char *name)
{
    const char *text = word(name);

    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

static const char *outcome_name(enum pawl_outcome outcome)
{
    static const char *const names[] = {"OK", "HELD", "LOST", "NOT_DONE", "UNKNOWN"};

    return names[outcome];
}

static void tell(enum pawl_outcome outcome)
{
    printf("outcome=%s code=%s status=%d retryable=%d ended=%s holder=%s holder_token=%" PRId64
           " left=%" PRId64 " after=%" PRId64 " detail=%d",
           outcome_name(outcome), problem.code, problem.status, problem.retryable, problem.ended,
           problem.holder, problem.token, problem.expires_in_ms, problem.retry_after_ms,
           problem.detail[0] != '\0');
}

static void tell_grant(void)
{
    printf(" name=%s lease_id=%s token=%" PRId64 " deadline=%" PRId64 " waited=%" PRId64 " holds=%u mode=%d"
           " ttl=%" PRId64 " fencing_token=%s",
           grant.name, grant.lease_id, grant.token, grant.deadline_ms, grant.waited_ms, grant.holds,
           grant.mode, grant.ttl_ms, grant.fencing_token);
}

static struct pawl_ask ask_of(void)
{
    struct pawl_ask ask = {.size = sizeof(ask)};

    ask.holder = word("holder");
    ask.ttl_ms = (uint64_t)number("ttl");
    ask.wait_ms = word("wait") != NULL && number("wait") < 0 ? PAWL_WAIT_FOREVER : (uint64_t)number("wait");
    ask.mode = word("permits") != NULL ? PAWL_PERMITS : word("shared") != NULL ? PAWL_SHARED : PAWL_EXCLUSIVE;
    ask.permits = (unsigned)number("permits");
    ask.meta = word("meta");
    ask.lease_id = word("id");
    ask.keep_place_ms = (uint64_t)number("keep");
    ask.session = word("session");
    ask.session_secret = word("secret");
    ask.cancel_fd = word("cancel") != NULL ? &cancel_pipe[0] : NULL;
    return ask;
}

/* -- calls */

static void do_speed(void)
{
    began_ms = pawl_now_ms();
    speed = number("times");
}

static void do_open(void)
{
    struct pawl_options options = {.size = sizeof(options)};
    options.lease_url = word("lease");
    options.gateway_url = word("gateway");
    options.timeout_ms = (uint64_t)number("timeout");
    options.attempts = (unsigned)number("attempts");
    options.access_token = word("access");
    options.access_token_file = word("access_file");
    options.ca_file = word("ca");
    options.cert_file = word("cert");
    options.key_file = word("cert_key");
    options.allow_plaintext = word("plaintext") != NULL;
    pawl_close(pawl);
    pawl = pawl_open(&options, &problem);
    tell(pawl != NULL ? PAWL_OK : PAWL_NOT_DONE);
}

static void do_acquire(void)
{
    struct pawl_ask ask = ask_of();

    grant = (struct pawl_grant){.size = sizeof(grant)};
    tell(pawl_acquire(pawl, words[1], &ask, &grant, &problem));
    tell_grant();
}

static void do_renew(void)
{
    tell(pawl_renew(pawl, &grant, (uint64_t)number("ttl"), &problem));
    tell_grant();
}

static void do_release(void)
{
    tell(pawl_release(pawl, &grant, &problem));
    tell_grant();
}

static void do_look(void)
{
    struct pawl_view view = {.size = sizeof(view)};

    tell(pawl_look(pawl, words[1], &view, &problem));
    printf(" state=%d token=%" PRId64 " holders=%u waiting=%u who=%s mode=%d", view.state, view.token,
           view.holders, view.waiting, view.holder, view.mode);
}

static struct pawl_write write_of(void)
{
    struct pawl_write write = {.size = sizeof(write)};

    write.content_type = word("type");
    write.if_match = word("match");
    write.if_none_match = word("none");
    write.idempotency_key = word("key");
    return write;
}

static void do_put(void)
{
    struct pawl_written written = {.size = sizeof(written)};
    struct pawl_write write = write_of();
    const char *body = word("body") != NULL ? word("body") : "";
    const char *token = word("token") != NULL ? word("token") : grant.fencing_token;

    tell(pawl_put(pawl, words[1], token, body, strlen(body), &write, &written, &problem));
    printf(" created=%d etag=%s", written.created, written.etag);
}

static void do_delete(void)
{
    struct pawl_write write = write_of();

    tell(pawl_delete(pawl, words[1], grant.fencing_token, &write, NULL, &problem));
}

static void do_get(void)
{
    struct pawl_resource resource = {.size = sizeof(resource)};

    tell(pawl_get(pawl, words[1], word("fenced") != NULL ? grant.fencing_token : NULL, &resource, &problem));
    printf(" body=%s len=%zu etag=%s type=%s", resource.body != NULL ? resource.body : "", resource.len,
           resource.etag, resource.content_type);
    pawl_resource_done(&resource);
}

/* -- a guard */

static void lost(struct pawl_guard *mine, const struct pawl_problem *why, void *user)
{
    (void)user;
    pthread_mutex_lock(&texts);
    snprintf(lost_code, sizeof(lost_code), "%s", why->code);
    snprintf(lost_ended, sizeof(lost_ended), "%s", why->ended);
    lost_at_ms = pawl_now_ms();
    snprintf(tried, sizeof(tried), "%s/%" PRId64, outcome_name(pawl_guard_close(mine, NULL)),
             pawl_guard_remaining_ms(mine));
    pthread_mutex_unlock(&texts);
    lost_times++;
}

static void renewed(struct pawl_guard *mine, int64_t deadline_ms, void *user)
{
    (void)user;
    pthread_mutex_lock(&texts);
    snprintf(tried, sizeof(tried), "%s/%s", outcome_name(pawl_guard_leave(mine, NULL)),
             outcome_name(pawl_guard_close(mine, NULL)));
    pthread_mutex_unlock(&texts);
    told_deadline_ms = deadline_ms;
    renewed_times++;
}

static void do_guard(void)
{
    struct pawl_guard_options options = {.size = sizeof(options), .lost = lost, .renewed = renewed};
    struct pawl_ask ask = ask_of();

    lost_times = renewed_times = 0;
    tell(pawl_guard_open(pawl, words[1], &ask, &options, &guard, &problem));
    grant = (struct pawl_grant){.size = sizeof(grant)};
    pawl_guard_grant(guard, &grant);
    tell_grant();
}

static void do_enter(void)
{
    tell(pawl_guard_enter(guard, &problem));
}

static void do_leave(void)
{
    tell(pawl_guard_leave(guard, &problem));
}

static void do_close(void)
{
    tell(pawl_guard_close(guard, &problem));
    guard = NULL;
}

static void do_state(void)
{
    struct pollfd ready = {.fd = pawl_guard_fd(guard), .events = POLLIN};
    int64_t remaining_ms = pawl_guard_remaining_ms(guard); /* first: it must be right by itself */
    int readable = poll(&ready, 1, 0);

    pthread_mutex_lock(&texts);
    printf("remaining=%" PRId64 " readable=%d lost=%d renewed=%d code=%s ended=%s tried=%s told=%" PRId64
           " lost_at=%" PRId64,
           remaining_ms, readable, lost_times, renewed_times, lost_times > 0 ? lost_code : "",
           lost_times > 0 ? lost_ended : "", tried, told_deadline_ms, lost_at_ms);
    pthread_mutex_unlock(&texts);
}

/* Waits for the descriptor alone. */
static void do_poll(void)
{
    struct pollfd ready = {.fd = pawl_guard_fd(guard), .events = POLLIN};
    int readable = poll(&ready, 1, (int)number("ms"));

    printf("readable=%d remaining=%" PRId64 " at=%" PRId64, readable, pawl_guard_remaining_ms(guard),
           pawl_now_ms());
}

/* -- the loop */

static const struct {
    const char *name;
    void (*run)(void);
} commands[] = {
    {"open", do_open},   {"acquire", do_acquire}, {"renew", do_renew}, {"release", do_release},
    {"look", do_look},   {"put", do_put},         {"get", do_get},     {"delete", do_delete},
    {"guard", do_guard}, {"enter", do_enter},     {"leave", do_leave}, {"close", do_close},
    {"speed", do_speed}, {"state", do_state},     {"poll", do_poll},
};

static void run(char *line)
{
    char *rest = NULL;
    int count = 0;

    for (char *one = strtok_r(line, " \n", &rest); one != NULL && count < WORDS_MAX;
         one = strtok_r(NULL, " \n", &rest))
        words[count++] = one;
    words[count] = NULL;
    problem = (struct pawl_problem){.size = sizeof(problem)};
    for (size_t i = 0; count > 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(words[0], commands[i].name) == 0)
            commands[i].run();
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[LINE_SIZE];

    if (argc > 1)
        cancel_pipe[0] = (int)strtol(argv[1], NULL, 10); /* one end of a pipe, the other is the test's */
    while (fgets(line, sizeof(line), stdin) != NULL)
        run(line);
    pawl_guard_close(guard, NULL);
    pawl_close(pawl);
    if (cancel_pipe[0] >= 0)
        close(cancel_pipe[0]);
    return 0;
}

/* acquire.c - pawl acquire: take a lease.
 *
 *   acquire_check     flags                             64, or go on
 *   secret_propose    the lease_id to propose           64, or go on
 *   acquire_ask       libpawl's acquire (api/client/client_lease.c), and what its end means
 *   acquire_show      the grant                         0
 *
 * The lease_id is in its file before the request leaves: a grant whose answer is lost can still be released.
 */
#include "api/cli/verb.h"

#include "api/cli/cli.h"
#include "api/cli/run/run.h"
#include "api/client/client.h"
#include "shared/token/name.h"

enum { META_LEVELS = 7, GIVE_BACK_MOST_MS = 1000 /* after a signal, as long as leaving the line */ };

struct acquire {
    struct call call;          /* its secret is the lease_id */
    char in_file[SECRET_SIZE]; /* what the file is known to have */
    enum secret_origin origin;
    struct pawl *pawl;
    struct pawl_ask ask;
    char holder[PAWL_HOLDER_SIZE];
    struct run signals; /* those that end a wait */
    enum pawl_outcome outcome;
    int64_t deadline_ms; /* of the grant */
    struct pawl_problem problem;
};

/* -- what was asked for */

static int acquire_check(struct call *call)
{
    const struct given *g = &call->given;
    struct json_fault fault;
    struct json *json;

    json = g->meta != NULL ? json_parse(bytes_of(g->meta), META_LEVELS, &fault) : NULL;
    json_free(json);
    return g->meta == NULL || json != NULL ? CLI_GO_ON
                                           : cli_fail(CLI_USAGE, "--meta takes a JSON object: %s", fault.why);
}

static const struct verb acquire = {
    .name = "acquire",
    .flags = "wait ttl mode permits lock-delay keep-place holder lease-id-file meta output trace lease-url",
    .asks = {OF_A_LEASE, "POST", NULL, REQUEST_GRANT, NULL},
    .check = acquire_check,
};

/* -- asking */

static void trace_attempt(const struct http_client_request *request)
{
    trace_curl(stderr, request, NULL);
}

static int acquire_begin(struct acquire *a)
{
    const struct given *g = &a->call.given;
    const struct pawl_options options = {.size = sizeof(options),
                                         .lease_url = g->lease_url,
                                         .timeout_ms = HTTP_CLIENT_TIMEOUT_MS,
                                         .attempts = 2};
    int status = request_lease(&a->call.request, g->lease_url, a->call.name, "");

    a->ask = (struct pawl_ask){.size = sizeof(a->ask),
                               .ttl_ms = g->ttl_ms,
                               .wait_ms = g->wait_ms,
                               .lock_delay_ms = g->lock_delay_ms,
                               .keep_place_ms = g->keep_place_ms,
                               .meta = g->meta,
                               .lease_id = a->call.secret};
    if (status == CLI_GO_ON)
        status = cli_ask(CLI_USAGE, &a->ask, g->holder, g->mode, g->permits, a->holder);
    status = status == CLI_GO_ON ? secret_propose(g->lease_id_file, a->call.name, a->call.secret, &a->origin)
                                 : status;
    if (status == CLI_GO_ON && g->keep_place_ms > 0 && a->origin == SECRET_NEW && g->lease_id_file == NULL) {
        return cli_fail(CLI_USAGE,
                        "--keep-place needs a lease_id to come back with: --lease-id-file or PAWL_LEASE_ID");
    }
    if (a->origin == SECRET_FILE)
        memcpy(a->in_file, a->call.secret, sizeof(a->in_file));
    if (status != CLI_GO_ON)
        return status;
    a->pawl = pawl_open(&options, &a->problem);
    if (a->pawl == NULL)
        return cli_fail(CLI_USAGE, "%s", a->problem.detail);
    a->pawl->sending = g->trace ? trace_attempt : NULL;
    return CLI_GO_ON;
}

static int acquire_keep(struct acquire *a)
{
    char wanted[SECRET_SIZE];
    int status;

    if (a->call.given.lease_id_file == NULL)
        return CLI_GO_ON;
    memcpy(wanted, a->call.secret, sizeof(wanted));
    status = secret_keep(a->call.given.lease_id_file, a->in_file, a->call.secret);
    if (strcmp(wanted, a->call.secret) != 0)
        a->origin = SECRET_FILE; /* another process was faster */
    memcpy(a->in_file, a->call.secret, sizeof(a->in_file));
    explicit_bzero(wanted, sizeof(wanted));
    return status;
}

static int acquire_try(struct acquire *a)
{
    struct hold_told told = {.fresh = a->origin == SECRET_NEW && a->call.given.lease_id_file == NULL};
    struct pawl_grant grant = {0};
    struct run_show *show;
    int status = acquire_keep(a);

    if (status != CLI_GO_ON)
        return status;
    show = a->ask.wait_ms > 0 ? run_show_begin(a->call.name, a->call.given.lease_url) : NULL;
    a->outcome = hold_acquire(a->pawl, a->call.name, &a->ask, &grant, &told, &a->problem);
    run_show_end(show);
    run_show_free(show);
    a->deadline_ms = grant.deadline_ms;
    explicit_bzero(&grant, sizeof(grant));
    a->call.request.repeated = told.unreported;
    request_take(&a->call.request, &told.answer);
    return CLI_GO_ON;
}

/* The hold of the lease_id is over. One from a file or from an earlier "-o env" was not meant for this hold,
 * so a new one takes its place, provided that the caller gets to know it. */
static bool wants_a_new_one(const struct acquire *a)
{
    return (a->origin == SECRET_FILE ||
            (a->origin == SECRET_LEFTOVER && a->call.given.output != OUTPUT_TEXT)) &&
           request_is_problem(&a->call.request, "hold-over");
}

/* What a refusal does not say, as the service knows no files and no flags. */
static void acquire_advise(const struct acquire *a)
{
    if (request_is_problem(&a->call.request, "hold-over") && a->origin != SECRET_NEW &&
        a->call.given.lease_id_file == NULL)
        cli_hint("PAWL_LEASE_ID names a hold that has ended; unset it to acquire with a new lease_id.");
    else if (request_is_problem(&a->call.request, "superseded"))
        cli_hint("Another acquire with this lease_id, or its file, stands in this one's place in the line.");
}

/* Nothing was granted to it, it has no place in line, and nobody else asks with it. */
static void acquire_forget(const struct acquire *a)
{
    if (a->call.given.lease_id_file != NULL && a->origin == SECRET_NEW &&
        request_int(a->call.request.json, "place_kept_ms") == 0 &&
        !request_is_problem(&a->call.request, "superseded"))
        secret_forget(a->call.given.lease_id_file, a->call.secret);
}

static int acquire_tell(struct acquire *a)
{
    struct request *request = &a->call.request;
    bool pawls = problem_is_pawls(&request->answer, request->json);

    if (a->outcome == PAWL_OK && pawl_now_ms() < a->deadline_ms)
        return CLI_GO_ON;
    if (a->outcome == PAWL_OK)
        return cli_fail(RUN_LOST,
                        "acquire %s: it was granted, and that hold is over already: this process "
                        "stood still, or the answer took too long; acquire it again",
                        a->call.name);
    if (strcmp(a->problem.code, "bad-argument") == 0)
        return cli_fail(CLI_USAGE, "%s", a->problem.detail);
    if (a->outcome != PAWL_UNKNOWN || (pawls && request_judge(request) == PAWL_UNKNOWN))
        return request_tell(request, pawls ? HTTP_CLIENT_ANSWERED : HTTP_CLIENT_NOT_SENT);
    if (request->answer.status != 0)
        client_text(request->answer.why, sizeof(request->answer.why), bytes_of(a->problem.detail));
    return request_tell(request, HTTP_CLIENT_UNKNOWN);
}

static int acquire_ask(struct acquire *a)
{
    int status = acquire_try(a);

    if (status == CLI_GO_ON && a->outcome == PAWL_LOST && wants_a_new_one(a)) {
        name_new_lease_id(a->call.secret);
        a->origin = SECRET_NEW;
        status = acquire_try(a);
    }
    if (status != CLI_GO_ON || strcmp(a->problem.code, "cancelled") == 0)
        return status;
    status = acquire_tell(a);
    if (status != CLI_GO_ON && a->outcome != PAWL_UNKNOWN && a->call.request.json != NULL) {
        acquire_advise(a);
        acquire_forget(a);
    }
    return status;
}

/* Of a lease_id that was made here, and that nobody will ever see. true: it holds nothing now; an attempt
 * that is still on its way finds it over. */
static bool acquire_give_back(const struct acquire *a, unsigned timeout_ms)
{
    struct request request = {.what = "release",
                              .wants = REQUEST_RELEASED,
                              .trace = a->call.given.trace,
                              .http = {.method = "DELETE", .timeout_ms = timeout_ms}};
    bool given = false;

    if (request_lease(&request, a->call.given.lease_url, a->call.name, "") == CLI_GO_ON) {
        request_header(&request, "Lease-Id", bytes_of(a->call.secret));
        given = request_try(&request) == HTTP_CLIENT_ANSWERED && request.answer.status < 300;
    }
    request_done(&request);
    return given;
}

static void acquire_undo(const struct acquire *a)
{
    if (a->origin == SECRET_NEW && a->call.given.lease_id_file == NULL) {
        bool given = acquire_give_back(a, HTTP_CLIENT_TIMEOUT_MS);

        cli_hint(given ? "Its lease_id was given back; if a request is still on its way, it may be held "
                         "until its ttl."
                       : "Its lease_id is lost, and could not be given back: it may be held until its ttl.");
    } else {
        cli_hint("Ask again with the same lease_id: what was granted is told again.");
    }
}

/* -- the grant */

/* A grant that nobody could read is given back, if it is of now. */
static int acquire_flush(const struct acquire *a)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    cli_fail(CLI_REFUSED, "acquire %s: it was granted, but the output could not be written", a->call.name);
    if (a->origin != SECRET_NEW)
        cli_hint("It is still held, with the lease_id that it had before.");
    else if (acquire_give_back(a, HTTP_CLIENT_TIMEOUT_MS))
        cli_hint("It was given back.");
    else
        cli_hint("It could not be given back: it may be held until its ttl.");
    return CLI_REFUSED;
}

/* Who uses the file as if it were a lock's must get to know that it is none. */
static void tell_same(const struct acquire *a)
{
    int holds = (int)request_int(a->call.request.json, "holds");

    if (a->call.request.repeated) {
        cli_fail(CLI_OK, "%s is held by this lease_id, perhaps since before this command: hold count %d",
                 a->call.name, holds);
    } else {
        cli_fail(CLI_OK,
                 "%s is held already by this lease_id: hold count %d. It is the same hold as before, and its "
                 "time was not extended",
                 a->call.name, holds);
    }
    cli_hint("Who shares a lease_id, or its file, shares the hold. To keep each other out, each needs one of "
             "its own.");
}

/* One that shared the file may have taken it away, when its own request was refused before ours. */
static void acquire_keep_shared(const struct acquire *a)
{
    const char *file = a->call.given.lease_id_file;
    char kept[SECRET_SIZE];

    memcpy(kept, a->call.secret, sizeof(kept));
    if (file != NULL && a->origin == SECRET_FILE && secret_keep(file, a->call.secret, kept) == CLI_GO_ON &&
        strcmp(kept, a->call.secret) != 0)
        cli_hint("%s has another lease_id by now: that of this hold is kept nowhere.", file);
    explicit_bzero(kept, sizeof(kept));
}

static int acquire_show(const struct acquire *a)
{
    const struct http_client_answer *answer = &a->call.request.answer;
    /* One that was made now can only be held since the attempt before. */
    bool same = answer->status == 200 && a->origin != SECRET_NEW;
    enum show_grant kind = same ? SHOW_GRANT_SAME : SHOW_GRANT_NEW;

    signal(SIGPIPE, SIG_IGN); /* of a reader that has gone the write says so */
    if (a->call.given.output == OUTPUT_JSON)
        request_show(&a->call.request, "grant", show_grant_word(kind), NULL, BYTES(""));
    else
        show_grant(a->call.request.json, kind, a->call.given.output);
    if (same)
        tell_same(a);
    acquire_keep_shared(a);
    if (a->call.given.output == OUTPUT_TEXT && a->call.given.lease_id_file == NULL &&
        a->origin == SECRET_NEW) {
        cli_hint("Its lease_id was not kept, so it can be neither renewed nor released, and will expire:");
        cli_hint("-o env, -o json or --lease-id-file FILE give you the lease_id.");
    }
    return acquire_flush(a);
}

/* By a signal: this process ends as it would have. */
static int acquire_give_up(const struct acquire *a)
{
    int number = run_signals_next(&a->signals);

    run_signals_restore(&a->signals); /* a second one ends it in the middle of what follows */
    if (a->origin == SECRET_NEW && a->call.given.lease_id_file == NULL)
        acquire_give_back(a, GIVE_BACK_MOST_MS);
    raise(number);
    return RUN_SIGNALLED + number;
}

int cli_acquire(int argc, char **argv)
{
    struct acquire a = {.call.verb = &acquire, .problem.size = sizeof(a.problem)};
    int status = verb_read(&a.call, argc, argv);

    json_out_init(&a.call.body);
    status = status == CLI_GO_ON ? acquire_begin(&a) : status;
    if (status == CLI_GO_ON && a.ask.wait_ms > 0) {
        /* What a signal would end in the middle is given up instead: its place in line is kept otherwise. */
        run_signals_open(&a.signals);
        a.ask.cancel_fd = &a.signals.signal_fd;
    }
    status = status == CLI_GO_ON ? acquire_ask(&a) : status;
    if (strcmp(a.problem.code, "cancelled") == 0) {
        status = acquire_give_up(&a);
    } else if (status == CLI_GO_ON) {
        status = acquire_show(&a);
    } else if (a.outcome == PAWL_UNKNOWN) {
        acquire_undo(&a);
        if (a.ask.cancel_fd != NULL)
            run_signals_restore(&a.signals); /* only now may one that has come meanwhile end it */
    }
    pawl_close(a.pawl);
    verb_done(&a.call);
    return status;
}

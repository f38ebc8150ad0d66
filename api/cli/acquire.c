/* acquire.c - pawl acquire: take a lease.
 *
 *   acquire_read      flags, and the lease_id to propose    64, or go on
 *   acquire_ask       POST; once more when its end is not known, which is safe with a lease_id of our own;
 *                     and again when the service's longest wait is over and --wait is not
 *   acquire_show      the grant                             0
 *
 * The lease_id is in its file before the request leaves: a grant whose answer is lost can still be released.
 */
#include <stdlib.h>

#include "api/cli/acquire.h"
#include "api/cli/ask_judge.h"
#include "api/cli/cli.h"
#include "api/cli/grant.h"
#include "api/cli/run_show.h"
#include "shared/record/name.h"

/* -- asking */

static void acquire_begin(struct acquire *a)
{
    uint64_t now_ms = cli_now_ms();

    if (a->origin == SECRET_FILE) {
        memcpy(a->in_file, a->lease_id, sizeof(a->in_file));
    }
    a->wait_until_ms = a->wait_ms < UINT64_MAX - now_ms ? now_ms + a->wait_ms : UINT64_MAX;
    a->ask.request.method = "POST";
    ask_header(&a->ask, "Content-Type", BYTES("application/json"));
}

static int acquire_keep(struct acquire *a)
{
    char wanted[SECRET_SIZE];
    int status;

    if (a->lease_id_file == NULL) {
        return CLI_GO_ON;
    }
    memcpy(wanted, a->lease_id, sizeof(wanted));
    status = secret_keep(a->lease_id_file, a->in_file, a->lease_id);
    if (strcmp(wanted, a->lease_id) != 0) {
        a->origin = SECRET_FILE; /* another process was faster */
    }
    memcpy(a->in_file, a->lease_id, sizeof(a->in_file));
    explicit_bzero(wanted, sizeof(wanted));
    return status;
}

static int acquire_try(struct acquire *a, struct http_client_answer *answer,
                       enum http_client_outcome *outcome)
{
    struct run_show *show;
    int status = acquire_keep(a);

    if (status != CLI_GO_ON) {
        return status;
    }
    show = a->wait_ms > 0 ? run_show_begin(a->name, a->lease_url) : NULL;
    do {
        http_client_answer_done(answer);
        *outcome = ask_try(&a->ask, answer);
    } while (*outcome == HTTP_CLIENT_ANSWERED && ask_is_problem(answer, "wait-timeout") &&
             acquire_left_ms(a) > 0);
    run_show_end(show);
    run_show_free(show);
    return CLI_GO_ON;
}

/* The hold of the lease_id is over. One from a file or from an earlier "-o env" was not meant for this hold,
 * so a new one takes its place, provided that the caller gets to know it. */
static bool wants_a_new_one(const struct acquire *a, const struct http_client_answer *answer)
{
    return (a->origin == SECRET_FILE || (a->origin == SECRET_LEFTOVER && a->output != OUTPUT_TEXT)) &&
           ask_is_problem(answer, "hold-over");
}

/* What a refusal does not say, as the service knows no files and no flags. */
static void acquire_advise(const struct acquire *a, const struct http_client_answer *answer)
{
    if (ask_is_problem(answer, "hold-over") && a->lease_id_file == NULL) {
        cli_hint("PAWL_LEASE_ID names a hold that has ended; unset it to acquire with a new lease_id.");
    } else if (ask_is_problem(answer, "lease-held")) {
        cli_hint("To wait in line: --wait DUR.");
    } else if (ask_is_problem(answer, "superseded")) {
        cli_hint("Another acquire with this lease_id, or its file, stands in this one's place in the line.");
    }
}

/* Nothing was granted to it, and nobody else asks with it. */
static void acquire_forget(const struct acquire *a, const struct http_client_answer *answer)
{
    if (a->lease_id_file != NULL && a->origin == SECRET_NEW && !ask_is_problem(answer, "superseded")) {
        secret_forget(a->lease_id_file, a->lease_id);
    }
}

static int acquire_ask(struct acquire *a, struct http_client_answer *answer)
{
    enum http_client_outcome outcome = HTTP_CLIENT_NOT_SENT;
    int status = acquire_try(a, answer, &outcome);

    if (status == CLI_GO_ON && outcome == HTTP_CLIENT_ANSWERED && wants_a_new_one(a, answer)) {
        name_new_lease_id(a->lease_id);
        a->origin = SECRET_NEW;
        status = acquire_try(a, answer, &outcome);
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    a->in_doubt = outcome == HTTP_CLIENT_UNKNOWN ||
                  (outcome == HTTP_CLIENT_ANSWERED && ask_doubt_of(answer) == ASK_IN_DOUBT);
    status = ask_tell(&a->ask, outcome, answer);
    if (status != CLI_GO_ON && outcome == HTTP_CLIENT_ANSWERED && !a->in_doubt) {
        acquire_advise(a, answer);
        acquire_forget(a, answer);
    }
    return status;
}

/* Of a lease_id that was made here, and that nobody will ever see. true: it holds nothing now; an attempt
 * that is still on its way finds it over. */
static bool acquire_give_back(const struct acquire *a)
{
    struct ask ask = {
        .what = "release", .wants = ASK_RELEASED, .trace = a->trace, .request.method = "DELETE"};
    struct http_client_answer answer = {0};
    bool given = false;

    if (ask_lease(&ask, a->lease_url, a->name) == CLI_GO_ON) {
        ask_header(&ask, "Lease-Id", bytes_of(a->lease_id));
        given = ask_try(&ask, &answer) == HTTP_CLIENT_ANSWERED && answer.status < 300;
    }
    http_client_answer_done(&answer);
    ask_done(&ask);
    return given;
}

static bool is_nobodys(const struct acquire *a)
{
    return a->origin == SECRET_NEW && a->lease_id_file == NULL;
}

static void acquire_undo(const struct acquire *a)
{
    if (is_nobodys(a)) {
        bool given = acquire_give_back(a);

        cli_hint(given
                     ? "Its lease_id was given back; if a request is still on its way, it may be held until "
                       "its ttl."
                     : "Its lease_id is lost, and could not be given back: it may be held until its ttl.");
    } else {
        cli_hint("Ask again with the same lease_id: what was granted is told again.");
    }
}

/* A grant that nobody could read is given back, if it is of now. */
static int acquire_flush(const struct acquire *a, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    cli_fail(CLI_REFUSED, "acquire %s: it was granted, but the output could not be written", a->name);
    if (a->origin != SECRET_NEW) {
        cli_hint("It is still held, with the lease_id that it had before.");
    } else if (acquire_give_back(a)) {
        cli_hint("It was given back.");
    } else {
        cli_hint("It could not be given back: it may be held until its ttl.");
    }
    return CLI_REFUSED;
}

/* Who uses the file as if it were a lock's must get to know that it is none. */
static void tell_same(const struct acquire *a, const struct http_client_answer *answer)
{
    struct json *json = ask_json(&a->ask, answer);
    int holds = json != NULL ? (int)ask_int(json, "holds") : 0;

    if (a->ask.repeated) {
        cli_fail(CLI_OK, "%s is held by this lease_id, perhaps since before this command: hold count %d",
                 a->name, holds);
    } else {
        cli_fail(CLI_OK,
                 "%s is held already by this lease_id: hold count %d. It is the same hold as before, "
                 "and its time was not extended",
                 a->name, holds);
    }
    cli_hint("Who shares a lease_id, or its file, shares the hold. To keep each other out, each needs one of "
             "its own.");
    json_free(json);
}

/* One that shared the file may have taken it away, when its own request was refused before ours. */
static void acquire_keep_shared(struct acquire *a)
{
    char kept[SECRET_SIZE];

    memcpy(kept, a->lease_id, sizeof(kept));
    if (a->lease_id_file != NULL && a->origin == SECRET_FILE &&
        secret_keep(a->lease_id_file, a->lease_id, kept) == CLI_GO_ON && strcmp(kept, a->lease_id) != 0) {
        cli_hint("%s has another lease_id by now: that of this hold is kept nowhere.", a->lease_id_file);
    }
    explicit_bzero(kept, sizeof(kept));
}

static int acquire_show(struct acquire *a, const struct http_client_answer *answer)
{
    /* One that was made now can only be held since the attempt before. */
    bool same = answer->status == 200 && a->origin != SECRET_NEW;
    int status = grant_show(&a->ask, answer, same ? GRANT_SAME : GRANT_NEW);

    if (same) {
        tell_same(a, answer);
    }
    acquire_keep_shared(a);
    if (status == CLI_OK && a->output == OUTPUT_TEXT && a->lease_id_file == NULL && a->origin == SECRET_NEW) {
        cli_hint("Its lease_id was not kept, so it can be neither renewed nor released, and will expire:");
        cli_hint("-o env, -o json or --lease-id-file FILE give you the lease_id.");
    }
    return acquire_flush(a, status);
}

int cli_acquire(int argc, char **argv)
{
    struct acquire a = {0};
    struct http_client_answer answer = {0};
    int status = acquire_read(&a, argc, argv);

    json_out_init(&a.body);
    if (status == CLI_GO_ON) {
        status = secret_propose(a.lease_id_file, a.lease_id, &a.origin);
    }
    if (status == CLI_GO_ON) {
        acquire_begin(&a);
        status = acquire_ask(&a, &answer);
    }
    if (status == CLI_GO_ON) {
        status = acquire_show(&a, &answer);
    } else if (a.in_doubt) {
        acquire_undo(&a);
    }
    http_client_answer_done(&answer);
    json_out_done(&a.body);
    ask_done(&a.ask);
    return status;
}

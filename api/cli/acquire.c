/* acquire.c - pawl acquire: take a lease.
 *
 *   acquire_read      flags, and the lease_id to propose    64, or go on
 *   acquire_ask       POST; once more when its end is not known, which is safe with a lease_id of our own
 *   acquire_show      the grant                             0
 *
 * The lease_id is in its file before the request leaves: a grant whose answer is lost can still be released.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/cli/ask_judge.h"
#include "api/cli/cli.h"
#include "api/cli/grant.h"
#include "api/cli/secret.h"
#include "shared/json_write.h"
#include "shared/record/name.h"

enum { META_LEVELS = 7 };

struct acquire {
    const char *lease_url, *holder, *lease_id_file, *meta;
    uint64_t ttl_ms;
    enum output output;
    bool trace;
    const char *name;
    char lease_id[SECRET_SIZE];
    enum secret_origin origin;
    bool in_doubt; /* it may have been granted */
    struct ask ask;
};

static int acquire_read(struct acquire *a, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_ttl(&a->ttl_ms),
        {.name = "holder", .value = "TEXT", .help = "who you are, for people who look", .text = &a->holder},
        flag_lease_id_file(&a->lease_id_file),
        {.name = "meta",
         .value = "JSON",
         .help = "an object that look and list show",
         .text = &a->meta,
         .where = FLAG_COMMAND_LINE},
        flag_output(&a->output, "text|json|env"),
        flag_trace(&a->trace),
        flag_lease_url(&a->lease_url),
        {0},
    };
    const struct usage usage = {
        .name = "acquire",
        .arguments = "NAME",
        .examples =
            "  eval \"$(pawl acquire orders:42 --ttl 10m -o env)\"   # then: pawl put, renew, release\n"
            "  pawl acquire orders:42 --lease-id-file /run/me/orders:42\n"
            "  pawl acquire orders:42 -o json | jq .token\n",
        .summary =
            "Takes the lease NAME, or says who has it (exit status 75).\n\n"
            "The secret that proves the hold, the lease_id, is shown only by -o json and -o env, or kept in\n"
            "--lease-id-file. If that file has one, or PAWL_LEASE_ID is set, this lease_id is proposed: "
            "while it\n"
            "still holds the lease, the answer is the same grant again. When its hold is over, a new one "
            "takes the\n"
            "place of the file's and of what an earlier -o env has left; a PAWL_LEASE_ID of your own is "
            "refused\n"
            "then (exit status 76).",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    a->name = arguments[0];
    if (a->holder != NULL && !name_is_holder(bytes_of(a->holder))) {
        return cli_fail(CLI_USAGE, "--holder takes 1 to 128 bytes of printable UTF-8");
    }
    a->ask = (struct ask){.what = "acquire",
                          .wants = ASK_GRANT,
                          .lease_id = a->lease_id,
                          .trace = a->trace,
                          .repeat = ASK_TWICE};
    return ask_lease(&a->ask, a->lease_url, a->name);
}

static int meta_check(const char *meta)
{
    const char *why = NULL;
    struct json *json = meta != NULL ? json_parse(bytes_of(meta), META_LEVELS, &why) : NULL;

    json_free(json);
    if (meta != NULL && json == NULL) {
        return cli_fail(CLI_USAGE, "--meta takes a JSON object: %s", why);
    }
    return CLI_GO_ON;
}

static void acquire_body(const struct acquire *a, struct json_out *body)
{
    json_out_reset(body);
    json_object(body, NULL);
    json_text(body, "lease_id", bytes_of(a->lease_id));
    if (a->holder != NULL) {
        json_text(body, "holder", bytes_of(a->holder));
    }
    if (a->ttl_ms > 0) {
        json_int(body, "ttl_ms", (int64_t)a->ttl_ms);
    }
    if (a->meta != NULL) {
        json_raw(body, "meta", bytes_of(a->meta));
    }
    json_object_end(body);
}

/* -- asking */

static int acquire_try(struct acquire *a, struct json_out *body, struct http_client_answer *answer,
                       enum http_client_outcome *outcome)
{
    int status = a->lease_id_file != NULL ? secret_keep(a->lease_id_file, a->lease_id) : CLI_GO_ON;

    if (status != CLI_GO_ON) {
        return status;
    }
    acquire_body(a, body);
    a->ask.request.body = json_out_bytes(body);
    *outcome = ask_try(&a->ask, answer);
    return CLI_GO_ON;
}

/* The hold of the lease_id is over. One from a file or from an earlier "-o env" was not meant for this hold,
 * so a new one takes its place, provided that the caller gets to know it. */
static bool wants_a_new_one(const struct acquire *a, const struct http_client_answer *answer)
{
    return (a->origin == SECRET_FILE || (a->origin == SECRET_LEFTOVER && a->output != OUTPUT_TEXT)) &&
           ask_is_problem(answer, "hold-over");
}

static int acquire_ask(struct acquire *a, struct json_out *body, struct http_client_answer *answer)
{
    enum http_client_outcome outcome = HTTP_CLIENT_NOT_SENT;
    int status = acquire_try(a, body, answer, &outcome);

    if (status == CLI_GO_ON && outcome == HTTP_CLIENT_ANSWERED && wants_a_new_one(a, answer)) {
        http_client_answer_done(answer);
        name_new_lease_id(a->lease_id);
        a->origin = SECRET_NEW;
        status = acquire_try(a, body, answer, &outcome);
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    status = ask_tell(&a->ask, outcome, answer);
    if (ask_is_problem(answer, "hold-over")) {
        cli_hint("PAWL_LEASE_ID names a hold that has ended; unset it to acquire with a new lease_id.");
    }
    a->in_doubt = outcome == HTTP_CLIENT_UNKNOWN ||
                  (outcome == HTTP_CLIENT_ANSWERED && ask_doubt_of(answer) == ASK_IN_DOUBT);
    if (a->lease_id_file != NULL && a->origin == SECRET_NEW && outcome == HTTP_CLIENT_ANSWERED &&
        !a->in_doubt && status != CLI_GO_ON) {
        unlink(a->lease_id_file); /* nothing was granted to it */
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

static int acquire_show(const struct acquire *a, const struct http_client_answer *answer)
{
    int status = grant_show(&a->ask, answer, a->output,
                            answer->status == 200 ? "is held already" : "acquired");

    if (status == CLI_OK && a->output == OUTPUT_TEXT && a->lease_id_file == NULL && a->origin == SECRET_NEW) {
        cli_hint("Its lease_id was not kept, so it can be neither renewed nor released, and will expire:");
        cli_hint("-o env, -o json or --lease-id-file FILE give you the lease_id.");
    }
    return acquire_flush(a, status);
}

int cli_acquire(int argc, char **argv)
{
    struct acquire a = {0};
    struct json_out body;
    struct http_client_answer answer = {0};
    int status = acquire_read(&a, argc, argv);

    json_out_init(&body);
    if (status == CLI_GO_ON) {
        status = meta_check(a.meta);
    }
    if (status == CLI_GO_ON) {
        status = secret_propose(a.lease_id_file, a.lease_id, &a.origin);
    }
    if (status == CLI_GO_ON) {
        a.ask.request.method = "POST";
        ask_header(&a.ask, "Content-Type", BYTES("application/json"));
        status = acquire_ask(&a, &body, &answer);
    }
    if (status == CLI_GO_ON) {
        status = acquire_show(&a, &answer);
    } else if (a.in_doubt) {
        acquire_undo(&a);
    }
    http_client_answer_done(&answer);
    json_out_done(&body);
    ask_done(&a.ask);
    return status;
}

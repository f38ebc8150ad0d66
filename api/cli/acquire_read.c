/* acquire_read.c - pawl acquire: the flags, and the request that they make. */
#include <string.h>

#include "api/cli/acquire.h"
#include "api/cli/cli.h"
#include "shared/record/name.h"

enum { META_LEVELS = 7, WAIT_MOST_MS = 600000 /* of one request: docs/contract.md, "Limits" */ };

/* -- the flags */

static struct flag flag_wait(uint64_t *place)
{
    return (struct flag){.name = "wait",
                         .letter = 'w',
                         .value = "DUR",
                         .help = "wait in line so long at most (default: not at all)",
                         .ms = place,
                         .where = FLAG_COMMAND_LINE};
}

static struct flag flag_mode(const char **place)
{
    return (struct flag){.name = "mode",
                         .value = "exclusive|shared",
                         .help = "alone (default), or beside others that are shared",
                         .text = place,
                         .where = FLAG_COMMAND_LINE};
}

static struct flag flag_permits(unsigned *place)
{
    return (struct flag){.name = "permits",
                         .value = "N",
                         .help = "one of N: so many may hold it at once",
                         .number = place,
                         .where = FLAG_COMMAND_LINE};
}

static struct flag flag_lock_delay(uint64_t *place)
{
    return (struct flag){.name = "lock-delay",
                         .value = "DUR",
                         .help = "if the hold expires, nobody else gets it for so long",
                         .ms = place,
                         .where = FLAG_COMMAND_LINE};
}

static const struct usage acquire_usage = {
    .name = "acquire",
    .arguments = "NAME",
    .examples = "  eval \"$(pawl acquire orders:42 --ttl 10m -o env)\"   # then: pawl put, renew, release\n"
                "  pawl acquire orders:42 -w 30s --lease-id-file \"/run/me/orders:42.$$\"\n"
                "  pawl acquire printers --permits 3 -o json | jq .token\n",
    .summary =
        "Takes the lease NAME, or says who has it (exit status 75). With --wait it stands in line, first\n"
        "come, first served; 75 then means that the time was over, and that it is out of the line.\n\n"
        "The secret that proves the hold, the lease_id, is shown only by -o json and -o env, or kept in\n"
        "--lease-id-file. If that file has one, or PAWL_LEASE_ID is set, this lease_id is proposed: while "
        "it\n"
        "still holds the lease, the answer is the same grant again, with exit status 0, and standard error\n"
        "says so. So those that share a file or a PAWL_LEASE_ID share the hold, and do not keep each other\n"
        "out: this is not flock(1). Give each a file of its own, or use pawl run. -o env tells the two "
        "apart\n"
        "by LEASE_GRANT, -o json by the member grant, which it adds: new, or same.\n\n"
        "When the hold of the file's lease_id is over, a new one takes the place of it and of what an\n"
        "earlier -o env has left; a PAWL_LEASE_ID of your own is refused then (exit status 76).",
    .arguments_min = 1,
    .arguments_max = 1,
};

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

static int acquire_check(const struct acquire *a)
{
    if (a->holder != NULL && !name_is_holder(bytes_of(a->holder))) {
        return cli_fail(CLI_USAGE, "--holder takes 1 to 128 bytes of printable UTF-8");
    }
    if (a->mode != NULL && strcmp(a->mode, "exclusive") != 0 && strcmp(a->mode, "shared") != 0) {
        return cli_fail(CLI_USAGE, "--mode takes exclusive or shared; for several at once see --permits");
    }
    if (a->mode != NULL && a->permits > 0) {
        return cli_fail(CLI_USAGE, "--mode and --permits exclude each other");
    }
    return meta_check(a->meta);
}

int acquire_read(struct acquire *a, int argc, char **argv)
{
    const struct flag flags[] = {
        flag_wait(&a->wait_ms),
        flag_ttl(&a->ttl_ms),
        flag_mode(&a->mode),
        flag_permits(&a->permits),
        flag_lock_delay(&a->lock_delay_ms),
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
    struct usage usage = acquire_usage;
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    usage.flags = flags;
    status = flags_read(&usage, argc, argv, arguments, NULL);
    if (status == CLI_GO_ON) {
        status = acquire_check(a);
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    a->name = arguments[0];
    a->ask = (struct ask){.what = "acquire",
                          .wants = ASK_GRANT,
                          .lease_id = a->lease_id,
                          .output = a->output,
                          .trace = a->trace,
                          .prepare = acquire_prepare,
                          .repeat = ASK_TWICE};
    return ask_lease(&a->ask, a->lease_url, a->name);
}

/* -- the request */

static void acquire_body(struct acquire *a, uint64_t wait_ms)
{
    struct json_out *body = &a->body;

    json_out_reset(body);
    json_object(body, NULL);
    json_text(body, "lease_id", bytes_of(a->lease_id));
    if (a->holder != NULL) {
        json_text(body, "holder", bytes_of(a->holder));
    }
    if (a->ttl_ms > 0) {
        json_int(body, "ttl_ms", (int64_t)a->ttl_ms);
    }
    if (wait_ms > 0) {
        json_int(body, "wait_ms", (int64_t)wait_ms);
    }
    if (a->mode != NULL) {
        json_text(body, "mode", bytes_of(a->mode));
    }
    if (a->permits > 0) {
        json_int(body, "permits", a->permits);
    }
    if (a->lock_delay_ms > 0) {
        json_int(body, "lock_delay_ms", (int64_t)a->lock_delay_ms);
    }
    if (a->meta != NULL) {
        json_raw(body, "meta", bytes_of(a->meta));
    }
    json_object_end(body);
}

uint64_t acquire_left_ms(const struct acquire *a)
{
    uint64_t now_ms = cli_now_ms();

    return a->wait_until_ms > now_ms ? a->wait_until_ms - now_ms : 0;
}

/* Each attempt waits for what is left, and has the usual time for its answer after that. */
void acquire_prepare(struct ask *ask)
{
    struct acquire *a = container_of(ask, struct acquire, ask);
    uint64_t left_ms = acquire_left_ms(a);

    left_ms = left_ms < WAIT_MOST_MS ? left_ms : WAIT_MOST_MS;
    acquire_body(a, left_ms);
    ask->request.body = json_out_bytes(&a->body);
    ask->request.timeout_ms = HTTP_CLIENT_TIMEOUT_MS + (unsigned)left_ms;
}

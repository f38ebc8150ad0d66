/* inbox.c - where an operator stands: a connection of its own to the store. */
#include "api/cli/store/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "scripts.h"
#include "shared/service/options.h"

enum { TURN_MS = 10, TIMEOUT_MS = 2000, TIMEOUT_MIN_MS = 10, TIMEOUT_MAX_MS = 60000, PASSWORD_MAX = 4096 };

#define REDIS_DEFAULT "redis://127.0.0.1:6379"

void store_desk_flags(struct store_desk *desk, struct option rows[STORE_DESK_FLAGS])
{
    const struct option own[STORE_DESK_FLAGS] = {
        FLAG_ENV("redis", "URL", "redis://[user@]host:port[/db] or unix:///path (default " REDIS_DEFAULT ")",
                 &desk->redis),
        FLAG_ENV("redis-password-file", "FILE", "the password of the store", &desk->password_file),
        FLAG_ENV("state-dir", "DIR", "of the service on this machine (default as for the services)",
                 &desk->state_dir),
        {.name = "store-timeout",
         .value = "DUR",
         .help = "how long a call to the store may take (default 2s)",
         .kind = OPTION_DURATION,
         .place = &desk->timeout_ms},
    };

    memcpy(rows, own, sizeof(own));
}

static int desk_check(struct store_desk *desk)
{
    bool has_password = false, is_default = desk->redis == NULL;
    bool is_flag = !is_default && desk->redis != getenv("PAWL_REDIS");
    const char *bad;

    desk->redis = is_default ? REDIS_DEFAULT : desk->redis;
    bad = store_url_check(desk->redis, &has_password);
    if (has_password && is_flag)
        return cli_fail(CLI_CONFIG,
                        "--redis has a password, which everybody on this machine could read: put it "
                        "into a file and name it with --redis-password-file, or set PAWL_REDIS");
    if (bad != NULL)
        return cli_fail(CLI_CONFIG, "%s: %s", is_flag ? "--redis" : "PAWL_REDIS", bad);
    desk->timeout_ms = desk->timeout_ms > 0 ? desk->timeout_ms : TIMEOUT_MS;
    if (desk->timeout_ms < TIMEOUT_MIN_MS || desk->timeout_ms > TIMEOUT_MAX_MS)
        return cli_fail(CLI_USAGE, "--store-timeout is 10ms to 60s");
    return CLI_GO_ON;
}

static int desk_read_password(struct store_desk *desk)
{
    char why[256];
    size_t len = 0;

    if (desk->password_file == NULL)
        return CLI_GO_ON;
    desk->password = options_read_file(desk->password_file, PASSWORD_MAX, &len, why, sizeof(why));
    if (desk->password == NULL)
        return cli_fail(CLI_CONFIG, "%s", why);
    desk->password[strcspn(desk->password, "\r\n")] = '\0';
    return CLI_GO_ON;
}

/* What is not ready because it can lose locks takes calls all the same. */
static int desk_wait_ready(struct store_desk *desk)
{
    uint64_t deadline_ms = loop_now_ms() + desk->timeout_ms;
    const char *detail = NULL, *misled;

    while ((!store_checked(desk->store) || !store_link_stands(desk->store)) &&
           store_misled(desk->store) == NULL && loop_now_ms() < deadline_ms)
        loop_turn(desk->loop, TURN_MS);
    if (store_link_stands(desk->store) && store_checked(desk->store))
        return CLI_GO_ON;
    store_not_ready(desk->store, &detail);
    misled = store_misled(desk->store);
    doubt_tell(DOUBT_NOT_DONE, desk->output, "%s%s",
               misled != NULL ? "" : "the store cannot be reached: ", detail);
    cli_hint("%s", misled != NULL
                       ? misled
                       : "Is Redis running, and is this its address? --redis URL names another one.");
    return misled != NULL ? CLI_CONFIG : CLI_UNREACHABLE;
}

int store_desk_open(struct store_desk *desk)
{
    struct store_options options = {.library = &pawl_library, .sends_whole = true};
    int status = desk_check(desk);

    if (status == CLI_GO_ON)
        status = desk_read_password(desk);
    if (status != CLI_GO_ON)
        return status;
    options.url = desk->redis;
    options.password = desk->password;
    options.timeout_ms = (unsigned)desk->timeout_ms;
    desk->loop = loop_new();
    desk->store = store_open(desk->loop, &options);
    return desk_wait_ready(desk);
}

void store_desk_close(struct store_desk *desk)
{
    if (desk->store != NULL)
        store_close(desk->store);
    if (desk->loop != NULL)
        loop_free(desk->loop);
    if (desk->password != NULL)
        explicit_bzero(desk->password, strlen(desk->password));
    free(desk->password);
    desk->store = NULL;
    desk->loop = NULL;
    desk->password = NULL;
}

/* -- one script */

static enum step script_done(struct store_call *call, enum store_outcome outcome,
                             const struct store_reply *reply)
{
    struct store_ask *ask = container_of(call, struct store_ask, call);

    ask->over = true;
    ask->outcome = outcome;
    if (outcome == STORE_DONE)
        ask->status = ask->take(ask, reply);
    return ANSWERED;
}

int store_desk_ask(struct store_desk *desk, struct store_ask *ask, const struct store_script *script,
                   unsigned key_count, unsigned arg_count, const struct bytes *argv)
{
    const char *detail = NULL;

    ask->over = false;
    ask->call.done = script_done;
    store_run(desk->store, &ask->call, script, key_count, arg_count, argv);
    while (!ask->over)
        loop_turn(desk->loop, TURN_MS); /* the call has a deadline of its own */
    if (ask->outcome == STORE_DONE) {
        desk->changed = desk->changed || !ask->reads;
        return ask->status;
    }
    if (ask->may_be_refused && ask->call.refusal != NULL && ask->call.refusal->what != NULL)
        return CLI_GO_ON;
    store_not_ready(desk->store, &detail);
    detail = ask->call.refusal != NULL && ask->call.refusal->what != NULL ? ask->call.refusal->what : detail;
    if (ask->outcome == STORE_NOT_SENT)
        return doubt_tell(desk->changed ? DOUBT_UNKNOWN : DOUBT_NOT_DONE, desk->output,
                          "the store did not take %s: %s", script->name, detail);
    doubt_tell(desk->changed || !ask->reads ? DOUBT_UNKNOWN : DOUBT_NOT_DONE, desk->output,
               "the store did not run %s to its end: %s", script->name, detail);
    cli_hint("Look with pawl store status. Redis refuses a script also when the user may not run one of its "
             "commands.");
    return CLI_UNREACHABLE;
}

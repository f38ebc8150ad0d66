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

void store_inbox_flags(struct store_inbox *inbox, struct option rows[STORE_INBOX_FLAGS])
{
    const struct option own[STORE_INBOX_FLAGS] = {
        FLAG_ENV("redis", "URL", "redis://[user@]host:port[/db] or unix:///path (default " REDIS_DEFAULT ")",
                 &inbox->redis),
        FLAG_ENV("redis-password-file", "FILE", "the password of the store", &inbox->password_file),
        FLAG_ENV("state-dir", "DIR", "of the service on this machine (default as for the services)",
                 &inbox->state_dir),
        {.name = "store-timeout",
         .value = "DUR",
         .help = "how long a call to the store may take (default 2s)",
         .kind = OPTION_DURATION,
         .place = &inbox->timeout_ms},
    };

    memcpy(rows, own, sizeof(own));
}

static int inbox_check(struct store_inbox *inbox)
{
    bool has_password = false, is_default = inbox->redis == NULL;
    bool is_flag = !is_default && inbox->redis != getenv("PAWL_REDIS");
    const char *bad;

    inbox->redis = is_default ? REDIS_DEFAULT : inbox->redis;
    bad = store_url_check(inbox->redis, &has_password);
    if (has_password && is_flag)
        return cli_fail(CLI_CONFIG,
                        "--redis has a password, which everybody on this machine could read: put it "
                        "into a file and name it with --redis-password-file, or set PAWL_REDIS");
    if (bad != NULL)
        return cli_fail(CLI_CONFIG, "%s: %s", is_flag ? "--redis" : "PAWL_REDIS", bad);
    inbox->timeout_ms = inbox->timeout_ms > 0 ? inbox->timeout_ms : TIMEOUT_MS;
    if (inbox->timeout_ms < TIMEOUT_MIN_MS || inbox->timeout_ms > TIMEOUT_MAX_MS)
        return cli_fail(CLI_USAGE, "--store-timeout is 10ms to 60s");
    return CLI_GO_ON;
}

static int inbox_read_password(struct store_inbox *inbox)
{
    char why[256];
    size_t len = 0;

    if (inbox->password_file == NULL)
        return CLI_GO_ON;
    inbox->password = options_read_file(inbox->password_file, PASSWORD_MAX, &len, why, sizeof(why));
    if (inbox->password == NULL)
        return cli_fail(CLI_CONFIG, "%s", why);
    inbox->password[strcspn(inbox->password, "\r\n")] = '\0';
    return CLI_GO_ON;
}

/* What is not ready because it can lose locks takes calls all the same. */
static int inbox_wait_ready(struct store_inbox *inbox)
{
    uint64_t deadline_ms = loop_now_ms() + inbox->timeout_ms;
    const char *detail = NULL, *misled;

    while ((!store_checked(inbox->store) || !store_link_stands(inbox->store)) &&
           store_misled(inbox->store) == NULL && loop_now_ms() < deadline_ms)
        loop_turn(inbox->loop, TURN_MS);
    if (store_link_stands(inbox->store) && store_checked(inbox->store))
        return CLI_GO_ON;
    store_not_ready(inbox->store, &detail);
    misled = store_misled(inbox->store);
    doubt_tell(DOUBT_NOT_DONE, inbox->output, "%s%s",
               misled != NULL ? "" : "the store cannot be reached: ", detail);
    cli_hint("%s", misled != NULL
                       ? misled
                       : "Is Redis running, and is this its address? --redis URL names another one.");
    return misled != NULL ? CLI_CONFIG : CLI_UNREACHABLE;
}

int store_inbox_open(struct store_inbox *inbox)
{
    struct store_options options = {.library = &pawl_library, .sends_whole = true};
    int status = inbox_check(inbox);

    if (status == CLI_GO_ON)
        status = inbox_read_password(inbox);
    if (status != CLI_GO_ON)
        return status;
    options.url = inbox->redis;
    options.password = inbox->password;
    options.timeout_ms = (unsigned)inbox->timeout_ms;
    inbox->loop = loop_new();
    inbox->store = store_open(inbox->loop, &options);
    return inbox_wait_ready(inbox);
}

void store_inbox_close(struct store_inbox *inbox)
{
    if (inbox->store != NULL)
        store_close(inbox->store);
    if (inbox->loop != NULL)
        loop_free(inbox->loop);
    if (inbox->password != NULL)
        explicit_bzero(inbox->password, strlen(inbox->password));
    free(inbox->password);
    inbox->store = NULL;
    inbox->loop = NULL;
    inbox->password = NULL;
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

int store_inbox_ask(struct store_inbox *inbox, struct store_ask *ask, const struct store_script *script,
                    unsigned key_count, unsigned arg_count, const struct bytes *argv)
{
    const char *detail = NULL;

    ask->over = false;
    ask->call.done = script_done;
    store_run(inbox->store, &ask->call, script, key_count, arg_count, argv);
    while (!ask->over)
        loop_turn(inbox->loop, TURN_MS); /* the call has a deadline of its own */
    if (ask->outcome == STORE_DONE) {
        inbox->changed = inbox->changed || !ask->reads;
        return ask->status;
    }
    if (ask->may_be_refused && ask->call.refusal != NULL && ask->call.refusal->what != NULL)
        return CLI_GO_ON;
    store_not_ready(inbox->store, &detail);
    detail = ask->call.refusal != NULL && ask->call.refusal->what != NULL ? ask->call.refusal->what : detail;
    if (ask->outcome == STORE_NOT_SENT)
        return doubt_tell(inbox->changed ? DOUBT_UNKNOWN : DOUBT_NOT_DONE, inbox->output,
                          "the store did not take %s: %s", script->name, detail);
    doubt_tell(inbox->changed || !ask->reads ? DOUBT_UNKNOWN : DOUBT_NOT_DONE, inbox->output,
               "the store did not run %s to its end: %s", script->name, detail);
    cli_hint("Look with pawl store status. Redis refuses a script also when the user may not run one of its "
             "commands.");
    return CLI_UNREACHABLE;
}

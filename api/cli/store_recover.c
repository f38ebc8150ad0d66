/* store_recover.c - pawl store recover: begin a new life of a store that has lost everything.
 *
 *   recover_read      flags                                     64 | 78, or go on
 *   store_desk_open                                             69 | 78, or go on
 *   store_facts_read  all that is known                         69, or go on
 *   recover_empty     without --floor (store_recover_empty.c)   0 | 1 | 78
 *   recover_floor     with it, or --new-id (store_recover_floor.c)   0 | 1 | 78 */
#include "api/cli/store_recover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/cli/cli.h"
#include "api/cli/store_command.h"
#include "shared/token.h"

enum { RECOVER_FLAGS = STORE_DESK_FLAGS + 7, WAIT_MS = 10000 };

struct recover_texts {
    const char *floor, *seen;
};

/* -- flags */

int64_t recover_token_number(const char *text)
{
    int64_t number = 0;
    size_t len = strlen(text);

    if (len == 0 || len > TOKEN_DIGITS_MAX || text[0] == '0')
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

static int seen_add(struct recover *r, const char *text)
{
    struct token_claim claim;
    struct bytes kid;
    struct recover_seen seen = {recover_token_number(text), 0};

    if (seen.number == 0 && token_read(bytes_of(text), &claim, &kid))
        seen = (struct recover_seen){claim.token.number, claim.token.epoch};
    if (seen.number == 0)
        return cli_fail(CLI_USAGE,
                        "--seen takes a token's number, or the whole value of a Fencing-Token header");
    if (r->seen_count == RECOVER_SEEN_MAX)
        return cli_fail(CLI_USAGE, "--seen can be given %d times: name the highest", RECOVER_SEEN_MAX);
    r->seen[r->seen_count++] = seen;
    return CLI_GO_ON;
}

/* A flag that is given again replaces its value (flags.h); of this one every value counts. */
static int seen_collect(struct recover *r, int argc, char **argv)
{
    int status = CLI_GO_ON;

    for (int i = 1; i < argc && status == CLI_GO_ON && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--seen") == 0 && i + 1 < argc)
            status = seen_add(r, argv[++i]);
        else if (strncmp(argv[i], "--seen=", sizeof("--seen=") - 1) == 0)
            status = seen_add(r, argv[i] + sizeof("--seen=") - 1);
    }
    return status;
}

static void recover_rows(struct recover *r, struct recover_texts *texts, struct flag rows[RECOVER_FLAGS])
{
    const struct flag own[] = {
        {.name = "floor", .value = "N", .help = "no token above N was ever granted", .text = &texts->floor},
        {.name = "seen",
         .value = "TOKEN",
         .help = "a token that was; repeatable; N must not be below",
         .text = &texts->seen},
        {.name = "store-id",
         .value = "ID",
         .help = "of the store (default: as the state directory says)",
         .text = &r->store_id},
        {.name = "wait",
         .value = "DUR",
         .help = "without --floor: for the lease services (default 10s)",
         .ms = &r->wait_ms},
        {.name = "new-id", .help = "this is a copy: make it another store", .on = &r->new_id},
        {.name = "force", .help = "also a store that is in order", .on = &r->force},
        {.name = "yes", .help = "do not ask", .on = &r->yes},
    };

    store_desk_flags(&r->desk, rows);
    for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        rows[STORE_DESK_FLAGS + i] = own[i];
        rows[STORE_DESK_FLAGS + i].where = FLAG_COMMAND_LINE;
    }
}

static bool is_store_id(const char *text)
{
    static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

    return strlen(text) == STORE_ID_CHARS && strspn(text, characters) == STORE_ID_CHARS;
}

static int recover_check(struct recover *r, const struct recover_texts *texts)
{
    r->floor = texts->floor != NULL ? recover_token_number(texts->floor) : 0;
    if (texts->floor != NULL && r->floor == 0)
        return cli_fail(CLI_USAGE, "--floor is a whole number from 1 to %" PRId64, (int64_t)TOKEN_NUMBER_MAX);
    if (r->new_id && (texts->floor != NULL || r->seen_count > 0 || r->force))
        return cli_fail(CLI_USAGE, "--new-id finds the floor itself, and nothing forces it: give it alone");
    if (texts->floor == NULL && (r->seen_count > 0 || r->force))
        return cli_fail(CLI_USAGE, "--seen and --force go with --floor N; see pawl store recover --help");
    if (r->store_id != NULL && !is_store_id(r->store_id))
        return cli_fail(CLI_USAGE, "--store-id is %d characters of A-Z a-z 0-9 _ -", (int)STORE_ID_CHARS);
    return CLI_GO_ON;
}

static int recover_read(struct recover *r, int argc, char **argv)
{
    struct flag flags[RECOVER_FLAGS + 1] = {{0}};
    struct recover_texts texts = {0};
    const struct usage usage = {
        .name = "store recover",
        .arguments = "",
        .examples =
            "  pawl store recover                                  # on the machine of a lease service\n"
            "  pawl store recover --store-id Zk3v9a1BQ2x8Zk3v9a1BQ2x8\n"
            "  pawl store recover --floor 50000000 --seen 48211907 --seen \"$PAWL_FENCING_TOKEN\"\n"
            "  pawl store recover --new-id --redis redis://staging:6379\n",
        .summary =
            "Without --floor: Redis is empty, but lease services still have their state directories. "
            "The store is\n"
            "made anew, and they admit it above their floors.\n"
            "With --floor N: nobody knows any more how far the tokens had come, but you know that "
            "none is above\n"
            "N. All holds end, tokens go on above N, and the services come anew.\n"
            "With --new-id: this Redis is a copy of another store's, and becomes a store of its own. Stop "
            "all of its\nservices first, and empty their state directories before they come again.\n"
            "pawl store status says which one is needed. Exit status: 0 recovered, 1 refused.",
        .flags = flags,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status;

    recover_rows(r, &texts, flags);
    status = seen_collect(r, argc, argv); /* before getopt_long puts the words into another order */
    if (status == CLI_GO_ON)
        status = flags_read(&usage, argc, argv, arguments, NULL);
    return status == CLI_GO_ON ? recover_check(r, &texts) : status;
}

/* -- in common */

const char *recover_wanted_id(const struct recover *r)
{
    if (r->store_id != NULL)
        return r->store_id;
    return r->facts.machine.found == STATE_OPEN ? r->facts.machine.store : "";
}

void recover_identity(char buf[RECOVER_IDENTITY_SIZE], const char *id)
{
    snprintf(buf, RECOVER_IDENTITY_SIZE, KEYS_SCHEMA ":%s", id);
}

int64_t recover_epoch(const struct recover *r)
{
    int64_t epoch = (int64_t)time(NULL);

    epoch = r->facts.machine.epoch > epoch ? r->facts.machine.epoch : epoch;
    epoch = r->facts.lease_epoch > epoch ? r->facts.lease_epoch : epoch;
    for (unsigned i = 0; i < r->seen_count; i++)
        epoch = r->seen[i].epoch > epoch ? r->seen[i].epoch : epoch;
    return epoch;
}

void recover_say_floor(void)
{
    cli_hint("N must not be below any token that this store ever granted. Look for the highest one in the "
             "logs of");
    cli_hint(
        "the services and of the clients, in what clients hold, in the protected resources and what they");
    cli_hint(
        "remember, in backups, in pawl get NAME. A generous N costs nothing but numbers: there are 10^15.");
    cli_hint("--seen TOKEN compares N with tokens that you have found.");
}

int cli_store_recover(int argc, char **argv)
{
    struct recover r = {.wait_ms = WAIT_MS};
    int status = recover_read(&r, argc, argv);

    if (status == CLI_GO_ON)
        status = store_desk_open(&r.desk);
    if (status == CLI_GO_ON)
        status = store_facts_read(&r.desk, &r.facts);
    if (status == CLI_GO_ON)
        status = r.floor > 0 || r.new_id ? recover_floor(&r) : recover_empty(&r);
    store_facts_done(&r.facts);
    store_desk_close(&r.desk);
    return status;
}

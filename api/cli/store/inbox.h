/* inbox.h - where an operator stands: a connection of its own to the store, and this machine's state
 * directory.
 *
 * Every call here waits; the loop is nobody else's. */
#ifndef PAWL_CLI_STORE_INBOX_H
#define PAWL_CLI_STORE_INBOX_H

#include "api/cli/flags.h"
#include "shared/store/store.h"

struct store_inbox {
    /* flags */
    const char *redis, *password_file, *state_dir;
    uint64_t timeout_ms;
    enum output output; /* json: that something was not done, or may have been, is told so too */
    /* the inbox's own */
    bool changed; /* a script that changes something has run */
    struct loop *loop;
    struct store *store;
    char *password;
};

/* Rows that every command has; the last row of a table stays {0}. */
enum { STORE_INBOX_FLAGS = 4 };
void store_inbox_flags(struct store_inbox *inbox, struct option rows[STORE_INBOX_FLAGS]);

/* CLI_GO_ON when the store takes calls and its settings have been read, or the exit status: 69 it cannot be
 * reached, 78 a flag is wrong, or what is there can be no store (store_misled()). The settings are only
 * looked at: what they can lose is for status to tell. Owes store_inbox_close() in any case. */
int store_inbox_open(struct store_inbox *inbox);
void store_inbox_close(struct store_inbox *inbox);

/* One script, run to its end. The asker embeds it. */
struct store_ask {
    /* Set by the asker: what the reply means; CLI_GO_ON or an exit status. */
    int (*take)(struct store_ask *ask, const struct store_reply *reply);
    bool reads;          /* the script changes nothing, whatever becomes of it */
    bool may_be_refused; /* then CLI_GO_ON all the same, and call.refusal says why */
    /* the inbox's own */
    struct store_call call;
    enum store_outcome outcome;
    bool over;
    int status;
};

/* argv as for store_run(): the keys, then the arguments. What take said; 69 when the script did not run to
 * its end, with a sentence (ask.h): it was not done, or nobody knows; what the command has changed before
 * counts, too. */
int store_inbox_ask(struct store_inbox *inbox, struct store_ask *ask, const struct store_script *script,
                    unsigned key_count, unsigned arg_count, const struct bytes *argv);

/* recover.c: a command of its own, and a number as the contract writes tokens: no sign, no leading
 * zero, at most 15 digits; 0: it is none. */
int cli_store_recover(int argc, char **argv);
int64_t recover_token_number(const char *text);

#endif

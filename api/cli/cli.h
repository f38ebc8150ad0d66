/* cli.h - what every command of pawl has in common: exit statuses, complaints, the commands themselves. */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

#include <stdint.h>

#include "api/cli/memory.h"
#include "api/client/pawl.h"
#include "shared/loop/loop.h"
#include "shared/text/bytes.h"

/* docs/contract.md, "Commands". The status of a refusal by a service is that of its problem
 * (api/problems.def). */
enum cli_status {
    CLI_GO_ON = -1, /* not an end: nothing speaks against the next step */
    CLI_OK = 0,
    CLI_REFUSED = 1,
    CLI_USAGE = 64,
    CLI_UNREACHABLE = 69,
    CLI_BUG = 70,
    CLI_NOT_ALLOWED = 77,
    CLI_CONFIG = 78
};

/* "pawl: " and the sentence on stderr, without control characters; returns status, so that a caller can pass
 * it on. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and a second line: what to do. */
int cli_refuse(int status, const char *todo, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* That line alone. */
void cli_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Milliseconds since 1970, as this process believes it to be. */
int64_t cli_wall_ms(void);

/* From now on Ctrl-C ends this process at once, with CLI_OK: what was shown has been flushed. Not where it is
 * ignored, as a shell has it in the background of a script. */
void cli_until_interrupted(void);

/* "Type the name to go on", for what cannot be undone: CLI_GO_ON when it was typed, the whole name and
 * nothing else; else has said that nothing was changed, and CLI_REFUSED. */
int cli_confirm(const char *name);

/* A secret (what) into a new file, which only its owner can read: what is there is never overwritten, nor is
 * a link followed; instead: what to do then. path NULL: to stdout, and not through stdio, whose buffer would
 * keep it. CLI_GO_ON, or has said why not, and CLI_REFUSED. */
int cli_write_secret(const char *path, const char *what, struct bytes content, const char *instead);

/* Who asks for a lease (NULL: user@host:pid, in usual), and in which mode (NULL: exclusive; permits 0: not
 * given); CLI_GO_ON, or wrong. */
int cli_ask(int wrong, struct pawl_ask *ask, const char *holder, const char *mode, unsigned permits,
            char usual[PAWL_HOLDER_SIZE]);

/* What a service advises, in buf, with flags in the place of the members of a request, and
 * durations as they take them. */
struct bytes cli_advice(struct bytes detail, char *buf, size_t size);

/* Each command gets the arguments from its own name on and returns the exit status. */
int cli_verb(int argc, char **argv); /* whatever stands in the table of verbs.c */
int cli_acquire(int argc, char **argv);
int cli_watch(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_completion(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_dev(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_demo_worker(int argc, char **argv);
int cli_demo_relay(int argc, char **argv);
int cli_drill(int argc, char **argv);
int cli_keygen(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_store(int argc, char **argv);
int cli_access(int argc, char **argv);

#endif

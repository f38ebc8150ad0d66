/* job.h - what a connection does again and again, and what it must hear each time.
 *
 *   lease   acquire and release; each connection has names of its own, so nobody is ever refused
 *   put     write 100 bytes to a stored resource, or below another path, under a lease that is held
 *   read    the same names, read without a token
 *   check   the same names, asked of the check endpoint
 *   hold    acquire each name once, for a day
 *
 * Over HTTP it is what a client of Pawl sends. Over Redis' protocol it is the script that the Pawl of
 * tests/bench/baseline runs for it, with the keys and arguments that it gives it: these stay as they are.
 * What others do to hold a lock (lease only) is in job_peers.c. */
#ifndef PAWL_TESTS_BENCH_JOB_H
#define PAWL_TESTS_BENCH_JOB_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/bench/protocol.h"
#include "tests/bench/request.h"

enum job_kind { JOB_LEASE, JOB_PUT, JOB_READ, JOB_CHECK, JOB_HOLD };
enum job_speech { SPEAK_HTTP, SPEAK_RESP, SPEAK_NAIVE, SPEAK_ETCD, SPEAK_ZOOKEEPER };
enum { STEPS_MAX = 3, PUT_BYTES = 100, SHA_BYTES = 40 };

struct job_step {
    struct request request;
    const char
        *words[2];    /* one of which the answer must say; the second may be NULL, both: all but an error */
    const char *part; /* and what must be in it; or NULL */
};

struct job {
    enum job_kind kind;
    enum job_speech speech;
    protocol_measure *measure;
    struct bytes hello;               /* sent first on each connection, and answered; or empty */
    unsigned step_count;              /* requests in one task */
    struct job_step steps[STEPS_MAX]; /* lease, hold: for every name */
    struct job_step *puts;            /* put, read, check: one for each resource */
    const char *path;                 /* what their names follow */
    uint64_t put_count;
};

/* The SHA-1 of each script as Redis told it, and what every call says of the store
 * (shared/member/scripts/lib/stripe.lua): its identity and its epoch, as its stripes have them. */
struct job_scripts {
    char acquire[SHA_BYTES + 1], release[SHA_BYTES + 1], write[SHA_BYTES + 1];
    const char *identity, *epoch;
};

/* Whether it needs job_read_holds(). */
bool job_has_holds(enum job_kind kind);
void step_expect(struct job_step *step, const char *word, const char *other);
/* token: the access token that goes with acquire and release; or NULL. */
void job_init_http(struct job *job, enum job_kind kind, const char *token);
void job_init_resp(struct job *job, enum job_kind kind, const struct job_scripts *scripts);
/* release: the SHA-1 of tests/bench/naive_release.lua. */
void job_init_naive(struct job *job, const char *release);
/* With a lease of etcd's that has the ID 7. */
void job_init_etcd(struct job *job);
void job_init_zookeeper(struct job *job);
/* One command with so many words; the last is NULL. */
void resp_command(struct request *req, const char *const *words);
/* For put: reads lines "NAME FENCING-TOKEN" and makes a request of each. scripts: NULL for HTTP. */
void job_read_holds(struct job *job, FILE *file, const struct job_scripts *scripts);

#endif

/* pawl.h - libpawl: leases with fencing tokens, from C and C++. docs/libpawl.md has an example and says what
 * to do about each outcome.
 *
 * Every struct that a caller fills or gets begins with its size: set it to sizeof(struct ...), and all else
 * to zero, so that later versions can add members at the end. Times are milliseconds. All text is UTF-8 with
 * a NUL behind; no call keeps a pointer that it was given, but for what is said at pawl_guard_open().
 *
 * Threads: a struct pawl may be used by any number of threads at once, a struct pawl_guard too; none may be
 * cancelled (pthread_cancel(3)) within a call: there is cancel_fd. Grants and other structs of the caller's
 * are the caller's. Memory: no call ends the process when memory runs out; it says PAWL_NOT_DONE,
 * "out-of-memory" (or PAWL_UNKNOWN, when a request had left); only with https can it end there, in libtasn1
 * (4.19), which reads certificates for GnuTLS and does not look whether it got memory. No call prints
 * anything, changes a signal's disposition, or lets one be handled on a thread of its own. fork(): a child
 * may open a struct pawl of its own, and may use one of before; a guard stays its parent's: see there. */
#ifndef PAWL_H
#define PAWL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* How a call ended. Nothing else is ever said, and none of them for another. */
enum pawl_outcome {
    PAWL_OK = 0,
    PAWL_HELD = 1,     /* acquire: certainly not granted: another holds it, or the wait is over */
    PAWL_LOST = 2,     /* this hold is over: expired, ended by force, fenced off. Stop what it protected */
    PAWL_NOT_DONE = 3, /* certainly not done; problem.retryable says whether the same may help later */
    PAWL_UNKNOWN = 4   /* it may have happened, or may yet happen; problem says what was seen last */
};

enum pawl_mode { PAWL_EXCLUSIVE = 0, PAWL_SHARED = 1, PAWL_PERMITS = 2 };
enum pawl_state { PAWL_FREE = 0, PAWL_TAKEN = 1, PAWL_DELAYED = 2 };

enum {
    PAWL_NAME_SIZE = 129, /* of a lease name, its NUL included; so all of these */
    PAWL_HOLDER_SIZE = 129,
    PAWL_LEASE_ID_SIZE = 65,
    PAWL_FENCING_TOKEN_SIZE = 512,
    PAWL_CODE_SIZE = 48,
    PAWL_DETAIL_SIZE = 512,
    PAWL_ENDED_SIZE = 24,
    PAWL_ETAG_SIZE = 256,
    PAWL_TYPE_SIZE = 256
};

#define PAWL_WAIT_FOREVER UINT64_MAX

/* What kept a call from PAWL_OK. Wherever a problem is an argument it may be NULL. */
struct pawl_problem {
    size_t size;
    int status;                    /* of HTTP; 0: no answer, or the library's own */
    int retryable;                 /* 1: the same again, later, may help */
    char code[PAWL_CODE_SIZE];     /* of the service (docs/contract.md, api/problems.def), or of the library:
                                    * "bad-argument", "out-of-memory", "no-resources" (threads, descriptors),
                                    * "not-sent" (nobody reached), "no-answer", "bad-answer", "cancelled",
                                    * "deadline-passed" (a guard could not renew in time), "ended" (a guard
                                    * that was released), "other-process" (after fork()), "in-callback" */
    char detail[PAWL_DETAIL_SIZE]; /* a sentence: what happened and what to do now */
    char ended[PAWL_ENDED_SIZE];   /* with a lost hold, how, if known: "expired", "forced", "session", ... */
    char holder[PAWL_HOLDER_SIZE]; /* who holds it, if known; else "" */
    int64_t token;                 /* and that hold's token, if known; else 0 */
    int64_t expires_in_ms;         /* and its rest, if known; else 0 */
    int64_t retry_after_ms;        /* if known; else 0 */
};

/* -- the services */

struct pawl;

struct pawl_options {
    size_t size;
    /* http://..., https://... or unix:/path. NULL: PAWL_LEASE_URL of the environment, or
     * http://127.0.0.1:8700; PAWL_GATEWAY_URL, or http://127.0.0.1:8701. */
    const char *lease_url, *gateway_url;
    uint64_t timeout_ms; /* of one attempt, without its wait in line; 0: 5,000 */
    unsigned attempts;   /* at most, of a call that is safe to repeat; 0: 3 */
    /* Who asks: an access token (or a JWT), or the file where it stands, which is read for each request and
     * beats it. Both NULL: PAWL_ACCESS_TOKEN_FILE or PAWL_ACCESS_TOKEN of the environment, if one is set. */
    const char *access_token, *access_token_file;
    /* With https: whom to trust (PEM), and a certificate and its key, shown to who asks for one. NULL:
     * PAWL_CACERT, PAWL_CERT and PAWL_CERT_KEY; without PAWL_CACERT SSL_CERT_FILE, or the system. */
    const char *ca_file, *cert_file, *key_file;
    int allow_plaintext; /* 1: the access token goes over http:// to other machines, too; 0:
                          * PAWL_ALLOW_PLAINTEXT says ("true"), else it is an address that cannot be used */
};

/* NULL when an address cannot be used or memory is out: problem says which. Nothing is sent. options may be
 * NULL. */
struct pawl *pawl_open(const struct pawl_options *options, struct pawl_problem *problem);
/* Only when no call on it is under way and every guard of it is closed. NULL is fine. */
void pawl_close(struct pawl *pawl);

/* -- a lease */

struct pawl_ask {
    size_t size;
    const char *holder; /* a label for people; NULL: "anonymous" */
    uint64_t ttl_ms;    /* 0: 30,000 */
    uint64_t wait_ms;   /* in line; 0: not at all; PAWL_WAIT_FOREVER. Asked for in slices of 20 s at most; the
                       * place in line stays, also when a connection breaks, or the service or its store is
                       * away, for 30 s at most */
    enum pawl_mode mode;
    unsigned permits; /* with PAWL_PERMITS */
    uint64_t lock_delay_ms;
    const char *meta;                     /* a JSON object; NULL: none */
    const char *session, *session_secret; /* both, or NULL; not for guards */
    const char *lease_id;                 /* to propose, [A-Za-z0-9_-]{22,64}; NULL: a random one is made */
    const int *cancel_fd;                 /* NULL, or a descriptor: when it is readable the call gives up and
                                           * leaves the line ("cancelled": PAWL_NOT_DONE when nothing was
                                           * sent, else PAWL_UNKNOWN). It is only polled */
    uint64_t keep_place_ms; /* only with a lease_id, else "bad-argument": how long the place is kept for it,
                             * also when this call is over without a grant; 0: no longer than it waits */
};

struct pawl_grant {
    size_t size;
    char name[PAWL_NAME_SIZE];
    char lease_id[PAWL_LEASE_ID_SIZE];           /* the secret: never show it */
    char fencing_token[PAWL_FENCING_TOKEN_SIZE]; /* the value of the Fencing-Token header */
    int64_t token, epoch;
    enum pawl_mode mode;
    unsigned holds;
    int64_t ttl_ms, waited_ms;
    int64_t renew_in_ms; /* from the answer on */
    /* On pawl_now_ms()' clock: until then it is certainly held, unless an administrator ends it. Counted from
     * the moment the answered request was sent (plus waited_ms), never from the answer. */
    int64_t deadline_ms;
    /* The shortest ttl of a renewal that may yet arrive, as its end is not known; 0: there is none. No
     * deadline is later than that after its request. */
    int64_t least_ttl_ms;
};

/* CLOCK_BOOTTIME in milliseconds: goes on while the machine sleeps, the same in all processes of the machine.
 */
int64_t pawl_now_ms(void);

/* PAWL_OK, PAWL_HELD, PAWL_NOT_DONE, PAWL_UNKNOWN; PAWL_LOST only for a proposed lease_id, or one granted to
 * an attempt whose answer was lost, whose hold is over. Repeats itself when an answer is lost: with the same
 * lease_id that is safe. When it is still not known at the end, PAWL_UNKNOWN is said, and a lease_id of the
 * library's own is released, once; one of the caller's, which may have held before, is not: ask again with
 * it. What a cancelled wait is granted in the moment in which it leaves the line is released, also with a
 * lease_id that the caller made. grant is filled with PAWL_OK only, but for name and lease_id, which are
 * there with PAWL_UNKNOWN too. */
enum pawl_outcome pawl_acquire(struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                               struct pawl_grant *grant, struct pawl_problem *problem);
/* PAWL_OK, PAWL_LOST, PAWL_NOT_DONE, PAWL_UNKNOWN. ttl_ms 0: the one of before. Changes grant with PAWL_OK;
 * with PAWL_UNKNOWN and a shorter ttl deadline_ms too, which then can have come nearer. Repeats itself. */
enum pawl_outcome pawl_renew(struct pawl *pawl, struct pawl_grant *grant, uint64_t ttl_ms,
                             struct pawl_problem *problem);
/* The same four. PAWL_OK sets grant->holds to those that are left (0, unless it was entered more than once by
 * other means) and, when 0, deadline_ms to 0. Repeats itself. */
enum pawl_outcome pawl_release(struct pawl *pawl, struct pawl_grant *grant, struct pawl_problem *problem);

struct pawl_view {
    size_t size;
    enum pawl_state state;
    int64_t token, epoch; /* last granted; 0: none known */
    unsigned holders, waiting;
    /* of the first holder, when there is one */
    char holder[PAWL_HOLDER_SIZE];
    enum pawl_mode mode;
    int64_t holder_token, expires_in_ms, held_for_ms;
};

/* PAWL_OK, PAWL_NOT_DONE, PAWL_UNKNOWN (no answer). */
enum pawl_outcome pawl_look(struct pawl *pawl, const char *name, struct pawl_view *view,
                            struct pawl_problem *problem);

/* -- resources, through the gateway. fencing_token: grant.fencing_token */

struct pawl_write {
    size_t size;
    const char *content_type;             /* NULL: application/octet-stream */
    const char *if_match, *if_none_match; /* as in the header: quoted, or "*"; NULL: none */
    const char *idempotency_key;          /* with it, and only with it, a lost answer is asked for again */
};

struct pawl_written {
    size_t size;
    int created;               /* 1: there was none before */
    char etag[PAWL_ETAG_SIZE]; /* of the new version; "" after a delete */
};

struct pawl_resource {
    size_t size;
    char *body; /* pawl_resource_done() frees; with a NUL behind, which does not count */
    size_t len;
    char etag[PAWL_ETAG_SIZE], content_type[PAWL_TYPE_SIZE];
};

/* PAWL_OK, PAWL_LOST (fenced off), PAWL_NOT_DONE, PAWL_UNKNOWN. write and written may be NULL. Sent once,
 * unless it has an idempotency_key. */
enum pawl_outcome pawl_put(struct pawl *pawl, const char *key, const char *fencing_token, const void *body,
                           size_t len, const struct pawl_write *write, struct pawl_written *written,
                           struct pawl_problem *problem);
enum pawl_outcome pawl_delete(struct pawl *pawl, const char *key, const char *fencing_token,
                              const struct pawl_write *write, struct pawl_written *written,
                              struct pawl_problem *problem);
/* PAWL_OK, PAWL_LOST (fenced off), PAWL_NOT_DONE (no such resource: "not-found"), PAWL_UNKNOWN (no answer; a
 * fenced read may have moved the mark). fencing_token may be NULL: then the read is not fenced, and never
 * PAWL_LOST. */
enum pawl_outcome pawl_get(struct pawl *pawl, const char *key, const char *fencing_token,
                           struct pawl_resource *resource, struct pawl_problem *problem);
void pawl_resource_done(struct pawl_resource *resource);

/* -- a guard: a hold that renews itself
 *
 * A thread of the library renews at a third of the ttl (somewhat earlier, at random), and more often after a
 * failure. The guard is lost when a service says so, or when its deadline passes without a good renewal,
 * whichever comes first; what is lost stays lost, also when an answer comes late. The first cause is the one
 * that the callback and every later call get.
 *
 * Callbacks run on the guard's thread, one at a time, and may run before pawl_guard_open() has returned.
 * Inside them every call of this header may be made but pawl_guard_close(), pawl_close() and the last
 * pawl_guard_leave() of a guard that is still held ("in-callback"). While one runs nothing is renewed: be
 * short. They must return: no exception, longjmp(3) or pthread_exit(3) leads out of them.
 *
 * fork(): the child has no such thread. In it pawl_guard_remaining_ms() is 0, pawl_guard_enter() and _leave()
 * say PAWL_NOT_DONE, "other-process", and pawl_guard_close() only gives memory and descriptors back: a child
 * neither renews nor releases. The parent's hold goes on, and what pawl_guard_fd() gives tells of it there
 * too. The descriptors are closed by exec.
 *
 * A guard costs a thread, two descriptors, and a third while it renews. */

struct pawl_guard;

struct pawl_guard_options {
    size_t size;
    /* Exactly once, if the guard is lost before it is released; never after pawl_guard_close() has returned.
     * problem is the callback's until it returns. */
    void (*lost)(struct pawl_guard *guard, const struct pawl_problem *problem, void *user);
    /* After each good renewal (not for the first grant); deadline_ms as in struct pawl_grant. */
    void (*renewed)(struct pawl_guard *guard, int64_t deadline_ms, void *user);
    void *user;
};

/* Acquires, and begins to renew; ends as pawl_acquire() does, and *guard is set with PAWL_OK only (else
 * NULL). options may be NULL. pawl must stay open as long as the guard. */
enum pawl_outcome pawl_guard_open(struct pawl *pawl, const char *name, const struct pawl_ask *ask,
                                  const struct pawl_guard_options *options, struct pawl_guard **guard,
                                  struct pawl_problem *problem);
/* The grant as of the last good renewal: token, fencing_token, deadline_ms; also of a guard that is over.
 * Sets nothing when guard is NULL or grant has no right size. */
void pawl_guard_grant(const struct pawl_guard *guard, struct pawl_grant *grant);
/* How long it is certainly held yet, by CLOCK_BOOTTIME read in this very call; 0 when it is lost, released or
 * past its deadline, and from then on always 0. Takes no lock and allocates nothing: safe in a signal
 * handler. */
int64_t pawl_guard_remaining_ms(struct pawl_guard *guard);
/* Readable (POLLIN) once it is lost or its deadline has passed, also when nothing of this process ran
 * meanwhile; never when it was released before. Poll only: never read, close or change it. -1 for NULL. */
int pawl_guard_fd(const struct pawl_guard *guard);
/* Hold counts, for parts of a program that call each other. A guard opens with one; enter adds one, leave
 * takes one away. The guard is of the whole process: threads are not kept apart. Both say PAWL_OK, PAWL_LOST
 * when it is lost (whatever the count), or PAWL_NOT_DONE ("ended", "other-process", "in-callback"). The last
 * leave releases the lease: if the guard was not lost it ends as pawl_release() does, PAWL_UNKNOWN included,
 * and the guard is over however that ends; pawl_guard_close() then tries once more. */
enum pawl_outcome pawl_guard_enter(struct pawl_guard *guard, struct pawl_problem *problem);
enum pawl_outcome pawl_guard_leave(struct pawl_guard *guard, struct pawl_problem *problem);
/* Stops renewing, releases if that was not done, whatever the count, and frees the guard, however it ends.
 * PAWL_OK when it is free of the lease; PAWL_LOST when it had been lost before; PAWL_NOT_DONE or PAWL_UNKNOWN
 * when the release did not get through: then the hold ends by its ttl. NULL is fine. */
enum pawl_outcome pawl_guard_close(struct pawl_guard *guard, struct pawl_problem *problem);

/* -- texts */

const char *pawl_version(void);                           /* "0.1.0" */
const char *pawl_outcome_text(enum pawl_outcome outcome); /* "granted or done", ...: static */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif

/* epoch.h - what a process knows of the store's present epoch. One for each process, shared by its threads.
 *
 * An epoch is the time of a store between two admissions (docs/decisions/0009). The process's member
 * (member.h, on the first worker's thread) learns from its heartbeats which epoch it is and whether this
 * process is admitted to it; every call to a stripe carries that with it (call.c), and every answer raises
 * what was seen. All of it is memory only: a process that starts anew has seen nothing.
 *
 * Any thread may call any function; none blocks for longer than it takes to copy a line of text. */
#ifndef PAWL_SHARED_MEMBER_EPOCH_H
#define PAWL_SHARED_MEMBER_EPOCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/store/store.h"
#include "shared/text/problem.h"
#include "shared/token/keys.h"

enum {
    EPOCH_IDENTITY_SIZE = 32,
    EPOCH_RUN_SIZE = 48,
    EPOCH_STREAM_SIZE = 56,
    EPOCH_DETAIL_SIZE = 512,
    EPOCH_WORKERS_MAX = 64
};

struct epoch;

struct epoch *epoch_new(void);
void epoch_free(struct epoch *store_epoch);

/* -- learned by the member */

/* Admitted: calls may be made on links to the Redis `run`, as long as it goes on with the replication
 * stream (its master_replid): the scripts themselves compare that (stripe.lua). seqs: of the stripes, as
 * the store had them. The identity ("SCHEMA:ID") is taken once and never changes after. confirmed_us:
 * when the heartbeat that was answered so was sent (CLOCK_MONOTONIC); links that came to stand later wait
 * for the next. */
void epoch_admit(struct epoch *store_epoch, const char *identity, const char *run, struct bytes stream,
                 int64_t epoch, const uint64_t seqs[STRIPES], uint64_t confirmed_us);
/* The same epoch, confirmed once more. seqs may be NULL in both: what was seen goes on. Of a store with an
 * in-sync set they are of more than was answered; and its epoch is raised without an admission: what is
 * answered late of the one before still counts. */
void epoch_confirm(struct epoch *store_epoch, const uint64_t seqs[STRIPES], uint64_t confirmed_us);
/* No call may be made any more, and why: PROBLEM_STORE_NOT_ADMITTED, _BEHIND, _NOT_OURS or
 * _UNAVAILABLE. check: one
 * word for readyz, a static text; detail: a sentence for people, copied. What was seen stays. */
void epoch_suspend(struct epoch *store_epoch, enum problem problem, const char *check, const char *detail);
/* A sample of the store's clock: it showed store_ms at some moment before now. The lower bound only rises;
 * what is no time at all is no sample. */
void epoch_clock_sample(struct epoch *store_epoch, int64_t store_ms);

/* The nodes that must acknowledge what is answered (store_keep()), this store's own first; count 0: there is
 * no in-sync set. Before the epoch in which they must: calls of that epoch go by this set or a later one. */
struct epoch_set {
    unsigned copies, count;
    bool growing; /* the last one is being added */
    int64_t syncs;
    char nodes[STORE_NODES_MAX][STORE_NODE_MAX], runs[STORE_NODES_MAX][STORE_RUN_ID_LEN + 1];
    char forgotten[STORE_NODE_MAX]; /* pawl store node forget */
};
/* True: it is another one than before. */
bool epoch_set_nodes(struct epoch *store_epoch, const struct epoch_set *set);
/* Copies it; its number, which rises with each change. */
unsigned epoch_nodes(struct epoch *store_epoch, struct epoch_set *set);

/* -- for calls */

/* PROBLEM_NONE when calls may be made on a link to the Redis `run` ("": none stands) that has stood since
 * stood_us; else the problem. */
enum problem epoch_allows(struct epoch *store_epoch, const char *run, uint64_t stood_us);
/* Rises whenever what epoch_allows() says may have changed. */
unsigned epoch_changes(const struct epoch *store_epoch);
int64_t epoch_number(const struct epoch *store_epoch); /* 0: none */
/* The same, with "master_replid:REPLID", which calls carry. To be asked before epoch_allows(): what that
 * allows then is at worst refused by the store. */
int64_t epoch_stream(struct epoch *store_epoch, char stream[EPOCH_STREAM_SIZE]);
const char *epoch_identity(
    const struct epoch *store_epoch); /* "" until the first epoch_admit(); then for ever */
/* The same without the schema: what tokens name. "" until the first epoch_admit(). */
const char *epoch_store(const struct epoch *store_epoch);
/* Highest sequence number seen in the stripe in this epoch. */
uint64_t epoch_seen(const struct epoch *store_epoch, unsigned stripe, int64_t epoch);
void epoch_saw(struct epoch *store_epoch, unsigned stripe, int64_t epoch, uint64_t seq);
/* The lower bound of the store's time, now; 0: none known. */
int64_t epoch_now_ms(const struct epoch *store_epoch);

/* The highest token that this process's gate has let through, as one that the store has granted: a floor of
 * its own kind, and so never reported above the ceiling, whatever a record that was damaged may say. */
void epoch_let_through(struct epoch *store_epoch, int64_t token);
int64_t epoch_let_through_most(const struct epoch *store_epoch);

/* A script refused what should have been possible, or a token came near the ceiling: the member shall send a
 * heartbeat at once. epoch_wants_heartbeat() takes the wish back. */
void epoch_want_heartbeat(struct epoch *store_epoch);
bool epoch_wants_heartbeat(struct epoch *store_epoch);
/* The ceiling, as of the last heartbeat: no token above it was granted. One above it less ahead, half of
 * what is reserved ahead, is a reason to heartbeat. */
void epoch_set_ceiling(struct epoch *store_epoch, int64_t ceiling, int64_t ahead);
/* A token was granted in this stripe and epoch. */
void epoch_granted(struct epoch *store_epoch, unsigned stripe, int64_t epoch, int64_t token);
/* The highest of them; 0: none. */
uint64_t epoch_granted_most(const struct epoch *store_epoch, unsigned stripe, int64_t epoch);

/* Each worker reports the Redis that its link leads to ("" while none stands), and whether no call of its is
 * in flight. The epoch is settled for `run` when calls are forbidden and every worker has reported so since
 * they were: then nothing that was acknowledged before can still arrive, and what this process has seen is
 * final. false: it leads to another Redis than that of the first worker. */
bool epoch_line_report(struct epoch *store_epoch, unsigned worker, const char *run, bool idle, bool unsafe);
bool epoch_is_settled(struct epoch *store_epoch, unsigned workers, const char *run);
/* Whether a worker has found the store's settings unsafe while calls were made in this epoch. */
bool epoch_is_doubtful(struct epoch *store_epoch);

/* What is wrong with the state directory, "" if nothing is; lost: its floor is nowhere but in memory, so that
 * no token may be granted. */
void epoch_set_trouble(struct epoch *store_epoch, const char *trouble, bool lost);
bool epoch_has_lost_its_floor(struct epoch *store_epoch);
bool epoch_trouble(struct epoch *store_epoch, char detail[EPOCH_DETAIL_SIZE]);

/* The memory of the store: how much this process's own setting allows (0: no bound), once, before any other;
 * how much is in use and how much its own setting allows, as of the last heartbeat. True: epoch_is_full()
 * has changed. */
void epoch_set_memory_max(struct epoch *store_epoch, uint64_t most);
bool epoch_set_memory(struct epoch *store_epoch, uint64_t used, uint64_t maxmemory);
/* In use, and the lower of both bounds (0: there is none). */
void epoch_memory(const struct epoch *store_epoch, uint64_t *used, uint64_t *allowed);
/* From 90 % of that on, and until it is below 88 % again: nothing new is granted, opened, or written. */
bool epoch_is_full(const struct epoch *store_epoch);
/* What is over and must be remembered is more than its bound (lease/remember.c): nothing new is granted.
 * True: it has changed. */
bool epoch_set_crowded(struct epoch *store_epoch, bool crowded);
bool epoch_is_crowded(const struct epoch *store_epoch);
/* As the last heartbeat has it: how many registrars there are, 0: none, and how many are heard. */
void epoch_set_registrars(struct epoch *store_epoch, unsigned count, unsigned heard);
void epoch_registrars(const struct epoch *store_epoch, unsigned *count, unsigned *heard);
/* Why Redis has refused the last heartbeat; NULL: it has not. The struct must never go away. True: it has
 * changed. */
bool epoch_set_refusal(struct epoch *store_epoch, const struct store_refusal *refusal);
const struct store_refusal *epoch_refusal(const struct epoch *store_epoch);

/* The lease on the epoch: until when (epoch_clock_us()) what is read in it may be answered. Without a word
 * said: for ever. */
uint64_t epoch_clock_us(void); /* CLOCK_BOOTTIME: it goes on while the machine is suspended */
void epoch_lease_until(struct epoch *store_epoch, uint64_t ends_us);
bool epoch_lease_is_over(const struct epoch *store_epoch);

/* Why calls are not allowed, for readyz: the check in one word, NULL when they are. */
const char *epoch_check(struct epoch *store_epoch, enum problem *problem, char detail[EPOCH_DETAIL_SIZE]);

#endif

/* attack.h - what programs are made of that treat libpawl badly: one attack a run, named by the first
 * argument, on the lease that the second one names. Each line on standard output is a check that failed; the
 * program ends with 0 when there was none. test_attack.py drives them. */
#ifndef PAWL_TESTS_ATTACK_H
#define PAWL_TESTS_ATTACK_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api/client/pawl.h"

enum { DEADLINE_MS = 30000 };

struct attack {
    const char *name;
    void (*run)(const char *lease);
};

static _Atomic int failed;
static struct pawl *pawl;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

static inline bool check(bool held, const char *what, const char *file, int line)
{
    if (!held) {
        failed = 1;
        printf("%s:%d: does not hold: %s\n", file, line, what);
        fflush(stdout);
    }
    return held;
}

static inline void check_said(enum pawl_outcome got, enum pawl_outcome wanted,
                              const struct pawl_problem *problem, const char *code, const char *file,
                              int line)
{
    if (got != wanted || (code != NULL && strcmp(problem->code, code) != 0)) {
        failed = 1;
        printf("%s:%d: %s (%s: %s), not %s (%s)\n", file, line, pawl_outcome_text(got), problem->code,
               problem->detail, pawl_outcome_text(wanted), code != NULL ? code : "");
        fflush(stdout);
    }
}

#define SAID(call, wanted, code) check_said((call), (wanted), &problem, (code), __FILE__, __LINE__)

static inline struct pawl_ask asked(uint64_t ttl_ms)
{
    return (struct pawl_ask){.size = sizeof(struct pawl_ask), .ttl_ms = ttl_ms};
}

/* -- what callbacks saw */

struct seen {
    _Atomic int lost, renewed;
    char code[PAWL_CODE_SIZE];
    void (*in_lost)(struct pawl_guard *guard, const char *code);
    void (*in_renewed)(struct pawl_guard *guard);
};

static inline void on_lost(struct pawl_guard *guard, const struct pawl_problem *problem, void *user)
{
    struct seen *seen = user;

    snprintf(seen->code, sizeof(seen->code), "%s", problem->code);
    if (seen->in_lost != NULL)
        seen->in_lost(guard, problem->code);
    seen->lost++;
}

static inline void on_renewed(struct pawl_guard *guard, int64_t deadline_ms, void *user)
{
    struct seen *seen = user;

    CHECK(deadline_ms > 0);
    if (seen->in_renewed != NULL)
        seen->in_renewed(guard);
    seen->renewed++;
}

static inline struct pawl_guard *guard_of(const char *name, uint64_t ttl_ms, struct seen *seen)
{
    struct pawl_guard_options options = {.size = sizeof(options), .user = seen};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_ask ask = asked(ttl_ms);
    struct pawl_guard *guard = NULL;

    if (seen != NULL) {
        options.lost = on_lost;
        options.renewed = on_renewed;
    }
    SAID(pawl_guard_open(pawl, name, &ask, &options, &guard, &problem), PAWL_OK, "");
    return guard;
}

/* Ends the hold behind the guard's back: its next renewal is told that it is over. */
static inline void take_away(struct pawl_guard *guard)
{
    struct pawl_grant grant = {.size = sizeof(grant)};

    pawl_guard_grant(guard, &grant);
    CHECK(pawl_release(pawl, &grant, NULL) == PAWL_OK);
}

static inline void wait_for(_Atomic int *count, int least)
{
    int64_t until_ms = pawl_now_ms() + DEADLINE_MS;

    while (*count < least && CHECK(pawl_now_ms() < until_ms))
        poll(NULL, 0, 2);
}

static inline int attack_main(int argc, char **argv, const struct attack *attacks)
{
    struct pawl_options options = {.size = sizeof(options), .timeout_ms = 3000};
    bool found = false;

    pawl = pawl_open(&options, NULL); /* PAWL_LEASE_URL, PAWL_GATEWAY_URL */
    if (argc != 3 || !CHECK(pawl != NULL))
        return 2;
    for (; attacks->name != NULL; attacks++) {
        if (strcmp(argv[1], attacks->name) == 0) {
            attacks->run(argv[2]);
            found = true;
        }
    }
    pawl_close(pawl);
    return found ? failed : 2;
}

#endif

/* hungry.c - libpawl when memory runs out: each allocation fails once, alone and with all behind it. Every
 * call still returns, and says a thing that is true. Prints how often each outcome came. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/pawl.h"

enum { ALLOCATIONS_MOST = 3000, KINDS = 5 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static _Thread_local long left = -1; /* allocations that succeed yet; -1: all */
static _Thread_local bool for_good;

static bool fails(void)
{
    if (left < 0)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    if (!for_good)
        left = -1;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

static bool no_threads;

/* Where there is no thread, there is no memory from then on either. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *of), void *of)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (no_threads) {
        left = 0;
        return EAGAIN;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attr, work, of);
}

static unsigned counts[KINDS];

/* Whether memory ran out on the way. */
static bool one_round(struct pawl *pawl, long allocations)
{
    struct pawl_grant grant = {.size = sizeof(grant)};
    struct pawl_ask ask = {.size = sizeof(ask), .ttl_ms = 100};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_resource resource = {.size = sizeof(resource)};
    enum pawl_outcome outcome;
    bool out;

    ask.wait_ms = 10000; /* what is left held ends by its ttl */
    left = allocations;
    outcome = pawl_acquire(pawl, "hungry", &ask, &grant, &problem);
    counts[outcome]++;
    if (outcome == PAWL_OK) {
        counts[pawl_renew(pawl, &grant, 0, NULL)]++;
        counts[pawl_put(pawl, "hungry", grant.fencing_token, "x", 1, NULL, NULL, NULL)]++;
        counts[pawl_get(pawl, "hungry", NULL, &resource, NULL)]++;
        pawl_resource_done(&resource);
        counts[pawl_release(pawl, &grant, NULL)]++;
    }
    out = left != allocations && (for_good ? left == 0 : left < 0);
    left = -1;
    if (outcome == PAWL_OK)
        pawl_release(pawl, &grant, NULL);
    return out || allocations == 0;
}

static bool guard_round(struct pawl *pawl, long allocations)
{
    struct pawl_ask ask = {.size = sizeof(ask), .ttl_ms = 100, .wait_ms = 10000};
    struct pawl_guard *guard = NULL;
    bool out;

    left = allocations;
    counts[pawl_guard_open(pawl, "hungry", &ask, NULL, &guard, NULL)]++;
    out = for_good ? left == 0 : left < 0;
    left = -1;
    counts[pawl_guard_close(guard, NULL)]++;
    return out;
}

/* What could not be given back is not said to be. */
static bool threadless_round(struct pawl *pawl)
{
    struct pawl_ask ask = {.size = sizeof(ask), .ttl_ms = 100, .wait_ms = 10000};
    struct pawl_problem problem = {.size = sizeof(problem)};
    struct pawl_guard *guard = NULL;
    enum pawl_outcome outcome;

    no_threads = for_good = true;
    outcome = pawl_guard_open(pawl, "hungry", &ask, NULL, &guard, &problem);
    no_threads = for_good = false;
    left = -1;
    return outcome == PAWL_UNKNOWN && strcmp(problem.code, "no-resources") == 0 &&
           strstr(problem.detail, "given back") == NULL;
}

int main(void)
{
    struct pawl *pawl;
    long most = 0;

    left = 0;
    pawl = pawl_open(NULL, NULL);
    left = -1;
    if (pawl != NULL)
        return 1;
    pawl = pawl_open(NULL, NULL);
    if (pawl == NULL)
        return 2;
    if (!threadless_round(pawl))
        return 4;
    one_round(pawl, ALLOCATIONS_MOST); /* what is made once for all calls */
    for (long n = 0; n < ALLOCATIONS_MOST && one_round(pawl, n); n += 3)
        most = n;
    for (long n = 0; n < ALLOCATIONS_MOST && guard_round(pawl, n); n += 7)
        most = n > most ? n : most;
    for_good = true;
    for (long n = 0; n < most; n += 11) {
        one_round(pawl, n);
        guard_round(pawl, n);
    }
    pawl_close(pawl);
    printf("{\"OK\":%u,\"HELD\":%u,\"LOST\":%u,\"NOT_DONE\":%u,\"UNKNOWN\":%u,\"allocations\":%ld}\n",
           counts[0], counts[1], counts[2], counts[3], counts[4], most);
    return most > 10 && counts[PAWL_OK] > 0 ? 0 : 3;
}

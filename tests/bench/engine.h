/* engine.h - many connections, each with one request under way, in one epoll loop. */
#ifndef PAWL_TESTS_BENCH_ENGINE_H
#define PAWL_TESTS_BENCH_ENGINE_H

#include "tests/bench/histogram.h"
#include "tests/bench/job.h"

struct engine_plan {
    const char *to;          /* see wire_connect() */
    struct tls_trust *trust; /* NULL: plain */
    unsigned connections;
    double warm_s, measure_s; /* lease, put: for how long; hold: until all names are held */
    uint64_t first, names;    /* lease, hold: numbers of the names */
    unsigned writes;          /* put: so often before the next resource's turn */
    double rate; /* tasks a second, whether those before have ended or not; 0: as many as can be */
    FILE *holds; /* hold over HTTP: "NAME FENCING-TOKEN" of each grant; NULL: nobody wants them */
};

struct engine_result {
    uint64_t tasks, requests;         /* ended within the time that was measured */
    uint64_t tasks_all, requests_all; /* and before and after it */
    double measured_s;
    struct histogram request, task;
};

/* Ends the process when an answer is not the one that the job expects, or when nothing comes for 5 s. */
void engine_run(const struct engine_plan *plan, struct job *job, struct engine_result *result);

#endif

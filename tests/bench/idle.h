/* idle.h - connections that have had one answer and then stay open and silent. */
#ifndef PAWL_TESTS_BENCH_IDLE_H
#define PAWL_TESTS_BENCH_IDLE_H

/* Opens them, prints "ready", waits for the end of stdin, and prints how many are still open: {"open":n}. */
void idle_run(const char *to, unsigned connections, const char *path);

#endif

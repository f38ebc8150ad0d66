/* check.h - what a unit test is made of; speaks TAP on stdout.
 *
 *   TEST(older_token_is_refused) { CHECK(token_compare(a, b) < 0); }
 *   int main(void) { RUN(older_token_is_refused); return check_done(); }
 *
 * The name of a test is a sentence, its words joined by underscores. A check that fails says where and why,
 * and the test goes on; each check is true when it held, so that a test can leave when going on makes no
 * sense: if (!CHECK(found != NULL)) { return; } */
#ifndef PAWL_TESTS_CHECK_H
#define PAWL_TESTS_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shared/bytes.h"

#define TEST(sentence) static void sentence(void)
#define RUN(sentence) check_run(#sentence, sentence)

#define CHECK(condition) check_true((condition), #condition, __FILE__, __LINE__)
/* Integers of any type, got first; shown in decimal. */
#define CHECK_INT(got, wanted) check_int((intmax_t)(got), (intmax_t)(wanted), #got, __FILE__, __LINE__)
/* Two struct bytes, got first; shown with everything unprintable escaped. */
#define CHECK_TEXT(got, wanted) check_text((got), (wanted), #got, __FILE__, __LINE__)

/* One test program is one process with one thread: its counts are the only global state. */
static struct {
    unsigned run, failed;
    bool failing;
    const char *skipped;
} check_state;

static inline bool check_true(bool held, const char *what, const char *file, int line)
{
    if (!held) {
        check_state.failing = true;
        printf("# %s:%d: does not hold: %s\n", file, line, what);
    }
    return held;
}

static inline bool check_int(intmax_t got, intmax_t wanted, const char *what, const char *file, int line)
{
    if (got != wanted) {
        check_state.failing = true;
        printf("# %s:%d: %s is %" PRIdMAX ", not %" PRIdMAX "\n", file, line, what, got, wanted);
    }
    return got == wanted;
}

static inline void check_show(struct bytes text)
{
    if (text.at == NULL) {
        printf("(null)");
        return;
    }
    putchar('"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];

        printf(c < 0x20 || c >= 0x7f || c == '"' || c == '\\' ? "\\x%02x" : "%c", c);
    }
    putchar('"');
}

static inline bool check_text(struct bytes got, struct bytes wanted, const char *what, const char *file,
                              int line)
{
    if (!bytes_equal(got, wanted)) {
        check_state.failing = true;
        printf("# %s:%d: %s is ", file, line, what);
        check_show(got);
        printf(", not ");
        check_show(wanted);
        putchar('\n');
    }
    return bytes_equal(got, wanted);
}

/* What is tested cannot be tested on this machine: the test counts as not run, which is a failure of the run.
 */
static inline void check_skip(const char *reason)
{
    check_state.skipped = reason;
}

static inline void check_run(const char *name, void (*test)(void))
{
    char sentence[256];
    size_t len = strlen(name);

    len = len < sizeof(sentence) ? len : sizeof(sentence) - 1;
    memcpy(sentence, name, len);
    sentence[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        sentence[i] = sentence[i] == '_' ? ' ' : sentence[i];
    }
    check_state.failing = false;
    check_state.skipped = NULL;
    test();
    check_state.run++;
    check_state.failed += check_state.failing;
    printf("%sok %u - %s", check_state.failing ? "not " : "", check_state.run, sentence);
    printf(check_state.skipped != NULL ? " # SKIP %s\n" : "\n", check_state.skipped);
    fflush(stdout);
}

/* Prints the plan; the exit status of main(). */
static inline int check_done(void)
{
    printf("1..%u\n", check_state.run);
    return check_state.failed == 0 && check_state.run > 0 && fflush(stdout) == 0 ? 0 : 1;
}

#endif

/* check.h - what a unit test is made of; speaks TAP on stdout.
 *
 *   TEST(older_token_is_refused) { CHECK(older.number < mark); }
 *   CHECK_MAIN
 *
 * All tests run, in the order in which they stand in the file. A program that wants more of main() has its
 * own, with RUN(older_token_is_refused) for each, and return check_done().
 *
 * The name of a test is a sentence, its words joined by underscores. A check that fails says where and why,
 * and the test goes on; each check is true when it held, so that a test can leave when going on makes no
 * sense: if (!CHECK(found != NULL)) { return; } */
#ifndef PAWL_TESTS_CHECK_H
#define PAWL_TESTS_CHECK_H

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/text/bytes.h"

#define TEST(sentence)                                                                                       \
    static void sentence(void);                                                                              \
    __attribute__((constructor)) static void sentence##_listed(void)                                         \
    {                                                                                                        \
        check_list(#sentence, sentence, __LINE__);                                                           \
    }                                                                                                        \
    static void sentence(void)
/* A test with something that is opened for it, and closed behind it. */
#define TEST_IN(sentence, type, name, opened, close)                                                         \
    static void sentence##_in(type name);                                                                    \
    TEST(sentence)                                                                                           \
    {                                                                                                        \
        type name = opened;                                                                                  \
                                                                                                             \
        sentence##_in(name);                                                                                 \
        close;                                                                                               \
    }                                                                                                        \
    static void sentence##_in(type name)
/* The same with a struct of the test's own, zero at first. */
#define TEST_WITH(sentence, type, name, open, close)                                                         \
    static void sentence##_in(type *name);                                                                   \
    TEST(sentence)                                                                                           \
    {                                                                                                        \
        type own = {0}, *name = &own;                                                                        \
                                                                                                             \
        open;                                                                                                \
        sentence##_in(name);                                                                                 \
        close;                                                                                               \
    }                                                                                                        \
    static void sentence##_in(type *name)
#define RUN(sentence) check_run(#sentence, sentence)
#define CHECK_MAIN                                                                                           \
    int main(void)                                                                                           \
    {                                                                                                        \
        exit(check_all());                                                                                   \
    }
/* Where tests mostly wait: so many at a time, each in a child. */
#define CHECK_MAIN_AT_ONCE(count)                                                                            \
    int main(void)                                                                                           \
    {                                                                                                        \
        exit(check_all_in_children(count));                                                                  \
    }

#define CHECK(precondition) check_true((precondition), #precondition, __FILE__, __LINE__)
/* Integers of any type, got first; shown in decimal. */
#define CHECK_INT(got, wanted) check_int((intmax_t)(got), (intmax_t)(wanted), #got, __FILE__, __LINE__)
/* Two struct bytes, got first; shown with everything unprintable escaped. */
#define CHECK_TEXT(got, wanted) check_text((got), (wanted), #got, __FILE__, __LINE__)

enum { CHECK_TESTS_MAX = 100 };

/* One test program is one process with one thread: its counts are the only global state. */
static struct {
    unsigned run, failed, listed;
    bool failing;
    const char *skipped;
    struct {
        const char *name;
        void (*test)(void);
        int line;
    } list[CHECK_TESTS_MAX];
} check_state;

/* Before main(), in any order; they run in that of their lines. */
static inline void check_list(const char *name, void (*test)(void), int line)
{
    unsigned i = check_state.listed++;

    if (i == CHECK_TESTS_MAX)
        abort();
    for (; i > 0 && check_state.list[i - 1].line > line; i--)
        check_state.list[i] = check_state.list[i - 1];
    check_state.list[i].name = name;
    check_state.list[i].test = test;
    check_state.list[i].line = line;
}

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

/* As printf(3) writes it; good until eight more were asked for. */
__attribute__((format(printf, 1, 2))) static inline const char *textf(const char *format, ...)
{
    static _Thread_local char texts[8][16384];
    static _Thread_local unsigned next;
    char *text = texts[next++ % 8];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(texts[0]), format, arguments);
    va_end(arguments);
    return text;
}

/* The next of some words, which have a blank between two, or NULL; good as long as what textf() gives. */
static inline const char *check_part(const char **rest, const char *between)
{
    const char *part = *rest + strspn(*rest, between);

    *rest = part + strcspn(part, between);
    return *rest > part ? textf("%.*s", (int)(*rest - part), part) : NULL;
}

static inline const char *check_word(const char **rest)
{
    return check_part(rest, " ");
}

/* The path of a file with this in it, good until the next one; who asked for it deletes it. */
static inline char *check_file(struct bytes content)
{
    static char path[32];
    int fd;

    snprintf(path, sizeof(path), "/tmp/pawl-test-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0 || write(fd, content.at, content.len) != (ssize_t)content.len || close(fd) != 0)
        abort();
    return path;
}

/* What is tested cannot be tested on this machine: not run, which is a failure of the run. */
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
    for (size_t i = 0; i < len; i++)
        sentence[i] = sentence[i] == '_' ? ' ' : sentence[i];
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

/* Each that is in this share of so many, its sentence ending with how; NULL: as it is. */
static inline void check_share_as(const char *how, unsigned share, unsigned shares)
{
    for (unsigned i = share; i < check_state.listed; i += shares)
        check_run(textf(how != NULL ? "%s_%s" : "%s", check_state.list[i].name, how),
                  check_state.list[i].test);
}

static inline void check_all_as(const char *how)
{
    check_share_as(how, 0, 1);
}

/* -- children: tests that mostly wait, several at a time */

/* Memory that children share with the program. */
static inline void *check_shared(size_t size)
{
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        abort();
    return shared;
}

/* Whether a function ends its process by abort(3), as an assert does. */
static inline bool check_aborts(void (*run)(const void *of), const void *of)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(10);
        close(STDERR_FILENO);
        run(of);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Waits for the child and prints what it has printed, its tests counted on. */
static inline void check_take(FILE *out, pid_t child)
{
    char *line = NULL;
    size_t size = 0;
    int status = -1;

    waitpid(child, &status, 0);
    rewind(out);
    while (getline(&line, &size, out) > 0) {
        bool failed = strncmp(line, "not ok ", 7) == 0;

        if (failed || strncmp(line, "ok ", 3) == 0) {
            check_state.failed += failed;
            printf("%sok %u%s", failed ? "not " : "", ++check_state.run, strstr(line, " - "));
        } else {
            fputs(line, stdout);
        }
    }
    if (status != 0) {
        check_state.failed++;
        printf("not ok %u - the child ends well, not with %#x\n", ++check_state.run, (unsigned)status);
    }
    fflush(stdout);
    free(line);
    fclose(out);
}

/* Each part in a child, so many of them at once; they print in the order of their numbers. */
static inline void check_parts(unsigned count, unsigned at_once, void (*part)(unsigned number))
{
    pid_t child[CHECK_TESTS_MAX];
    FILE *out[CHECK_TESTS_MAX];
    unsigned taken = 0;

    for (unsigned i = 0; i < count; i++) {
        if (i - taken == at_once) {
            check_take(out[taken], child[taken]);
            taken++;
        }
        out[i] = fdopen(memfd_create("tap", MFD_CLOEXEC), "w+");
        child[i] = fork();
        if (out[i] == NULL || child[i] < 0)
            abort();
        if (child[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(fileno(out[i]), STDOUT_FILENO);
            part(i);
            exit(0);
        }
    }
    for (; taken < count; taken++)
        check_take(out[taken], child[taken]);
}

static inline void check_one(unsigned number)
{
    check_run(check_state.list[number].name, check_state.list[number].test);
}

/* All but the last in children; that one after them, here. */
static inline int check_all_in_children(unsigned at_once)
{
    check_parts(check_state.listed - 1, at_once, check_one);
    check_one(check_state.listed - 1);
    return check_done();
}

static inline int check_all(void)
{
    check_all_as(NULL);
    return check_done();
}

#endif

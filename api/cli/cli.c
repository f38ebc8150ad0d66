/* cli.c - what every command of pawl has in common. */
#include "api/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/cli/print.h"

enum { SENTENCE_BYTES = 2048 };

__attribute__((format(printf, 2, 0))) static void say(const char *before, const char *format, va_list args)
{
    char sentence[SENTENCE_BYTES];

    vsnprintf(sentence, sizeof(sentence), format, args);
    fputs(before, stderr);
    print_safe(stderr, bytes_of(sentence));
    fputc('\n', stderr);
}

int cli_fail(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("pawl: ", format, args);
    va_end(args);
    return status;
}

void cli_hint(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("  ", format, args);
    va_end(args);
}

void *cli_alloc(size_t size)
{
    return cli_realloc(NULL, size);
}

void *cli_realloc(void *old, size_t size)
{
    void *memory = realloc(old, size > 0 ? size : 1);

    if (memory == NULL) {
        fputs("pawl: out of memory\n", stderr);
        exit(CLI_BUG);
    }
    return memory;
}

uint64_t cli_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

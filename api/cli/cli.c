/* cli.c - what every command of pawl has in common. */
#include "api/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/cli/print.h"

enum { SENTENCE_BYTES = 2048, TYPED_SIZE = 256 };

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

uint64_t cli_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t cli_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int cli_confirm(const char *name)
{
    char typed[TYPED_SIZE] = "";
    size_t len = strlen(name);

    fflush(stdout);
    fprintf(stderr, "Type \"%s\" to go on: ", name);
    fflush(stderr);
    return fgets(typed, sizeof(typed), stdin) != NULL && strncmp(typed, name, len) == 0 &&
                   strcmp(typed + len, "\n") == 0
               ? CLI_GO_ON
               : cli_fail(CLI_REFUSED, "nothing was changed");
}

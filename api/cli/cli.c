/* cli.c - what every command of pawl has in common. */
#include "api/cli/cli.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/print.h"
#include "shared/token/name.h"

enum { SENTENCE_BYTES = 2048, TYPED_SIZE = 256, HOST_SIZE = 64 };

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

/* -- who asks for a lease, and how */

static const char *holder_usual(char buf[PAWL_HOLDER_SIZE])
{
    const char *user = getenv("USER");
    const struct passwd *known = user == NULL || *user == '\0' ? getpwuid(getuid()) : NULL;
    char host[HOST_SIZE] = "", uid[HOST_SIZE];

    gethostname(host, sizeof(host) - 1);
    snprintf(uid, sizeof(uid), "%u", getuid());
    user = known != NULL ? known->pw_name : user != NULL && *user != '\0' ? user : uid;
    snprintf(buf, PAWL_HOLDER_SIZE, "%.40s@%s:%d", user, host[0] != '\0' ? host : "localhost", getpid());
    return name_is_holder(bytes_of(buf)) ? buf : "pawl";
}

int cli_ask(int wrong, struct pawl_ask *ask, const char *holder, const char *mode, unsigned permits,
            char usual[PAWL_HOLDER_SIZE])
{
    bool shared = mode != NULL && strcmp(mode, "shared") == 0;

    if (holder != NULL && !name_is_holder(bytes_of(holder))) {
        return cli_fail(wrong, "--holder takes 1 to 128 bytes of printable UTF-8");
    }
    if (mode != NULL && !shared && strcmp(mode, "exclusive") != 0) {
        return cli_fail(wrong, "--mode takes exclusive or shared; for several at once see --permits");
    }
    if (mode != NULL && permits > 0) {
        return cli_fail(wrong, "--mode and --permits exclude each other");
    }
    ask->holder = holder != NULL ? holder : holder_usual(usual);
    ask->mode = permits > 0 ? PAWL_PERMITS : shared ? PAWL_SHARED : PAWL_EXCLUSIVE;
    ask->permits = permits;
    return CLI_GO_ON;
}

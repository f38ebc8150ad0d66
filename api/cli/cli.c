/* cli.c - what every command of pawl has in common. */
#include "api/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/print.h"
#include "shared/service/options.h"
#include "shared/text/ascii.h"
#include "shared/text/read_all.h"
#include "shared/token/name.h"

enum { TYPED_SIZE = 256, HOST_SIZE = 64, WORD_SIZE = 32 };

int cli_fail(int status, const char *format, ...)
{
    va_list args;

    fputs("pawl: ", stderr);
    va_start(args, format);
    print_line_of(stderr, format, args);
    va_end(args);
    return status;
}

int cli_refuse(int status, const char *todo, const char *format, ...)
{
    va_list args;

    fputs("pawl: ", stderr);
    va_start(args, format);
    print_line_of(stderr, format, args);
    va_end(args);
    cli_hint("%s", todo);
    return status;
}

void cli_hint(const char *format, ...)
{
    va_list args;

    fputs("  ", stderr);
    va_start(args, format);
    print_line_of(stderr, format, args);
    va_end(args);
}

int64_t cli_wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void interrupted(int number)
{
    (void)number;
    _exit(CLI_OK);
}

void cli_until_interrupted(void)
{
    const struct sigaction action = {.sa_handler = interrupted};
    struct sigaction before;

    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
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

    if (holder != NULL && !name_is_holder(bytes_of(holder)))
        return cli_fail(wrong, "--holder takes 1 to 128 bytes of printable UTF-8");
    if (mode != NULL && !shared && strcmp(mode, "exclusive") != 0)
        return cli_fail(wrong, "--mode takes exclusive or shared; for several at once see --permits");
    if (mode != NULL && permits > 0)
        return cli_fail(wrong, "--mode and --permits exclude each other");
    ask->holder = holder != NULL ? holder : holder_usual(usual);
    ask->mode = permits > 0 ? PAWL_PERMITS : shared ? PAWL_SHARED : PAWL_EXCLUSIVE;
    ask->permits = permits;
    return CLI_GO_ON;
}

/* -- what a service advises */

static const struct {
    const char *member, *flag;
} flag_names[] = {{"ttl_ms", "--ttl"},
                  {"wait_ms", "--wait"},
                  {"lock_delay_ms", "--lock-delay"},
                  {"keep_place_ms", "--keep-place"},
                  {"expect_token", "--expect-token"},
                  {"Idempotency-Key", "--idempotency-key"},
                  {"holder", "--holder"},
                  {"mode", "--mode"},
                  {"permits", "--permits"},
                  {"meta", "--meta"},
                  {"reason", "--reason"}};

/* The flag for what a text begins with, and how long that is; NULL: it is no member. */
static const char *flag_of(struct bytes text, size_t *len)
{
    static const char before[] = "he member ";
    size_t skip = text.len > sizeof(before) && memcmp(text.at + 1, before, sizeof(before) - 1) == 0
                      ? sizeof(before)
                      : 0;

    for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
        const char *member = flag_names[i].member;

        *len = skip + strlen(member);
        /* Else it may be a word like others. */
        if ((skip > 0 || strpbrk(member, "_-") != NULL) && text.len >= *len &&
            memcmp(text.at + skip, member, *len - skip) == 0)
            return flag_names[i].flag;
    }
    return NULL;
}

struct bytes cli_advice(struct bytes detail, char *buf, size_t size)
{
    size_t at = 0, len = 1;
    bool is_ms = false; /* what numbers are that follow */

    for (; detail.len > 0 && at + WORD_SIZE < size;
         detail = (struct bytes){detail.at + len, detail.len - len}) {
        const char *flag = flag_of(detail, &len);
        struct bytes digits = {detail.at, 0};

        while (is_ms && digits.len < detail.len && ascii_is_digit(digits.at[digits.len]))
            digits.len++;
        if (flag != NULL) {
            is_ms = len > strlen("The member ") && memcmp(detail.at + len - 3, "_ms", 3) == 0;
            snprintf(buf + at, size - at, "%s", flag);
        } else if (bytes_number(digits, 15) >= 0) {
            len = digits.len;
            options_duration((unsigned long long)bytes_number(digits, 15), buf + at, size - at);
        } else {
            len = 1;
            snprintf(buf + at, size - at, "%c", *detail.at);
        }
        at += strlen(buf + at);
    }
    return (struct bytes){buf, at};
}

int cli_write_secret(const char *path, const char *what, struct bytes content, const char *instead)
{
    int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool written;

    if (path == NULL)
        return write_all(STDOUT_FILENO, content)
                   ? CLI_GO_ON
                   : cli_fail(CLI_REFUSED, "the %s could not be written: %s", what, strerrordesc_np(errno));
    if (fd < 0 && errno == EEXIST)
        return cli_fail(CLI_REFUSED, "%s is there already and is not overwritten; %s", path, instead);
    if (fd < 0)
        return cli_fail(CLI_REFUSED, "%s could not be made: %s", path, strerrordesc_np(errno));
    written = write_all(fd, content) && fsync(fd) == 0;
    if (close(fd) != 0 || !written) {
        int error = errno;

        unlink(path); /* half a secret is none */
        return cli_fail(CLI_REFUSED, "%s could not be written: %s", path, strerrordesc_np(error));
    }
    return CLI_GO_ON;
}

/* keygen.c - pawl keygen: make a key that signs fencing tokens. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "shared/token.h"

enum { DATE_KID_SIZE = sizeof("k20261121") };

struct keygen {
    const char *kid, *out;
    char date_kid[DATE_KID_SIZE];
};

/* Today in UTC, so that it is the same wherever the key is made; it only has to tell one key from the next.
 */
static void keygen_default_kid(struct keygen *k)
{
    time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    if (strftime(k->date_kid, sizeof(k->date_kid), "k%Y%m%d", &utc) == 0)
        memcpy(k->date_kid, "k1", sizeof("k1"));
    k->kid = k->date_kid;
}

/* Not through stdio, whose buffer would keep the key. */
static bool write_all(int fd, struct bytes text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.at, text.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text = (struct bytes){text.at + n, text.len - (size_t)n};
    }
    return true;
}

static int keygen_to_stdout(struct bytes line)
{
    if (!write_all(STDOUT_FILENO, line))
        return cli_fail(CLI_REFUSED, "the key could not be written: %s", strerrordesc_np(errno));
    return CLI_OK;
}

/* O_EXCL: what is there is never overwritten, nor is a link followed. */
static int keygen_to_file(const struct keygen *k, struct bytes line)
{
    int fd = open(k->out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool written;

    if (fd < 0 && errno == EEXIST)
        return cli_fail(CLI_REFUSED,
                        "%s is there already and is not overwritten; to rotate, append a line with "
                        "pawl keygen >> FILE, and move it to the top when every service has read it",
                        k->out);
    if (fd < 0)
        return cli_fail(CLI_REFUSED, "%s could not be made: %s", k->out, strerrordesc_np(errno));
    written = write_all(fd, line) && fsync(fd) == 0;
    if (close(fd) != 0 || !written) {
        int error = errno;

        unlink(k->out); /* half a key is none */
        return cli_fail(CLI_REFUSED, "%s could not be written: %s", k->out, strerrordesc_np(error));
    }
    printf("%s holds the key %s; only you can read it\n", k->out, k->kid);
    return CLI_OK;
}

int cli_keygen(int argc, char **argv)
{
    struct keygen k = {NULL, NULL, ""};
    const struct flag flags[] = {
        {.name = "kid",
         .value = "NAME",
         .help = "the key's name (default: k and the date)",
         .text = &k.kid,
         .where = FLAG_COMMAND_LINE},
        {.name = "out",
         .value = "FILE",
         .help = "a new file instead of standard output",
         .text = &k.out,
         .where = FLAG_COMMAND_LINE},
        {0},
    };
    const struct usage usage = {
        "keygen",
        "",
        "  pawl keygen --out /etc/pawl/keys                  # a new key file\n"
        "  pawl keygen >> /etc/pawl/keys                     # rotate: at the end it verifies; once every\n"
        "                                                    # service has read it, move it to the top to "
        "sign\n"
        "  pawl keygen --kid eu-1\n",
        "Makes a key of 32 random bytes and writes it as a line of a key file: kid:base64.",
        flags,
        0,
        0,
        FLAGS_MIXED};
    const char *arguments[ARGUMENTS_MAX + 1];
    char line[TOKEN_KEY_LINE_SIZE];
    int status = flags_read(&usage, argc, argv, arguments, NULL);
    size_t len;

    if (status != CLI_GO_ON)
        return status;
    if (k.kid == NULL)
        keygen_default_kid(&k);
    len = token_keygen(k.kid, line, sizeof(line));
    if (len == 0)
        return cli_fail(CLI_USAGE, "--kid takes 1 to 32 characters of A-Z a-z 0-9 . _ -");
    status = k.out != NULL ? keygen_to_file(&k, (struct bytes){line, len})
                           : keygen_to_stdout((struct bytes){line, len});
    explicit_bzero(line, sizeof(line));
    return status;
}

/* secret.c - the texts that must not stand in a command line: the lease_id, and the fencing token. */
#include "api/cli/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "shared/service/options.h"
#include "shared/text/ascii.h"
#include "shared/text/read_all.h"
#include "shared/token/name.h"

enum { LOCK_PAUSE_MS = 5, LOCK_TRIES = 200 };

/* What ends the line in a file is no part of the secret. */
static int take(const char *what, const char *source, const char *text, size_t len, char buf[SECRET_SIZE])
{
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (len == 0 || len >= SECRET_SIZE)
        return cli_fail(CLI_USAGE, "%s has no %s in it", source, what);
    if (!ascii_is_visible((struct bytes){text, len}))
        return cli_fail(CLI_USAGE, "%s has something else than a %s in it", source, what);
    memcpy(buf, text, len);
    buf[len] = '\0';
    return CLI_GO_ON;
}

static int read_file(const char *what, const char *file, char buf[SECRET_SIZE])
{
    char why[256];
    size_t len = 0;
    char *text = options_read_file(file, SECRET_SIZE, &len, why, sizeof(why));
    int status;

    if (text == NULL)
        return cli_fail(CLI_USAGE, "the %s cannot be read: %s", what, why);
    status = take(what, file, text, len, buf);
    explicit_bzero(text, len);
    free(text);
    return status;
}

static int read_either(const char *what, const char *file, const char *variable, const char *flag,
                       char buf[SECRET_SIZE])
{
    const char *value = getenv(variable);

    if (file != NULL)
        return read_file(what, file, buf);
    if (value == NULL || *value == '\0')
        return cli_refuse(CLI_USAGE, "eval \"$(pawl acquire NAME -o env)\" sets it.",
                          "a %s is needed: set %s, or name its file with %s", what, variable, flag);
    return take(what, variable, value, strlen(value), buf);
}

/* acquire puts another file into its place: a device must not be replaced, and a FIFO would be waited for. */
static int regular_check(const char *file)
{
    struct stat status;

    if (file == NULL || lstat(file, &status) != 0 || S_ISREG(status.st_mode))
        return CLI_GO_ON;
    return cli_fail(CLI_USAGE, "--lease-id-file %s is no regular file: name one, or a new one", file);
}

int secret_lease_id(const char *file, char buf[SECRET_SIZE])
{
    int status = regular_check(file);

    if (status != CLI_GO_ON)
        return status;
    status = read_either("lease_id", file, "PAWL_LEASE_ID", "--lease-id-file", buf);

    if (status == CLI_GO_ON && !name_is_lease_id(bytes_of(buf)))
        return cli_fail(CLI_USAGE, "the lease_id given is none: 22 to 64 characters of A-Z a-z 0-9 _ -");
    return status;
}

int secret_token(const char *file, char buf[SECRET_SIZE])
{
    return read_either("fencing token", file, "PAWL_FENCING_TOKEN", "--token-file", buf);
}

/* -- of an acquire */

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && *value != '\0';
}

static bool file_has_something(const char *file)
{
    struct stat status;

    return stat(file, &status) == 0 && status.st_size > 0;
}

int secret_propose(const char *file, const char *lease, char buf[SECRET_SIZE], enum secret_origin *origin)
{
    bool anothers = file == NULL && is_set("PAWL_LEASE_ID") && is_set("PAWL_TOKEN") && is_set("PAWL_LEASE") &&
                    strcmp(getenv("PAWL_LEASE"), lease) != 0;

    *origin = SECRET_NEW;
    if (regular_check(file) != CLI_GO_ON)
        return CLI_USAGE;
    if (file != NULL && file_has_something(file))
        *origin = SECRET_FILE;
    else if (anothers)
        cli_hint(
            "PAWL_LEASE_ID stands beside PAWL_LEASE, another lease, and is not used: a new lease_id is.");
    else if (file == NULL && is_set("PAWL_LEASE_ID"))
        *origin = is_set("PAWL_TOKEN") ? SECRET_LEFTOVER : SECRET_PROPOSED;
    if (*origin != SECRET_NEW)
        return secret_lease_id(file, buf);
    name_new_lease_id(buf);
    return CLI_GO_ON;
}

/* -- the file, among processes that share it */

/* Of its folder, for a moment: between a look at the file and its change nobody else changes it. Where it
 * cannot be had (the folder may not be read, or a stranger in /tmp keeps it) it goes without. -1: not had.
 * It ends when it is closed. */
static int folder_lock(const char *file)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    const char *slash = strrchr(file, '/');
    char folder[PATH_MAX];
    int fd, tries = LOCK_TRIES;

    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - file) + 1 : 1,
             slash != NULL ? file : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (tries-- == 0) {
            close(fd);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return fd;
}

/* "": there is none. */
static int read_now(const char *file, char buf[SECRET_SIZE])
{
    buf[0] = '\0';
    return file_has_something(file) ? secret_lease_id(file, buf) : CLI_GO_ON;
}

static int keep_new(const char *file, const char *lease_id)
{
    char fresh[PATH_MAX];
    int len = snprintf(fresh, sizeof(fresh), "%s.XXXXXX", file);
    int fd = len > 0 && (size_t)len < sizeof(fresh) ? mkostemp(fresh, O_CLOEXEC) : -1; /* 0600, mkstemp(3) */
    bool whole = fd >= 0 && write_all(fd, bytes_of(lease_id)) && write_all(fd, BYTES("\n")) && fsync(fd) == 0;

    if (fd >= 0 && close(fd) != 0)
        whole = false;
    if (whole && rename(fresh, file) == 0)
        return CLI_GO_ON;
    cli_fail(CLI_REFUSED, "the lease_id cannot be kept in %s: %s", file, strerror(errno));
    if (fd >= 0)
        unlink(fresh);
    return CLI_REFUSED;
}

int secret_keep(const char *file, const char *before, char lease_id[SECRET_SIZE])
{
    int lock = folder_lock(file);
    char now[SECRET_SIZE];
    int status = read_now(file, now);

    if (status == CLI_GO_ON && now[0] != '\0' && strcmp(now, before) != 0)
        memcpy(lease_id, now, sizeof(now));
    else if (status == CLI_GO_ON)
        status = keep_new(file, lease_id);
    explicit_bzero(now, sizeof(now));
    close(lock);
    return status;
}

void secret_forget(const char *file, const char *lease_id)
{
    int lock = folder_lock(file);
    char now[SECRET_SIZE];

    if (read_now(file, now) == CLI_GO_ON && strcmp(now, lease_id) == 0)
        unlink(file);
    explicit_bzero(now, sizeof(now));
    close(lock);
}

/* cluster_files.c - what a cluster has on disk.
 *
 * A data directory has: lock (one pawl dev at a time), keys, store-made (the store was made here; if Redis
 * then comes up empty, its content was lost, and another one must not take its place silently), appendonlydir
 * (Redis), state-lease and state-gateway (the services' state directories). */
#include "api/cli/cluster_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "shared/token.h"

enum { OPEN_DIRECTORIES = 16 };

/* false, and path is empty: too long. */
static bool join(char path[CHILD_PATH_SIZE], const char *directory, const char *name)
{
    size_t len = strlen(directory), more = strlen(name);
    bool fits = len + 1 + more < CHILD_PATH_SIZE;

    path[0] = '\0';
    if (fits) {
        memcpy(path, directory, len);
        path[len] = '/';
        memcpy(path + len + 1, name, more + 1);
    }
    return fits;
}

static bool there_is(const char *directory, const char *name)
{
    char path[CHILD_PATH_SIZE];

    return join(path, directory, name) && access(path, F_OK) == 0;
}

/* -- the temporary directory */

static int run_open(struct cluster_files *files)
{
    const char *base = getenv("TMPDIR");

    /* The address of a Unix socket is short (unix(7)). */
    if (base == NULL || *base != '/' ||
        strlen(base) + sizeof("/pawl-XXXXXX/redis.sock") > sizeof(((struct sockaddr_un *)0)->sun_path)) {
        base = "/tmp";
    }
    join(files->run, base, "pawl-XXXXXX");
    if (mkdtemp(files->run) == NULL) {
        int error = errno;

        files->run[0] = '\0';
        return cli_fail(CLI_CONFIG, "no temporary directory can be made in %s: %s", base, strerror(error));
    }
    join(files->socket, files->run, "redis.sock");
    return CLI_GO_ON;
}

/* -- the data directory */

static bool is_empty(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    unsigned count = 0;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return directory != NULL && count == 0;
}

static int data_lock(struct cluster_files *files)
{
    char path[CHILD_PATH_SIZE];

    if (!join(path, files->data, "lock")) {
        return cli_fail(CLI_CONFIG, "the path of --data is too long");
    }
    files->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (files->lock_fd < 0) {
        return cli_fail(CLI_CONFIG, "%s cannot be written: %s", path, strerror(errno));
    }
    if (flock(files->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return cli_fail(CLI_CONFIG, "another pawl dev is using %s: stop it, or name another directory",
                        files->data);
    }
    return CLI_GO_ON;
}

static int data_open(struct cluster_files *files, const char *data)
{
    bool made = mkdir(data, 0700) == 0;

    if (!made && errno != EEXIST) {
        return cli_fail(CLI_CONFIG, "the directory %s cannot be made: %s", data, strerror(errno));
    }
    if (strlen(data) >= CHILD_PATH_SIZE || realpath(data, files->data) == NULL) {
        return cli_fail(CLI_CONFIG, "%s is not a directory that can be used: %s", data, strerror(errno));
    }
    if (!made && !there_is(files->data, "lock") && !is_empty(files->data)) {
        return cli_fail(CLI_CONFIG, "%s is neither empty nor a data directory of pawl dev: name another one",
                        files->data);
    }
    return data_lock(files);
}

/* -- keys */

static int keys_make(const char *path)
{
    char line[TOKEN_KEY_LINE_SIZE];
    size_t len = token_keygen("dev", line, sizeof(line));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool whole = fd >= 0 && write(fd, line, len) == (ssize_t)len && fsync(fd) == 0;

    explicit_bzero(line, sizeof(line));
    if (fd >= 0) {
        close(fd);
    }
    return whole ? CLI_GO_ON : cli_fail(CLI_CONFIG, "%s cannot be written: %s", path, strerror(errno));
}

static int keys_open(struct cluster_files *files)
{
    if (!join(files->keys, files->data, "keys")) {
        return cli_fail(CLI_CONFIG, "the path of --data is too long");
    }
    if (there_is(files->data, "keys")) {
        return CLI_GO_ON;
    }
    if (files->store_made) {
        cli_fail(CLI_CONFIG, "%s is gone: no token that was signed with it could be verified", files->keys);
        cli_hint("Put it back, or begin anew in an empty directory.");
        return CLI_CONFIG;
    }
    return keys_make(files->keys);
}

int cluster_files_open(struct cluster_files *files, const char *data)
{
    int status;

    memset(files, 0, sizeof(*files));
    files->lock_fd = -1;
    status = run_open(files);
    if (status == CLI_GO_ON && data != NULL) {
        status = data_open(files, data);
    } else if (status == CLI_GO_ON) {
        memcpy(files->data, files->run, sizeof(files->data));
    }
    if (status != CLI_GO_ON) {
        return status;
    }
    if (!join(files->state_lease, files->data, "state-lease") ||
        !join(files->state_gateway, files->data, "state-gateway")) {
        return cli_fail(CLI_CONFIG, "the path of --data is too long");
    }
    files->store_made = there_is(files->data, "store-made");
    return keys_open(files);
}

int cluster_files_note_store(struct cluster_files *files)
{
    char path[CHILD_PATH_SIZE];
    int fd = join(path, files->data, "store-made") ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd < 0 || fsync(fd) != 0) {
        return cli_fail(CLI_CONFIG, "%s cannot be written: %s", path, strerror(errno));
    }
    close(fd);
    files->store_made = true;
    return CLI_GO_ON;
}

/* -- the end */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

void cluster_files_close(struct cluster_files *files)
{
    if (files->run[0] != '\0') {
        nftw(files->run, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        files->run[0] = '\0';
    }
    if (files->lock_fd >= 0) {
        close(files->lock_fd);
        files->lock_fd = -1;
    }
}

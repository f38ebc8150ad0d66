/* state_dir_path.c - where the state directory of a process is, and making it so that it lasts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/member/state_dir.h"
#include "shared/text/bytes.h"

/* -- where it is */

static const char *path_join(struct bytes dir, const char *below, char out[STATE_PATH_MAX])
{
    while (dir.len > 1 && dir.at[dir.len - 1] == '/')
        dir.len--;
    if (dir.len + strlen(below) >= STATE_PATH_MAX)
        return "its path is longer than 1,023 bytes";
    snprintf(out, STATE_PATH_MAX, "%.*s%s", (int)dir.len, dir.at, below);
    return NULL;
}

const char *state_dir_path(const char *path, char out[STATE_PATH_MAX])
{
    struct bytes given = bytes_of(path), list = bytes_of(getenv("STATE_DIRECTORY"));
    struct bytes state = bytes_of(getenv("XDG_STATE_HOME")), home = bytes_of(getenv("HOME"));

    if (given.len > 0)
        return path_join(given, "", out);
    if (list.len > 0) {
        list.len = strcspn(list.at, ":");
        return list.at[0] == '/' ? path_join(list, "", out)
                                 : "the path in $STATE_DIRECTORY does not begin with a slash";
    }
    if (state.len > 0 && state.at[0] == '/')
        return path_join(state, "/pawl", out);
    if (home.len > 0 && home.at[0] == '/')
        return path_join(home, "/.local/state/pawl", out);
    return "none is given, and neither $STATE_DIRECTORY nor $XDG_STATE_HOME nor $HOME says where it is by "
           "default";
}

/* -- making it */

static bool dir_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return synced;
}

/* One that is there is good: whether it is a directory, who goes on below it sees. */
static bool dir_make(const char *path, mode_t mode)
{
    char parent[STATE_PATH_MAX + sizeof("/..")];

    if (mkdir(path, mode) != 0)
        return errno == EEXIST;
    snprintf(parent, sizeof(parent), "%s/..", path); /* what is new is no link: its .. is its parent */
    return dir_sync(parent);
}

bool state_dir_make(const char *path)
{
    char part[STATE_PATH_MAX];

    snprintf(part, sizeof(part), "%s", path);
    for (char *at = part + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (!dir_make(part, 0755))
            return false;
        *at = '/';
    }
    return dir_make(part, 0700);
}

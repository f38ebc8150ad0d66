/* test_forward_body.c - the file of a long body has no name: a gateway that is killed leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gateway/forward/forward_internal.h"
#include "tests/unit/check.h"

/* The program's own openat(): of a file system that may have no files without a name. */
static struct {
    int no_tmpfile; /* errno; 0: it has them */
    unsigned named;
} opens;

int openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE && opens.no_tmpfile != 0) {
        errno = opens.no_tmpfile;
        return -1;
    }
    opens.named += (flags & O_CREAT) != 0;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

TEST(the_file_of_a_body_has_no_name)
{
    static const struct {
        int no_tmpfile;
        unsigned named;
        bool opens;
    } cases[] = {{0, 0, true}, {EOPNOTSUPP, 1, true}, {EISDIR, 1, true}, {ENOSPC, 0, false}};
    const char *tmp = getenv("TMPDIR");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[1024];
        int folder, fd;

        snprintf(path, sizeof(path), "%s/pawl-body-XXXXXX", tmp != NULL ? tmp : "/tmp");
        folder = open(mkdtemp(path), O_RDONLY | O_DIRECTORY);
        opens.no_tmpfile = cases[i].no_tmpfile;
        opens.named = 0;
        fd = forward_body_file(folder, "w0.1");
        CHECK_INT(opens.named, cases[i].named);
        CHECK_INT(rmdir(path), 0); /* nothing is in it */
        CHECK(fd >= 0 ? cases[i].opens && pwrite(fd, "x", 1, 0) == 1 && close(fd) == 0 : !cases[i].opens);
        close(folder);
    }
}

CHECK_MAIN

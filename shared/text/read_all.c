/* read_all.c - a file from where it stands to its end, or by its name; all of a text; standard streams. */
#include "shared/text/read_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is written to it is waited for, as by who does not say O_NONBLOCK. */
int open_to_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0)
        fcntl(fd, F_SETFL, O_RDONLY);
    return fd;
}

ssize_t read_all(int fd, char *at, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, at + len, size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

ssize_t read_all_of(const char *path, char *at, size_t size, mode_t *mode)
{
    int fd = open_to_read(path), error;
    struct stat file = {0};
    ssize_t got = fd >= 0 && fstat(fd, &file) == 0 ? read_all(fd, at, size) : -1;

    error = errno;
    if (fd >= 0)
        close(fd);
    *mode = file.st_mode;
    errno = error;
    return got;
}

bool write_all(int fd, struct bytes text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.at, text.len);

        if (n < 0 && errno != EINTR)
            return false;
        text.at += n > 0 ? n : 0;
        text.len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* What is written there fails, and so does what is read of the first, as if it were closed. */
void standard_streams_fill(void)
{
    int fd;

    do
        fd = open("/dev/null", (fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

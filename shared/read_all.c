/* read_all.c - a file from where it stands to its end. */
#include "shared/read_all.h"

#include <errno.h>
#include <unistd.h>

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

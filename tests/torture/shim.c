/* shim.c - a wrong clock and a failing disk, put in front of libc by LD_PRELOAD; shim.h says what it is
 * told.
 *
 * The clocks go straight to the kernel: redis-server's allocator reads CLOCK_MONOTONIC while it sets itself
 * up, and whatever asks the dynamic linker there (dlsym, which allocates) waits for itself for ever.
 * libfaketime does. The rest goes on to whoever comes next, which is a sanitizer's own version where there is
 * one. */
#undef _FILE_OFFSET_BITS /* both names are ours: open and open64 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "api/cli/demo/shim.h"

enum { SECOND_NS = 1000000000, SHORT_WRITE_MIN = 16 };

/* A library that is preloaded is handed nothing: what it knows must outlive its calls. Both are set before
 * main(). */
static struct shim_page *page;
static const char *below;

__attribute__((constructor)) static void shim_open(void)
{
    const char *file = getenv(SHIM_FILE_VARIABLE);
    int fd = file != NULL ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC) : -1;
    void *at;

    below = getenv(SHIM_BELOW_VARIABLE);
    if (file == NULL)
        return;
    at = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || at == MAP_FAILED) {
        fprintf(stderr, "shim: %s cannot be mapped: %s\n", file, strerror(errno));
        _exit(127); /* a drill without its accident would pass */
    }
    close(fd);
    page = at;
    atomic_fetch_add(&page->loaded, 1);
}

/* -- the clock */

static void shift(struct timespec *at)
{
    int64_t ns = page != NULL ? atomic_load(&page->clock_ns) : 0;

    if (ns == 0)
        return;
    atomic_fetch_add(&page->clock_reads, 1);
    at->tv_sec += ns / SECOND_NS;
    at->tv_nsec += ns % SECOND_NS;
    if (at->tv_nsec < 0) {
        at->tv_nsec += SECOND_NS;
        at->tv_sec--;
    } else if (at->tv_nsec >= SECOND_NS) {
        at->tv_nsec -= SECOND_NS;
        at->tv_sec++;
    }
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int status = (int)syscall(SYS_clock_gettime, clock, at);

    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(at);
    return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now = {0};

    (void)zone; /* obsolete (gettimeofday(2)) */
    clock_gettime(CLOCK_REALTIME, &now);
    *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}

/* -- which files */

static bool is_below(const char *path)
{
    size_t len = strlen(below);

    return strncmp(path, below, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool fd_is_below(int fd, const char *name)
{
    char link[64], path[PATH_MAX + NAME_MAX + 2];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, PATH_MAX);
    if (len <= 0)
        return false;
    snprintf(path + len, sizeof(path) - (size_t)len, "%s%s", *name != '\0' ? "/" : "", name);
    return is_below(path);
}

static bool path_is_below(int dir_fd, const char *path)
{
    char cwd[PATH_MAX], whole[2 * PATH_MAX + 2];

    if (*path == '/')
        return is_below(path);
    if (dir_fd != AT_FDCWD)
        return fd_is_below(dir_fd, path);
    snprintf(whole, sizeof(whole), "%s/%s", getcwd(cwd, sizeof(cwd)) != NULL ? cwd : "", path);
    return is_below(whole);
}

static bool is_on(enum shim_fault fault)
{
    return page != NULL && below != NULL && (atomic_load(&page->fault) & fault) != 0;
}

/* Sets a pointer to a function to what comes after us. dlsym gives an object's pointer, which C does not
 * convert. */
static void find(void *function, const char *name)
{
    void *at = dlsym(RTLD_NEXT, name);

    memcpy(function, &at, sizeof(at));
}

static int fail(int error)
{
    atomic_fetch_add(&page->failed, 1);
    errno = error;
    return -1;
}

/* -- the disk is full */

static bool is_full(int fd)
{
    int error = errno;
    bool full = is_on(SHIM_FULL) && fd_is_below(fd, "");

    errno = error;
    return full;
}

ssize_t write(int fd, const void *buf, size_t len)
{
    ssize_t (*next)(int, const void *, size_t);

    find(&next, "write");
    if (is_full(fd))
        return len > SHORT_WRITE_MIN ? next(fd, buf, len / 2) : fail(ENOSPC);
    return next(fd, buf, len);
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
    ssize_t (*next)(int, const void *, size_t, off_t);

    find(&next, "pwrite");
    return is_full(fd) ? fail(ENOSPC) : next(fd, buf, len, at);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t at) __attribute__((alias("pwrite")));

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t (*next)(int, const struct iovec *, int);

    find(&next, "writev");
    return is_full(fd) ? fail(ENOSPC) : next(fd, parts, count);
}

/* -- it is read-only */

static bool is_read_only(int dir_fd, const char *path)
{
    int error = errno;
    bool read_only = is_on(SHIM_READ_ONLY) && path_is_below(dir_fd, path);

    errno = error;
    return read_only;
}

static int open_next(int dir_fd, const char *path, int flags, mode_t mode)
{
    int (*next)(int, const char *, int, ...);

    find(&next, "openat");
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0 && is_read_only(dir_fd, path))
        return fail(EROFS);
    return next(dir_fd, path, flags, mode);
}

/* The mode is there only with these flags (open(2)). */
static mode_t mode_of(int flags, va_list *args)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(*args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, &args);
    va_end(args);
    return open_next(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int openat(int dir_fd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, &args);
    va_end(args);
    return open_next(dir_fd, path, flags, mode);
}

int openat64(int dir_fd, const char *path, int flags, ...) __attribute__((alias("openat")));

/* What open() becomes with _FORTIFY_SOURCE when no mode is given. */
int __open_2(const char *path, int flags);
int __openat_2(int dir_fd, const char *path, int flags);

int __open_2(const char *path, int flags)
{
    return open_next(AT_FDCWD, path, flags, 0);
}

int __openat_2(int dir_fd, const char *path, int flags)
{
    return open_next(dir_fd, path, flags, 0);
}

int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));
int __openat64_2(int dir_fd, const char *path, int flags) __attribute__((alias("__openat_2")));

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    int (*next)(int, const char *, int, const char *);

    find(&next, "renameat");
    return is_read_only(to_fd, to) || is_read_only(from_fd, from) ? fail(EROFS)
                                                                  : next(from_fd, from, to_fd, to);
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* -- it does not take what it was given */

static bool does_not_sync(int fd)
{
    int error = errno;
    bool fails = is_on(SHIM_NO_SYNC) && fd_is_below(fd, "");

    errno = error;
    return fails;
}

int fsync(int fd)
{
    int (*next)(int);

    find(&next, "fsync");
    return does_not_sync(fd) ? fail(EIO) : next(fd);
}

int fdatasync(int fd)
{
    int (*next)(int);

    find(&next, "fdatasync");
    return does_not_sync(fd) ? fail(EIO) : next(fd);
}

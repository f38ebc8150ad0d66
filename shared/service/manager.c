/* manager.c - a daemon and the service manager: the listening sockets that are passed, as sd_listen_fds(3)
 * describes the protocol, and states, as sd_notify(3) does.
 *
 * $LISTEN_PID must be this process: the variables are inherited by child processes, the sockets
 * are not (they get FD_CLOEXEC). The sockets are numbered from 3 up. */
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/loop/loop.h"
#include "shared/service/service.h"

enum { FIRST_FD = 3, NUMBER_DIGITS_MAX = 9, NAME_MAX_SHOWN = 64 };

/* How many sockets are for this process; -1: the variables contradict themselves. */
static int given_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");

    if (pid == NULL || count == NULL || bytes_number(bytes_of(pid), NUMBER_DIGITS_MAX) != (int64_t)getpid())
        return 0;
    int64_t number = bytes_number(bytes_of(count), NUMBER_DIGITS_MAX);
    return number < 0 || number > SERVICE_THREADS_MAX ? -1 : (int)number;
}

/* The name that the unit gave the i-th socket, for a sentence. */
static void given_name(unsigned i, char name[NAME_MAX_SHOWN])
{
    struct bytes left = bytes_of(getenv("LISTEN_FDNAMES")), one = bytes_cut(&left, ':');

    for (; i > 0; i--)
        one = bytes_cut(&left, ':');
    snprintf(name, NAME_MAX_SHOWN, "%.*s", (int)(one.len < NAME_MAX_SHOWN ? one.len : NAME_MAX_SHOWN - 1),
             one.len > 0 ? one.at : "");
    for (char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = '?';
}

static int refuse(const struct service *service, unsigned i, const char *why)
{
    char name[NAME_MAX_SHOWN];

    given_name(i, name);
    return service_fail(service, "the socket that was passed as descriptor %u (%s) cannot be used: %s",
                        i + FIRST_FD, name[0] != '\0' ? name : "without a name", why);
}

/* Checks them all before any is used: a listener that is reachable from elsewhere is refused like --listen.
 */
static int sockets_check(struct service *service, unsigned count)
{
    const char *why = NULL;

    for (unsigned i = 0; i < count; i++) {
        char address[HTTP_LISTEN_SIZE], wrong[512];

        if (!http_listen_given((int)i + FIRST_FD, address, &service->listen_port, &why))
            return refuse(service, i, why);
        why = service_listen_wrong(&service->settings, address);
        if (why != NULL) {
            snprintf(wrong, sizeof(wrong), "%s %s", address, why);
            return refuse(service, i, wrong);
        }
        snprintf(service->listen_given, sizeof(service->listen_given), "%s", address);
    }
    return -1;
}

int activation_take(struct service *service)
{
    int count = given_count();
    unsigned threads = service->settings.threads;

    if (count <= 0)
        return count == 0 ? ACTIVATION_NONE : refuse(service, 0, "LISTEN_FDS is not a number of sockets");
    if ((unsigned)count > threads)
        return refuse(service, threads, "there are more sockets than --threads, and nobody would serve it");
    int status = sockets_check(service, (unsigned)count);
    for (unsigned i = 0; status < 0 && i < threads; i++) {
        int fd = FIRST_FD + (int)(i % (unsigned)count);

        /* Threads beyond the sockets share them: each closes its own descriptor in the end. */
        service->workers[i].listen_fd = i < (unsigned)count ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
        if (service->workers[i].listen_fd < 0)
            return refuse(service, i % (unsigned)count, "too many open files");
    }
    return status;
}

/* == states */

/* A second for what is sent once; nothing for what is sent again and again. */
enum patience { PATIENT, IN_A_HURRY };

/* Whether it is there to be read. A manager that listens and does not read must not stop us (unix(7): a full
 * queue blocks); one who does not listen is no fault of ours either. */
static bool state_send(const char *state, enum patience patience)
{
    static const struct timeval second = {.tv_sec = 1};
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path != NULL ? strlen(path) : 0;

    bool sent = false;

    if (len == 0 || len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return true;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
        sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | (patience == IN_A_HURRY ? MSG_DONTWAIT : 0),
                      (struct sockaddr *)&address, size) >= 0;
        close(fd);
    }
    return sent;
}

void notify_send(const char *state)
{
    (void)state_send(state, PATIENT);
}

/* The monotonic time says which of several reloads is meant. */
void notify_reloading(void)
{
    char state[64];

    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now_us());
    notify_send(state);
}

struct notify_watchdog notify_watchdog_read(void)
{
    const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    struct notify_watchdog watchdog = {.told_us = loop_now_us()};

    if (interval != NULL && (pid == NULL || strtoll(pid, NULL, 10) == (long long)getpid()))
        watchdog.interval_us = strtoull(interval, NULL, 10);
    return watchdog;
}

/* A third, as the asker looks every 100 ms only. */
bool notify_watchdog_due(const struct notify_watchdog *watchdog)
{
    return watchdog->interval_us > 0 && loop_now_us() - watchdog->told_us >= watchdog->interval_us / 3;
}

void notify_watchdog_tell(struct notify_watchdog *watchdog)
{
    if (state_send("WATCHDOG=1", IN_A_HURRY))
        watchdog->told_us = loop_now_us();
}

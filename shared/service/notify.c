/* notify.c - tells the service manager, as sd_notify(3) describes the protocol. */
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

/* A second for what is told once; nothing for what is told again and again. */
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

    if (len == 0 || len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) {
        return true;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* the abstract namespace */
    }
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

/* The monotonic time tells the manager which of several reloads is meant. */
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

    if (interval != NULL && (pid == NULL || strtoll(pid, NULL, 10) == (long long)getpid())) {
        watchdog.interval_us = strtoull(interval, NULL, 10);
    }
    return watchdog;
}

/* A third, as the asker looks every 100 ms only. */
bool notify_watchdog_due(const struct notify_watchdog *watchdog)
{
    return watchdog->interval_us > 0 && loop_now_us() - watchdog->told_us >= watchdog->interval_us / 3;
}

void notify_watchdog_tell(struct notify_watchdog *watchdog)
{
    if (state_send("WATCHDOG=1", IN_A_HURRY)) {
        watchdog->told_us = loop_now_us();
    }
}

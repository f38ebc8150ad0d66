/* activation.c - takes over the listening sockets of the service manager, as sd_listen_fds(3) describes the
 * protocol.
 *
 * $LISTEN_PID must be this process: the variables are inherited by whoever is started from here, the sockets
 * are not (they get FD_CLOEXEC). The sockets are numbered from 3 up. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/service/service.h"
#include "shared/text/ascii.h"

enum { FIRST_FD = 3, NUMBER_DIGITS_MAX = 9, NAME_MAX_SHOWN = 64 };

/* A decimal number as the service manager writes it; -1: it is none. */
static long number_read(const char *text)
{
    long number = 0;
    size_t len = strlen(text);

    if (len == 0 || len > NUMBER_DIGITS_MAX) {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_digit(text[i])) {
            return -1;
        }
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* How many sockets are for this process; -1: the variables contradict themselves. */
static int given_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");

    if (pid == NULL || count == NULL || number_read(pid) != (long)getpid()) {
        return 0;
    }
    long number = number_read(count);
    return number < 0 || number > SERVICE_THREADS_MAX ? -1 : (int)number;
}

/* The name that the unit gave the i-th socket, for a sentence. */
static void given_name(unsigned i, char name[NAME_MAX_SHOWN])
{
    const char *names = getenv("LISTEN_FDNAMES");

    for (; names != NULL && i > 0; i--) {
        names = strchr(names, ':');
        names = names != NULL ? names + 1 : NULL;
    }
    size_t len = names != NULL ? strcspn(names, ":") : 0;
    snprintf(name, NAME_MAX_SHOWN, "%.*s", (int)(len < NAME_MAX_SHOWN ? len : NAME_MAX_SHOWN - 1),
             len > 0 ? names : "");
    for (char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) {
            *at = '?';
        }
    }
}

static int refuse(const struct service *service, unsigned i, const char *why)
{
    char name[NAME_MAX_SHOWN];

    given_name(i, name);
    fprintf(stderr, "%s: the socket that was passed as descriptor %u (%s) cannot be used: %s\n",
            service->plan->name, i + FIRST_FD, name[0] != '\0' ? name : "without a name", why);
    return SERVICE_CONFIG;
}

/* Checks them all before any is used: a listener that is reachable from elsewhere is refused like --listen.
 */
static int sockets_check(struct service *service, unsigned count)
{
    const char *why = NULL;

    for (unsigned i = 0; i < count; i++) {
        char address[HTTP_LISTEN_SIZE];

        if (!http_listen_given((int)i + FIRST_FD, address, &service->listen_port, &why)) {
            return refuse(service, i, why);
        }
        if (!service->settings.allow_anonymous && !http_address_is_loopback(address)) {
            return refuse(service, i,
                          "it is not on a loopback address, and callers cannot authenticate yet: "
                          "ListenStream=127.0.0.1:PORT, or --allow-anonymous");
        }
        snprintf(service->listen_given, sizeof(service->listen_given), "%s", address);
    }
    return -1;
}

int activation_take(struct service *service)
{
    int count = given_count();
    unsigned threads = service->settings.threads;

    if (count <= 0) {
        return count == 0 ? ACTIVATION_NONE : refuse(service, 0, "LISTEN_FDS is not a number of sockets");
    }
    if ((unsigned)count > threads) {
        return refuse(service, threads, "there are more sockets than --threads, and nobody would serve it");
    }
    int status = sockets_check(service, (unsigned)count);
    for (unsigned i = 0; status < 0 && i < threads; i++) {
        int fd = FIRST_FD + (int)(i % (unsigned)count);

        /* Threads beyond the sockets share them: each closes its own descriptor in the end. */
        service->workers[i].listen_fd = i < (unsigned)count ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
        if (service->workers[i].listen_fd < 0) {
            return refuse(service, i % (unsigned)count, "too many open files");
        }
    }
    return status;
}

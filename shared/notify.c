/* notify.c - tells the service manager, as sd_notify(3) describes the protocol. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/service.h"

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path != NULL ? strlen(path) : 0;

    if (len == 0 || len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* the abstract namespace */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        /* Nobody who listens is no fault of ours: the service runs all the same. */
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
        close(fd);
    }
}

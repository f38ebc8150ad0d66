/* worker_plain.c - the resource that nothing protects: a file, or a value in a Redis. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/demo/redis_ask.h"
#include "api/cli/demo/worker.h"

/* A write may be kept back by the relay for as long as the demo wants. */
enum { ASK_MS = 60000 };

bool worker_ask(const char *address, const char *const *words, char reply[WORKER_REPLY_SIZE])
{
    const struct redis_ask ask = {.address = address, .words = words, .timeout_ms = ASK_MS};

    return redis_ask(&ask, reply, WORKER_REPLY_SIZE) == REDIS_ASK_SAID;
}

static void file_write(const struct worker *worker, const char *text)
{
    int fd = open(worker->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) {
        close(fd);
    }
    if (written) {
        worker_say("written", 0, "-");
    } else {
        worker_say("failed", 0, "write: %s", strerror(errno));
    }
}

static void file_read(const struct worker *worker)
{
    char text[WORKER_LINE_SIZE];
    int fd = open(worker->file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

    if (fd >= 0) {
        close(fd);
    }
    if (len >= 0) {
        worker_say("reads", 0, "%.*s", (int)len, text);
    } else {
        worker_say("failed", 0, "read: %s", strerror(errno));
    }
}

void worker_plain_write(const struct worker *worker, const char *text)
{
    const char *const words[] = {"SET", "resource", text, NULL};
    char reply[WORKER_REPLY_SIZE];

    if (worker->store == NULL) {
        file_write(worker, text);
    } else if (worker_ask(worker->store, words, reply)) {
        worker_say("written", 0, "-");
    } else {
        worker_say("failed", 0, "write: %s", reply);
    }
}

void worker_plain_read(const struct worker *worker)
{
    const char *const words[] = {"GET", "resource", NULL};
    char reply[WORKER_REPLY_SIZE];

    if (worker->store == NULL) {
        file_read(worker);
    } else if (worker_ask(worker->store, words, reply)) {
        worker_say("reads", 0, "%s", reply);
    } else {
        worker_say("failed", 0, "read: %s", reply);
    }
}

/* example.c - pawl dev --example: an HTTP service that knows nothing of tokens. It keeps what is PUT under a
 * path and gives it to a GET: one request a connection, one after the other. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/cluster.h"
#include "api/client/http_client.h"
#include "shared/http/http_server.h"

enum { BODY_MAX = 65536, LINE_SIZE = 8192, PATH_MAX_BYTES = 128, KEPT_MAX = 100, PATIENCE_S = 5 };

struct kept {
    char path[PATH_MAX_BYTES];
    char *body; /* NULL: none */
    size_t len;
};

struct example {
    int listen_fd;
    struct kept kept[KEPT_MAX];
};

/* A request's line, and its body; false: it did not come whole, or is too long. */
static bool request_read(FILE *in, char line[LINE_SIZE], char body[BODY_MAX], size_t *len)
{
    static const char length[] = "content-length:";
    char field[LINE_SIZE];

    *len = 0;
    if (fgets(line, LINE_SIZE, in) == NULL)
        return false;
    do {
        if (fgets(field, sizeof(field), in) == NULL)
            return false;
        if (strncasecmp(field, length, sizeof(length) - 1) == 0)
            *len = strtoul(field + sizeof(length) - 1, NULL, 10);
    } while (strcmp(field, "\r\n") != 0);
    return *len <= BODY_MAX && fread(body, 1, *len, in) == *len;
}

/* Its own, or an empty place; NULL: there is none. */
static struct kept *kept_find(struct example *example, const char *path)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (example->kept[i].body == NULL || strcmp(example->kept[i].path, path) == 0)
            return &example->kept[i];
    return NULL;
}

static void answer(int fd, const char *status, struct bytes body)
{
    dprintf(fd, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status, body.len);
    (void)!write(fd, body.at, body.len);
}

static void serve(struct example *example, FILE *in)
{
    char line[LINE_SIZE], body[BODY_MAX], path[PATH_MAX_BYTES];
    struct bytes rest, method;
    struct kept *kept;
    size_t len;

    if (!request_read(in, line, body, &len))
        return;
    rest = bytes_of(line);
    method = bytes_cut(&rest, ' ');
    rest = bytes_cut(&rest, ' ');
    snprintf(path, sizeof(path), "%.*s", (int)rest.len, rest.at);
    kept = rest.len < sizeof(path) ? kept_find(example, path) : NULL;
    if (bytes_are(method, "PUT") && kept != NULL) {
        snprintf(kept->path, sizeof(kept->path), "%s", path);
        kept->body = cli_realloc(kept->body, len);
        memcpy(kept->body, body, len);
        kept->len = len;
        answer(fileno(in), "200 OK", BYTES("written"));
    } else if (bytes_are(method, "GET") && kept != NULL && kept->body != NULL) {
        answer(fileno(in), "200 OK", (struct bytes){kept->body, kept->len});
    } else {
        answer(fileno(in), "404 Not Found", BYTES("there is nothing here\n"));
    }
}

static void *example_run(void *user)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct example *example = user;

    for (;;) {
        int fd = accept4(example->listen_fd, NULL, NULL, SOCK_CLOEXEC);

        FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;

        if (in != NULL) {
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
            serve(example, in);
            fclose(in);
        }
    }
    return NULL;
}

int example_start(char url[CLUSTER_URL_SIZE])
{
    struct example *example = cli_alloc(sizeof(*example));
    const char *why;
    pthread_t thread;
    unsigned port;
    int error;

    memset(example, 0, sizeof(*example));
    example->listen_fd = http_listen("127.0.0.1:0", &port, &why);
    if (example->listen_fd < 0) {
        free(example);
        return cli_fail(CLI_CONFIG, "the example cannot listen on 127.0.0.1: %s", why);
    }
    fcntl(example->listen_fd, F_SETFL, 0); /* it waits in accept4() */
    snprintf(url, CLUSTER_URL_SIZE, "http://127.0.0.1:%u", port);
    error = client_thread_start(&thread, example_run, example);
    return error == 0 ? CLI_GO_ON
                      : cli_fail(CLI_CONFIG, "the example cannot be started: %s", strerror(error));
}

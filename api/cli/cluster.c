/* cluster.c - a private redis-server, a lease service and a gateway, as children of this process; and what
 * they have on disk.
 *
 * A data directory has: lock (one pawl dev at a time), keys (and keys.new, while they are written),
 * store-made (the store was made here; if Redis then comes up empty, its content was lost, and another one
 * must not take its place silently), appendonlydir and redis.sock (Redis), state-lease and state-gateway (the
 * services' state directories), routes.json. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/cluster.h"
#include "api/cli/demo/redis.h"
#include "api/cli/print.h"
#include "api/cli/request.h"
#include "shared/http/http_server.h"
#include "shared/text/ascii.h"
#include "shared/token/token.h"

enum {
    START_MS = 15000, /* for each of the three to be there */
    LOAD_MS = 60000,  /* for Redis to have read its file */
    READY_REQUEST_MS = 3000,
    LOOK_AGAIN_MS = 20,
    END_MS = 8000, /* the services promise 5 s */
    OPEN_DIRECTORIES = 16,
    WORDS_MAX = 32, /* of a command line */
    QUORUM_MAX = 7,
    NAME_SIZE = 32 /* of what is in a directory of ours */
};

#define LISTENING "listening on http://"
#define PAGES "web pages on "

/* There is room: data_open() and run_open() have seen to that. */
static void join(char path[CHILD_PATH_SIZE], const char *directory, const char *name)
{
    snprintf(path, CHILD_PATH_SIZE, "%.*s/%s", CHILD_PATH_SIZE - NAME_SIZE, directory, name);
}

static bool there_is(const char *directory, const char *name)
{
    char path[CHILD_PATH_SIZE];

    join(path, directory, name);
    return access(path, F_OK) == 0;
}

/* -- the temporary directory */

/* The address of a Unix socket is short (unix(7)). */
static bool fits_socket(const char *directory, const char *more)
{
    return strlen(directory) + strlen(more) < sizeof(((struct sockaddr_un *)0)->sun_path);
}

static int run_open(struct cluster_files *files)
{
    const char *base = getenv("TMPDIR");

    if (base == NULL || *base != '/' || !fits_socket(base, "/pawl-XXXXXX/redis.sock"))
        base = "/tmp";
    join(files->run, base, "pawl-XXXXXX");
    if (mkdtemp(files->run) == NULL) {
        int error = errno;

        files->run[0] = '\0';
        return cli_fail(CLI_CONFIG, "no temporary directory can be made in %s: %s", base, strerror(error));
    }
    return CLI_GO_ON;
}

/* Of a socket, whose path is short: in a URL some characters mean something else. */
static void url_of_socket(char url[CHILD_PATH_SIZE], const char *path)
{
    size_t len = (size_t)snprintf(url, CHILD_PATH_SIZE, "unix://");

    len += ascii_percent_encode(url + len, bytes_of(path), '/');
    url[len] = '\0';
}

/* -- the data directory */

static bool is_empty(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    unsigned count = 0;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory != NULL)
        closedir(directory);
    return directory != NULL && count == 0;
}

static int data_open(struct cluster_files *files, const char *data)
{
    bool made = mkdir(data, 0700) == 0;
    char path[CHILD_PATH_SIZE];

    if (!made && errno != EEXIST)
        return cli_fail(CLI_CONFIG, "the directory %s cannot be made: %s", data, strerror(errno));
    if (strlen(data) >= CHILD_PATH_SIZE || realpath(data, files->data) == NULL)
        return cli_fail(CLI_CONFIG, "%s is not a directory that can be used: %s", data, strerror(errno));
    if (strlen(files->data) + NAME_SIZE >= CHILD_PATH_SIZE)
        return cli_fail(CLI_CONFIG, "the path of --data is too long");
    if (!made && !there_is(files->data, "lock") && !is_empty(files->data)) {
        return cli_fail(CLI_CONFIG, "%s is neither empty nor a data directory of pawl dev: name another one",
                        files->data);
    }
    join(path, files->data, "lock");
    files->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (files->lock_fd < 0)
        return cli_fail(CLI_CONFIG, "%s cannot be written: %s", path, strerror(errno));
    if (flock(files->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        return cli_fail(CLI_CONFIG, "another pawl dev is using %s: stop it, or name another directory",
                        files->data);
    }
    return CLI_GO_ON;
}

/* -- keys */

/* Half a file would be no key file the next time, either. */
static int keys_make(const struct cluster_files *files)
{
    char line[TOKEN_KEY_LINE_SIZE], fresh[CHILD_PATH_SIZE];
    size_t len = token_keygen("dev", line, sizeof(line));
    int status;

    join(fresh, files->data, "keys.new");
    unlink(fresh); /* of one that was killed */
    status = cli_write_secret(fresh, "key", (struct bytes){line, len}, "");
    explicit_bzero(line, sizeof(line));
    if (status != CLI_GO_ON)
        return CLI_CONFIG;
    return rename(fresh, files->keys) == 0
               ? CLI_GO_ON
               : cli_fail(CLI_CONFIG, "%s cannot be made: %s", files->keys, strerror(errno));
}

static int files_open(struct cluster_files *files, const char *data)
{
    int status;

    memset(files, 0, sizeof(*files));
    files->lock_fd = -1;
    status = data != NULL ? data_open(files, data) : CLI_GO_ON;
    if (status == CLI_GO_ON && (data == NULL || !fits_socket(files->data, "/redis.sock")))
        status = run_open(files);
    if (status != CLI_GO_ON)
        return status;
    if (data == NULL)
        memcpy(files->data, files->run, sizeof(files->data));
    join(files->socket, files->run[0] != '\0' ? files->run : files->data, "redis.sock");
    url_of_socket(files->url, files->socket);
    join(files->state_lease, files->data, "state-lease");
    join(files->state_gateway, files->data, "state-gateway");
    files->store_made = there_is(files->data, "store-made");
    join(files->keys, files->data, "keys");
    if (there_is(files->data, "keys"))
        return CLI_GO_ON;
    if (files->store_made)
        return cli_refuse(CLI_CONFIG, "Put it back, or begin anew in an empty directory.",
                          "%s is gone: no token that was signed with it could be verified", files->keys);
    return keys_make(files);
}

static int routes_open(struct cluster_files *files, const struct cluster_plan *plan)
{
    FILE *out;

    if (plan->routes != NULL) {
        return realpath(plan->routes, files->routes) != NULL
                   ? CLI_GO_ON
                   : cli_fail(CLI_CONFIG, "the routes in %s cannot be read: %s", plan->routes,
                              strerror(errno));
    }
    if (plan->routes_text == NULL)
        return CLI_GO_ON;
    join(files->routes, files->data, "routes.json");
    out = fopen(files->routes, "we");
    if (out == NULL || fputs(plan->routes_text, out) < 0 || fclose(out) != 0)
        return cli_fail(CLI_CONFIG, "%s cannot be written: %s", files->routes, strerror(errno));
    return CLI_GO_ON;
}

static int files_note_store(struct cluster_files *files)
{
    char path[CHILD_PATH_SIZE];
    int fd;

    join(path, files->data, "store-made");
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || fsync(fd) != 0)
        return cli_fail(CLI_CONFIG, "%s cannot be written: %s", path, strerror(errno));
    close(fd);
    files->store_made = true;
    return CLI_GO_ON;
}

/* -- the end */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

/* -- whether one could listen at an address: two services of ours on one port would not notice each other */

static int address_check(const char *address, const char *flag)
{
    const char *why;

    errno = 0;
    if (http_address_is_free(address, &why))
        return CLI_GO_ON;
    if (errno == 0) /* nothing was tried */
        return cli_fail(CLI_CONFIG, "%s takes ADDR:PORT, like 127.0.0.1:8700 or [::1]:0, not \"%s\"", flag,
                        address);
    if (errno != EADDRINUSE)
        return cli_fail(CLI_CONFIG, "nobody can listen on %s: %s", address, strerror(errno));
    cli_fail(CLI_CONFIG, "%s is taken: another program listens there already", address);
    cli_hint("Stop it, or choose another port: %s 127.0.0.1:0 takes a free one.", flag);
    return CLI_CONFIG;
}

/* -- what happens */

static struct cluster_member *member_of(struct cluster *cluster, const struct child *child)
{
    struct cluster_member *members[] = {&cluster->redis,   &cluster->maker,  &cluster->lease,
                                        &cluster->gateway, &cluster->quorum, &cluster->marks};

    for (unsigned i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (child == &members[i]->child)
            return members[i];
    return NULL;
}

/* The url of a service is in the line by which it says that it listens. */
static void line_take(struct cluster *cluster, struct cluster_member *member)
{
    const char *line = cluster->watch.line;
    const char *listening = strstr(line, LISTENING), *pages = strstr(line, PAGES);

    snprintf(member->tail[member->said++ % CLUSTER_TAIL], CLUSTER_TAIL_BYTES, "%.*s", CLUSTER_TAIL_BYTES - 1,
             line);
    if (member == &cluster->redis || member == &cluster->maker)
        return; /* no service */
    if (pages != NULL && cluster->pages_url[0] == '\0')
        snprintf(cluster->pages_url, CLUSTER_URL_SIZE, "%s", pages + strlen(PAGES));
    else if (listening != NULL && *member->url == '\0') {
        listening += strlen("listening on ");
        snprintf(member->url, CLUSTER_URL_SIZE, "%.*s", (int)strcspn(listening, " \""), listening);
    } else if (cluster->line != NULL) {
        cluster->line(member->child.name, line);
    }
}

enum watch_event cluster_next(struct cluster *cluster, uint64_t deadline_ms)
{
    for (;;) {
        enum watch_event event = watch_next(&cluster->watch, deadline_ms);
        struct cluster_member *member = event == WATCH_LINE ? member_of(cluster, cluster->watch.child) : NULL;

        if (member == NULL)
            return event;
        line_take(cluster, member);
    }
}

bool cluster_tell_end(struct cluster *cluster)
{
    const struct child *child = cluster->watch.child;
    const struct cluster_member *member = member_of(cluster, child);
    char end[64];

    if (member == NULL)
        return false;
    child_describe_end(child, end, sizeof(end));
    cli_fail(CLI_BUG, "%s has ended by itself: %s", child->name, end);
    for (unsigned i = member->said > CLUSTER_TAIL ? member->said - CLUSTER_TAIL : 0; i < member->said; i++)
        cli_hint("%s", member->tail[i % CLUSTER_TAIL]);
    return true;
}

/* One turn of a wait for something that has no event of its own. CLI_GO_ON: look again. */
static int wait_a_little(struct cluster *cluster, uint64_t deadline_ms, const char *what)
{
    uint64_t now = loop_now_ms();

    if (now >= deadline_ms)
        return cli_fail(CLI_BUG, "%s in time", what);
    switch (cluster_next(cluster, now + LOOK_AGAIN_MS)) {
    case WATCH_SIGNAL: return CLI_OK;
    case WATCH_ENDED:
        cluster_tell_end(cluster);
        return WIFEXITED(cluster->watch.child->status) &&
                       WEXITSTATUS(cluster->watch.child->status) == CLI_CONFIG
                   ? CLI_CONFIG
                   : CLI_BUG;
    case WATCH_LINE:
    case WATCH_STOPPED:
    case WATCH_DEADLINE: return CLI_GO_ON;
    }
    abort();
}

/* Those up to a NULL; how many there are then. */
static unsigned words_add(const char *words[WORDS_MAX + 1], unsigned count, const char *const *more)
{
    for (; more != NULL && *more != NULL; more++) {
        assert(count < WORDS_MAX);
        words[count++] = *more;
    }
    return count;
}

int cluster_spawn(struct cluster *cluster, const struct cluster_process *process,
                  const char *const *arguments)
{
    char program[CHILD_PATH_SIZE];
    const char *words[WORDS_MAX + 1] = {program};
    unsigned count = 1;

    if (!child_find(process->program, program)) {
        cli_fail(CLI_CONFIG, "the program %s is neither beside pawl nor in PATH", process->program);
        cli_hint("Install the package: apt-get install %s.", process->program);
        return CLI_CONFIG;
    }
    if (process->socket != NULL) {
        count = words_add(words, count,
                          (const char *const[]){"--port", "0", "--unixsocket", process->socket,
                                                "--unixsocketperm", "600", "--dir", process->directory,
                                                "--save", "", "--daemonize", "no", "--appendonly",
                                                process->keeps, NULL});
    }
    if (process->socket != NULL && strcmp(process->keeps, "yes") == 0) {
        count = words_add(words, count,
                          (const char *const[]){"--appendfsync", "always", "--no-appendfsync-on-rewrite",
                                                "no", "--aof-load-truncated", "no", "--maxmemory-policy",
                                                "noeviction", NULL});
    }
    words_add(words, count, arguments);
    if (!child_start(process->child, process->name, process->streams, words, process->variables))
        return cli_fail(CLI_BUG, "%s cannot be started", process->name);
    watch_add(&cluster->watch, process->child);
    return CLI_GO_ON;
}

/* -- Redis */

static int cluster_redis(struct cluster *cluster, const char *const *variables)
{
    const struct cluster_files *files = &cluster->files;
    const struct cluster_process redis = {.child = &cluster->redis.child,
                                          .name = "redis",
                                          .program = "redis-server",
                                          .variables = variables,
                                          .socket = files->socket,
                                          .directory = files->data,
                                          .keeps = "yes"};
    uint64_t deadline_ms = loop_now_ms() + LOAD_MS;
    int status = cluster_spawn(cluster, &redis, NULL);

    while (status == CLI_GO_ON && !redis_ping(files->socket))
        status = wait_a_little(cluster, deadline_ms, "redis-server did not answer");
    return status;
}

/* -- the store, when there is none yet */

static int store_make(struct cluster *cluster, const char *const *arguments)
{
    const struct cluster_process process = {&cluster->maker.child, "pawl-lease --init-store", "pawl-lease",
                                            .streams = CHILD_LOGS};
    uint64_t deadline_ms = loop_now_ms() + START_MS;
    const struct child *maker = &cluster->maker.child;
    int status;

    status = cluster_spawn(cluster, &process, arguments);
    while (status == CLI_GO_ON && maker->pid != 0) {
        enum watch_event event = cluster_next(cluster, deadline_ms);

        if (event == WATCH_SIGNAL)
            return CLI_OK;
        if (event == WATCH_DEADLINE || (event == WATCH_ENDED && cluster->watch.child != maker)) {
            cluster_tell_end(cluster);
            return cli_fail(CLI_BUG, "the store could not be made");
        }
    }
    /* 1: there was one already; we were interrupted between making it and noting that. */
    if (status == CLI_GO_ON && (!WIFEXITED(maker->status) || WEXITSTATUS(maker->status) > 1)) {
        cluster_tell_end(cluster);
        return WIFEXITED(maker->status) ? WEXITSTATUS(maker->status) : CLI_BUG;
    }
    return status;
}

/* -- the services */

/* Where the pages of the other one are, as far as that is known before it runs; "": it is not. */
static void pages_of_other(const struct cluster *cluster, const struct cluster_plan *plan, bool is_lease,
                           char url[CLUSTER_URL_SIZE])
{
    const char *at = cluster->files.routes[0] != '\0' ? plan->listen_pages : plan->listen_gateway;
    bool is_known = at != NULL && strcmp(strrchr(at, ':'), ":0") != 0;

    url[0] = '\0';
    if (!is_lease)
        snprintf(url, CLUSTER_URL_SIZE, "%.150s/ui/", cluster->lease.url);
    else if (is_known)
        snprintf(url, CLUSTER_URL_SIZE, "http://%.140s/ui/", at);
}

static int service_start(struct cluster *cluster, struct cluster_member *member, const char *name,
                         const char *program, const char *const *words)
{
    const struct cluster_process process = {&member->child, name, program, .streams = CHILD_LOGS};
    uint64_t deadline_ms = loop_now_ms() + START_MS;
    int status = cluster_spawn(cluster, &process, words);

    while (status == CLI_GO_ON && *member->url == '\0')
        status = wait_a_little(cluster, deadline_ms, "a service did not say where it listens");
    return status;
}

static int cluster_service(struct cluster *cluster, struct cluster_member *member,
                           const struct cluster_plan *plan)
{
    const struct cluster_files *files = &cluster->files;
    bool is_lease = member == &cluster->lease;
    const char *listen = is_lease ? plan->listen_lease : plan->listen_gateway;
    const char *state = is_lease ? files->state_lease : files->state_gateway;
    bool has_routes = !is_lease && files->routes[0] != '\0';
    char other[CLUSTER_URL_SIZE];
    const char *words[WORDS_MAX + 1] = {NULL};
    unsigned count = words_add(words, 0,
                               (const char *const[]){"--listen", listen, "--redis", files->url, "--keys",
                                                     files->keys, "--log-format", "text", "--state-dir",
                                                     state, NULL});

    pages_of_other(cluster, plan, is_lease, other);
    count = words_add(words, count,
                      (const char *const[]){other[0] != '\0' ? "--ui-peer" : NULL, other, NULL});
    count = words_add(words, count,
                      (const char *const[]){has_routes ? "--routes" : NULL, files->routes, NULL});
    words_add(words, count,
              (const char *const[]){has_routes && plan->listen_pages != NULL ? "--ui-listen" : NULL,
                                    plan->listen_pages, NULL});
    return service_start(cluster, member, is_lease ? "lease" : "gateway",
                         is_lease ? "pawl-lease" : "pawl-gateway", words);
}

/* The file may have been changed since another start, and this is the only gateway of the store. What forbids
 * it has been said then, and is to be resolved at this gateway. */
static void adopt_routes(const char *url)
{
    struct request request = {
        .what = "routes adopt", .wants = REQUEST_JSON, .needs = "hash before", .http.method = "POST"};

    if (request_service(&request, REQUEST_GATEWAY, url, "/v1/routes/adopt") == CLI_GO_ON)
        request_send(&request);
    request_done(&request);
}

static int cluster_ready(struct cluster *cluster, const char *name, const char *url)
{
    char page[CLUSTER_URL_SIZE + 16], what[96];
    struct http_client_request request = {.method = "GET", .url = page, .timeout_ms = READY_REQUEST_MS};
    uint64_t deadline_ms = loop_now_ms() + START_MS;
    int status = CLI_GO_ON;

    snprintf(page, sizeof(page), "%s/readyz", url);
    snprintf(what, sizeof(what), "%s did not become ready", name);
    while (status == CLI_GO_ON) {
        struct http_client_answer answer;
        enum http_client_outcome outcome = http_client_send(&request, &answer);
        bool ready = outcome == HTTP_CLIENT_ANSWERED && answer.status == 200;
        bool lost = outcome == HTTP_CLIENT_ANSWERED && strstr(answer.body, "store-not-ours") != NULL;

        http_client_answer_done(&answer);
        if (ready)
            return CLI_GO_ON;
        if (lost) {
            return cli_fail(CLI_CONFIG,
                            "the content of the store in %s is lost: begin anew in an empty directory",
                            cluster->files.data);
        }
        status = wait_a_little(cluster, deadline_ms, what);
    }
    return status;
}

/* -- starting all of it */

int cluster_start(struct cluster *cluster, const struct cluster_plan *plan)
{
    int status;

    memset(cluster, 0, sizeof(*cluster));
    cluster->line = plan->line;
    cluster->files.lock_fd = -1;
    watch_open(&cluster->watch);
    status = address_check(plan->listen_lease, "--listen-lease");
    status = status == CLI_GO_ON ? address_check(plan->listen_gateway, "--listen-gateway") : status;
    status = status == CLI_GO_ON ? files_open(&cluster->files, plan->data) : status;
    status = status == CLI_GO_ON ? routes_open(&cluster->files, plan) : status;
    if (status == CLI_GO_ON && cluster->files.routes[0] != '\0' && plan->listen_pages != NULL)
        status = address_check(plan->listen_pages, "--listen-pages");
    status = status == CLI_GO_ON ? cluster_redis(cluster, plan->redis_variables) : status;
    if (status == CLI_GO_ON && !cluster->files.store_made) {
        status = store_make(cluster, (const char *const[]){"--redis", cluster->files.url, "--init-store",
                                                           "--state-dir", cluster->files.state_lease, NULL});
        status = status == CLI_GO_ON ? files_note_store(&cluster->files) : status;
    }
    if (status == CLI_GO_ON)
        status = cluster_service(cluster, &cluster->lease, plan);
    if (status == CLI_GO_ON)
        status = cluster_service(cluster, &cluster->gateway, plan);
    status = status == CLI_GO_ON ? cluster_ready(cluster, "the lease service", cluster->lease.url) : status;
    status = status == CLI_GO_ON ? cluster_ready(cluster, "the gateway", cluster->gateway.url) : status;
    if (status == CLI_GO_ON && cluster->files.routes[0] != '\0')
        adopt_routes(cluster->gateway.url);
    return status;
}

/* -- a quorum beside it */

int cluster_quorum(struct cluster *cluster, unsigned nodes, const char (*sockets)[CLUSTER_SOCKET_SIZE])
{
    const struct cluster_files *files = &cluster->files;
    char urls[QUORUM_MAX][CHILD_PATH_SIZE], id[TOKEN_STORE_CHARS + 1] = "", state[CHILD_PATH_SIZE];
    const char *words[WORDS_MAX + 1] = {NULL};
    unsigned count = 0;
    int status;

    for (unsigned i = 0; i < nodes; i++) {
        url_of_socket(urls[i], sockets[i]);
        count = words_add(words, count, (const char *const[]){"--redis", urls[i], NULL});
    }
    words_add(words, count, (const char *const[]){"--init-store", NULL});
    status = store_make(cluster, words);
    if (status != CLI_GO_ON)
        return status;
    for (unsigned i = 0; i < CLUSTER_TAIL; i++) /* as its maker says it */
        if (strstr(cluster->maker.tail[i], " created on ") != NULL)
            snprintf(id, sizeof(id), "%s", cluster->maker.tail[i] + strlen("store "));
    join(state, files->data, "state-marks");
    words_add(words, count, (const char *const[]){"--keys", files->keys, "--listen", "127.0.0.1:0", NULL});
    status = service_start(cluster, &cluster->quorum, "lease on the quorum", "pawl-lease", words);
    if (status == CLI_GO_ON) {
        const char *const of_gateway[] = {"--redis",     files->url, "--keys",        files->keys,
                                          "--state-dir", state,      "--listen",      "127.0.0.1:0",
                                          "--check",     "mark",     "--check-store", id,
                                          NULL};

        status = service_start(cluster, &cluster->marks, "gateway by marks", "pawl-gateway", of_gateway);
    }
    status = status == CLI_GO_ON ? cluster_ready(cluster, "the quorum", cluster->quorum.url) : status;
    return status == CLI_GO_ON ? cluster_ready(cluster, "the gateway", cluster->marks.url) : status;
}

/* -- the end */

void cluster_end_child(struct cluster *cluster, struct child *child)
{
    uint64_t deadline_ms = loop_now_ms() + END_MS;

    if (child->pid == 0)
        return;
    child_signal(child, SIGTERM);
    child_signal(child, SIGCONT); /* one that is stopped does not hear SIGTERM before */
    while (child->pid != 0) {
        enum watch_event event = cluster_next(cluster, deadline_ms);

        if (event == WATCH_SIGNAL || event == WATCH_DEADLINE) { /* asked a second time, or too slow */
            child_signal(child, SIGKILL);
            deadline_ms = UINT64_MAX; /* it will end: nothing survives this */
        }
    }
}

void cluster_end(struct cluster *cluster)
{
    cluster_end_child(cluster, &cluster->marks.child);
    cluster_end_child(cluster, &cluster->quorum.child);
    cluster_end_child(cluster, &cluster->gateway.child);
    cluster_end_child(cluster, &cluster->lease.child);
    cluster_end_child(cluster, &cluster->maker.child);
    cluster_end_child(cluster, &cluster->redis.child);
    if (cluster->files.run[0] != '\0')
        nftw(cluster->files.run, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    if (cluster->files.lock_fd >= 0)
        close(cluster->files.lock_fd);
    watch_close(&cluster->watch);
}

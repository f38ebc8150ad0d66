/* lease_world.h - what the tests of those who wait stand on: a private Redis, and instances of pawl-lease
 * inside the test, each with one worker on a loop of its own that turns only when the test says so. */
#ifndef PAWL_TESTS_LEASE_WORLD_H
#define PAWL_TESTS_LEASE_WORLD_H

#include <fcntl.h>
#include <sys/ioctl.h>

#include "lease/operation.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/access/access_internal.h"
#include "tests/component/loopback.h"
#include "tests/component/store_relay.h"
#include "tests/unit/waited.h"

enum { INSTANCES = 2, LEASE_WORLD_MS = 10000, ASKED_BYTES = 8192, ASK_BYTES = 1024 };

struct instance {
    struct lease_world *world;
    struct service service;
    struct worker worker;
    struct metric rows[SERVICE_METRICS + LEASE_COUNTS];
    char row_names[SERVICE_METRICS + LEASE_COUNTS][16];
    char state_dir[64], relay_url[64];
    struct relay relay; /* between the second instance's store and Redis; its subscriber hears without */
    unsigned port;
    bool held_up; /* its loop does not turn */
};

struct lease_world {
    struct redis redis;
    struct instance instance[INSTANCES];
    unsigned count;
};

/* Turns all loops that are not held up until the condition holds. */
#define LEASE_WAIT(world_, precondition)                                                                     \
    do {                                                                                                     \
        struct patience patience_ = patience_of(LEASE_WORLD_MS);                                             \
        while (!(precondition) && patience_lasts(&patience_))                                                \
            lease_world_turn(world_);                                                                        \
        CHECK(precondition);                                                                                 \
    } while (0)

static inline void lease_world_turn(struct lease_world *world)
{
    for (unsigned i = 0; i < world->count; i++)
        if (!world->instance[i].held_up)
            waited_turn(world->instance[i].worker.loop, 1);
}

/* The store is there already; what is opened from now on goes straight to Redis. */
static inline void instance_worker_open(struct worker *worker)
{
    struct instance *instance = container_of(worker, struct instance, worker);

    instance->service.settings.redis = instance->world->redis.url;
    lease_worker_open(worker);
}

static inline void instance_worker_free(struct worker *worker)
{
    struct instance *instance = container_of(worker, struct instance, worker);

    lease_worker_free(worker);
    if (instance->relay.loop != NULL)
        relay_close(&instance->relay);
}

static inline const struct service_plan *lease_plan(void)
{
    static const struct member_plan record = {.role = MEMBER_LEASE,
                                              .admit = &script_admit,
                                              .sweep = &script_sweep,
                                              .index = "due",
                                              .sweep_may_grant = true,
                                              .alarm = lease_worker_alarm};
    static const struct service_plan plan = {.name = "pawl-lease",
                                             .routes = lease_routes,
                                             .library = &pawl_library,
                                             .worker_open = instance_worker_open,
                                             .worker_close = lease_worker_close,
                                             .worker_free = instance_worker_free,
                                             .own = &record};

    return &plan;
}

static inline void instance_ended(const struct http_owner *owner, const struct http_request *req,
                                  unsigned status, uint64_t took_us)
{
    (void)owner;
    (void)req;
    (void)status;
    (void)took_us;
}

static inline struct token_keys *some_keys(const struct redis *redis)
{
    const char *path = textf("%s/keys", redis->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char why[128];

    dprintf(fd, "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n");
    close(fd);
    return token_keys_load(path, why, sizeof(why));
}

/* Who asks, in place of what --access finds: by a header. */
static inline enum problem instance_enter(struct http_request *req)
{
    static const char *const known[] = {"ada", "bob", "cat"};
    struct bytes who = http_header(req, "Who", NULL);

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (bytes_are(who, known[i]))
            http_identify(req, access_identity_keep(who), "access-token", who);
    return PROBLEM_NONE;
}

static inline void instance_serve(struct instance *instance)
{
    static struct http_memory memory = {.max = 1 << 20};
    struct worker *worker = &instance->worker;
    const char *why = NULL;
    struct http_options options = {.listen_fd = http_listen("127.0.0.1:0", &instance->port, &why),
                                   .routes = lease_routes,
                                   .owner = &worker->owner,
                                   .enter = instance_enter,
                                   .connections_max = 2000,
                                   .body_max_default = 16384,
                                   .memory = &memory,
                                   .header_timeout_ms = 10000,
                                   .body_timeout_ms = 30000};

    worker->owner.ended = instance_ended;
    worker->http = http_server_new(worker->loop, &options);
}

static inline void instance_init_store(struct service *service)
{
    int out = dup(STDOUT_FILENO), none = open("/dev/null", O_WRONLY | O_CLOEXEC);

    dup2(none, STDOUT_FILENO); /* it says which store it made */
    CHECK_INT(init_store(service), SERVICE_OK);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(none);
}

/* As worker_open(). */
static inline void instance_worker_begin(struct instance *instance)
{
    struct worker *worker = &instance->worker;

    worker->service = &instance->service;
    worker->loop = loop_new();
    worker->metrics = metrics_block(instance->service.metrics, 0);
    worker->keys = atomic_load(&instance->service.keys);
    if (instance == &instance->world->instance[1]) {
        relay_open(&instance->relay, worker->loop, &instance->world->redis);
        snprintf(instance->relay_url, sizeof(instance->relay_url), "unix://%s/relay",
                 instance->world->redis.dir);
        instance->service.settings.redis = instance->relay_url;
    }
    worker->store_count = service_stores_open(&instance->service, worker->loop, NULL, worker->stores);
    worker->store = worker->stores[0];
    instance_worker_open(worker);
}

/* One more instance, which has an inbox and listens. */
static inline struct instance *instance_open(struct lease_world *world, unsigned timeout_ms)
{
    struct instance *instance = &world->instance[world->count++];
    struct service *service = &instance->service;

    instance->world = world;
    snprintf(instance->state_dir, sizeof(instance->state_dir), "%s/state-%u", world->redis.dir, world->count);
    *service = (struct service){
        .plan = lease_plan(),
        .workers = &instance->worker,
        .settings = {.redis = world->redis.url,
                     .state_dir = instance->state_dir,
                     .threads = 1,
                     .token_block = 1000,
                     .store_timeout_ms = timeout_ms,
                     .remember_ms = 60000,
                     .remember_max = (size_t)256 << 20},
        .log = {.program = "pawl-lease", .level = LOG_ERROR, .fd = STDERR_FILENO},
    };
    if (world->count == 1) {
        service->settings.store_timeout_ms = LEASE_WORLD_MS; /* it is not what is tested */
        instance_init_store(service);
        service->settings.store_timeout_ms = timeout_ms;
    }
    for (unsigned i = 0; i < SERVICE_METRICS + LEASE_COUNTS; i++) {
        snprintf(instance->row_names[i], sizeof(instance->row_names[i]), "m%u_seconds", i);
        instance->rows[i] = (struct metric){instance->row_names[i], METRIC_COUNTER, NULL, ""};
    }
    instance->rows[(unsigned)SERVICE_METRICS + COUNT_WAIT_TIME].kind = METRIC_HISTOGRAM_US;
    instance->rows[(unsigned)SERVICE_METRICS + COUNT_REMEMBERED].kind = METRIC_GAUGE;
    instance->rows[(unsigned)SERVICE_METRICS + COUNT_HELD].kind = METRIC_GAUGE;
    instance->rows[(unsigned)SERVICE_METRICS + COUNT_LISTENING].kind = METRIC_GAUGE;
    service->metrics = metrics_new(instance->rows, SERVICE_METRICS + LEASE_COUNTS, 1);
    atomic_store(&service->keys, some_keys(&world->redis));
    CHECK_INT(member_daemon_open(service), -1);
    instance_worker_begin(instance);
    LEASE_WAIT(world, lease_worker_settled(service));
    instance_serve(instance);
    return instance;
}

static inline struct inbox *instance_inbox(const struct instance *instance)
{
    return lease_worker_from(&instance->worker)->inbox;
}

static inline void instance_close(struct instance *instance)
{
    struct lease_world *world = instance->world;

    http_server_drain(instance->worker.http);
    atomic_store(&instance->service.draining, true);
    LEASE_WAIT(world, lease_worker_drain(&instance->worker));
    LEASE_WAIT(world, http_server_open_requests(instance->worker.http) == 0);
    worker_close(&instance->worker);
    member_daemon_close(&instance->service);
    metrics_free(instance->service.metrics);
    token_keys_free(atomic_load(&instance->service.keys));
    instance->held_up = true;
}

static inline struct lease_world *lease_world_open(unsigned instances, unsigned timeout_ms)
{
    struct lease_world *world = calloc(1, sizeof(*world));

    redis_start(&world->redis, NULL);
    while (world->count < instances)
        instance_open(world, timeout_ms);
    return world;
}

static inline void lease_world_close(struct lease_world *world)
{
    for (unsigned i = 0; i < world->count; i++)
        instance_close(&world->instance[i]);
    redis_stop(&world->redis);
    free(world);
}

/* -- clients */

struct asked {
    struct instance *of;
    int fd;
    char answer[ASKED_BYTES];
    size_t len;
};

static const char *asked_as = ""; /* who asks from now on; "": nobody */

/* lease: its name, or a whole path. */
static inline void asked_send(struct asked *asked, struct instance *of, const char *method, const char *lease,
                              const char *lease_id, const char *body)
{
    char text[ASK_BYTES];
    int len = snprintf(text, sizeof(text),
                       "%s %s%s HTTP/1.1\r\nHost: h\r\nWho: %s\r\n%s%s%sContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       method, lease[0] == '/' ? "" : "/v1/leases/", lease, asked_as,
                       lease_id[0] != '\0' ? "Lease-Id: " : "", lease_id, lease_id[0] != '\0' ? "\r\n" : "",
                       strlen(body), body);

    *asked = (struct asked){.of = of, .fd = loopback_open(of->port)};
    CHECK(send(asked->fd, text, (size_t)len, 0) == len);
}

/* who: 22 characters of it are the lease_id. */
static inline void asked_acquire(struct asked *asked, struct instance *of, const char *lease, const char *who,
                                 unsigned wait_ms)
{
    asked_send(asked, of, "POST", lease, "",
               textf("{\"lease_id\":\"%s\",\"holder\":\"%.4s\",\"wait_ms\":%u,\"ttl_ms\":60000}", who, who,
                     wait_ms));
}

/* The status when the whole answer is there, else 0. Does not wait. */
static inline unsigned asked_status(struct asked *asked)
{
    ssize_t got = recv(asked->fd, asked->answer + asked->len, sizeof(asked->answer) - 1 - asked->len,
                       MSG_DONTWAIT);
    const char *end, *length;

    asked->len += got > 0 ? (size_t)got : 0;
    end = strstr(asked->answer, "\r\n\r\n");
    length = strstr(asked->answer, "Content-Length: ");
    if (end == NULL || (length != NULL && strlen(end + 4) < strtoul(length + 16, NULL, 10)))
        return 0;
    return (unsigned)strtoul(asked->answer + 9, NULL, 10);
}

static inline bool asked_says(const struct asked *asked, const char *text)
{
    return strstr(asked->answer, text) != NULL;
}

/* Waits for the answer. */
static inline void asked_is(struct asked *asked, unsigned status, const char *text)
{
    LEASE_WAIT(asked->of->world, asked_status(asked) != 0);
    if (!CHECK_INT(asked_status(asked), status) || !CHECK(asked_says(asked, text)))
        printf("# %.300s\n", asked->answer);
    close(asked->fd);
}

static inline void lease_release(struct instance *of, const char *lease, const char *who)
{
    struct asked asked;

    asked_send(&asked, of, "DELETE", lease, who, "");
    asked_is(&asked, 204, "");
}

static inline void lease_take(struct instance *of, const char *lease, const char *who)
{
    struct asked asked;

    asked_acquire(&asked, of, lease, who, 0);
    asked_is(&asked, 201, "\"waited_ms\":0");
}

/* A key of a lease in the store: letter "l", "q", "x"; good until the next. */
static inline const char *lease_key(char letter, const char *lease)
{
    static char key[KEYS_RESOURCE_SIZE];

    snprintf(key, sizeof(key), "pawl:{%02x}:%c:%s", keys_stripe_of(bytes_of(lease)), letter, lease);
    return key;
}

static inline long lease_waiting(struct lease_world *world, const char *lease)
{
    return strtol(redis_askf(&world->redis, "ZCARD %s", lease_key('q', lease)) + 1, NULL, 10);
}

/* Acquires, and is in the line. */
static inline void asked_waits(struct asked *asked, struct instance *of, const char *lease, const char *who,
                               unsigned wait_ms)
{
    long before = lease_waiting(of->world, lease);

    asked_acquire(asked, of, lease, who, wait_ms);
    LEASE_WAIT(of->world, lease_waiting(of->world, lease) == before + 1 || asked_status(asked) != 0);
}

#endif

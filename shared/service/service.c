/* service.c - the epoch of a daemon: settings, sockets, store, threads, signals, the end. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/service/service.h"
#include "shared/text/json.h"
#include "shared/text/memory.h"
#include "shared/text/read_all.h"
#include "shared/tls/tls_server.h"

static const struct service_flag common_flags[] = {
    SERVICE_FLAG("listen", listen, OPTION_TEXT, "ADDR:PORT", "where to listen; port 0: the kernel picks one"),
    SERVICE_FLAG("listen-unix", listen_unix, OPTION_TEXT, "PATH", "a unix socket beside that, mode 0660"),
    SERVICE_FLAG(
        "redis", redis, OPTION_LIST, "URL",
        "redis[s]://[user@]host:port[/db], unix:///path or "
        "sentinel[s]://[user@]host:port[,host:port...]/name; pawl-lease also 3, 5 or 7 Redis: a quorum"),
    SERVICE_FLAG("redis-password-file", redis_password_file, OPTION_TEXT, "FILE",
                 "the password of the store; read again for each connection"),
    SERVICE_FLAG("sentinel-password-file", sentinel_password_file, OPTION_TEXT, "FILE",
                 "of sentinel://: the password of the sentinels"),
    SERVICE_FLAG("redis-ca", redis_ca, OPTION_TEXT, "FILE",
                 "of rediss://: whom its certificate must come from (PEM; default: whom the system trusts)"),
    SERVICE_FLAG("redis-cert", redis_cert, OPTION_TEXT, "FILE", "of rediss://: a certificate to show (PEM)"),
    SERVICE_FLAG("redis-key", redis_key, OPTION_TEXT, "FILE", "its key (PEM)"),
    SERVICE_FLAG(
        "tls-cert", tls_cert, OPTION_TEXT, "FILE",
        "speak TLS: the service's certificate and its chain (PEM); on SIGHUP all four are read again"),
    SERVICE_FLAG("tls-key", tls_key, OPTION_TEXT, "FILE", "its key (PEM)"),
    SERVICE_FLAG("tls-client-ca", tls_client_ca, OPTION_TEXT, "FILE",
                 "ask clients for a certificate: those of these authorities are good"),
    SERVICE_FLAG("tls-crl", tls_crl, OPTION_TEXT, "FILE", "which of their certificates are revoked"),
    SERVICE_FLAG("keys", keys, OPTION_TEXT, "FILE",
                 "keys that sign and verify tokens (pawl keygen); read again on SIGHUP"),
    SERVICE_FLAG("access", access, OPTION_TEXT, "FILE",
                 "who may do what (docs/access.md); read again on SIGHUP"),
    SERVICE_FLAG("state-dir", state_dir, OPTION_TEXT, "DIR",
                 "what this process must not forget (default $STATE_DIRECTORY; docs/operations.md)"),
    SERVICE_FLAG("threads", threads, OPTION_UNSIGNED, "N", "threads that serve", 1, SERVICE_THREADS_MAX),
    SERVICE_FLAG("store-timeout", store_timeout_ms, OPTION_DURATION_MS, "DUR",
                 "how long a call to the store may take", 10, 60000),
    SERVICE_FLAG(
        "copies", copies, OPTION_UNSIGNED, "N",
        "with fewer nodes of Redis nothing is answered (docs/operations.md); what the store was made with", 1,
        STORE_NODES_MAX),
    SERVICE_FLAG(
        "keep-wait", keep_wait_ms, OPTION_DURATION_MS, "DUR",
        "how long a node may be silent before it is taken out (default: 1s, or half of --store-timeout, "
        "which is the most)",
        100, 30000),
    SERVICE_FLAG("remember", remember_ms, OPTION_DURATION_MS, "DUR", "how long what has ended is remembered",
                 1000, 86400000),
    SERVICE_FLAG("store-memory-max", store_memory_max, OPTION_BYTES, "BYTES",
                 "from 90 % of this, or of Redis' maxmemory if that is lower, nothing new is stored", 1 << 20,
                 1LL << 50),
    SERVICE_FLAG("max-connections", connections_max, OPTION_UNSIGNED, "N", "open connections", 1, 1000000),
    SERVICE_FLAG("max-connections-per-address", connections_per_address, OPTION_UNSIGNED, "N",
                 "of one address, or IPv6 /64 (default: half of --max-connections)", 1, 1000000),
    SERVICE_FLAG("trusted-proxy", trusted_proxies, OPTION_LIST, "CIDR",
                 "from there the last address of X-Forwarded-For is the client's; as often as needed"),
    SERVICE_FLAG("max-body-memory", body_memory_max, OPTION_BYTES, "BYTES",
                 "all request bodies in memory at once; and all long answers", 65536, 1LL << 40),
    SERVICE_FLAG("header-max", head_max, OPTION_BYTES, "BYTES", "of a request's line and headers together",
                 1024, SERVICE_HEAD_MAX),
    SERVICE_FLAG("header-timeout", header_timeout_ms, OPTION_DURATION_MS, "DUR",
                 "for a request's header to be complete", 100, 600000),
    SERVICE_FLAG("body-timeout", body_timeout_ms, OPTION_DURATION_MS, "DUR",
                 "for a request's body to be complete", 100, 3600000),
    SERVICE_FLAG("log-format", log_format, OPTION_CHOICE, "text|json", "text is the default on a terminal"),
    SERVICE_FLAG("log-level", log_level, OPTION_CHOICE, "debug|info|warning|error", "what is worth a line"),
    SERVICE_FLAG("allow-anonymous", allow_anonymous, OPTION_FLAG, NULL,
                 "listen beyond loopback though everybody may do everything"),
    SERVICE_FLAG("allow-plaintext", allow_plaintext, OPTION_FLAG, NULL,
                 "listen beyond loopback without TLS, with --access"),
    SERVICE_FLAG(
        "allow-host", allow_hosts, OPTION_LIST, "NAME",
        "a Host that clients or a proxy send, beside loopback's (docs/proxies.md); as often as needed"),
    SERVICE_FLAG("allow-origin", allow_origins, OPTION_LIST, "https://NAME",
                 "whose web pages may change something, beside the Host's own; as often as needed"),
    SERVICE_FLAG("ui", ui, OPTION_FLAG, NULL, "serve the web pages (/ui/) also beyond loopback"),
    SERVICE_FLAG(
        "ui-listen", ui_listen, OPTION_TEXT, "ADDR:PORT",
        "where the web pages are, and nothing is forwarded; a gateway with --routes has them there only"),
    SERVICE_FLAG("ui-peer", ui_peer, OPTION_TEXT, "URL",
                 "where people find the web pages of the other daemon: shown as a link"),
    SERVICE_FLAG("allow-unsafe-redis", allow_unsafe_redis, OPTION_FLAG, NULL,
                 "accept a store that can lose locks"),
    SERVICE_FLAG("suspend-always", suspend_always, OPTION_FLAG, NULL,
                 "never poll for short waits (slower; for comparison)"),
    SERVICE_FLAG("config", config, OPTION_TEXT, "FILE", "a JSON object of these settings"),
    SERVICE_FLAG("check-config", check_config, OPTION_FLAG, NULL, "check the settings and exit",
                 .command_line_only = true),
};

enum { UI_PEER_MAX = 512 };
enum { COMMON_FLAGS = sizeof(common_flags) / sizeof(common_flags[0]), FLAGS_MAX = COMMON_FLAGS + 16 };

static const char *const known_variables[] = {
#define VARIABLE(name) name,
#include "api/variables.def"
#undef VARIABLE
    NULL};

static void settings_defaults(struct service *service)
{
    service->settings = (struct service_settings){
        .listen = service->plan->listen,
        .head_max = service->plan->head_max,
        .redis = "redis://127.0.0.1:6379",
        .threads = 1,
        .token_block = 1000000,
        .connections_max = 20000,
        .store_timeout_ms = 2000,
        .remember_ms = 600000,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .remember_max = (size_t)256 << 20,
        .body_memory_max = (size_t)256 << 20,
        .body_disk_max = (size_t)4 << 30,
        .body_max = (size_t)1 << 20,
        .log_format = -1,
        .log_level = LOG_INFO,
    };
}

static void settings_rows(struct service *service, struct option rows[FLAGS_MAX + 1])
{
    unsigned count = 0;

    for (unsigned i = 0; i < COMMON_FLAGS; i++) {
        rows[count] = common_flags[i].option;
        rows[count++].place = (char *)&service->settings + common_flags[i].offset;
    }
    for (const struct service_flag *flag = service->plan->flags;
         flag->option.name != NULL && count < FLAGS_MAX; flag++) {
        rows[count] = flag->option;
        rows[count++].place = (char *)&service->settings + flag->offset;
    }
    rows[count] = (struct option){0};
}

int service_fail(const struct service *service, const char *what, ...)
{
    char text[1024];
    va_list args;

    va_start(args, what);
    vsnprintf(text, sizeof(text), what, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", service->plan->name, text);
    return SERVICE_CONFIG;
}

static int settings_read_password(struct service *service)
{
    const char *files[] = {service->settings.redis_password_file, service->settings.sentinel_password_file};
    char why[256];
    size_t len = 0;
    struct stat file;

    for (unsigned i = 0; i < 2; i++)
        if (files[i] != NULL && stat(files[i], &file) == 0 && S_ISREG(file.st_mode) &&
            (file.st_mode & (S_IWGRP | S_IWOTH)) != 0)
            return service_fail(service, "the password file %s is refused: others can change it; chmod go-w",
                                files[i]);
    if (service->settings.redis_password_file == NULL)
        return -1;
    service->password = options_read_file(service->settings.redis_password_file, 4096, &len, why,
                                          sizeof(why));
    if (service->password == NULL)
        return service_fail(service, "%s", why);
    service->password[strcspn(service->password, "\r\n")] = '\0';
    if (service->password[0] == '\0') { /* an optional credential of a unit: a store without passwords */
        free(service->password);
        service->password = NULL;
    }
    return -1;
}

static int settings_read_keys(struct service *service)
{
    char why[256];

    if (service->settings.keys == NULL)
        return service_fail(service,
                            "--keys is missing: make a file with \"pawl keygen --out FILE\" and name it");
    struct token_keys *keys = token_keys_load(service->settings.keys, why, sizeof(why));
    if (keys == NULL)
        return service_fail(service, "%s", why);
    atomic_store(&service->keys, keys);
    return -1;
}

static int settings_read_access(struct service *service)
{
    char why[ACCESS_WHY_SIZE];
    struct access *access;

    if (service->settings.access == NULL)
        return -1;
    if (service->settings.allow_anonymous)
        return service_fail(service, "--access says who may do what, --allow-anonymous that everybody may: "
                                     "leave one of them out");
    access = service_access_load(service, why);
    if (access == NULL)
        return service_fail(service, "--access %s: %s", service->settings.access, why);
    atomic_store(&service->access, access);
    service->limits = limits_new();
    return -1;
}

/* It becomes a link, behind which the names of pages are put: no query, nothing that ends an attribute. */
static bool is_web_address(const char *text)
{
    struct bytes rest = bytes_of(text);

    return (bytes_take(&rest, BYTES("https://")) || bytes_take(&rest, BYTES("http://"))) && rest.len > 0 &&
           strlen(text) <= UI_PEER_MAX && strpbrk(rest.at, " \"'<>?#\\^`{|}") == NULL &&
           json_plain_length(rest) == rest.len;
}

const char *service_listen_wrong(const struct service_settings *s, const char *address)
{
    const char *port = strrchr(address, ':');

    if (port == NULL || port == address || strspn(port + 1, "0123456789") != strlen(port + 1) ||
        port[1] == '\0' || strlen(port) > 6 || strtoul(port + 1, NULL, 10) > 65535)
        return "takes ADDR:PORT, like 127.0.0.1:8700 or [::1]:8700";
    if (s->init_store || http_address_is_loopback(address))
        return NULL;
    if (s->access != NULL && s->tls_cert == NULL && !s->allow_plaintext)
        return "is not a loopback address, and access tokens would be sent in plain text: give --tls-cert "
               "and --tls-key, or say --allow-plaintext";
    if (s->access == NULL && !s->allow_anonymous)
        return "is not a loopback address, and everybody may do everything: say who may do what with "
               "--access FILE, listen on 127.0.0.1 or [::1], or say --allow-anonymous";
    return NULL;
}

static int listen_check(const struct service *service, const char *flag, const char *address)
{
    const char *wrong = address != NULL ? service_listen_wrong(&service->settings, address) : NULL;

    return wrong == NULL ? -1 : service_fail(service, "%s %s", flag, wrong);
}

/* NULL, or what is wrong with the stores that --redis names. Several make it another plan. */
static const char *stores_wrong(struct service *service)
{
    const struct service_settings *s = &service->settings;
    unsigned count = 0;
    bool has_password;
    const char *bad = store_list_check(s->redis, &count, &has_password);

    if (bad != NULL)
        return bad;
    if (count > 1 && service->plan->quorum == NULL)
        return "--redis names several stores, and this daemon takes one";
    if (s->max_ttl_ms > 0 && (count == 1 || !s->init_store))
        return "--max-ttl goes with --init-store and the 3, 5 or 7 nodes of a quorum, which keep it";
    if (s->floor > 0 && (count == 1 || !s->init_store))
        return "--floor goes with --init-store and the 3, 5 or 7 nodes of a quorum; of one store it is that "
               "of pawl store recover";
    if (count > 1 && s->registrars > 0)
        return "--registrars is not for a quorum, whose nodes hear each other's numbers themselves";
    if (count > 1 && s->copies > 0)
        return "--copies is not for a quorum: a majority of its nodes has what is answered";
    if (count > 1)
        service->plan = service->plan->quorum;
    return NULL;
}

enum { KEEP_WAIT_MS = 1000 };

/* NULL, or what is wrong with what goes together, or does not. */
static const char *settings_wrong(const struct service *service)
{
    const struct service_settings *s = &service->settings;
    struct store_options options = service_store_options(service);
    const char *bad;

    if (s->ui && s->routes != NULL && s->ui_listen == NULL)
        return "--ui with --routes: what is forwarded would share the origin of the web pages: say "
               "--ui-listen ADDR:PORT instead";
    if (s->registrars > 0 && (!s->init_store || s->registrars % 2 == 0))
        return "--registrars takes 1, 3 or 5, and goes with --init-store";
    if (s->keep_wait_ms > s->store_timeout_ms / 2)
        return "--keep-wait is at most half of --store-timeout";
    if (s->ui_peer != NULL && !is_web_address(s->ui_peer))
        return "--ui-peer takes the address of a web page, like https://gateway.example/ui/";
    bad = store_files_check(s->redis, &options.files);
    return bad != NULL ? bad : http_browser_lists_check(s->allow_hosts, s->allow_origins);
}

static int settings_check(struct service *service)
{
    struct service_settings *s = &service->settings;
    unsigned half = s->connections_max > 1 ? s->connections_max / 2 : 1;
    const char *bad = stores_wrong(service);

    if (bad != NULL)
        return service_fail(service, "%s", bad);
    if (listen_check(service, "--listen", s->listen) >= 0 ||
        listen_check(service, "--ui-listen", s->ui_listen) >= 0)
        return SERVICE_CONFIG;
    service->body_memory.max = s->body_memory_max;
    bad = settings_wrong(service);
    if (bad == NULL)
        service->peers = http_peers_new(s->connections_per_address > 0 ? s->connections_per_address : half,
                                        s->trusted_proxies, &bad);
    if (bad != NULL)
        return service_fail(service, "%s", bad);
    if (s->init_store && s->copies == 0 && strncmp(s->redis, "sentinel", 8) == 0)
        s->copies = 2;
    if (s->keep_wait_ms == 0)
        s->keep_wait_ms = s->store_timeout_ms / 2 < KEEP_WAIT_MS ? s->store_timeout_ms / 2 : KEEP_WAIT_MS;
    int status = s->init_store ? -1 : service_tls_open(service);
    if (status < 0)
        status = settings_read_password(service);
    if (status < 0 && !s->init_store)
        status = settings_read_keys(service);
    if (status < 0 && !s->init_store)
        status = settings_read_access(service);
    if (status < 0 && service->plan->check != NULL)
        status = service->plan->check(service);
    if (status < 0 && s->check_config) {
        printf("%s: the configuration is good\n", service->plan->name);
        return SERVICE_OK;
    }
    return status;
}

/* -1 to go on, else the exit status; has said why on stderr. */
static int settings_read(struct service *service, int argc, char **argv)
{
    struct option rows[FLAGS_MAX + 1];
    const struct service_plan *plan = service->plan;
    struct options_program program = {plan->name, plan->summary,   plan->examples,
                                      rows,       known_variables, &service->texts};
    char why[512];

    settings_defaults(service);
    settings_rows(service, rows);
    switch (options_read(&program, argc, argv, environ, why, sizeof(why))) {
    case OPTIONS_HELP: options_print_help(&program); return SERVICE_OK;
    case OPTIONS_VERSION: printf("%s %s\n", plan->name, PAWL_VERSION); return SERVICE_OK;
    case OPTIONS_BAD: return service_fail(service, "%s", why);
    case OPTIONS_OK: break;
    }
    return settings_check(service);
}

/* == from the sockets to the end */

enum { START_LOOK_MS = 10, STOP_WITHIN_MS = 4500 };

/* What only the main thread has. */
struct start {
    struct service *service;
    struct loop_signal term, interrupt, hangup;
    struct loop_timer deadline;
};

/* SIG_BLOCK, SIG_UNBLOCK: those that an operator sends. */
static void signals_mask(int how, bool with_hangup)
{
    sigset_t heard;

    sigemptyset(&heard);
    sigaddset(&heard, SIGTERM);
    sigaddset(&heard, SIGINT);
    if (with_hangup)
        sigaddset(&heard, SIGHUP);
    pthread_sigmask(how, &heard, NULL);
}

static void process_prepare(void)
{
    struct rlimit files;

    standard_streams_fill();
    signals_mask(SIG_BLOCK, true);    /* a hangup ends nobody: it waits for service_serve() */
    signals_mask(SIG_UNBLOCK, false); /* the parent may have blocked them */
    signal(SIGPIPE, SIG_IGN); /* a client or a store that has gone is reported by the call that writes */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* An address that is taken, or that the machine does not have yet, may come right by itself. */
static int listen_fail(const struct service *service, const char *at, const char *why)
{
    bool may_come = errno == EADDRINUSE || errno == EADDRNOTAVAIL;
    int status = service_fail(service, "cannot listen on %s: %s", at, why);

    return may_come ? SERVICE_UNREACHABLE : status;
}

/* What a thread opens for itself is not there by halves: libuv and libmicrohttpd end the process. */
static int service_descriptors(const struct service *service)
{
    enum { OF_PROCESS = 16, OF_THREAD = 14 }; /* seen: 9 and 11, at a quorum of seven 5 and 14 */
    unsigned least = OF_PROCESS + OF_THREAD * service->settings.threads;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= least)
        return -1;
    return service_fail(service, "it may have %u descriptors open, and needs %u with --threads %u",
                        (unsigned)files.rlim_cur, least, service->settings.threads);
}

/* One socket for each thread; the kernel shares the connections out (SO_REUSEPORT). Those of the service
 * manager take the place of --listen. */
static int service_listen(struct service *service)
{
    const char *why = NULL;
    unsigned threads = service->settings.threads;
    char address[128];

    snprintf(address, sizeof(address), "%s", service->settings.listen);
    service->workers = calloc(threads, sizeof(*service->workers));
    if (service->workers == NULL)
        return SERVICE_BUG;
    int given = activation_take(service);
    if (given != ACTIVATION_NONE)
        return given;
    for (unsigned i = 0; i < threads; i++) {
        int fd = i == 0 && !http_address_is_free(address, &why)
                     ? -1
                     : http_listen(address, &service->listen_port, &why);

        if (fd < 0)
            return listen_fail(service, address, why);
        service->workers[i].listen_fd = fd;
        char *port = strrchr(address, ':'); /* port 0: the others get the one that the first was given */
        snprintf(port, (size_t)(address + sizeof(address) - port), ":%u", service->listen_port);
    }
    return -1;
}

/* One socket for all threads each. */
static int service_listen_beside(struct service *service)
{
    const struct service_settings *settings = &service->settings;
    const char *path = settings->listen_unix, *at = settings->ui_listen, *why = NULL;
    int unix_fd = path != NULL ? http_listen_unix(path, &why) : 0, ui_fd = 0;

    if (unix_fd < 0)
        return listen_fail(service, path, why);
    if (at != NULL)
        ui_fd = http_address_is_free(at, &why) ? http_listen(at, &service->ui_port, &why) : -1;
    if (ui_fd < 0)
        return listen_fail(service, at, why);
    if (ui_fd > 0 && service->ui_port == service->listen_port)
        return service_fail(service, "cannot listen on %s: its port is that of --listen", at);
    for (unsigned i = 0; i < settings->threads; i++) {
        service->workers[i].unix_fd = i == 0 || unix_fd == 0 ? unix_fd : fcntl(unix_fd, F_DUPFD_CLOEXEC, 0);
        service->workers[i].ui_fd = i == 0 || ui_fd == 0 ? ui_fd : fcntl(ui_fd, F_DUPFD_CLOEXEC, 0);
    }
    return -1;
}

/* Of each operation: how often it was answered with each kind of status, and how long that took. */
static void metrics_of_operations(struct service *service, struct metric *requests)
{
    static const char *const kinds[REQUEST_KINDS] = {"2xx", "3xx", "4xx", "5xx"};
    struct metric *times = requests + REQUEST_KINDS * service->operations;
    char(*labels)[METRIC_LABELS_SIZE] = must_have(
        calloc((REQUEST_KINDS + 1) * service->operations, sizeof(*labels)));

    service->metric_labels = labels[0];
    for (unsigned i = 0; i < service->operations; i++) {
        const char *operation = i + 1 < service->operations ? service->routes[i].operation : "none";

        for (unsigned kind = 0; kind < REQUEST_KINDS; kind++, requests++, labels++) {
            snprintf(*labels, sizeof(*labels), "operation=\"%s\",status=\"%s\"", operation, kinds[kind]);
            *requests = (struct metric){"pawl_http_requests_total", METRIC_COUNTER, *labels,
                                        "Requests answered, by operationId."};
        }
        snprintf(*labels, sizeof(*labels), "operation=\"%s\"", operation);
        times[i] = (struct metric){"pawl_http_request_seconds", METRIC_HISTOGRAM_US, *labels++,
                                   "From complete request to answer."};
    }
}

/* The rows of every daemon, the plan's own, those of the operations; metrics_new() borrows the table. */
static void service_metrics_open(struct service *service)
{
    unsigned own = service->plan->metric_count;

    service->routes = service_routes(service->plan);
    service->operations = 1;
    for (const struct http_route *route = service->routes; route->path != NULL; route++)
        service->operations++;
    service->metric_requests = (unsigned)SERVICE_METRICS + own;
    service->metric_times = service->metric_requests + REQUEST_KINDS * service->operations;
    unsigned count = service->metric_times + service->operations;
    struct metric *all = must_have(calloc(count, sizeof(*all)));
    memcpy(all, service_metrics, sizeof(service_metrics));
    memcpy(all + SERVICE_METRICS, service->plan->metrics, own * sizeof(*all));
    metrics_of_operations(service, all + service->metric_requests);
    service->metric_table = all;
    service->metrics = metrics_new(all, count, service->settings.threads);
}

static bool service_is_settled(const struct service *service)
{
    const struct store *first = service->workers[0].store;

    if (service->plan->quorum_of_stores)
        return service->plan->settled(service);
    if (store_misled(first) != NULL)
        return true;
    for (unsigned i = 0; i < service->settings.threads; i++)
        if (!store_checked(service->workers[i].store))
            return false;
    if (store_unsafe(first) != NULL)
        return !store_unsafe_may_pass(first);
    return service->plan->settled == NULL || service->plan->settled(service);
}

static void say_not_ready(const struct service *service, const char *detail)
{
    struct log_field fields[] = {LOG_T("detail", bytes_of(detail)), LOG_END};

    log_event(&service->log, LOG_WARNING, "store-not-ready", fields);
}

/* Whether one who asks for the end waits for service_serve(). */
static bool end_is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

/* Waits until every worker's link has read the settings of the store once and it is known how things stand
 * with it, or until it is clear that it cannot be reached now: then the service starts all the same, answers
 * 503, and looks as soon as the store is there. From here on it may stand in the store's list, and
 * leaves that when it is asked to end: signals wait until they are heard. */
static int service_look_at_store(struct service *service)
{
    unsigned threads = service->settings.threads;
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    const struct store *first;
    const char *detail = NULL;
    char own[READY_DETAIL_SIZE];
    enum problem problem;

    signals_mask(SIG_BLOCK, true);
    service_metrics_open(service);
    for (unsigned i = 0; i < threads; i++)
        worker_open(&service->workers[i], service, i);
    while (!service_is_settled(service) && loop_now_ms() < deadline_ms && !end_is_pending())
        for (unsigned i = 0; i < threads; i++)
            loop_turn(service->workers[i].loop, START_LOOK_MS / threads);
    if (service->plan->quorum_of_stores) {
        if (service->plan->ready(&service->workers[0], &problem, own) != NULL)
            say_not_ready(service, own);
        return -1;
    }
    first = service->workers[0].store;
    if (store_unsafe(first) != NULL)
        return service_fail(service, "this Redis can lose locks: %s (--allow-unsafe-redis accepts that)",
                            store_unsafe(first));
    const char *check = store_not_ready(first, &detail);

    if (store_misled(first) != NULL)
        return service_fail(service, "%s %s", detail, store_misled(first));
    if (service->plan->unfit != NULL && service->plan->unfit(service, own))
        return service_fail(service, "%s", own);
    if (check != NULL)
        say_not_ready(service, detail);
    return -1;
}

static void say_address(const struct service *service, const char *what, const char *address, unsigned port)
{
    int host = (int)(strrchr(address, ':') - address);

    fprintf(stderr, "%s http%s://%.*s:%u\n", what, service->tls != NULL ? "s" : "", host, address, port);
}

static void service_say_ready(struct service *service)
{
    const struct service_settings *settings = &service->settings;
    const char *given = service->listen_given;

    if (settings->ui_listen != NULL)
        say_address(service, "web pages on", settings->ui_listen, service->ui_port);
    say_address(service, "listening on", given[0] != '\0' ? given : settings->listen, service->listen_port);
    if (settings->listen_unix != NULL)
        fprintf(stderr, "listening on unix:%s\n", settings->listen_unix);
    service->watchdog = notify_watchdog_read();
    notify_send("READY=1");
}

/* -- serving */

static void *worker_thread(void *argument)
{
    worker_serve(argument);
    return NULL;
}

static void service_drain(struct start *start)
{
    if (!atomic_exchange(&start->service->draining, true)) {
        log_event(&start->service->log, LOG_INFO, "draining", NULL);
        notify_send("STOPPING=1");
        loop_timer_arm(&start->deadline, STOP_WITHIN_MS, 0);
    }
}

static void term_caught(struct loop_signal *signal)
{
    service_drain(container_of(signal, struct start, term));
}

static void interrupt_caught(struct loop_signal *signal)
{
    service_drain(container_of(signal, struct start, interrupt));
}

static void hangup_caught(struct loop_signal *signal)
{
    struct start *start = container_of(signal, struct start, hangup);
    bool is_read;

    notify_reloading();
    service_tls_reload(start->service); /* first: who judges anew does so by these, too */
    is_read = service_reload(start->service);
    if (start->service->plan->reload != NULL)
        start->service->plan->reload(start->service);
    if (is_read)
        notify_send("READY=1");
}

/* The requests still open would have been answered by now if they ever were: go, in time, without tidying
 * up. */
static void stop_deadline(struct loop_timer *timer)
{
    struct start *start = container_of(timer, struct start, deadline);

    for (unsigned i = 0; i < start->service->settings.threads; i++)
        loop_stop(start->service->workers[i].loop);
}

static void service_serve(struct service *service)
{
    unsigned threads = service->settings.threads;
    struct loop *loop = service->workers[0].loop;
    pthread_t thread[SERVICE_THREADS_MAX];
    struct start start = {.service = service};

    loop_signal_init(loop, &start.term, SIGTERM, term_caught);
    loop_signal_init(loop, &start.interrupt, SIGINT, interrupt_caught);
    loop_signal_init(loop, &start.hangup, SIGHUP, hangup_caught);
    loop_timer_init(loop, &start.deadline, stop_deadline);
    signals_mask(SIG_UNBLOCK, true);
    service_say_ready(service); /* its reader may send a signal at once */
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, worker_thread, &service->workers[i]) != 0) {
            fprintf(stderr, "%s: thread %u of %u cannot be started\n", service->plan->name, i + 1, threads);
            abort();
        }
    worker_serve(&service->workers[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    loop_timer_done(&start.deadline);
    /* Who asks a second time, in the last moments, shall not make a failure of an orderly end: libuv gives
     * each signal its default action back. */
    signals_mask(SIG_BLOCK, true);
    loop_signal_done(&start.term);
    loop_signal_done(&start.interrupt);
    loop_signal_done(&start.hangup);
}

/* A resolver may take longer than the end may last: what its threads need stays. */
static void exit_if_looking_up(const struct service *service, int status)
{
    for (unsigned i = 0; service->workers != NULL && i < service->settings.threads; i++) {
        const struct worker *worker = &service->workers[i];

        if (worker->loop != NULL && loop_is_looking_up(worker->loop)) {
            fflush(NULL);
            _exit(status);
        }
    }
}

static void service_end(struct service *service, int status)
{
    bool all_answered = true;

    for (unsigned i = 0; service->workers != NULL && i < service->settings.threads; i++) {
        struct worker *worker = &service->workers[i];
        all_answered = all_answered &&
                       (worker->http == NULL || http_server_running_requests(worker->http) == 0);
    }
    if (!all_answered) {
        exit_if_looking_up(service, status);
        return; /* the end of the process closes what is left */
    }
    for (unsigned i = service->settings.threads;
         service->workers != NULL && i-- > 0;) /* see store_finder() */
        if (service->workers[i].loop != NULL)
            worker_close(&service->workers[i]);
    exit_if_looking_up(service, status);
    if (service->plan->close != NULL)
        service->plan->close(service);
    if (service->metrics != NULL)
        metrics_free(service->metrics);
    token_keys_free(atomic_load(&service->keys));
    token_keys_free(service->keys_retired);
    access_free(atomic_load(&service->access));
    access_free(service->access_retired);
    free(atomic_load(&service->access_wrong));
    free(service->access_wrong_retired);
    limits_free(service->limits);
    free(service->metric_table);
    free(service->metric_labels);
    free(service->routes);
    options_texts_free(service->texts);
    free(service->password);
    http_peers_free(service->peers);
    tls_server_free(service->tls);
    free(service->workers);
    free(service);
}

int service_main(const struct service_plan *plan, int argc, char **argv)
{
    struct service *service = calloc(1, sizeof(*service));
    int status;

    if (service == NULL)
        return SERVICE_BUG;
    service->plan = plan;
    service->began_s = time(NULL);
    process_prepare();
    status = settings_read(service, argc, argv);
    plan = service->plan; /* of a quorum, if the settings say so */
    service->log = (struct log){
        .program = plan->name,
        .level = (enum log_level)service->settings.log_level,
        .format = service->settings.log_format >= 0 ? (enum log_format)service->settings.log_format
                  : isatty(STDERR_FILENO)           ? LOG_TEXT
                                                    : LOG_JSON,
        .fd = STDERR_FILENO,
        .is_cut = &service->log_is_cut,
    };
    if (status < 0 && plan->run_once != NULL && service->settings.init_store)
        status = plan->run_once(service);
    if (status < 0)
        status = service_descriptors(service);
    if (status < 0 && plan->open != NULL)
        status = plan->open(service);
    if (status < 0)
        status = service_listen(service);
    if (status < 0)
        status = service_listen_beside(service);
    if (status < 0)
        status = service_look_at_store(service);
    if (status < 0) {
        service_serve(service);
        status = SERVICE_OK;
    }
    service_end(service, status);
    return status;
}

/* settings.c - the settings of a daemon: read, checked, explained. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/service/service.h"

static const struct service_flag common_flags[] = {
    SERVICE_FLAG("listen", listen, OPTION_TEXT, "ADDR:PORT", "where to listen; port 0: the kernel picks one",
                 0, 0),
    SERVICE_FLAG("redis", redis, OPTION_TEXT, "URL", "redis://[user@]host:port[/db] or unix:///path", 0, 0),
    SERVICE_FLAG("redis-password-file", redis_password_file, OPTION_TEXT, "FILE", "the password of the store",
                 0, 0),
    SERVICE_FLAG("keys", keys, OPTION_TEXT, "FILE",
                 "keys that sign and verify tokens (pawl keygen); read again on SIGHUP", 0, 0),
    SERVICE_FLAG("state-dir", state_dir, OPTION_TEXT, "DIR",
                 "what this process must not forget (default $STATE_DIRECTORY; docs/operations.md)", 0, 0),
    SERVICE_FLAG("threads", threads, OPTION_UNSIGNED, "N", "threads that serve", 1, SERVICE_THREADS_MAX),
    SERVICE_FLAG("store-timeout", store_timeout_ms, OPTION_DURATION_MS, "DUR",
                 "how long a call to the store may take", 10, 60000),
    SERVICE_FLAG("remember", remember_ms, OPTION_DURATION_MS, "DUR", "how long what has ended is remembered",
                 1000, 86400000),
    SERVICE_FLAG("store-memory-max", store_memory_max, OPTION_BYTES, "BYTES",
                 "from 90 % of this, or of Redis' maxmemory if that is lower, nothing new is stored", 1 << 20,
                 1LL << 50),
    SERVICE_FLAG("max-connections", connections_max, OPTION_UNSIGNED, "N", "open connections", 1, 1000000),
    SERVICE_FLAG("max-connections-per-address", connections_per_address, OPTION_UNSIGNED, "N",
                 "of one address, or IPv6 /64 (default: half of --max-connections)", 1, 1000000),
    SERVICE_FLAG("trusted-proxy", trusted_proxies, OPTION_LIST, "CIDR",
                 "from there the last address of X-Forwarded-For is the client's; as often as needed", 0, 0),
    SERVICE_FLAG("max-body-memory", body_memory_max, OPTION_BYTES, "BYTES",
                 "all request bodies in memory at once", 65536, 1LL << 40),
    SERVICE_FLAG("header-max", head_max, OPTION_BYTES, "BYTES", "of a request's line and headers together",
                 1024, SERVICE_HEAD_MAX),
    SERVICE_FLAG("header-timeout", header_timeout_ms, OPTION_DURATION_MS, "DUR",
                 "for a request's header to be complete", 100, 600000),
    SERVICE_FLAG("body-timeout", body_timeout_ms, OPTION_DURATION_MS, "DUR",
                 "for a request's body to be complete", 100, 3600000),
    SERVICE_FLAG("log-format", log_format, OPTION_CHOICE, "text|json", "text is the default on a terminal", 0,
                 0),
    SERVICE_FLAG("log-level", log_level, OPTION_CHOICE, "debug|info|warning|error", "what is worth a line", 0,
                 0),
    SERVICE_FLAG("allow-anonymous", allow_anonymous, OPTION_FLAG, NULL,
                 "listen beyond loopback though callers cannot authenticate", 0, 0),
    SERVICE_FLAG(
        "allow-host", allow_hosts, OPTION_LIST, "NAME",
        "a Host that clients or a proxy send, beside loopback's (docs/proxies.md); as often as needed", 0, 0),
    SERVICE_FLAG("allow-origin", allow_origins, OPTION_LIST, "https://NAME",
                 "whose web pages may change something, beside the Host's own; as often as needed", 0, 0),
    SERVICE_FLAG("allow-unsafe-redis", allow_unsafe_redis, OPTION_FLAG, NULL,
                 "accept a store that can lose locks", 0, 0),
    SERVICE_FLAG("suspend-always", suspend_always, OPTION_FLAG, NULL,
                 "never poll for short waits (slower; for comparison)", 0, 0),
    SERVICE_FLAG("config", config, OPTION_TEXT, "FILE", "a JSON object of these settings", 0, 0),
    {{.name = "check-config",
      .kind = OPTION_FLAG,
      .help = "check the settings and exit",
      .command_line_only = true},
     offsetof(struct service_settings, check_config)},
};

enum { COMMON_FLAGS = sizeof(common_flags) / sizeof(common_flags[0]), FLAGS_MAX = COMMON_FLAGS + 16 };

static const char *const known_variables[] = {
#define VARIABLE(name) name,
#include "api/variables.def"
#undef VARIABLE
    NULL};

static int settings_check(struct service *service);

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

static unsigned settings_rows(struct service *service, struct option rows[FLAGS_MAX + 1])
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
    return count;
}

static int fail(const struct service *service, int status, const char *what)
{
    fprintf(stderr, "%s: %s\n", service->plan->name, what);
    return status;
}

int service_read_settings(struct service *service, int argc, char **argv)
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
    case OPTIONS_BAD: return fail(service, SERVICE_CONFIG, why);
    case OPTIONS_OK: break;
    }
    return settings_check(service);
}

static int settings_read_password(struct service *service)
{
    char why[256];
    size_t len = 0;

    if (service->settings.redis_password_file == NULL) {
        return -1;
    }
    service->password = options_read_file(service->settings.redis_password_file, 4096, &len, why,
                                          sizeof(why));
    if (service->password == NULL) {
        return fail(service, SERVICE_CONFIG, why);
    }
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

    if (service->settings.keys == NULL) {
        return fail(service, SERVICE_CONFIG,
                    "--keys is missing: make a file with \"pawl keygen --out FILE\" and name it");
    }
    struct token_keys *keys = token_keys_load(service->settings.keys, why, sizeof(why));
    if (keys == NULL) {
        return fail(service, SERVICE_CONFIG, why);
    }
    atomic_store(&service->keys, keys);
    return -1;
}

static int settings_check(struct service *service)
{
    const struct service_settings *s = &service->settings;
    bool has_password = false;
    const char *bad = store_url_check(s->redis, &has_password);

    if (bad != NULL) {
        return fail(service, SERVICE_CONFIG, bad);
    }
    if (!s->init_store && !s->allow_anonymous && !http_address_is_loopback(s->listen)) {
        return fail(service, SERVICE_CONFIG,
                    "--listen is not a loopback address, and callers cannot authenticate yet: "
                    "listen on 127.0.0.1 or [::1], or say --allow-anonymous");
    }
    bad = http_browser_lists_check(s->allow_hosts, s->allow_origins);
    if (bad != NULL) {
        return fail(service, SERVICE_CONFIG, bad);
    }
    unsigned half = s->connections_max > 1 ? s->connections_max / 2 : 1;
    service->peers = http_peers_new(s->connections_per_address > 0 ? s->connections_per_address : half,
                                    s->trusted_proxies, &bad);
    if (service->peers == NULL) {
        return fail(service, SERVICE_CONFIG, bad);
    }
    int status = settings_read_password(service);
    if (status < 0 && !s->init_store) {
        status = settings_read_keys(service);
    }
    if (status < 0 && service->plan->check != NULL) {
        status = service->plan->check(service);
    }
    if (status < 0 && s->check_config) {
        printf("%s: the configuration is good\n", service->plan->name);
        return SERVICE_OK;
    }
    return status;
}

/* dev.c - pawl dev: a private Redis, the lease service and the gateway, to try things out; and pawl drill.
 *
 *   dev_read      flags
 *   cluster_start
 *   dev_say       addresses, and what to type next
 *   dev_watch     until a signal comes (0), or one of the three ends by itself (70)
 *   cluster_end */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/cluster.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "shared/text/ascii.h"
#include "shared/text/json.h"

enum { ROUTES_SIZE = 512, ROUTES_MAX = 1 << 20, FILLED_SIZE = 1280, WHY_SIZE = 512, JSON_LEVELS = 8 };

#define LEASE_DEFAULT "127.0.0.1:8700"
#define GATEWAY_DEFAULT "127.0.0.1:8701"
#define PAGES_DEFAULT "127.0.0.1:8702"

struct dev {
    struct cluster_plan plan;
    struct cluster cluster;
    bool example;
    char example_url[CLUSTER_URL_SIZE], routes[ROUTES_SIZE];
};

static int dev_read(struct dev *dev, int argc, char **argv)
{
    struct cluster_plan *plan = &dev->plan;
    const struct option flags[] = {
        FLAG_ENV("data", "DIR", "keep everything in DIR, and go on with it the next time", &plan->data),
        FLAG_ENV("listen-lease", "ADDR:PORT", "the lease service (default " LEASE_DEFAULT ")",
                 &plan->listen_lease),
        FLAG_ENV("listen-gateway", "ADDR:PORT", "the gateway (default " GATEWAY_DEFAULT ")",
                 &plan->listen_gateway),
        FLAG_TEXT("listen-pages", "ADDR:PORT",
                  "with routes, the web pages of the gateway (default " PAGES_DEFAULT
                  ", or a free port, as the gateway)",
                  &plan->listen_pages),
        FLAG_TEXT("routes", "FILE", "what the gateway forwards (docs/routes.md)", &plan->routes),
        FLAG_ON("example", "with an HTTP service that knows nothing of tokens, and a route to it",
                &dev->example),
        {0},
    };

    int status = flags_read("dev", flags, argc, argv, NULL);

    if (plan->listen_pages == NULL)
        plan->listen_pages = strcmp(plan->listen_gateway, GATEWAY_DEFAULT) == 0 ? PAGES_DEFAULT
                                                                                : "127.0.0.1:0";
    return status == CLI_GO_ON && dev->example && plan->routes != NULL
               ? cli_fail(CLI_USAGE, "--example and --routes exclude each other")
               : status;
}

static void dev_line(const char *name, const char *line)
{
    print_line(stderr, "%-7s | %s", name, line);
}

/* A path of a route, or its lease: 7 in the place of each capture, nothing for "**". False when it does not
 * fit, or a shell would not take it as it is. The gateway has read it: each '{' has its '}'. */
static bool fill_in(struct bytes pattern, char buf[FILLED_SIZE])
{
    size_t len = 0;

    if (pattern.len > 2 && memcmp(pattern.at + pattern.len - 3, "/**", 3) == 0)
        pattern.len -= pattern.len > 3 ? 3 : 2;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.at[i];

        if (len + 1 >= FILLED_SIZE || strchr("!$&'()*;", c) != NULL)
            return false;
        buf[len++] = c == '{' ? '7' : c;
        while (c == '{' && pattern.at[i] != '}')
            i++;
    }
    buf[len] = '\0';
    return true;
}

/* Of the first route of the file that the gateway has taken. */
static bool route_read(const char *file, char lease[FILLED_SIZE], char target[FILLED_SIZE])
{
    size_t len = 0;
    char why[WHY_SIZE], *text = options_read_file(file, ROUTES_MAX, &len, why, sizeof(why));
    struct json *json = text != NULL ? json_parse((struct bytes){text, len}, JSON_LEVELS, NULL) : NULL;
    const struct json *route = json != NULL ? json_list_object(json, "routes", 0) : NULL;
    struct bytes match, name;
    bool good = route != NULL && json_get_text(route, "match", &match) == JSON_FOUND &&
                json_get_text(route, "lease", &name) == JSON_FOUND && fill_in(match, target) &&
                fill_in(name, lease);

    json_free(json);
    free(text);
    return good;
}

/* Each line of what to type next can be pasted. */
static void say_use(const struct cluster *cluster)
{
    const char *lease = cluster->lease.url, *gateway = cluster->gateway.url;
    char of_route[FILLED_SIZE], to_route[FILLED_SIZE];
    bool routed = cluster->files.routes[0] != '\0' && route_read(cluster->files.routes, of_route, to_route);
    const char *name = routed ? of_route : "orders:41";
    const char *target = routed ? to_route : "/v1/resources/orders:41";
    char self[CHILD_PATH_SIZE];
    bool found = child_find("pawl", self);
    const char *pawl = found && ascii_is_word(bytes_of(self), BYTES("/._+-")) ? self : "pawl";

    printf("  With curl%s, in another terminal:\n\n"
           "TOKEN=$(curl -sS --json '{\"ttl_ms\":20000,\"wait_ms\":30000}' -o /dev/null -w "
           "'%%header{fencing-token}' "
           "%s/v1/leases/%s)\n"
           "curl -sS -X PUT -H \"Fencing-Token: $TOKEN\" -d packed %s%s\n"
           "curl -sS %s%s; echo\n"
           "curl -sS %s/v1/leases/%s; echo\n\n"
           "  %s:\n\n",
           routed ? " through the first route" : "", lease, name, gateway, target, gateway, target, lease,
           name, routed ? "With pawl, a resource that the gateway itself keeps" : "The same with pawl");
    if (strcmp(lease, "http://" LEASE_DEFAULT) != 0 || strcmp(gateway, "http://" GATEWAY_DEFAULT) != 0)
        printf("export PAWL_LEASE_URL=%s PAWL_GATEWAY_URL=%s\n", lease, gateway);
    printf("eval \"$(%s acquire orders:43 --ttl 10m -o env)\"\n"
           "echo packed | %s put orders:43\n"
           "%s cat orders:43\n"
           "%s ls\n"
           "%s release orders:43\n\n",
           pawl, pawl, pawl, pawl, pawl);
}

/* A holder that comes back too late, before a service that would take what it writes. */
static void say_example(const struct cluster *cluster, const char *example_url)
{
    const char *lease = cluster->lease.url, *gateway = cluster->gateway.url;

    puts("  A takes the lease, writes, and comes back after B has it: its write is refused in front of the\n"
         "  example, which knows nothing of tokens. In another terminal:\n");
    printf("take() { curl -sS --json '{\"ttl_ms\":2000,\"wait_ms\":20000}' -o /dev/null -w "
           "'%%header{fencing-token}' "
           "%s/v1/leases/order:7; }\n",
           lease);
    printf("write() { curl -sS -w ' %%{http_code}\\n' -X PUT -H \"Fencing-Token: $1\" -d \"$2\" "
           "%s/orders/7; }\n",
           gateway);
    printf("A=$(take); write \"$A\" 'by A'\n"
           "B=$(take); write \"$B\" 'by B'\n"
           "write \"$A\" 'late, by A'\n"
           "curl -sS %s/orders/7; echo\n\n",
           example_url);
}

static void dev_say(const struct dev *dev)
{
    const char *lease = dev->cluster.lease.url, *gateway = dev->cluster.gateway.url;
    const struct cluster_files *files = &dev->cluster.files;

    printf("pawl dev is ready\n\n"
           "  lease service  %s\n"
           "  gateway        %s\n"
           "  Redis          %s\n"
           "  data           %s\n",
           lease, gateway, files->url,
           dev->plan.data != NULL ? files->data : "temporary: deleted at the end (--data DIR keeps it)");
    if (files->routes[0] != '\0')
        printf("  routes         %s\n", files->routes);
    printf("  web pages      %s/ui/  %s/ui/\n", lease,
           dev->cluster.pages_url[0] != '\0' ? dev->cluster.pages_url : gateway);
    if (dev->example) {
        printf("  example        %s\n\n", dev->example_url);
        say_example(&dev->cluster, dev->example_url);
    } else {
        putchar('\n');
        say_use(&dev->cluster);
    }
    puts("  Ctrl-C ends it all. What the services log follows.\n");
    fflush(stdout);
}

static int dev_watch(struct cluster *cluster)
{
    for (;;) {
        enum watch_event event = cluster_next(cluster, UINT64_MAX);

        if (event == WATCH_SIGNAL)
            return CLI_OK;
        if (event == WATCH_ENDED && cluster_tell_end(cluster)) {
            cli_hint("The others are being ended too.");
            return CLI_BUG;
        }
    }
}

int cli_dev(int argc, char **argv)
{
    struct dev dev = {
        .plan = {.listen_lease = LEASE_DEFAULT, .listen_gateway = GATEWAY_DEFAULT, .line = dev_line}};
    int status = dev_read(&dev, argc, argv);

    if (status == CLI_GO_ON && dev.example) {
        status = example_start(dev.example_url);
        snprintf(dev.routes, sizeof(dev.routes),
                 "{\"routes\": [\n  {\"match\": \"/orders/{id}\", \"lease\": \"order:{id}\", \"upstream\": "
                 "\"%s\", "
                 "\"guarantee\": \"ordered\"}\n]}\n",
                 dev.example_url);
        dev.plan.routes_text = dev.routes;
    }
    if (status != CLI_GO_ON)
        return status;
    status = cluster_start(&dev.cluster, &dev.plan);
    if (status == CLI_GO_ON) {
        dev_say(&dev);
        status = dev_watch(&dev.cluster);
    }
    cluster_end(&dev.cluster);
    return status;
}

/* -- pawl drill: executes pawl-drill, which belongs to the tests (tests/drill) and comes with the package
 * pawl-lab */

int cli_drill(int argc, char **argv)
{
    char path[CHILD_PATH_SIZE], programs[CHILD_PATH_SIZE];

    (void)argc; /* argv ends with NULL */
    if (!child_find_beside("pawl-drill", X_OK, path) &&
        !child_find_beside("../lib/pawl/pawl-drill", X_OK, path))
        return cli_fail(CLI_CONFIG, "pawl-drill is not installed: the package pawl-lab has it");
    if (child_find_beside(".", X_OK, programs))
        setenv("PAWL_BUILD", programs, 1);
    execv(path, argv);
    return cli_fail(CLI_CONFIG, "%s cannot be run: %s", path, strerror(errno));
}

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

#include "api/cli/child.h"
#include "api/cli/cli.h"
#include "api/cli/cluster.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"

#define LEASE_DEFAULT "127.0.0.1:8700"
#define GATEWAY_DEFAULT "127.0.0.1:8701"

struct dev {
    struct cluster_plan plan;
    struct cluster cluster;
};

static int dev_read(struct cluster_plan *plan, int argc, char **argv)
{
    const struct option flags[] = {
        FLAG_ENV("data", "DIR", "keep everything in DIR, and go on with it the next time", &plan->data),
        FLAG_ENV("listen-lease", "ADDR:PORT", "the lease service (default " LEASE_DEFAULT ")",
                 &plan->listen_lease),
        FLAG_ENV("listen-gateway", "ADDR:PORT", "the gateway (default " GATEWAY_DEFAULT ")",
                 &plan->listen_gateway),
        {0},
    };
    const struct usage usage = {
        .name = "dev",
        .arguments = "",
        .examples = "  pawl dev\n"
                    "  pawl dev --data ./pawl-data\n"
                    "  pawl dev --listen-lease 127.0.0.1:0 --listen-gateway 127.0.0.1:0\n",
        .summary = "Runs a private redis-server, the lease service and the gateway, with keys made for the "
                   "occasion, until\n"
                   "Ctrl-C. Without --data everything is deleted at the end.",
        .flags = flags,
    };

    return flags_read(&usage, argc, argv, NULL, NULL);
}

static void dev_line(const char *name, const char *line)
{
    fprintf(stderr, "%-7s | ", name);
    print_safe(stderr, bytes_of(line));
    fputc('\n', stderr);
}

/* Each line of what to type next can be pasted. */
static void dev_say(const struct dev *dev)
{
    const char *lease = dev->cluster.lease_url, *gateway = dev->cluster.gateway_url;
    char self[CHILD_PATH_SIZE];
    bool found = child_find("pawl", self);
    const char *pawl = found && strpbrk(self, " '\"$\\`") == NULL ? self : "pawl";

    printf("pawl dev is ready\n\n"
           "  lease service  %s\n"
           "  gateway        %s\n"
           "  data           %s\n\n"
           "  With curl, in another terminal:\n\n"
           "TOKEN=$(curl -sS --json '{\"ttl_ms\":600000}' -o /dev/null -w '%%header{fencing-token}' "
           "%s/v1/leases/orders:42)\n"
           "curl -sS -X PUT -H \"Fencing-Token: $TOKEN\" -d packed %s/v1/resources/orders:42\n"
           "curl -sS %s/v1/resources/orders:42; echo\n"
           "curl -sS %s/v1/leases/orders:42; echo\n\n"
           "  The same with pawl:\n\n",
           lease, gateway,
           dev->plan.data != NULL ? dev->cluster.files.data
                                  : "temporary: deleted at the end (--data DIR keeps it)",
           lease, gateway, gateway, lease);
    if (strcmp(lease, "http://" LEASE_DEFAULT) != 0 || strcmp(gateway, "http://" GATEWAY_DEFAULT) != 0) {
        printf("export PAWL_LEASE_URL=%s PAWL_GATEWAY_URL=%s\n", lease, gateway);
    }
    printf("eval \"$(%s acquire orders:43 --ttl 10m -o env)\"\n"
           "echo packed | %s put orders:43\n"
           "%s cat orders:43\n"
           "%s ls\n"
           "%s release orders:43\n\n"
           "  Ctrl-C ends it all. What the services log follows.\n\n",
           pawl, pawl, pawl, pawl, pawl);
    fflush(stdout);
}

static int dev_watch(struct cluster *cluster)
{
    for (;;) {
        enum watch_event event = cluster_next(cluster, UINT64_MAX);

        if (event == WATCH_SIGNAL) {
            return CLI_OK;
        }
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
    int status = dev_read(&dev.plan, argc, argv);

    if (status != CLI_GO_ON) {
        return status;
    }
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
        !child_find_beside("../lib/pawl/pawl-drill", X_OK, path)) {
        return cli_fail(CLI_CONFIG, "pawl-drill is not installed: the package pawl-lab has it");
    }
    if (child_find_beside(".", X_OK, programs)) {
        setenv("PAWL_BUILD", programs, 1);
    }
    execv(path, argv);
    return cli_fail(CLI_CONFIG, "%s cannot be run: %s", path, strerror(errno));
}

/* main.c - pawl: everything that a person types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "shared/text/read_all.h"

static const struct command commands[] = {
    {"dev", cli_dev, "a private Redis, the lease service and the gateway, to try things out"},
    {"demo", cli_demo, "shows a hazard with real processes, first with a common recipe, then with Pawl"},
    {"run", cli_run, "run a command while a lease is held"},
    {"acquire", cli_acquire, "take a lease"},
    {"renew", cli_verb, "hold it longer"},
    {"release", cli_verb, "give it back"},
    {"get", cli_verb, "who holds a lease"},
    {"ls", cli_verb, "the leases that are held"},
    {"sessions", cli_verb, "the sessions that live"},
    {"top", cli_top, "how things stand, anew each second"},
    {"watch", cli_watch, "what happens to a lease, as it happens"},
    {"history", cli_verb, "who held a lease, and how each hold ended"},
    {"force-release", cli_verb, "end somebody else's hold"},
    {"put", cli_verb, "write a resource, fenced"},
    {"cat", cli_verb, "read a resource"},
    {"rm", cli_verb, "delete a resource, fenced"},
    {"resolve", cli_verb, "what was sent with no known end, and an operator's word on how it ended"},
    {"routes", cli_verb, "which routes a gateway serves, and that all are to serve them"},
    {"drill", cli_drill, "plays accidents against a private Redis under load, and counts what went wrong"},
    {"access", cli_access, "who may do what: access tokens, and the access file"},
    {"keygen", cli_keygen, "make a key that signs fencing tokens"},
    {"verify", cli_verify, "read a fencing token and check its signature"},
    {"doctor", cli_doctor, "looks at the services, Redis, clocks and keys, and says what to do"},
    {"completion", cli_completion, "what bash, zsh or fish need to complete a command line"},
    {"store", cli_store, "what an operator sees and does when the services refuse"},
    {"demo-worker", cli_demo_worker, NULL},
    {"demo-relay", cli_demo_relay, NULL},
    {0},
};

static int print_help(void)
{
    usage_print("");
    puts("Commands (pawl COMMAND --help says more):");
    command_list(commands, 13);
    puts("\nFlags:\n"
         "  --lease-url URL    the lease service (PAWL_LEASE_URL; default http://127.0.0.1:8700)\n"
         "  --gateway-url URL  the gateway (PAWL_GATEWAY_URL; default http://127.0.0.1:8701)\n"
         "  --access-token-file FILE, --cacert FILE, --cert FILE, --cert-key FILE, --allow-plaintext\n"
         "                     who asks, and whom it trusts (PAWL_ACCESS_TOKEN_FILE, ...)\n"
         "  --help, --version\n"
         "\n"
         "Exit status: 0 done, 1 refused or not found, 64 usage, 69 service unreachable, 70 a bug,\n"
         "75 held by another, 76 fenced off or lost, 77 not allowed, 78 configuration.");
    return CLI_OK;
}

/* The flags in front of the command become the environment's, which the command's own flags beat in turn. */
static int front_flags(int argc, char **argv, int *used)
{
    const char *lease_url = NULL, *gateway_url = NULL;
    const struct option flags[] = {FLAG_LEASE_URL(&lease_url), FLAG_GATEWAY_URL(&gateway_url), {0}};
    int status = flags_read_front(flags, argc, argv, used);

    if (lease_url != NULL)
        setenv("PAWL_LEASE_URL", lease_url, 1);
    if (gateway_url != NULL)
        setenv("PAWL_GATEWAY_URL", gateway_url, 1);
    return status;
}

/* The words behind "pawl", the last of which is being typed: flags.h. argv[0] is our own. */
static int complete(int argc, char **argv)
{
    char name[] = "pawl", mark[] = FLAGS_COMPLETE;
    char *typed = argv[argc - 1], *front[] = {name, mark, typed, NULL};
    int at = 1;
    int status = argc > 2 ? front_flags(argc - 1, argv, &at) : CLI_GO_ON;

    if (argc < 2 || status != CLI_GO_ON)
        return CLI_OK;
    if (at < argc - 1) {
        argv[at - 1] = argv[at];
        argv[at] = mark;
        return command_run(commands, "", argc - at + 1, argv + at - 1);
    }
    command_complete(commands, typed);
    return typed[0] == '-' ? front_flags(3, front, NULL) : CLI_OK;
}

/* What was said must have arrived: a full disk behind stdout is a failure. */
static int flushed(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return status == CLI_OK ? cli_fail(CLI_REFUSED, "the output could not be written") : status;
    return status;
}

int main(int argc, char **argv)
{
    int used = 1, command = 1, status; /* command: where it stands, whatever is wrong in front of it */
    char ask[] = "--help";

    standard_streams_fill();
    /* A line in one piece: what a command says meanwhile must not come to stand within it. */
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    if (argc > 2 && strcmp(argv[1], "help") == 0) { /* "help store status": "store status --help" */
        argv[1] = argv[2];
        argv[2] = argv[3]; /* NULL behind the last */
        argv[argc > 3 ? 3 : 2] = ask;
    }
    if (argc > 1 &&
        (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0))
        return flushed(print_help());
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("pawl %s\n", PAWL_VERSION);
        return flushed(CLI_OK);
    }
    if (argc > 1 && strcmp(argv[1], FLAGS_COMPLETE) == 0)
        return flushed(complete(argc - 1, argv + 1));
    while (command < argc && command_find(commands, argv[command]) == NULL)
        command++;
    status = environment_check();
    if (status != CLI_GO_ON && command < argc && strcmp(argv[command], "run") == 0)
        return 125; /* what pawl run says of itself: the other statuses are its command's */
    if (status == CLI_GO_ON)
        status = front_flags(argc, argv, &used);
    if (status == CLI_GO_ON && used >= argc)
        status = cli_fail(CLI_USAGE, "missing argument: COMMAND; see pawl --help");
    environment_signals(argv[command], argc, argv);
    status = status == CLI_GO_ON ? command_run(commands, "", argc - used, argv + used) : status;
    if (status != CLI_OK)
        environment_failure(argv[command], argc, argv, status);
    return flushed(status);
}

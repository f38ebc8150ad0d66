/* cluster.h - a private redis-server, a lease service and a gateway, as children of this process.
 *
 *   cluster_start    files, Redis, the store if there is none, lease service, gateway, both ready
 *   cluster_next     what happens, while they run
 *   cluster_end      the gateway, the lease service, Redis, each waited for; then temporary files go
 *
 * cluster_end() is called after cluster_start() whatever came of it. Every wait has a deadline. */
#ifndef PAWL_CLI_CLUSTER_H
#define PAWL_CLI_CLUSTER_H

#include "api/cli/child.h"

enum { CLUSTER_URL_SIZE = 160, CLUSTER_SOCKET_SIZE = 192, CLUSTER_TAIL = 8, CLUSTER_TAIL_BYTES = 300 };

/* What it has on disk. */
struct cluster_files {
    char run[CHILD_PATH_SIZE];  /* a temporary directory that only we can enter; "": none (yet) */
    char data[CHILD_PATH_SIZE]; /* where all of it is; run itself, or the user's */
    char keys[CHILD_PATH_SIZE]; /* the key file */
    char state_lease[CHILD_PATH_SIZE], state_gateway[CHILD_PATH_SIZE]; /* state directories of the services */
    char socket[CHILD_PATH_SIZE]; /* of Redis; short enough for a socket's address, else in run */
    char url[CHILD_PATH_SIZE];    /* the same for the services */
    char routes[CHILD_PATH_SIZE]; /* "": the gateway has none */
    int lock_fd;                  /* -1: the data is ours alone anyway */
    bool store_made;              /* the store in data was made before */
};

/* A service, and the last that it said. */
struct cluster_member {
    struct child child;
    char url[CLUSTER_URL_SIZE]; /* of a service: where it says that it listens; "": not yet */
    char tail[CLUSTER_TAIL][CLUSTER_TAIL_BYTES];
    unsigned said;
};

struct cluster {
    struct cluster_files files;
    struct cluster_member redis, maker, lease, gateway; /* maker: makes the store, once */
    struct cluster_member quorum, marks;                /* cluster_quorum() */
    struct watch watch;                                 /* others may add children of theirs */
    char pages_url[CLUSTER_URL_SIZE]; /* of the gateway, where they have an address of their own; else "" */
    /* Gets each line that the lease service or the gateway says; NULL: nobody does. */
    void (*line)(const char *name, const char *line);
};

struct cluster_plan {
    const char *data; /* a directory to keep; NULL: temporary */
    /* The gateway's routes: a file, or its text; NULL: none. */
    const char *routes, *routes_text;
    const char *listen_lease, *listen_gateway;
    const char *listen_pages;           /* of a gateway with routes; NULL: it has no web pages */
    const char *const *redis_variables; /* child.h */
    void (*line)(const char *name, const char *line);
};

/* CLI_GO_ON when both services are ready; else the exit status (CLI_OK: interrupted), and it has been said
 * why. */
int cluster_start(struct cluster *cluster, const struct cluster_plan *plan);
/* Beside them, a lease service on the redis-servers at these sockets, and a gateway that takes its tokens by
 * marks, on the Redis of the others. Ends as cluster_start() does. */
int cluster_quorum(struct cluster *cluster, unsigned nodes, const char (*sockets)[CLUSTER_SOCKET_SIZE]);
/* example.c: an HTTP service that keeps what is PUT under a path, and gives it to a GET, on a thread of its
 * own for as long as this process lives. It knows nothing of tokens. CLI_GO_ON, or the exit status. */
int example_start(char url[CLUSTER_URL_SIZE]);
/* What is started beside them: the program is beside pawl or in PATH. CLI_GO_ON, or the exit status: it has
 * been said why. */
struct cluster_process {
    struct child *child;
    const char *name, *program;
    enum child_streams streams;
    const char *const *variables; /* child.h */
    /* Of a redis-server, which listens at socket alone. keeps: "yes", with all that Pawl asks of a store, or
     * "no". */
    const char *socket, *directory, *keeps;
};
/* arguments: up to a NULL; NULL: none. */
int cluster_spawn(struct cluster *cluster, const struct cluster_process *process,
                  const char *const *arguments);
/* As watch_next(), but what the three say is dealt with; WATCH_LINE is of other children only. */
enum watch_event cluster_next(struct cluster *cluster, uint64_t deadline_ms);
/* When watch.child is one of them and has ended: says so, with the last that it said. Whether it is one of
 * them. */
bool cluster_tell_end(struct cluster *cluster);
/* Asks it to end, and waits; what takes too long is killed, and so it is when a signal comes. */
void cluster_end_child(struct cluster *cluster, struct child *child);
void cluster_end(struct cluster *cluster);

#endif

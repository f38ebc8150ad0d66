/* audit.c - what an operator's request did, and who was refused: lines of the log that are always there,
 * however little is logged.
 *
 * deed              each force-release, end of a session, resolve, dead, adopt that was let in
 * denied            each 401 and 403 of an identity, or of an address without one
 * handshake-failed  each client with whom there was no TLS, by its address
 *
 * Of the last two DENIED_MAX a minute; when it is over, denied-more says how many there were beyond. So a
 * flood fills no disk. An entry is of this thread: with several, each has its own. */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/service/service.h"
#include "shared/text/memory.h"

/* CALLERS_MAX: of one minute, identities and addresses each; those that come then are counted together, under
 * "". An address of IPv6 is its /64: who has one has all of it. */
enum { DENIED_MAX = 10, MINUTE_MS = 60000, CALLERS_MAX = 256, CALLER_SIZE = 80 };

struct denied_caller {
    char name[CALLER_SIZE]; /* "identity billing", "address 10.0.0.7", "handshake 10.0.0.7"; "": others */
    uint64_t since_ms;
    uint64_t count;
};

struct denied_callers {
    unsigned count;
    struct denied_caller caller[CALLERS_MAX];
};

/* Addresses are anybody's: they take identities no room. */
struct audit {
    struct denied_callers identities, addresses;
};

struct audit *audit_new(void)
{
    return must_have(calloc(1, sizeof(struct audit)));
}

/* -- deeds */

static void deed_log(struct worker *worker, const struct http_request *req, const struct http_ending *ending)
{
    const char *identity = http_identity(req);
    const struct bytes none = {NULL, 0};
    bool names_gateway = strstr(http_route(req)->path, "/gateways/{id}") != NULL;
    bool names_session = strstr(http_route(req)->path, "/sessions/{id}") != NULL;
    char id[HTTP_ID_SIZE], peer[HTTP_ADDRESS_SIZE];
    struct log_field fields[] = {
        LOG_T("deed", bytes_of(http_route(req)->operation)),
        LOG_T("identity", bytes_of(identity)),
        LOG_T("peer", bytes_of(http_client_address(req, peer))),
        LOG_T("lease", ending->lease),
        LOG_T("gateway", names_gateway ? http_path_part(req, 0) : none),
        LOG_T("session", names_session ? http_path_part(req, 0) : none),
        LOG_T("reason", ending->reason),
        LOG_T("outcome", ending->problem == PROBLEM_NONE ? BYTES("done")
                                                         : bytes_of(problem_info(ending->problem)->code)),
        LOG_T("instance", bytes_of(http_request_id(req, id))),
        LOG_END,
    };

    log_event(&worker->service->log, LOG_NOTICE, "deed", fields);
}

/* -- denials */

static struct denied_caller *caller_of(struct denied_callers *callers, const char *name)
{
    unsigned i = 0;

    while (i < callers->count && strcmp(callers->caller[i].name, name) != 0)
        i++;
    if (i == callers->count && i >= CALLERS_MAX - 1 && name[0] != '\0')
        return caller_of(callers, "");
    if (i == callers->count) {
        callers->caller[callers->count++] = (struct denied_caller){.since_ms = loop_now_ms()};
        snprintf(callers->caller[i].name, CALLER_SIZE, "%s", name);
    }
    return &callers->caller[i];
}

static bool identity_may_log(struct worker *worker, const char *identity)
{
    char name[CALLER_SIZE];

    snprintf(name, sizeof(name), "identity %s", identity);
    return ++caller_of(&worker->audit->identities, name)->count <= DENIED_MAX;
}

static bool address_may_log(struct worker *worker, const char *kind, const char *address)
{
    char name[CALLER_SIZE], network[INET6_ADDRSTRLEN];
    struct in6_addr six;
    bool is_six = inet_pton(AF_INET6, address, &six) == 1;

    if (is_six) {
        memset(&six.s6_addr[8], 0, 8);
        inet_ntop(AF_INET6, &six, network, sizeof(network));
    }
    snprintf(name, sizeof(name), "%s %s%s", kind, is_six ? network : address, is_six ? "/64" : "");
    return ++caller_of(&worker->audit->addresses, name)->count <= DENIED_MAX;
}

void audit_handshake(struct worker *worker, const char *reason, const char *why, const char *address)
{
    struct log_field fields[] = {LOG_T("peer", bytes_of(address)), LOG_T("reason", bytes_of(reason)),
                                 LOG_T("why", bytes_of(why)), LOG_END};

    if (address_may_log(worker, "handshake", address))
        log_event(&worker->service->log, LOG_NOTICE, "handshake-failed", fields);
}

static void denied_log(struct worker *worker, const struct http_request *req,
                       const struct http_ending *ending)
{
    const char *identity = http_identity(req);
    const struct http_route *route = http_route(req);
    char address[HTTP_ADDRESS_SIZE], id[HTTP_ID_SIZE];
    const char *peer = http_client_address(req, address); /* which is not in address if there is none */
    bool is_verb = route != NULL && (route->needs & ((1U << ACCESS_VERB_SHIFT) - 1)) >= ACCESS_HOLD;
    const struct bytes none = {NULL, 0};
    enum problem problem = ending->problem;
    const char *why = problem == PROBLEM_UNAUTHENTICATED ? ending->why : problem_info(problem)->code;

    if (!(identity != NULL ? identity_may_log(worker, identity) : address_may_log(worker, "address", peer)))
        return;
    struct log_field fields[] = {
        LOG_T("identity", bytes_of(identity)),
        LOG_T("peer", bytes_of(peer)),
        LOG_T("verb", problem == PROBLEM_FORBIDDEN ? bytes_of(ending->why)
                      : is_verb
                          ? bytes_of(access_verb_name((enum access_verb)(route->needs >> ACCESS_VERB_SHIFT)))
                          : none),
        LOG_T("lease", ending->lease),
        LOG_T("why", bytes_of(why)),
        LOG_T("instance", bytes_of(http_request_id(req, id))),
        LOG_END,
    };
    log_event(&worker->service->log, LOG_NOTICE, "denied", fields);
}

static void callers_tick(const struct worker *worker, struct denied_callers *callers, bool is_last)
{
    for (unsigned i = 0; i < callers->count;) {
        if (!is_last && loop_now_ms() - callers->caller[i].since_ms < MINUTE_MS) {
            i++;
            continue;
        }
        const struct denied_caller *over = &callers->caller[i];
        struct log_field fields[] = {LOG_T("caller", bytes_of(over->name)),
                                     LOG_I("more", (int64_t)(over->count - DENIED_MAX)), LOG_END};

        if (over->count > DENIED_MAX)
            log_event(&worker->service->log, LOG_NOTICE, "denied-more", fields);
        callers->caller[i] = callers->caller[--callers->count];
    }
}

void audit_tick(struct worker *worker, bool is_last)
{
    callers_tick(worker, &worker->audit->identities, is_last);
    callers_tick(worker, &worker->audit->addresses, is_last);
}

void audit_request(struct worker *worker, const struct http_request *req, const struct http_ending *ending)
{
    const struct http_route *route = http_route(req);
    enum problem problem = ending->problem;

    if (problem == PROBLEM_UNAUTHENTICATED || problem == PROBLEM_FORBIDDEN || problem == PROBLEM_NOT_YOURS)
        denied_log(worker, req, ending);
    else if (route != NULL && route->methods & HTTP_COMMAND && ending->was_handled)
        deed_log(worker, req, ending);
}

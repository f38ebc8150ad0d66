/* unreported.c - who has yet to say what it had sent to upstreams, since a store has lost something.
 *
 *   unreported_tick is it time to look?
 *   unreported_ask gateways_in_doubt.lua
 *   unreported_told for readyz and the metrics; the log has it once for each epoch */
#include "gateway/intent/intent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/worker.h"
#include "scripts.h"
#include "shared/text/memory.h"

/* LOG_AFTER_MS: gateways that live report in a fraction of that, which is not worth a line.
 * CALM_MS: a gateway may enter former incarnations of its own at any time (unreported_dead.lua). */
enum {
    LOOK_MS = 1000,
    CALM_MS = 5000,
    LOG_AFTER_MS = 1000,
    NAMES_MAX = 4,
    NAMES_SIZE = NAMES_MAX * 80,
    STORES_MAX = 64, /* of `mark` routes, that are looked at */
    UNREPORTED_ARGS = 5
};

struct unreported {
    struct gateway_worker *own;
    int64_t epoch;   /* of the epoch that was looked at; 0: none */
    uint64_t due_ms; /* when to look again */
    uint64_t since_ms;
    bool in_flight, is_logged, differs; /* differs: as it was last logged */
    struct member_call call;
    char key[KEYS_STRIPE_SIZE], stores[STORES_MAX * ROUTE_STORE_SIZE];
    struct bytes argv[1 + UNREPORTED_ARGS + MEMBER_ARGS];
};

static void unreported_ask(struct unreported *unreported);
static member_done_fn unreported_told;

struct unreported *unreported_new(struct gateway_worker *own)
{
    struct unreported *unreported = must_have(calloc(1, sizeof(*unreported)));

    unreported->own = own;
    return unreported;
}

void unreported_tick(struct unreported *unreported)
{
    struct member_line *line = &unreported->own->record.line;
    int64_t epoch = epoch_number(line->store_epoch);
    bool is_new = epoch != unreported->epoch;
    bool is_due = is_new || loop_now_ms() >= unreported->due_ms ||
                  (!unreported->differs && atomic_load(&unreported->own->gateway->routes_differed));

    if (unreported->in_flight || unreported->own->closer.stopped || !is_due ||
        member_line_problem(line) != PROBLEM_NONE)
        return;
    atomic_store(&unreported->own->gateway->routes_differed, false);
    if (is_new) {
        unreported->is_logged = false;
        unreported->since_ms = loop_now_ms();
    }
    unreported_ask(unreported);
}

/* "": it has none. */
static const char *own_routes(const struct gateway *gateway)
{
    const struct route_table *table = atomic_load(&gateway->table);

    return table != NULL ? table->hash : "";
}

/* Whose tokens it takes by `mark`, each once. Until the mutex is free the table stays in force, and is not
 * emptied. */
static struct bytes own_stores(struct unreported *unreported)
{
    struct gateway *gateway = unreported->own->gateway;
    const struct route_table *table;
    const char *of = gateway->service->settings.check_store;
    size_t len;

    pthread_mutex_lock(&gateway->table_mutex);
    table = atomic_load(&gateway->table);
    len = (size_t)snprintf(unreported->stores, sizeof(unreported->stores), "%s", of != NULL ? of : "");
    for (unsigned i = 0; table != NULL && i < table->count; i++) {
        const char *store = table->routes[i].store;

        if (store[0] != '\0' && strstr(unreported->stores, store) == NULL &&
            len + ROUTE_STORE_SIZE < sizeof(unreported->stores)) {
            len += (size_t)snprintf(unreported->stores + len, sizeof(unreported->stores) - len, "%s%s",
                                    len > 0 ? " " : "", store);
        }
    }
    pthread_mutex_unlock(&gateway->table_mutex);
    return (struct bytes){unreported->stores, len};
}

static void unreported_ask(struct unreported *unreported)
{
    const struct gateway *gateway = unreported->own->gateway;

    unreported->call.done = unreported_told;
    unreported->argv[0] = keys_stripe(unreported->key, 0);
    unreported->argv[1] = BYTES("4");
    unreported->argv[2] = bytes_of(gateway->id);
    unreported->argv[3] = bytes_of(gateway->incarnation);
    unreported->argv[4] = bytes_of(own_routes(gateway)); /* a table that was replaced is kept */
    unreported->argv[5] = own_stores(unreported);
    unreported->in_flight = member_run(&unreported->own->record.line, &unreported->call, 0,
                                       &script_gateways_in_doubt, 1, 1 + UNREPORTED_ARGS,
                                       unreported->argv) == PROBLEM_NONE;
}

static void unreported_log(struct unreported *unreported, const struct store_reply *list)
{
    struct log *log = &unreported->own->gateway->service->log;
    int64_t count = unreported->own->gateway->in_doubt.count;
    char names[NAMES_SIZE] = "";
    size_t len = 0;

    for (size_t i = 0; i < store_reply_count(list) && i < NAMES_MAX && len < sizeof(names); i++) {
        const struct store_reply *one = store_reply_list(list, i);
        struct bytes gateway = store_reply_text(one, 0), incarnation = store_reply_text(one, 1),
                     state = store_reply_text(one, 2);

        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s %.*s %.*s", i > 0 ? ", " : "",
                                (int)gateway.len, gateway.at, (int)incarnation.len, incarnation.at,
                                (int)state.len, state.at);
    }
    struct log_field fields[] = {LOG_I("incarnations", count), LOG_T("who", bytes_of(names)),
                                 LOG_T("do", BYTES("pawl store status")), LOG_END};
    log_event(log, LOG_WARNING, "in-doubt", fields);
    unreported->is_logged = true;
}

/* For the other threads: how many, and the first of them. */
static void unreported_publish(struct unreported *unreported, int64_t count, const struct store_reply *list,
                               struct bytes routes, struct bytes marks)
{
    struct gateway *own = unreported->own->gateway;
    struct gateway_doubt *seen = &own->in_doubt;
    const struct store_reply *first = list != NULL && store_reply_count(list) > 0 ? store_reply_list(list, 0)
                                                                                  : NULL;
    struct bytes gateway = first != NULL ? store_reply_text(first, 0) : BYTES("");
    struct bytes incarnation = first != NULL ? store_reply_text(first, 1) : BYTES("");

    pthread_mutex_lock(&own->doubt_mutex);
    seen->count = first != NULL ? (unsigned)count : 0;
    snprintf(seen->routes, sizeof(seen->routes), "%.*s", (int)routes.len, routes.len > 0 ? routes.at : "");
    snprintf(seen->marks, sizeof(seen->marks), "%.*s", (int)marks.len, marks.len > 0 ? marks.at : "");
    snprintf(seen->first, sizeof(seen->first), "%.*s %.*s", (int)gateway.len, gateway.at,
             (int)incarnation.len, incarnation.at);
    pthread_mutex_unlock(&own->doubt_mutex);
}

static bool routes_differ(const struct gateway *gateway, const char *served)
{
    const char *own = own_routes(gateway);

    return own[0] != '\0' && served[0] != '\0' && strcmp(own, served) != 0;
}

static void routes_log(struct unreported *unreported)
{
    struct gateway *gateway = unreported->own->gateway;
    bool differs = routes_differ(gateway, gateway->in_doubt.routes);
    struct log_field fields[] = {LOG_T("served", bytes_of(gateway->in_doubt.routes)),
                                 LOG_T("own", bytes_of(own_routes(gateway))), LOG_END};

    if (differs != unreported->differs) {
        unreported->differs = differs;
        log_event(&gateway->service->log, differs ? LOG_WARNING : LOG_INFO,
                  differs ? "routes-differ" : "routes-differ-no-more", fields);
    }
}

/* {"doubt", seq, how many, {{gateway, incarnation, state, since}, ...}, routes, marks lost} */
static enum step unreported_told(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct unreported *unreported = container_of(call, struct unreported, call);

    unreported->in_flight = false;
    if (unreported->own->closer.stopped || bad != PROBLEM_NONE || !store_reply_is(reply, "doubt"))
        return ANSWERED; /* the next tick asks again */
    unreported->epoch = unreported->call.epoch;
    unreported_publish(unreported, store_reply_integer(reply, 2), store_reply_list(reply, 3),
                       store_reply_text(reply, 4), store_reply_text(reply, 5));
    routes_log(unreported);
    unreported->due_ms = loop_now_ms() + (unreported->own->gateway->in_doubt.count > 0 || unreported->differs
                                              ? LOOK_MS
                                              : CALM_MS);
    if (unreported->own->gateway->in_doubt.count == 0) {
        if (unreported->is_logged) {
            log_event(&unreported->own->gateway->service->log, LOG_INFO, "in-doubt-no-more",
                      (struct log_field[]){LOG_END});
            unreported->is_logged = false;
        }
    } else if (!unreported->is_logged && loop_now_ms() >= unreported->since_ms + LOG_AFTER_MS) {
        unreported_log(unreported, store_reply_list(reply, 3));
    }
    return ANSWERED;
}

/* -- what is reported */

void unreported_detail(char detail[UNREPORTED_DETAIL_SIZE], const char *begin, struct bytes who)
{
    struct bytes incarnation = who, gateway = bytes_cut(&incarnation, ' ');

    snprintf(
        detail, UNREPORTED_DETAIL_SIZE,
        "%sThe store has lost data, and incarnation %.*s of gateway %.*s has yet to say what it had sent on. "
        "If it runs, it tells the store by itself, as soon as it reaches it. If it is dead: pawl resolve "
        "--gateway %.*s --incarnation %.*s --dead, and with --settled when nothing that it had sent is "
        "still on its way.",
        begin, (int)incarnation.len, incarnation.at, (int)gateway.len, gateway.at, (int)gateway.len,
        gateway.at, (int)incarnation.len, incarnation.at);
}

const char *unreported_lacking(struct worker *worker, const char **member, char detail[READY_DETAIL_SIZE])
{
    struct gateway *gateway = gateway_of(worker->service);
    struct gateway_doubt seen;
    char begin[96];

    pthread_mutex_lock(&gateway->doubt_mutex);
    seen = gateway->in_doubt;
    pthread_mutex_unlock(&gateway->doubt_mutex);
    *member = "ordered";
    if (routes_differ(gateway, seen.routes)) {
        snprintf(
            detail, READY_DETAIL_SIZE,
            "All that is forwarded is answered 503 routes-differ: this gateway's table (%.12s) is not what "
            "the gateways of this store have agreed on (%.12s). Its file was changed and not adopted, or the "
            "store was put back to before a change. With the right file at all of them: pawl routes adopt.",
            own_routes(gateway), seen.routes);
        return "routes-differ";
    }
    if (seen.count > 0) {
        snprintf(begin, sizeof(begin), "Ordered routes answer 503 in-doubt (%u: pawl store status). ",
                 seen.count);
        unreported_detail(detail, begin, bytes_of(seen.first));
        return "in-doubt";
    }
    if (seen.marks[0] == '\0' && atomic_load(&gateway->routes_lacking)) {
        *member = "routes";
        snprintf(
            detail, READY_DETAIL_SIZE,
            "The routes, or a file that they name, could not be read on the last SIGHUP: those of before "
            "count. The log says why.");
        return "not-reloaded";
    }
    if (seen.marks[0] == '\0')
        return NULL;
    *member = "mark";
    snprintf(
        detail, READY_DETAIL_SIZE,
        "What goes by the check mark of store \"%s\" is answered 503 marks-lost: this store has lost "
        "which of its tokens had been let through. Look at that one, then here: pawl store marks --of %s "
        "--at EPOCH.TOKEN.",
        seen.marks, seen.marks);
    return "marks-lost";
}

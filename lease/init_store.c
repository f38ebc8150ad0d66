/* init_store.c - pawl-lease --init-store: make a store in an empty Redis.
 *
 *   init_store         open the state directory, connect, look at the settings     69 | 78, or go on
 *   has_nodes          wait until there are as many nodes as --copies says         78, or go on
 *   init_store_ask     note the store in the directory, run init_store.lua
 *   init_store_answer  say what came of it                                         0 | 1 | 69
 *
 * The directory is written first: a store whose floor is nowhere must not be. If the store then was not made,
 * the note is taken back; if nobody knows, it stays. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lease/worker.h"
#include "scripts.h"
#include "shared/member/state_file.h"
#include "shared/token/keys.h"
#include "shared/token/random.h"

enum { TURN_MS = 10, REFUSED = 1 };

struct init_store {
    struct store_call call;
    const struct service *service;
    int status;             /* -1: not known yet */
    int64_t nodes;          /* how many there are; -1: not known yet; 0: Redis did not answer */
    struct state_file file; /* recorded stays as it was before */
    struct state_record record;
    char identity[STORE_ID_CHARS + sizeof(KEYS_SCHEMA ":")], epoch[24], floor[24], registrars[12], copies[12];
    struct bytes argv[8];
};

static int init_store_run(struct init_store *init, struct loop *loop, struct store *store);
static bool has_nodes(struct init_store *init, struct loop *loop, struct store *store, uint64_t deadline_ms);
static int init_store_ask(struct init_store *init, struct store *store);
static store_done_fn init_store_answer;

static int init_store_open(struct init_store *init)
{
    const struct service *service = init->service;
    char path[STATE_PATH_MAX], why[STATE_WHY_MAX];
    const char *wrong = state_path(service->settings.state_dir, path);

    if (wrong != NULL)
        return service_fail(service, "%s", wrong);
    switch (state_file_open(&init->file, path, why)) {
    case STATE_OPEN:
    case STATE_FRESH: break;
    case STATE_IN_USE:
    case STATE_DAMAGED:
    case STATE_FAILED: return service_fail(service, "%s", why);
    }
    if (init->file.recorded.store[0] == '\0')
        return -1;
    service_fail(
        service,
        "the state directory %s belongs to the store %s; nothing was created. If that store has lost "
        "its content: pawl store recover. If it is to be given up: delete the directory.",
        path, init->file.recorded.store);
    return REFUSED;
}

int init_store(struct service *service)
{
    struct init_store init = {.service = service, .status = -1, .file.dir = {.fd = -1, .lock_fd = -1}};
    int status = init_store_open(&init);

    if (status < 0) {
        struct loop *loop = loop_new();
        struct store *store = service_store_open(service, loop);

        status = init_store_run(&init, loop, store);
        store_close(store);
        if (!loop_is_looking_up(loop)) /* the end of the process leaves that */
            loop_free(loop);
    }
    state_file_close(&init.file);
    return status;
}

static int init_store_run(struct init_store *init, struct loop *loop, struct store *store)
{
    const struct service *service = init->service;
    const char *detail = NULL;
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    int status;

    while ((!store_checked(store) || store_not_ready(store, &detail) != NULL) &&
           store_unsafe(store) == NULL && store_misled(store) == NULL && loop_now_ms() < deadline_ms)
        loop_turn(loop, TURN_MS);
    if (store_misled(store) != NULL) {
        store_not_ready(store, &detail);
        return service_fail(service, "nothing was created: %s %s", detail, store_misled(store));
    }
    if (store_unsafe(store) != NULL)
        return service_fail(service, "this Redis can lose locks: %s (--allow-unsafe-redis accepts that)",
                            store_unsafe(store));
    if (store_not_ready(store, &detail) != NULL) {
        service_fail(service, "the store cannot be reached, nothing was created: %s", detail);
        return SERVICE_UNREACHABLE;
    }
    if (service->settings.copies > 1 && !has_nodes(init, loop, store, deadline_ms))
        return service_fail(
            service,
            "nothing was created: of %u nodes for --copies %u there are only %lld, this Redis and "
            "the replicas that are connected to it. Start the others, and run this again.",
            service->settings.copies, service->settings.copies, (long long)init->nodes);
    status = init_store_ask(init, store);
    while (status < 0 && init->status < 0)
        loop_turn(loop, TURN_MS); /* the call has a deadline of its own */
    return status < 0 ? init->status : status;
}

static enum step nodes_counted(struct store_call *call, enum store_outcome outcome,
                               const struct store_reply *reply)
{
    struct init_store *init = container_of(call, struct init_store, call);
    struct bytes slaves = reply_info_field(store_reply_text(reply, 0), "connected_slaves");

    init->nodes = outcome == STORE_DONE ? 1 + bytes_number(slaves, 9) : 0;
    return ANSWERED;
}

/* With too few nothing would ever be answered. Those that have been started are connected soon. */
static bool has_nodes(struct init_store *init, struct loop *loop, struct store *store, uint64_t deadline_ms)
{
    struct bytes words[] = {BYTES("INFO"), BYTES("replication")};

    do {
        init->nodes = -1;
        init->call.done = nodes_counted;
        store_ask(store, &init->call, 2, words);
        do
            loop_turn(loop, TURN_MS);
        while (init->nodes < 0);
    } while (init->nodes < (int64_t)init->service->settings.copies && loop_now_ms() < deadline_ms);
    return init->nodes == 0 || init->nodes >= (int64_t)init->service->settings.copies;
}

/* The epoch begins at the Unix time, so that a store that is lost with everything around it does not
 * begin again below the tokens of its former epoch. */
static int init_store_ask(struct init_store *init, struct store *store)
{
    const struct service *service = init->service;
    char why[STATE_WHY_MAX];

    init->record = init->file.recorded;
    random_text(init->record.store, STORE_ID_CHARS);
    init->record.epoch = (int64_t)time(NULL);
    init->record.floor = service->settings
                             .token_block; /* but no list: it may admit nothing before it has begun */
    if (!state_file_write(&init->file, &init->record, why))
        return service_fail(service, "%s", why);
    snprintf(init->identity, sizeof(init->identity), KEYS_SCHEMA ":%s", init->record.store);
    snprintf(init->epoch, sizeof(init->epoch), "%lld", (long long)init->record.epoch);
    snprintf(init->floor, sizeof(init->floor), "%lld", (long long)init->record.floor);
    init->argv[0] = BYTES("pawl:{store}");
    init->argv[1] = bytes_of(init->identity);
    init->argv[2] = bytes_of(init->epoch);
    init->argv[3] = bytes_of(store_run_id(store));
    init->argv[4] = bytes_of(init->record.member);
    init->argv[5] = bytes_of(init->floor);
    snprintf(init->registrars, sizeof(init->registrars), "%u", service->settings.registrars);
    init->argv[6] = bytes_of(init->registrars);
    snprintf(init->copies, sizeof(init->copies), "%u", service->settings.copies);
    init->argv[7] = bytes_of(init->copies);
    init->call.done = init_store_answer;
    store_run(store, &init->call, &script_init_store, 1, 8, init->argv);
    return -1;
}

static void take_back(struct init_store *init)
{
    char why[STATE_WHY_MAX];

    if (!state_file_write(&init->file, &init->file.recorded, why))
        service_fail(init->service, "%s", why);
}

static enum step init_store_answer(struct store_call *call, enum store_outcome outcome,
                                   const struct store_reply *reply)
{
    struct init_store *init = container_of(call, struct init_store, call);
    struct bytes id;

    if (outcome == STORE_DONE && store_reply_is(reply, "created")) {
        printf("store %s created, epoch %s\n", init->record.store, init->epoch);
        init->status = SERVICE_OK;
    } else if (outcome == STORE_DONE && store_reply_is(reply, "exists")) {
        id = store_reply_text(reply, 1);
        fprintf(stderr, "this Redis has a store already (%.*s); nothing was changed\n", (int)id.len, id.at);
        take_back(init);
        init->status = REFUSED;
    } else if (outcome == STORE_DONE && store_reply_is(reply, "forbidden")) {
        id = store_reply_text(reply, 1);
        init->status = service_fail(
            init->service,
            "this user of Redis may not %.*s; nothing was created. Make the store as the user of the "
            "services: redis://pawl@...",
            (int)id.len, id.at);
        take_back(init);
    } else if (outcome == STORE_NOT_SENT) {
        bool is_told = call->refusal != NULL && call->refusal->what != NULL;
        take_back(init);
        service_fail(init->service, "the store did not take the request; nothing was created%s%s%s%s",
                     is_told ? ": " : "", is_told ? call->refusal->what : "", is_told ? ". " : "",
                     is_told ? call->refusal->todo : "");
        init->status = SERVICE_UNREACHABLE;
    } else {
        service_fail(
            init->service,
            "the store did not answer in time, and may have been made: pawl store status tells. If it "
            "was not, delete the state directory and run this again.");
        init->status = SERVICE_UNREACHABLE;
    }
    return ANSWERED;
}

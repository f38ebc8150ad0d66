/* init_store.c - pawl-lease --init-store: make a store in an empty Redis.
 *
 *   init_store         open the state directory, connect, look at the settings     69 | 78, or go on
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
    const char *name;
    int status;             /* -1: not known yet */
    struct state_file file; /* recorded stays as it was before */
    struct state_record record;
    char identity[STORE_ID_CHARS + sizeof(KEYS_SCHEMA ":")], epoch[24], floor[24], registrars[12], copies[12];
    struct bytes argv[8];
};

static int init_store_run(struct init_store *init, struct service *service, struct loop *loop,
                          struct store *store);
static int init_store_ask(struct init_store *init, const struct service *service, struct store *store);
static store_done_fn init_store_answer;

static int fail(const struct init_store *init, int status, const char *what)
{
    fprintf(stderr, "%s: %s\n", init->name, what);
    return status;
}

static int init_store_open(struct init_store *init, const struct service *service)
{
    char path[STATE_PATH_MAX], why[STATE_WHY_MAX];
    const char *wrong = state_path(service->settings.state_dir, path);

    if (wrong != NULL)
        return fail(init, SERVICE_CONFIG, wrong);
    switch (state_file_open(&init->file, path, why)) {
    case STATE_OPEN:
    case STATE_FRESH: break;
    case STATE_IN_USE:
    case STATE_DAMAGED:
    case STATE_FAILED: return fail(init, SERVICE_CONFIG, why);
    }
    if (init->file.recorded.store[0] == '\0')
        return -1;
    fprintf(stderr,
            "%s: the state directory %s belongs to the store %s; nothing was created. If that store has lost "
            "its content: pawl "
            "store recover. If it is to be given up: delete the directory.\n",
            init->name, path, init->file.recorded.store);
    return REFUSED;
}

int init_store(struct service *service)
{
    struct init_store init = {
        .name = service->plan->name, .status = -1, .file.dir = {.fd = -1, .lock_fd = -1}};
    int status = init_store_open(&init, service);

    if (status < 0) {
        struct loop *loop = loop_new();
        struct store *store = service_store_open(service, loop);

        status = init_store_run(&init, service, loop, store);
        store_close(store);
        if (!loop_is_looking_up(loop)) /* the end of the process leaves that */
            loop_free(loop);
    }
    state_file_close(&init.file);
    return status;
}

static int init_store_run(struct init_store *init, struct service *service, struct loop *loop,
                          struct store *store)
{
    const char *detail = NULL;
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    int status;

    while ((!store_checked(store) || store_not_ready(store, &detail) != NULL) &&
           store_unsafe(store) == NULL && store_misled(store) == NULL && loop_now_ms() < deadline_ms)
        loop_turn(loop, TURN_MS);
    if (store_misled(store) != NULL) {
        store_not_ready(store, &detail);
        fprintf(stderr, "%s: nothing was created: %s %s\n", init->name, detail, store_misled(store));
        return SERVICE_CONFIG;
    }
    if (store_unsafe(store) != NULL) {
        fprintf(stderr, "%s: this Redis can lose locks: %s (--allow-unsafe-redis accepts that)\n", init->name,
                store_unsafe(store));
        return SERVICE_CONFIG;
    }
    if (store_not_ready(store, &detail) != NULL) {
        fprintf(stderr, "%s: the store cannot be reached, nothing was created: %s\n", init->name, detail);
        return SERVICE_UNREACHABLE;
    }
    status = init_store_ask(init, service, store);
    while (status < 0 && init->status < 0)
        loop_turn(loop, TURN_MS); /* the call has a deadline of its own */
    return status < 0 ? init->status : status;
}

/* The epoch begins at the Unix time, so that a store that is lost with everything around it does not
 * begin again below the tokens of its former epoch. */
static int init_store_ask(struct init_store *init, const struct service *service, struct store *store)
{
    char why[STATE_WHY_MAX];

    init->record = init->file.recorded;
    random_text(init->record.store, STORE_ID_CHARS);
    init->record.epoch = (int64_t)time(NULL);
    init->record.floor = service->settings
                             .token_block; /* but no list: it may admit nothing before it has begun */
    if (!state_file_write(&init->file, &init->record, why))
        return fail(init, SERVICE_CONFIG, why);
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
        fail(init, REFUSED, why);
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
        fprintf(stderr,
                "%s: this user of Redis may not %.*s; nothing was created. Make the store as the user of the "
                "services: redis://pawl@...\n",
                init->name, (int)id.len, id.at);
        take_back(init);
        init->status = SERVICE_CONFIG;
    } else if (outcome == STORE_NOT_SENT) {
        bool is_told = call->refusal != NULL && call->refusal->what != NULL;
        take_back(init);
        fprintf(stderr, "%s: the store did not take the request; nothing was created%s%s%s%s\n", init->name,
                is_told ? ": " : "", is_told ? call->refusal->what : "", is_told ? ". " : "",
                is_told ? call->refusal->todo : "");
        init->status = SERVICE_UNREACHABLE;
    } else {
        fprintf(
            stderr,
            "%s: the store did not answer in time, and may have been made: pawl store status tells. If it "
            "was not, delete the state directory and run this again.\n",
            init->name);
        init->status = SERVICE_UNREACHABLE;
    }
    return ANSWERED;
}

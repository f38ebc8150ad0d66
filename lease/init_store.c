/* init_store.c - pawl-lease --init-store: make a store in an empty Redis.
 *
 *   init_store         connect, look at the settings     69 | 78, or go on
 *   init_store_ask     run init_store.lua
 *   init_store_answer  say what came of it               0 | 1 | 69 */
#include "lease/init_store.h"

#include <stdio.h>
#include <time.h>

#include "lease_scripts.h"
#include "shared/random.h"
#include "shared/record/keys.h"

enum { ID_CHARS = 24, TURN_MS = 10 };

struct init_store {
    struct store_call call;
    int status; /* -1: not known yet */
    char stripe[KEYS_STRIPE_SIZE], id[ID_CHARS + 1], epoch[24];
    struct bytes argv[3];
};

static void init_store_ask(struct init_store *init, struct store *store);
static enum step init_store_answer(struct store_call *call, enum store_outcome outcome,
                                   const struct store_reply *reply);

static int init_store_run(struct service *service, struct loop *loop, struct store *store)
{
    const char *name = service->plan->name;
    const char *detail = NULL;
    uint64_t deadline_ms = loop_now_ms() + service->settings.store_timeout_ms;
    struct init_store init = {.status = -1};

    while ((!store_checked(store) || store_not_ready(store, &detail) != NULL) &&
           store_unsafe(store) == NULL && loop_now_ms() < deadline_ms) {
        loop_turn(loop, TURN_MS);
    }
    if (store_unsafe(store) != NULL) {
        fprintf(stderr, "%s: this Redis can lose locks: %s (--allow-unsafe-redis accepts that)\n", name,
                store_unsafe(store));
        return SERVICE_CONFIG;
    }
    if (store_not_ready(store, &detail) != NULL) {
        fprintf(stderr, "%s: the store cannot be reached, nothing was created: %s\n", name, detail);
        return SERVICE_UNREACHABLE;
    }
    init_store_ask(&init, store);
    while (init.status < 0) {
        loop_turn(loop, TURN_MS); /* the call has a deadline of its own */
    }
    return init.status;
}

int init_store(struct service *service)
{
    struct loop *loop = loop_new();
    struct store *store = service_store_open(service, loop);
    int status = init_store_run(service, loop, store);

    store_close(store);
    loop_free(loop);
    return status;
}

/* The epoch begins at the Unix time, so that a store that is lost with everything around it does not
 * begin again below the tokens of its former life. */
static void init_store_ask(struct init_store *init, struct store *store)
{
    random_text(init->id, ID_CHARS);
    snprintf(init->epoch, sizeof(init->epoch), "%lld", (long long)time(NULL));
    init->argv[0] = keys_stripe(init->stripe, 0);
    init->argv[1] = bytes_of(init->id);
    init->argv[2] = bytes_of(init->epoch);
    init->call.done = init_store_answer;
    store_run(store, &init->call, &script_init_store, 1, 3, init->argv);
}

static enum step init_store_answer(struct store_call *call, enum store_outcome outcome,
                                   const struct store_reply *reply)
{
    struct init_store *init = container_of(call, struct init_store, call);
    struct bytes id;

    if (outcome == STORE_DONE && store_reply_is(reply, "created")) {
        printf("store %s created, epoch %s\n", init->id, init->epoch);
        init->status = SERVICE_OK;
    } else if (outcome == STORE_DONE && store_reply_is(reply, "exists")) {
        id = store_reply_text(reply, 1);
        fprintf(stderr, "this Redis has a store already (%.*s); nothing was changed\n", (int)id.len, id.at);
        init->status = 1;
    } else {
        fprintf(stderr, "%s\n",
                outcome == STORE_NOT_SENT ? "the store did not take the request; nothing was created"
                                          : "the store did not answer in time: run this again to see");
        init->status = SERVICE_UNREACHABLE;
    }
    return ANSWERED;
}

/* member_world.h - what the tests of members stand on: a private Redis with a store in it, and parties: a
 * member each, with all that a daemon gives it, on a loop of its own, so that one can be held up. */
#ifndef PAWL_TESTS_MEMBER_WORLD_H
#define PAWL_TESTS_MEMBER_WORLD_H

#include "scripts.h"
#include "shared/member/member_internal.h"
#include "shared/token/random.h"
#include "tests/component/store_world.h"
#include "tests/unit/state_record.h"

enum { PARTIES = 3, STAGE_MS = 20000, CALL_MS = 8000, GRANT_KEYS = 2, GRANT_ARGS = 9, EVENTS = 8 };

#define STORE_ID "ssssssssssssssssssssssss"
#define FIRST_EPOCH 7

/* -- a party */

struct party {
    struct stage *stage;
    bool here, held_up;
    struct loop *loop;
    struct store *store;
    struct epoch *store_epoch;
    struct service service;
    struct worker worker;
    struct member_line line;
    struct state_file state_file;
    struct member member;
    char dir[64];
    unsigned told[EVENTS];
    char detail[EPOCH_DETAIL_SIZE]; /* of the last event that had one */
    char proof[16], not_asked[64];
};

struct stage {
    struct redis redis;
    struct party party[PARTIES];
};

static const char *const event_names[EVENTS] = {"store-admitted",    "store-suspended",
                                                "store-epoch-begun", "store-clock-corrected",
                                                "registrar-missing", "registrar-missing-no-more"};

enum { TOLD_ADMITTED, TOLD_SUSPENDED, TOLD_BEGUN, TOLD_CLOCK, TOLD_MISSING, TOLD_MISSING_NO_MORE };

/* Every arrow that any member of this program has gone; its tests run in children. */
static unsigned *member_walked;

static inline void party_event(struct member *member, enum log_level level, const char *event,
                               const struct log_field *fields)
{
    struct party *party = container_of(member, struct party, member);
    unsigned i = 0;

    (void)level;
    while (i < EVENTS - 1 && event_names[i] != NULL && strcmp(event_names[i], event) != 0)
        i++;
    CHECK(event_names[i] != NULL);
    party->told[i]++;
    for (; fields != NULL && fields->kind != LOG_FIELD_END; fields++) {
        char *out = strcmp(fields->key, "detail") == 0  ? party->detail
                    : strcmp(fields->key, "proof") == 0 ? party->proof
                                                        : party->not_asked;
        size_t size = out == party->detail  ? sizeof(party->detail)
                      : out == party->proof ? sizeof(party->proof)
                                            : sizeof(party->not_asked);

        if (fields->kind == LOG_FIELD_TEXT &&
            (out != party->not_asked || strcmp(fields->key, "not_asked") == 0))
            snprintf(out, size, "%.*s", (int)fields->text.len, fields->text.at);
    }
}

static inline void party_wrote(struct state_file *file)
{
    epoch_want_heartbeat(container_of(file, struct party, state_file)->store_epoch);
}

static inline struct store *party_store(struct stage *stage, struct loop *loop, bool allow_unsafe)
{
    return store_open(loop, &(struct store_options){.url = stage->redis.url,
                                                    .timeout_ms = CALL_MS,
                                                    .allow_unsafe = allow_unsafe,
                                                    .library = &pawl_library});
}

static const struct member_plan lease_member = {.role = MEMBER_LEASE, .admit = &script_admit},
                                gateway_member = {.role = MEMBER_GATEWAY};
static const struct service_plan lease_service = {.own = &lease_member},
                                 gateway_service = {.own = &gateway_member};

struct party_plan {
    enum member_role role;
    const char *dir; /* below the stage's; NULL: none */
    int64_t block;
    unsigned workers;
};

static inline struct party *party_open(struct stage *stage, unsigned i, struct party_plan plan)
{
    struct party *party = &stage->party[i];
    char why[STATE_WHY_MAX];

    *party = (struct party){.stage = stage, .here = true, .loop = loop_new(), .store_epoch = epoch_new()};
    snprintf(party->dir, sizeof(party->dir), "%s/%s", stage->redis.dir, plan.dir != NULL ? plan.dir : "");
    party->store = party_store(stage, party->loop, false);
    member_line_init(&party->line, party->store_epoch, party->store);
    if (plan.dir == NULL) {
        state_file_none(&party->state_file);
    } else if (!CHECK(state_file_open(&party->state_file, party->dir, why) <= STATE_FRESH)) {
        printf("# %s\n", why);
        abort();
    }
    state_file_start(&party->state_file, party->loop, party_wrote);
    party->service.plan = plan.role == MEMBER_LEASE ? &lease_service : &gateway_service;
    party->service.settings.threads = plan.workers != 0 ? plan.workers : 1;
    party->service.settings.token_block = plan.block != 0 ? (unsigned)plan.block : 1;
    party->worker.service = &party->service;
    party->worker.loop = party->loop;
    party->member = (struct member){.worker = &party->worker,
                                    .line = &party->line,
                                    .state_file = &party->state_file,
                                    .who = "a test",
                                    .event = party_event};
    member_start(&party->member);
    return party;
}

/* As a process that ends: what it has not said, it never says. */
static inline void party_close(struct party *party)
{
    for (unsigned from = 0; from < MEMBER_STATES; from++)
        __atomic_fetch_or(&member_walked[from], party->member.walked[from], __ATOMIC_RELAXED);
    member_stop(&party->member);
    loop_jobs_wait(party->loop);
    store_close(party->store);
    state_file_close(&party->state_file);
    epoch_free(party->store_epoch);
    loop_free(party->loop);
    party->here = false;
}

static inline void stage_turn(struct stage *stage)
{
    for (unsigned i = 0; i < PARTIES; i++)
        if (stage->party[i].here && !stage->party[i].held_up)
            waited_turn(stage->party[i].loop, 1);
}

#define UNTIL(stage, precondition)                                                                           \
    do {                                                                                                     \
        struct patience patience_ = patience_of(STAGE_MS);                                                   \
        while (!(precondition) && patience_lasts(&patience_))                                                \
            stage_turn(stage);                                                                               \
        CHECK(precondition);                                                                                 \
    } while (0)

/* -- the stage */

static inline void stage_open(struct stage *stage, const char *const *extra)
{
    memset(stage, 0, sizeof(*stage));
    redis_start(&stage->redis, extra);
}

static inline void stage_close(struct stage *stage)
{
    for (unsigned i = 0; i < PARTIES; i++)
        if (stage->party[i].here)
            party_close(&stage->party[i]);
    redis_stop(&stage->redis);
}

/* A state directory that belongs to the store, as pawl-lease --init-store leaves it. */
static inline void state_dir_init(const char *path, int64_t floor, char id[MEMBER_ID_CHARS + 1])
{
    struct state_file file;
    struct state_record record;
    char why[STATE_WHY_MAX];

    CHECK_INT(state_file_open(&file, path, why), STATE_FRESH);
    record = file.recorded;
    snprintf(record.store, sizeof(record.store), STORE_ID);
    record.epoch = FIRST_EPOCH;
    record.floor = floor;
    record.members_version = 1;
    list_line(record.list, "lease %s ----------------", record.member);
    CHECK(state_file_write(&file, &record, why));
    snprintf(id, MEMBER_ID_CHARS + 1, "%s", record.member);
    state_file_close(&file);
}

/* The store, and the state directory "a" of its first lease service. */
static inline void stage_init_store(struct stage *stage, int64_t floor)
{
    char id[MEMBER_ID_CHARS + 1];
    struct world world = {.loop = loop_new()};
    struct probe probe = {0};

    state_dir_init(textf("%s/a", stage->redis.dir), floor, id);
    world.store = party_store(stage, world.loop, true);
    WAIT(&world, world_ready(&world), 5000);
    struct bytes argv[] = {BYTES("pawl:{store}"),
                           BYTES(KEYS_SCHEMA ":" STORE_ID),
                           BYTES("7"),
                           bytes_of(store_run_id(world.store)),
                           bytes_of(id),
                           bytes_of(textf("%lld", (long long)floor)),
                           BYTES("0"),
                           BYTES("0")};
    probe.call.done = probe_done;
    probe.world = &world;
    world.open++;
    store_run(world.store, &probe.call, &script_init_store, 1, 8, argv);
    WAIT(&world, probe.ends == 1, 5000);
    CHECK_TEXT(bytes_of(probe.text), BYTES("created"));
    world_close(&world);
}

/* A store, and its lease service, IN. */
static inline struct party *stage_open_with_lease(struct stage *stage)
{
    stage_open(stage, NULL);
    stage_init_store(stage, 1000);
    struct party *lease = party_open(stage, 0, (struct party_plan){MEMBER_LEASE, "a", 1000, 1});
    UNTIL(stage, lease->member.state == MEMBER_IN && !lease->state_file.is_busy &&
                     listed(&lease->state_file.recorded, STATE_MEMBER) > 0 &&
                     lease->state_file.recorded.members_version == lease->member.members_version &&
                     lease->member.ceiling >= 1000);
    return lease;
}

/* A test with a store, and its lease service, IN. */
#define TEST_MEMBER(sentence)                                                                                \
    static void sentence##_in(struct stage *stage, struct party *lease);                                     \
    TEST(sentence)                                                                                           \
    {                                                                                                        \
        struct stage stage;                                                                                  \
                                                                                                             \
        sentence##_in(&stage, stage_open_with_lease(&stage));                                                \
        stage_close(&stage);                                                                                 \
    }                                                                                                        \
    static void sentence##_in(struct stage *stage __attribute__((unused)), struct party *lease)

/* A field of a hash of the store, or of the member's record. */
static inline const char *record_field(struct stage *stage, const char *key, const char *field)
{
    return redis_askf(&stage->redis, "HGET %s %s", key, field);
}

static inline const char *store_field(struct stage *stage, const char *field)
{
    return record_field(stage, "pawl:{store}", field);
}

static inline const char *member_field(struct party *party, const char *field)
{
    return record_field(party->stage, party->member.key, field);
}

/* -- calls */

/* An acquire of the lease "x" by a party, without HTTP. */
struct acquiring {
    struct member_call record;
    struct bytes argv[GRANT_KEYS + GRANT_ARGS + MEMBER_ARGS];
    char stripe[KEYS_STRIPE_SIZE], due[KEYS_STRIPE_SIZE], lease[16], lease_id[32];
    enum problem problem;
    bool ended;
    char word[16];
    int64_t seq, token;
    uint64_t seen; /* by the process, when the call had ended */
};

static inline enum step acquiring_done(struct store_call *call, enum store_outcome outcome,
                                       const struct store_reply *reply)
{
    struct acquiring *a = container_of(call, struct acquiring, record.store);
    struct bytes word = store_reply_text(reply, 0);

    a->problem = member_problem(&a->record, outcome, reply);
    a->ended = true;
    a->seq = store_reply_integer(reply, 1);
    a->token = store_reply_integer(reply, 2);
    a->seen = epoch_seen(a->record.store_epoch, a->record.stripe, a->record.epoch);
    snprintf(a->word, sizeof(a->word), "%.*s", (int)word.len, word.len > 0 ? word.at : "");
    return ANSWERED;
}

/* Sent, or refused at once: then it has ended. */
static inline void acquire_begin(struct party *party, struct acquiring *a, const char *lease)
{
    *a = (struct acquiring){.seq = -1};
    snprintf(a->lease, sizeof(a->lease), "%s", lease);
    random_text(a->lease_id, 24);
    unsigned stripe = keys_stripe_of(bytes_of(a->lease));
    struct bytes *args = &a->argv[GRANT_KEYS];

    a->argv[0] = keys_stripe(a->stripe, stripe);
    a->argv[1] = keys_due(a->due, stripe);
    args[0] = bytes_of(a->lease);
    args[1] = BYTES("600000");
    args[2] = bytes_of(a->lease_id);
    args[3] = BYTES("abcdefghijkl");
    args[4] = BYTES("holder");
    args[5] = BYTES("60000");
    args[6] = BYTES("");
    args[7] = BYTES("grant");
    args[8] = BYTES("");
    a->record.store.done = acquiring_done;
    a->problem = member_run(&party->line, &a->record, stripe, &script_acquire, GRANT_KEYS,
                            GRANT_KEYS + GRANT_ARGS, a->argv);
    a->ended = a->problem != PROBLEM_NONE;
}

static inline struct acquiring acquire_once(struct party *party, const char *lease)
{
    struct acquiring a;

    acquire_begin(party, &a, lease);
    UNTIL(party->stage, a.ended);
    return a;
}

#endif

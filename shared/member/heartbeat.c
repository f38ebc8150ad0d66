/* heartbeat.c - makes this process known to the store, and learns where it stands; admits the store.
 *
 *   member_heartbeat    what this process knows, as arguments                suspended
 *   heartbeat_answered  in | pending | gated | refused: each has its own function
 *   member_admit    asks for a new epoch (lease/scripts/admit.lua), with all reports as they are by now
 *                                                                        suspended
 *   admit_answered  admitted: a heartbeat; something missing: again at the next tick; a list to record: when
 *                   it is on disk it is reported (daemon.c), and then again; a disk that cannot be written is
 *                   asked for less and less often */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripts.h"
#include "shared/member/member_internal.h"
#include "shared/token/keys.h"
#include "shared/token/random.h"

enum {
    REPLY_MEMBERS = 6,
    REPLY_SEQS = 10,
    REPLY_MEMORY = 11,
    REPLY_STREAM = 13,
    REPLY_REGISTRARS = 14,
    REPLY_SET = 16
};

/* A link is back within 0.5 s of Redis, and a report comes at once after that. */
enum { WAIT_FOR_MEMBERS_MS = 1400, WAITS_LEAST = 10, WAIT_FOR_DISKS_MS = 3000 };
enum { AGAIN_MS = 50, AGAIN_MAX_MS = 2000, ELSEWHERE_US = 5000000 };

static store_done_fn admit_answered;

/* -- the list of members, registrars, nodes and doubts, as the store has it in its replies (state_file.h) */

static struct bytes higher(struct bytes one, struct bytes other)
{
    return bytes_number(one, STATE_DIGITS_MAX) < bytes_number(other, STATE_DIGITS_MAX) ? other : one;
}

/* What was once seen of a registrar is kept: an admission without it forgets it. */
static bool registrar_add(struct state_record *record, struct bytes line, struct bytes before)
{
    struct bytes word = bytes_cut(&line, ' '), id = bytes_cut(&line, ' '), roll = bytes_cut(&line, ' ');
    char text[STATE_LINE_MAX];

    while (before.len > 0) {
        struct bytes was = bytes_cut(&before, ',');

        if (!bytes_equal(bytes_cut(&was, ' '), word) || !bytes_equal(bytes_cut(&was, ' '), id))
            continue;
        roll = higher(roll, bytes_cut(&was, ' '));
        line = higher(line, was);
    }
    snprintf(text, sizeof(text), "registrar %.*s %.*s %.*s", (int)id.len, id.at, (int)roll.len, roll.at,
             (int)line.len, line.at);
    return state_list_add(record->list, bytes_of(text));
}

bool member_list_read(const struct store_reply *list, struct state_record *record)
{
    size_t count = list != NULL ? store_reply_count(list) : 0, taken = 0;
    struct state_record read = *record;

    read.list[0] = '\0';
    for (enum state_kind kind = 0; kind < STATE_KINDS; kind++)
        for (size_t i = 0; i < count; i++) {
            struct bytes line = store_reply_text(list, i);

            if (state_line_kind(line) == kind)
                taken += kind == STATE_REGISTRAR ? registrar_add(&read, line, bytes_of(record->list))
                                                 : state_list_add(read.list, line);
        }
    if (list == NULL || taken < count || !state_record_is_sound(&read))
        return false;
    *record = read;
    return true;
}

/* -- arguments */

/* Who follows sentinels follows no node that may lack what was answered. */
static struct bytes copies_put(struct member *member)
{
    unsigned copies = member->settings->copies;
    int len = copies > 0 ? snprintf(member->copies, sizeof(member->copies), "%u", copies) : 0;

    if (member->is_leased)
        member->copies[len++] = 's';
    return (struct bytes){member->copies, (size_t)len};
}

/* One number for each stripe. */
static struct bytes numbers_put(const struct member *member, char text[MEMBER_SEQS_SIZE],
                                uint64_t (*of)(const struct epoch *, unsigned, int64_t))
{
    struct bytes_out out = {text, 0, MEMBER_SEQS_SIZE, false};
    char number[BYTES_NUMBER_SIZE];

    for (unsigned i = 0; member->epoch > 0 && i < STRIPES; i++) {
        bytes_put(&out, i == 0 ? BYTES("") : BYTES(" "));
        bytes_put(&out, bytes_of_number(number, (int64_t)of(member->store_epoch, i, member->epoch)));
    }
    return (struct bytes){text, out.len};
}

/* The store that this process belongs to: what it has learned, else what its state directory says. */
struct bytes member_identity(struct member *member)
{
    const char *known = epoch_identity(member->store_epoch);

    if (known[0] != '\0' || member->state_file->recorded.store[0] == '\0')
        return bytes_of(known);
    snprintf(member->identity, sizeof(member->identity), KEYS_SCHEMA ":%s",
             member->state_file->recorded.store);
    return bytes_of(member->identity);
}

/* -- what Redis says of itself */

static void refusal_take(struct member *member, const struct store_refusal *refusal)
{
    const char *what = refusal != NULL && refusal->what != NULL ? refusal->what : "";
    struct log_field fields[] = {LOG_T("check", bytes_of(refusal != NULL ? refusal->check : "")),
                                 LOG_T("detail", bytes_of(what)), LOG_END};

    if (!epoch_set_refusal(member->store_epoch, refusal))
        return;
    if (refusal != NULL)
        member->event(member, LOG_WARNING, "store-refuses", fields);
    else
        member->event(member, LOG_INFO, "store-refuses-no-more", (struct log_field[]){LOG_END});
}

static void memory_take(struct member *member, const struct store_reply *reply)
{
    struct epoch *store_epoch = member->store_epoch;
    int64_t used = store_reply_integer(reply, REPLY_MEMORY),
            max = store_reply_integer(reply, REPLY_MEMORY + 1);
    uint64_t allowed, in_use;

    if (used < 0 || max < 0 || !epoch_set_memory(store_epoch, (uint64_t)used, (uint64_t)max))
        return;
    epoch_memory(store_epoch, &in_use, &allowed);
    struct log_field fields[] = {LOG_I("used_bytes", used), LOG_I("allowed_bytes", (int64_t)allowed),
                                 LOG_END};
    member->event(member, epoch_is_full(store_epoch) ? LOG_WARNING : LOG_INFO,
                  epoch_is_full(store_epoch) ? "store-full" : "store-full-no-more", fields);
}

/* -- in, or on the way in: what the store wants recorded */

static void identity_take(struct state_record *record, const struct store_reply *reply)
{
    struct bytes identity = store_reply_text(reply, 2);

    bytes_take(&identity, BYTES(KEYS_SCHEMA ":"));
    snprintf(record->store, sizeof(record->store), "%.*s", (int)identity.len, identity.at);
}

/* What goes into the state directory: the list, and, for a lease service, a floor ahead. With more members
 * than a list can have the list stays as it is, and nobody new gets in; the floor is still recorded, for
 * those who are in. */
static void record(struct member *member, const struct store_reply *reply)
{
    const struct store_reply *list = store_reply_list(reply, REPLY_MEMBERS);
    struct state_record wanted = member->state_file->recorded;
    int64_t goal = store_reply_integer(reply, 4);

    member->members_version = store_reply_integer(reply, 3);
    identity_take(&wanted, reply);
    if (member->plan->role == MEMBER_LEASE) {
        wanted.epoch = store_reply_integer(reply, 1);
        wanted.floor = goal > wanted.floor ? goal : wanted.floor;
        if (member_list_read(list, &wanted))
            wanted.members_version = member->members_version;
    } else { /* a gateway acts by the set, so it can tell of it */
        for (size_t i = 0; list != NULL && i < store_reply_count(list); i++)
            if (state_line_kind(store_reply_text(list, i)) == STATE_INSYNC)
                snprintf(wanted.list, sizeof(wanted.list), "%.*s", (int)store_reply_text(list, i).len,
                         store_reply_text(list, i).at);
    }
    state_file_want(member->state_file, &wanted);
}

static void seqs_take(const struct store_reply *list, uint64_t seqs[STRIPES])
{
    for (unsigned i = 0; i < STRIPES; i++)
        seqs[i] = list != NULL ? (uint64_t)store_reply_integer(list, i) : 0;
}

/* Of a store with an in-sync set: what the heartbeat shows may never be answered; and what was answered
 * before a gate may be lost by an operator's word. */
static void seqs_told(const struct member *member, uint64_t seqs[STRIPES])
{
    for (unsigned i = 0; i < STRIPES; i++) {
        uint64_t told = epoch_seen(member->store_epoch, i, member->epoch);

        seqs[i] = told < seqs[i] ? told : seqs[i];
    }
}

static void log_in(struct member *member, int64_t epoch)
{
    struct log_field fields[] = {LOG_I("epoch", epoch),
                                 LOG_T("store", bytes_of(epoch_identity(member->store_epoch))), LOG_END};

    member->logged[0] = '\0';
    member->event(member, LOG_INFO, "store-admitted", fields);
}

static void registrars_take(struct member *member, const struct store_reply *reply)
{
    struct bytes missing = store_reply_text(reply, REPLY_REGISTRARS + 1), rest = missing;
    unsigned count = (unsigned)store_reply_integer(reply, REPLY_REGISTRARS), heard = count;

    while (rest.len > 0 && bytes_cut(&rest, ' ').len > 0)
        heard--;
    epoch_set_registrars(member->store_epoch, count, heard);
    if (member->plan->role != MEMBER_LEASE || bytes_are(missing, member->missing))
        return;
    snprintf(member->missing, sizeof(member->missing), "%.*s", (int)missing.len, missing.at);
    struct log_field fields[] = {LOG_T("missing", bytes_of(member->missing)), LOG_I("heard", heard),
                                 LOG_I("of", count), LOG_END};
    member->event(member, missing.len > 0 ? LOG_WARNING : LOG_INFO,
                  missing.len > 0 ? "registrar-missing" : "registrar-missing-no-more", fields);
}

static void heartbeat_in(struct member *member, const struct store_reply *reply)
{
    struct epoch *store_epoch = member->store_epoch;
    int64_t epoch = store_reply_integer(reply, 1);
    struct bytes identity = store_reply_text(reply, 2), stream = store_reply_text(reply, REPLY_STREAM);
    uint64_t seqs[STRIPES];
    struct epoch_set set;
    char text[EPOCH_IDENTITY_SIZE];
    bool news = member->state != MEMBER_IN || epoch != member->epoch, goes_on;

    epoch_clock_sample(store_epoch, store_reply_integer(reply, 5));
    seqs_take(store_reply_list(reply, REPLY_SEQS), seqs);
    member->listed_epoch = epoch;
    insync_take(member, store_reply_list(reply, REPLY_SET));
    epoch_nodes(store_epoch, &set);
    goes_on = set.count > 0 && member->state == MEMBER_IN;
    snprintf(text, sizeof(text), "%.*s", (int)identity.len, identity.at);
    if (epoch != member->epoch) {
        if (set.count > 0)
            seqs_told(member, seqs);
        member->epoch = epoch;
        epoch_admit(store_epoch, text, member->run, stream, epoch, goes_on ? NULL : seqs, member->asked_us);
    } else {
        epoch_confirm(store_epoch, set.count > 0 ? NULL : seqs, member->asked_us);
    }
    member->beats = store_reply_integer(reply, 7);
    member->ceiling = store_reply_integer(reply, 8);
    epoch_set_ceiling(store_epoch, member->ceiling, member->block / 2);
    member_enter(member, MEMBER_IN);
    memory_take(member, reply);
    registrars_take(member, reply);
    record(member, reply);
    lease_take(member, reply);
    if (store_reply_integer(reply, 9) > 0)
        member->event(member, LOG_WARNING, "store-clock-corrected",
                      (struct log_field[]){LOG_I("corrected_ms", store_reply_integer(reply, 9)), LOG_END});
    if (news)
        log_in(member, epoch);
}

static void heartbeat_pending(struct member *member, const struct store_reply *reply)
{
    bool is_lease = member->plan->role == MEMBER_LEASE;
    const char *trouble = is_lease ? state_file_trouble(member->state_file) : NULL;

    member_enter(member, MEMBER_PENDING);
    member->listed_epoch = store_reply_integer(reply, 1);
    member->members_version = store_reply_integer(reply, 3);
    member_forbid(
        member, PROBLEM_STORE_NOT_ADMITTED, trouble != NULL ? "state-dir" : "store-not-admitted", "%s",
        trouble != NULL ? trouble
        : is_lease
            ? "This lease service is new to the store. It is waiting for the other lease services to record "
              "it; if none of them runs, start one that knows the store, or run pawl store recover --floor N."
            : "This gateway is waiting for the lease services to record it: is one running?");
    record(member, reply);
}

/* A report, and joining, wait until it is certain what the state directory says. */
static void mend(struct member *member)
{
    const char *trouble = state_file_trouble(member->state_file);

    if (!state_file_is_settled(member->state_file) && trouble != NULL) {
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "state-dir", "%s", trouble);
        state_file_mend(member->state_file);
    }
}

/* Nothing of a former epoch may still be under way when this process joins: asked again as soon as that is
 * so.
 */
static void heartbeat_unsettled(struct member *member)
{
    member_enter(member, MEMBER_PENDING);
    member->unsettled = true;
    member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
                  "This process is about to join the store.");
    mend(member);
}

/* -- gated: no member may act before a new epoch begins */

static struct bytes promise_put(const struct state_record *record, char text[2 * MEMBER_TEXT_SIZE])
{
    int len = record->promised == 0
                  ? 0
                  : snprintf(text, 2 * MEMBER_TEXT_SIZE, "%" PRId64 " %s", record->promised, record->gate);

    return (struct bytes){text, (size_t)len};
}

/* Of a store with an in-sync set a report is a promise, which must outlive this process; whether the one
 * that was asked along was that. */
static bool gate_is_promised(struct member *member, int64_t ballot)
{
    struct state_record wanted = member->state_file->recorded;
    char text[2 * MEMBER_TEXT_SIZE];

    if (ballot <= 0 || member->plan->role != MEMBER_LEASE)
        return true;
    wanted.promised = ballot;
    snprintf(wanted.gate, sizeof(wanted.gate), "%s", member->gate);
    state_file_want(member->state_file, &wanted);
    return bytes_equal(promise_put(&wanted, text), member->argv[24]);
}

/* This Redis, and the set that it is not in; or it is, and has copied another one since: then it is none of
 * those to be made the primary. */
static void behind_forbid(struct member *member, struct bytes text)
{
    struct bytes own = bytes_cut(&text, ' ');
    char others[300] = "";
    size_t len = 0;

    while (text.len > 0 && len < sizeof(others)) {
        struct bytes node = bytes_cut(&text, ' ');

        if (!bytes_equal(node, own))
            len += (size_t)snprintf(others + len, sizeof(others) - len, " %.*s", (int)node.len, node.at);
    }
    member_forbid(
        member, PROBLEM_STORE_BEHIND, "store-behind",
        "%.*s is not in the in-sync set, or has copied a Redis that is not, so it may lack what was "
        "answered. %s%s: %s.",
        (int)(own.len < 100 ? own.len : 100), own.at,
        others[0] != '\0' ? "In the set are (host:port/run_id)" : "No other node is in the set", others,
        others[0] != '\0' ? "stop this one, or sentinels have them copy it, and make one of them the primary"
                          : "pawl store accept-loss");
}

static void heartbeat_gated(struct member *member, const struct store_reply *reply)
{
    struct bytes gate = store_reply_text(reply, 2), why = store_reply_text(reply, 3);
    bool same = bytes_are(gate, member->gate);

    member_enter(member, MEMBER_GATED);
    if (!same) {
        snprintf(member->gate, sizeof(member->gate), "%.*s", (int)gate.len, gate.at);
        member->gated_ms = loop_now_ms();
        member->reported = false;
        member->admit_ms = member->admit_wait_ms = member->waits = 0;
        member_forbid(
            member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
            "The store is closed (%.*s) until the lease services have admitted it. If that takes longer "
            "than a second or two, their /readyz and pawl store status say what they wait for.",
            (int)why.len, why.at);
    }
    mend(member);
    bool is_promised = gate_is_promised(member, store_reply_integer(reply, 4));
    member->reported = member->reported || (member->settled_asked && is_promised);
    if (store_reply_text(reply, 5).len > 0)
        behind_forbid(member, store_reply_text(reply, 5));
    if (member_may_admit(member))
        member_admit(member);
}

/* -- not ours, or not us */

static void heartbeat_refused(struct member *member, const struct store_reply *reply)
{
    struct bytes identity = store_reply_text(reply, 1);
    const char *ours = member->state_file->recorded.store;
    static const struct {
        const char *word, *check, *detail;
    } refusals[] = {
        {"empty", "store-not-ours",
         "This Redis is empty: no store is there. A new one is made with pawl-lease --init-store; one that "
         "has lost its content is brought back with pawl store recover."},
        {"open", MEMBER_ACCESS_MISSING,
         "A service with --access has used this store, and this one would let everybody do everything: give "
         "it --access FILE, or --allow-anonymous if that is meant."},
        {"superseded", "store-not-ours",
         "Another process acts under the member id of this one: two copies of one state directory? Each "
         "needs its own."},
        {"forgotten", "store-not-ours",
         "The operator has forgotten this member (pawl store forget). To join anew, delete its state "
         "directory and start it again."},
    };
    unsigned i = 0;

    member_enter(member, MEMBER_REFUSED);
    if (loop_now_us() - store_link_since_us(member->store) >= ELSEWHERE_US) /* by now its address may lead */
        store_reconnect(member->store);                                     /* to ours */
    if (store_reply_is(reply, "another")) {
        member_forbid(
            member, PROBLEM_STORE_NOT_OURS, "store-not-ours",
            "This Redis holds another store or another schema (%.*s); this release knows schema " KEYS_SCHEMA
            ", and ours is %s.",
            (int)identity.len, identity.len > 0 ? identity.at : "", ours[0] != '\0' ? ours : "not known yet");
        return;
    }
    if (store_reply_is(reply, "copies")) {
        member_forbid(
            member, PROBLEM_STORE_NOT_OURS, "store-not-ours",
            identity.len > 0
                ? "This store was made with --copies %.*s, and this service was started with another "
                  "number: give it the same, or none."
                : "This store was made without --copies%.*s, which sentinel:// and --copies need: "
                  "whoever is promoted might lack what was answered.",
            (int)identity.len, identity.len > 0 ? identity.at : "");
        return;
    }
    /* It has no part in an admission any more: its floor is an old one. */
    member->is_superseded = member->plan->role == MEMBER_LEASE && store_reply_is(reply, "superseded");
    while (i < sizeof(refusals) / sizeof(refusals[0]) - 1 && !store_reply_is(reply, refusals[i].word))
        i++; /* what is not known here refuses, too: as the last */
    member_forbid(member, PROBLEM_STORE_NOT_OURS, refusals[i].check, "%s", refusals[i].detail);
}

/* -- the heartbeat */

/* What is new since the last heartbeat, for a bar; "": nothing. Of those who wait, how many more than this
 * bar has of this process. What a heartbeat that is lost has taken along is lost: it is for people only. */
static struct bytes bar_put(struct member *member)
{
    struct member_bars now, *told = &member->bar.told;
    int64_t number = epoch_now_ms(member->store_epoch) / MEMBER_BAR_MS;
    uint64_t waiting;
    int len;

    if (member->state != MEMBER_IN || number == 0)
        return BYTES("");
    member->plan->bars(member->worker->service, &now);
    if (number != member->bar.number)
        told->waiting = 0;
    waiting = now.waiting > told->waiting ? now.waiting - told->waiting : 0;
    len = snprintf(member->bar_text, sizeof(member->bar_text), "%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                   number, now.grants - told->grants, now.refused - told->refused, waiting);
    if (now.grants == told->grants && now.refused == told->refused && waiting == 0)
        len = 0;
    *told = (struct member_bars){now.grants, now.refused, told->waiting + waiting};
    member->bar.number = number;
    return (struct bytes){member->bar_text, (size_t)len};
}

static enum step heartbeat_answered(struct store_call *call, enum store_outcome outcome,
                                    const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, call);

    member->in_flight = false;
    member->unsettled = false;
    refusal_take(member, call->refusal);
    if (outcome != STORE_DONE)
        member->asked_link = 0; /* the next tick asks again, when the link stands */
    else if (store_reply_is(reply, "in"))
        heartbeat_in(member, reply);
    else if (store_reply_is(reply, "pending"))
        heartbeat_pending(member, reply);
    else if (store_reply_is(reply, "gated"))
        heartbeat_gated(member, reply);
    else if (store_reply_is(reply, "unsettled"))
        heartbeat_unsettled(member);
    else
        heartbeat_refused(member, reply);
    return ANSWERED;
}

void member_heartbeat(struct member *member)
{
    struct epoch *store_epoch = member->store_epoch;
    const struct state_record *record = &member->state_file->recorded;
    /* A list that is being written just now would make the report of the one before a lie. */
    bool settled = epoch_is_settled(store_epoch, member->settings->threads, member->run) &&
                   state_file_is_settled(member->state_file);
    struct bytes *args = &member->argv[1];
    char condition[MEMBER_CONDITION_SIZE] = "";

    random_text(member->nonce, MEMBER_ID_CHARS);
    member->argv[0] = BYTES("pawl:{store}");
    args[0] = member_identity(member);
    args[1] = bytes_of(member->run);
    args[2] = bytes_of(record->member);
    args[3] = member->plan->role == MEMBER_LEASE ? BYTES("lease") : BYTES("gateway");
    args[4] = bytes_of(member->incarnation);
    args[5] = bytes_of_number(member->number[0], member->epoch);
    args[6] = bytes_of_number(member->number[1], member->beats);
    args[7] = bytes_of_number(member->number[2], record->floor);
    args[8] = bytes_of_number(member->number[3], record->members_version);
    args[9] = bytes_of_number(member->number[4], member->block);
    args[10] = bytes_of_number(member->number[5], epoch_now_ms(store_epoch));
    args[11] = bytes_of(member->who);
    args[12] = bytes_of(member->nonce);
    args[13] = numbers_put(member, member->seqs, epoch_seen);
    args[14] = bytes_of_number(member->number[6], epoch_let_through_most(store_epoch));
    args[15] = epoch_is_doubtful(store_epoch) ? BYTES("doubt") : BYTES("");
    memcpy(member->list, record->list, sizeof(member->list));
    args[16] = bytes_of(member->list);
    args[18] = bytes_of_number(member->number[7], record->epoch);
    args[19] = member->plan->role == MEMBER_LEASE /* a gateway grants none */
                   ? numbers_put(member, member->granted, epoch_granted_most)
                   : BYTES("");
    args[20] = member->settings->access != NULL    ? BYTES("judges")
               : member->settings->allow_anonymous ? BYTES("open")
                                                   : BYTES("");
    if (member->condition != NULL)
        member->condition(member, condition);
    snprintf(member->about, sizeof(member->about), "%.24s %" PRIu64 " %s", PAWL_VERSION,
             loop_now_ms() - member->began_ms, condition);
    args[21] = bytes_of(member->about);
    args[22] = member->plan->bars != NULL ? bar_put(member) : BYTES("");
    args[23] = promise_put(record, member->promise);
    args[24] = copies_put(member);
    store_node_name(member->store, member->node);
    args[25] = bytes_of(member->node);
    args[26] = member->insync != NULL ? insync_wish(member->insync) : BYTES("");
    lease_put(member, &args[27]);
    store_own_address(member->store, member->address);
    args[30] = bytes_of(member->address);
    args[17] = settled ? BYTES("settled") : BYTES("");
    member->settled_asked = settled;
    member->asked_link = member->line->link;
    member->asked_us = loop_now_us();
    member->heartbeat_ms = loop_now_ms();
    member->in_flight = true;
    member->call.done = heartbeat_answered;
    store_run(member->store, &member->call, &script_heartbeat, 1, MEMBER_HEARTBEAT_ARGS, member->argv);
}

/* -- admission */

bool member_may_admit(const struct member *member)
{
    return member->state == MEMBER_GATED && member->reported && member->plan->admit != NULL &&
           loop_now_ms() >= member->admit_ms;
}

/* What keeps a disk from being written lasts. */
static void admit_later(struct member *member)
{
    unsigned wait_ms = member->admit_wait_ms > 0 ? 2 * member->admit_wait_ms : AGAIN_MS;

    member->admit_wait_ms = wait_ms < AGAIN_MAX_MS ? wait_ms : AGAIN_MAX_MS;
    member->admit_ms = loop_now_ms() + member->admit_wait_ms;
}

void member_admit(struct member *member)
{
    /* Time in which this machine stood still gave nobody time to report. */
    bool waited = ++member->waits > WAITS_LEAST && loop_now_ms() >= member->gated_ms + WAIT_FOR_MEMBERS_MS;

    member->argv[0] = BYTES("pawl:{store}");
    member->argv[1] = member_identity(member);
    member->argv[2] = bytes_of(member->run);
    member->argv[3] = bytes_of(member->gate);
    member->argv[4] = bytes_of(member->state_file->recorded.member);
    member->argv[5] = waited ? BYTES("now") : BYTES("wait");
    member->argv[6] = bytes_of(member->node);
    member->argv[7] = member->is_leased ? BYTES("lease") : BYTES("");
    member->argv[8] = insync_said(member->insync);
    member->in_flight = true;
    member->call.done = admit_answered;
    store_run(member->store, &member->call, member->plan->admit, 1, 9, member->argv);
}

static void log_admission(struct member *member, const struct store_reply *reply)
{
    struct log_field fields[] = {LOG_I("epoch", store_reply_integer(reply, 1)),
                                 LOG_T("proof", store_reply_text(reply, 2)),
                                 LOG_I("counter", store_reply_integer(reply, 3)),
                                 LOG_T("not_asked", store_reply_text(reply, 4)), LOG_END};

    member->event(member, LOG_WARNING, "store-epoch-begun", fields);
    if (bytes_are(store_reply_text(reply, 2), "accepted")) {
        struct log_field loss[] = {LOG_I("epoch", store_reply_integer(reply, 1)),
                                   LOG_T("node", bytes_of(member->node)), LOG_END};

        member->event(member, LOG_WARNING, MEMBER_LOSS_ACCEPTED, loss);
    }
}

/* The gate opens when every state directory has it. Its version stays: it is of the same members. */
static void doubts_record(struct member *member, const struct store_reply *list)
{
    struct state_record wanted = member->state_file->recorded;
    const char *trouble = state_file_trouble(member->state_file);

    if (member_list_read(list, &wanted)) {
        state_file_want(member->state_file, &wanted);
    } else if (list != NULL) {
        struct bytes bad = {NULL, 0};

        for (size_t i = store_reply_count(list); i-- > 0;)
            if (state_line_kind(store_reply_text(list, i)) == STATE_KINDS)
                bad = store_reply_text(list, i);
        member_forbid(
            member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
            "The store is not admitted, for this entry of its list of members and of gateways in doubt "
            "cannot be read: \"%.*s\". Somebody has changed pawl:{store}:doubt or pawl:{store}:m:ID by "
            "hand: put back what stood there.",
            bad.len < 100 ? (int)bad.len : 100, bad.at);
    }
    if (trouble != NULL) {
        member_forbid(member, PROBLEM_STORE_NOT_ADMITTED, "state-dir", "%s", trouble);
        admit_later(member);
    }
}

static void unrecorded_forbid(struct member *member, struct bytes whose)
{
    admit_later(member);
    if (loop_now_ms() >= member->gated_ms + WAIT_FOR_DISKS_MS) {
        member_forbid(
            member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
            "The store is closed until lease service %.*s has written into its state directory which "
            "gateways are in doubt; its /readyz says what keeps it from that.",
            whose.len < 300 ? (int)whose.len : 300, whose.at);
    }
}

static enum step admit_answered(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply)
{
    struct member *member = container_of(call, struct member, call);
    struct bytes missing = store_reply_text(reply, 1);
    bool is_known = missing.len > 0 && !bytes_are(missing, "unknown");
    const char *whom = is_known ? missing.at : "a lease service that knows all the others";

    member->in_flight = false;
    if (outcome != STORE_DONE)
        return ANSWERED;
    if (store_reply_is(reply, "floors-missing")) {
        member_forbid(
            member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
            "The store has begun a new epoch, which only all lease services together may admit: waiting "
            "for %.*s. Start it; if its state directory is lost for good: pawl store recover --floor N.",
            missing.len > 0 && missing.len < 300 ? (int)missing.len : 300, whom);
    } else if (store_reply_is(reply, "registrars-missing")) {
        struct bytes others = store_reply_text(reply, 3);

        member_forbid(
            member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
            "The store has begun a new epoch, which a majority of the registrars may admit: %lld of %lld are "
            "heard, waiting for %.*s. Start one; one whose state directory is an old copy does not count; if "
            "too many are lost for good: pawl store recover --floor N.",
            (long long)store_reply_integer(reply, 1), (long long)store_reply_integer(reply, 2),
            others.len < 300 ? (int)others.len : 300, others.at);
    } else if (store_reply_is(reply, "record")) {
        doubts_record(member, store_reply_list(reply, 1));
    } else if (store_reply_is(reply, "failover")) {
        member_forbid(
            member, PROBLEM_STORE_NOT_ADMITTED, "store-not-admitted",
            "The store is closed while another node of Redis is made the primary (pawl store failover).");
        admit_later(member);
    } else if (store_reply_is(reply, "behind")) {
        behind_forbid(member, missing);
        insync_behind(member->insync, missing);
        admit_later(member);
    } else if (store_reply_is(reply, "unrecorded")) {
        unrecorded_forbid(member, missing);
    } else if (store_reply_is(reply, "admitted")) {
        log_admission(member, reply);
        member_heartbeat(member);
    } else if (store_reply_is(reply, "moved")) {
        member_heartbeat(member);
    }
    return ANSWERED;
}

/* recovery.c - what this gateway owes the store at the beginning of each epoch: one for each process, on its
 * first worker.
 *
 *   IDLE     --admitted to an epoch that was not looked at-->    AGAIN
 *   AGAIN    --all that is open here is recorded again-->        TAKING   intent_again.lua
 *   AGAIN    --a call failed, or another epoch began-->          IDLE     and from the beginning
 *   TAKING   --all stripes looked at-->                          LEAVING  intent_takeover.lua,
 *                                                                         unreported_dead.lua
 *   TAKING   --the same, and it was unreported, or has open-->   CLOSING
 *   TAKING   --a call failed, or another epoch began-->          IDLE     and from the beginning
 *   CLOSING  --what had ended is closed once more-->             LEAVING  intent_list.lua
 *   CLOSING  --a call failed, or another epoch began-->          IDLE     and from the beginning
 *   LEAVING  --the store knows that that was all, or failed-->   IDLE     unreported_leave.lua
 *   IDLE     --3 s later, then each minute with open ones-->     TAKING
 *
 * AGAIN: a store that lost what it had must get the open intents of the gateways that live before any write
 * is let through (docs/guarantees.md).
 *
 * TAKING: the intents of former incarnations of this gateway, which are known to be dead: this process holds
 * the lock of their state directory, and they ran under this very kernel (intent_internal.h). For all others
 * there is `pawl resolve --gateway ID --dead`; in a store that was lost before what they have open was seen
 * they are recorded as unreported.
 *
 * CLOSING: a store that was set back has again, as open, what this process had closed: it is closed once
 * more, or newer holders would wait until this gateway starts anew. That is reconciled: the store lists it
 * as one of this very incarnation, and the list of the process (intent.h) has it not. Then it has ended,
 * and nothing of it is sent any more:
 *   - an admission is in the list before its script leaves, on whichever worker; a script that had not left
 *     recorded nothing that could be listed before; the list is asked after the listing has arrived. So what
 *     was listed has been in the list, and has been taken out of it since.
 *   - it is taken out by the closer, when the store has acknowledged that its end is known or that it was
 *     never sent; or by forward/admit.c, when the store said that it was refused, or the call was not sent.
 *   - what was sent, and has no known end (INTENT_UNKNOWN), is taken out when the store had it, was asked
 *     after that, in the same epoch, and does not list it: others have ended it; what is being closed is not.
 * What is queued is in the list as INTENT_ASKED, also while it is being promoted. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/intent/intent_internal.h"
#include "gateway/worker.h"
#include "scripts.h"
#include "shared/member/walk.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"
#include "shared/text/read_all.h"

/* LOOK_AGAIN_MS: else what others have ended would stay in the list, and come back in a store that is lost.
 * SWEEP_AGAIN_MS, QUIET_MS: a call that was sent may still arrive for 2 s (AHEAD_MS in
 * shared/member/scripts/lib/stripe.lua): an admission of the dead; intents recorded again by a call without
 * an answer, which must not come back when closed. */
enum {
    SWEEP_AGAIN_MS = 3000,
    LOOK_AGAIN_MS = 60000,
    QUIET_MS = 2500,
    WRITE_AGAIN_MS = 1000,
    AGAIN_MAX = 16,
    ARGS_MAX = 8 + INCARNATIONS_MAX
};
_Static_assert(AGAIN_MAX < ARGS_MAX, "a batch fits");

typedef void recovery_then_fn(struct recovery *recovery, const struct store_reply *reply);

struct recovery {
    struct gateway_worker *own;
    struct incarnations before;
    enum recovery_state state;
    int64_t epoch; /* of the epoch that was looked at, or is being */
    bool is_done, in_flight;
    bool was_unreported;     /* this epoch may have lost, or brought back, what is of this process */
    uint64_t again_ms;       /* when the dead are looked for once more, 0: no more in this epoch */
    uint64_t look_ms;        /* when it is looked what others have ended */
    uint64_t quiet_ms;       /* until when nothing may be closed; 0 */
    uint64_t write_again_ms; /* when this incarnation is to be written down once more; 0: it is */
    bool has_taken;          /* in some epoch: all that the dead had open is in the list */
    bool lost_unseen;        /* before that an epoch began that may have lost what they had open */
    bool passed_over;        /* a text that fits nowhere; it stays in the store, and others wait for it */
    bool is_told;            /* that there is one is in the log */
    bool waits;              /* for closers' calls to end: what is being closed must not come back */
    unsigned taken, reconciled;
    struct member_call call;
    const char *word; /* of its answer: any other is a failure */
    recovery_then_fn *then;
    struct walk walk;
    struct intent batch[AGAIN_MAX];
    char key[KEYS_STRIPE_SIZE], from[INTENT_TEXT_MAX], number[2][MEMBER_NUMBER_SIZE];
    char served[ROUTE_HASH_CHARS + 1]; /* the table by which the dead have sent what is open; "": not known */
    int64_t members_version;           /* at which the state directories have the dead that were lost */
    struct bytes argv[ARGS_MAX + MEMBER_ARGS];
};

static void incarnations_write(struct recovery *recovery, struct incarnations *before);
static recovery_then_fn unreported_known;
static void again_ask(struct recovery *recovery);
static recovery_then_fn again_recorded;
static void take_begin(struct recovery *recovery);
static void dead_ask(struct recovery *recovery);
static recovery_then_fn dead_recorded;
static void reconcile_begin(struct recovery *recovery);
static void leave_ask(struct recovery *recovery);
static recovery_then_fn leave_done;

bool recovery_allows(enum recovery_state from, enum recovery_state to)
{
    static const bool arrows[RECOVERY_STATES][RECOVERY_STATES] = {
        [RECOVERY_IDLE] = {[RECOVERY_AGAIN] = true, [RECOVERY_TAKING] = true},
        [RECOVERY_AGAIN] = {[RECOVERY_TAKING] = true, [RECOVERY_IDLE] = true},
        [RECOVERY_TAKING] = {[RECOVERY_LEAVING] = true, [RECOVERY_CLOSING] = true, [RECOVERY_IDLE] = true},
        [RECOVERY_CLOSING] = {[RECOVERY_LEAVING] = true, [RECOVERY_IDLE] = true},
        [RECOVERY_LEAVING] = {[RECOVERY_IDLE] = true},
    };

    return arrows[from][to];
}

static void recovery_enter(struct recovery *recovery, enum recovery_state next)
{
    assert(recovery_allows(recovery->state, next));
    recovery->state = next;
    atomic_store(&recovery->own->gateway->intents.again, next == RECOVERY_AGAIN || recovery->quiet_ms > 0);
}

struct recovery *recovery_new(struct gateway_worker *own)
{
    struct recovery *recovery = must_have(calloc(1, sizeof(*recovery)));
    const struct gateway *gateway = own->gateway;

    recovery->own = own;
    incarnations_write(recovery, &recovery->before);
    if (!recovery->before.has_boot)
        log_event(&gateway->service->log, LOG_WARNING, "boot-id-not-read", NULL);
    return recovery;
}

/* Also later, on a disk that was full: who is not written down is in doubt after no loss. */
static void incarnations_write(struct recovery *recovery, struct incarnations *before)
{
    const struct gateway *gateway = recovery->own->gateway;
    bool good = incarnations_begin(before, member_self(gateway->service).state_dir, gateway->incarnation);
    struct log_field fields[] = {LOG_T("why", bytes_of(good ? "" : strerror(errno))), LOG_END};

    if (!good && recovery->write_again_ms == 0)
        log_event(&gateway->service->log, LOG_WARNING, "incarnations-not-written", fields);
    recovery->write_again_ms = good ? 0 : loop_now_ms() + WRITE_AGAIN_MS;
}

/* From the beginning, at the next tick. */
static void recovery_fail(struct recovery *recovery)
{
    if (recovery->state == RECOVERY_AGAIN && !recovery->waits)
        recovery->quiet_ms = loop_now_ms() + QUIET_MS;
    if (recovery->state != RECOVERY_IDLE)
        recovery_enter(recovery, RECOVERY_IDLE);
    recovery->is_done = recovery->waits = false;
}

/* Whether it goes on; else it begins anew, or never. */
static bool recovery_goes_on(struct recovery *recovery, enum problem bad, int64_t epoch)
{
    recovery->in_flight = false;
    if (recovery->own->closer.stopped)
        return false;
    if (bad != PROBLEM_NONE || epoch != recovery->epoch) {
        recovery_fail(recovery);
        return false;
    }
    return true;
}

static enum step recovery_answer(struct member_call *call, enum problem bad, const struct store_reply *reply)
{
    struct recovery *recovery = container_of(call, struct recovery, call);

    if (bad == PROBLEM_NONE && !store_reply_is(reply, recovery->word))
        bad = PROBLEM_INTERNAL;
    if (recovery_goes_on(recovery, bad, recovery->call.epoch))
        recovery->then(recovery, reply);
    return ANSWERED;
}

/* argv has one key and so many arguments. */
static void recovery_run(struct recovery *recovery, unsigned stripe, const struct store_script *script,
                         unsigned args, const char *word, recovery_then_fn *then)
{
    recovery->call.done = recovery_answer;
    recovery->word = word;
    recovery->then = then;
    recovery->in_flight = member_run(&recovery->own->record.line, &recovery->call, stripe, script, 1,
                                     1 + args, recovery->argv) == PROBLEM_NONE;
    if (!recovery->in_flight)
        recovery_fail(recovery);
}

/* A walk from the first stripe on; argv has so many arguments. */
static void recovery_walk(struct recovery *recovery, const struct walk_plan *plan, unsigned args)
{
    recovery->walk = (struct walk){.plan = plan,
                                   .line = &recovery->own->record.line,
                                   .argv = recovery->argv,
                                   .args = args,
                                   .end = STRIPES,
                                   .from = recovery->from,
                                   .from_size = sizeof(recovery->from)};
    recovery->in_flight = walk_begin(&recovery->walk) == PROBLEM_NONE;
    if (!recovery->in_flight)
        recovery_fail(recovery);
}

/* The key, this gateway, and its incarnation that lives: argv[0] to argv[2]. */
static void recovery_own(struct recovery *recovery, unsigned stripe)
{
    const struct gateway *gateway = recovery->own->gateway;

    recovery->argv[0] = keys_stripe(recovery->key, stripe);
    recovery->argv[1] = bytes_of(gateway->id);
    recovery->argv[2] = bytes_of(gateway->incarnation);
}

void recovery_tick(struct recovery *recovery)
{
    struct member_line *line = &recovery->own->record.line;
    int64_t epoch = epoch_number(line->store_epoch);
    struct incarnations before;

    if (recovery->write_again_ms != 0 && loop_now_ms() >= recovery->write_again_ms)
        incarnations_write(recovery, &before);
    if (recovery->in_flight || recovery->own->closer.stopped || member_line_problem(line) != PROBLEM_NONE ||
        loop_now_ms() < recovery->quiet_ms)
        return;
    recovery->quiet_ms = 0;
    if (recovery->epoch != epoch || (recovery->state != RECOVERY_IDLE && !recovery->waits))
        recovery_fail(recovery);
    if (recovery->waits) {
        again_ask(recovery);
        return;
    }
    if (recovery->is_done) {
        if (recovery->again_ms != 0
                ? loop_now_ms() >= recovery->again_ms
                : loop_now_ms() >= recovery->look_ms && intents_count(&recovery->own->gateway->intents) > 0)
            take_begin(recovery);
        return;
    }
    if (recovery->epoch != epoch)
        recovery->members_version = 0;
    recovery->epoch = epoch;
    recovery_enter(recovery, RECOVERY_AGAIN);
    intents_again(&recovery->own->gateway->intents);
    /* Not without need: what an operator has resolved since would come back. */
    recovery_own(recovery, 0);
    recovery_run(recovery, 0, &script_unreported_look, 2, "doubt", unreported_known);
}

/* A hand has made a text longer than any of ours. */
static void passed_over(struct recovery *recovery, struct bytes text)
{
    struct bytes name = intent_part(text, INTENT_NAME);
    struct log_field fields[] = {
        LOG_T("lease", ((struct bytes){name.at, name.len < NAME_MAX_BYTES ? name.len : NAME_MAX_BYTES})),
        LOG_I("bytes", (int64_t)text.len), LOG_T("do", BYTES("pawl resolve")), LOG_END};

    recovery->passed_over = true;
    if (!recovery->is_told) {
        recovery->is_told = true;
        log_event(&recovery->own->gateway->service->log, LOG_ERROR, "intent-damaged", fields);
    }
}

static void found_log(const struct recovery *recovery, const char *event, unsigned count)
{
    struct log_field fields[] = {LOG_I("intents", (int64_t)count), LOG_END};

    if (count > 0)
        log_event(&recovery->own->gateway->service->log, LOG_WARNING, event, fields);
}

/* -- again */

static void unreported_known(struct recovery *recovery, const struct store_reply *reply)
{
    struct bytes routes = store_reply_text(reply, 3);

    recovery->was_unreported = store_reply_integer(reply, 2) == 1;
    recovery->lost_unseen |= recovery->was_unreported && !recovery->has_taken;
    if (!recovery->was_unreported)
        snprintf(recovery->served, sizeof(recovery->served), "%.*s", (int)routes.len,
                 routes.len > 0 ? routes.at : "");
    if (recovery->was_unreported)
        again_ask(recovery);
    else
        take_begin(recovery);
}

static void again_ask(struct recovery *recovery)
{
    struct intents *intents = &recovery->own->gateway->intents;
    unsigned count;

    recovery->waits = atomic_load(&intents->closing) > 0;
    if (recovery->waits)
        return;
    count = intents_copy(intents, recovery->batch, AGAIN_MAX);
    if (count == 0) {
        take_begin(recovery);
        return;
    }
    recovery->argv[0] = keys_stripe(recovery->key, recovery->batch[0].stripe);
    for (unsigned i = 0; i < count; i++)
        recovery->argv[1 + i] = (struct bytes){recovery->batch[i].text, recovery->batch[i].len};
    recovery_run(recovery, recovery->batch[0].stripe, &script_intent_again, count, "recorded",
                 again_recorded);
}

static void again_recorded(struct recovery *recovery, const struct store_reply *reply)
{
    (void)reply;
    again_ask(recovery);
}

/* -- taking: the intents of former incarnations of this gateway */

/* A word, and behind it the former incarnations that are one of these. How many. */
static unsigned former_put(struct recovery *recovery, unsigned at, struct bytes word, unsigned these)
{
    unsigned to = at;

    recovery->argv[to++] = word;
    for (unsigned i = 0; i < recovery->before.count; i++)
        if (recovery->before.former[i].is & these)
            recovery->argv[to++] = bytes_of(recovery->before.former[i].id);
    return to - at;
}

/* {"taken", seq, {texts of theirs that are open now}, where to go on} */
static bool take_page(struct walk *walk, const struct store_reply *reply)
{
    struct recovery *recovery = container_of(walk, struct recovery, walk);
    struct intents *intents = &recovery->own->gateway->intents;
    const struct store_reply *texts = store_reply_list(reply, 2);

    if (recovery->own->closer.stopped || walk->call.epoch != recovery->epoch)
        return false;
    if (walk->from_len == 0)
        intents_age(intents, walk->stripe, INTENT_KEPT);
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++) {
        if (!intents_keep(intents, walk->stripe, store_reply_text(texts, i)))
            passed_over(recovery, store_reply_text(texts, i));
        recovery->taken++;
    }
    if (store_reply_text(reply, walk->plan->next_at).len == 0)
        intents_forget_aged(intents, walk->stripe, INTENT_KEPT);
    return true;
}

static enum step take_ended(struct walk *walk, enum problem bad)
{
    struct recovery *recovery = container_of(walk, struct recovery, walk);

    if (recovery_goes_on(recovery, bad, walk->call.epoch))
        dead_ask(recovery);
    return ANSWERED;
}

static void take_begin(struct recovery *recovery)
{
    static const struct walk_plan plan = {
        &script_intent_takeover, "taken", 1, 3, 3, NULL, take_page, take_ended};

    recovery->again_ms = 0;
    recovery->look_ms = loop_now_ms() + LOOK_AGAIN_MS;
    recovery->taken = 0;
    recovery->passed_over = false;
    recovery_enter(recovery, RECOVERY_TAKING);
    if (recovery->before.count == 0) {
        reconcile_begin(recovery);
        return;
    }
    recovery_own(recovery, 0);
    recovery->argv[4] = BYTES("100");
    recovery_walk(recovery, &plan,
                  4 + former_put(recovery, 5, BYTES("-"), INCARNATION_DEAD | INCARNATION_ENDED));
}

/* What a store may have lost of theirs is never recorded again. */
static void dead_ask(struct recovery *recovery)
{
    bool is_lost = recovery->lost_unseen;
    unsigned args = 3;

    recovery_own(recovery, 0);
    /* A store was lost before what they had open was seen: then only this process knows of them. */
    recovery->argv[3] = is_lost ? BYTES("lost") : BYTES("these");
    args += former_put(recovery, 1 + args, BYTES("-"), INCARNATION_DEAD);
    /* A lease service that stopped before them may have named them: they had nothing that could be lost. */
    args += former_put(recovery, 1 + args, BYTES("ended"), INCARNATION_ENDED);
    if (is_lost)
        args += former_put(recovery, 1 + args, BYTES("open"), INCARNATION_UNPROVEN);
    recovery_run(recovery, 0, &script_unreported_dead, args, "dead", dead_recorded);
}

static void dead_recorded(struct recovery *recovery, const struct store_reply *reply)
{
    int64_t version = store_reply_integer(reply, 3);

    recovery->has_taken = !recovery->passed_over;
    if (version > 0)
        recovery->members_version = version;
    reconcile_begin(recovery);
}

/* -- closing: what has ended here, and is open again in a store that was set back */

static void reconcile_close(struct recovery *recovery, unsigned stripe, struct bytes text)
{
    struct gateway *gateway = recovery->own->gateway;

    if (!bytes_are(intent_part(text, INTENT_GATEWAY), gateway->id) ||
        !bytes_are(intent_part(text, INTENT_INCARNATION), gateway->incarnation) ||
        intents_have(&gateway->intents, stripe, text) || !recovery->was_unreported)
        return;
    if (text.len > INTENT_TEXT_MAX || intent_part(text, INTENT_NAME).len > NAME_MAX_BYTES) {
        passed_over(recovery, text);
    } else {
        intent_end(&recovery->own->closer, intent_new(&gateway->intents, stripe, text, INTENT_OPEN),
                   INTENT_CLOSE);
        recovery->reconciled++;
    }
}

/* In front of the call: what becomes unknown behind it may not be listed. */
static void reconcile_ask(struct walk *walk)
{
    const struct recovery *recovery = container_of(walk, struct recovery, walk);

    if (walk->from_len == 0)
        intents_age(&recovery->own->gateway->intents, walk->stripe, INTENT_UNKNOWN);
}

/* {"listed", seq, what to go on behind, or "", {texts}} */
static bool reconcile_page(struct walk *walk, const struct store_reply *reply)
{
    struct recovery *recovery = container_of(walk, struct recovery, walk);
    const struct store_reply *texts = store_reply_list(reply, 3);

    if (recovery->own->closer.stopped || walk->call.epoch != recovery->epoch)
        return false;
    for (size_t i = 0; texts != NULL && i < store_reply_count(texts); i++)
        reconcile_close(recovery, walk->stripe, store_reply_text(texts, i));
    if (store_reply_text(reply, walk->plan->next_at).len == 0)
        intents_forget_aged(&recovery->own->gateway->intents, walk->stripe, INTENT_UNKNOWN);
    return true;
}

static enum step reconcile_ended(struct walk *walk, enum problem bad)
{
    struct recovery *recovery = container_of(walk, struct recovery, walk);

    if (recovery_goes_on(recovery, bad, walk->call.epoch)) {
        found_log(recovery, "intents-closed-again", recovery->reconciled);
        leave_ask(recovery);
    }
    return ANSWERED;
}

static void reconcile_begin(struct recovery *recovery)
{
    static const struct walk_plan plan = {&script_intent_list, "listed",       1, 2, 2, reconcile_ask,
                                          reconcile_page,      reconcile_ended};

    if (!recovery->was_unreported && intents_count(&recovery->own->gateway->intents) == 0) {
        leave_ask(recovery);
        return;
    }
    recovery_enter(recovery, RECOVERY_CLOSING);
    recovery->reconciled = 0;
    recovery->argv[1] = BYTES("");
    recovery->argv[3] = BYTES("100");
    recovery_walk(recovery, &plan, 3);
}

/* -- leaving */

/* Hash of the table by which all that is open was sent: no other one is adopted until it has ended. The one
 * that is in force here may have been read since, and not be adopted. */
static struct bytes sent_by(const struct recovery *recovery)
{
    struct gateway *gateway = recovery->own->gateway;
    const struct route_table *table = atomic_load(&gateway->table);
    const char *own = atomic_load(&gateway->sent_by);

    own = own != NULL ? own : recovery->served;
    if (own[0] != '\0' && intents_count(&gateway->intents) > 0)
        return bytes_of(own);
    return table != NULL ? bytes_of(table->hash) : BYTES("");
}

static void leave_ask(struct recovery *recovery)
{
    recovery_enter(recovery, RECOVERY_LEAVING);
    recovery_own(recovery, 0);
    recovery->argv[3] = sent_by(recovery);
    recovery->argv[4] = bytes_of_number(recovery->number[0], recovery->epoch);
    recovery->argv[5] = bytes_of_number(recovery->number[1], recovery->members_version);
    recovery->argv[6] = intents_count(&recovery->own->gateway->intents) > 0 ? BYTES("open") : BYTES("");
    recovery_run(recovery, 0, &script_unreported_leave, 6, "left", leave_done);
}

static void leave_done(struct recovery *recovery, const struct store_reply *reply)
{
    (void)reply;
    recovery->lost_unseen = false;
    recovery->own->gateway->has_recovered = recovery->before.count == 0 || recovery->has_taken;
    found_log(recovery, "intents-of-the-dead", recovery->taken);
    recovery->again_ms = recovery->is_done ? 0 : loop_now_ms() + SWEEP_AGAIN_MS;
    recovery->was_unreported &= !recovery->is_done;
    recovery->is_done = true;
    recovery_enter(recovery, RECOVERY_IDLE);
}

/* -- the file of incarnations */

enum { LINE_CHARS = MEMBER_ID_CHARS + 1 + BOOT_ID_CHARS + 1, TEXT_MAX = (INCARNATIONS_MAX + 1) * LINE_CHARS };

static const char file_name[] = "incarnations", new_name[] = "incarnations.new";
/* Of the form of a boot_id, and never one: of INCARNATION_LOST, and of one that could not read it; of one
 * that has ended in order. */
static const char no_boot[] = "------------------------------------",
                  ended_boot[] = "ended-------------------------------";
_Static_assert(sizeof(no_boot) == BOOT_ID_CHARS + 1 && sizeof(ended_boot) == sizeof(no_boot),
               "a line is one");
_Static_assert(sizeof(INCARNATION_LOST) == MEMBER_ID_CHARS + 1, "a line is a line");

static bool is_line(const char *line)
{
    struct bytes id = {line, MEMBER_ID_CHARS}, boot_id = {line + MEMBER_ID_CHARS + 1, BOOT_ID_CHARS};

    return ascii_is_word(id, BYTES("_-")) && line[MEMBER_ID_CHARS] == ' ' &&
           ascii_is_word(boot_id, BYTES("-")) && line[LINE_CHARS - 1] == '\n';
}

static void former_add(struct incarnations *incarnations, const char *id, enum incarnation_is is)
{
    struct incarnation *former = &incarnations->former[incarnations->count++];

    former->is = is;
    memcpy(former->id, id, MEMBER_ID_CHARS);
    former->id[MEMBER_ID_CHARS] = '\0';
}

static bool parse_failed(struct incarnations *incarnations)
{
    incarnations->count = 0;
    former_add(incarnations, INCARNATION_LOST, INCARNATION_UNPROVEN);
    return false;
}

bool incarnations_parse(struct incarnations *incarnations, const char *text, size_t len, const char *boot_id)
{
    incarnations->count = 0;
    if (len % LINE_CHARS != 0 || len > INCARNATIONS_MAX * LINE_CHARS)
        return parse_failed(incarnations);
    for (const char *line = text; line < text + len; line += LINE_CHARS) {
        const char *boot = line + MEMBER_ID_CHARS + 1;

        if (!is_line(line))
            return parse_failed(incarnations);
        former_add(incarnations, line,
                   memcmp(boot, ended_boot, BOOT_ID_CHARS) == 0 ? INCARNATION_ENDED
                   : memcmp(boot, boot_id, BOOT_ID_CHARS) == 0  ? INCARNATION_DEAD
                                                                : INCARNATION_UNPROVEN);
    }
    return true;
}

/* Bytes read, at most size; 0: none, or there is no such file; -1: what it has is not known. */
static ssize_t text_read(int fd, char *text, size_t size)
{
    ssize_t len = fd >= 0 ? read_all(fd, text, size) : errno == ENOENT ? 0 : -1;

    if (fd >= 0)
        close(fd);
    return len;
}

static bool text_write(int dir_fd, const char *text, size_t len)
{
    int fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_all(fd, (struct bytes){text, len}) && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return good && renameat(dir_fd, new_name, dir_fd, file_name) == 0 && fsync(dir_fd) == 0;
}

/* Of this boot and this very directory. */
static bool boot_read(int dir_fd, char boot_id[BOOT_ID_CHARS + 1])
{
    struct stat dir;

    if (text_read(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), boot_id, BOOT_ID_CHARS) !=
            BOOT_ID_CHARS ||
        fstat(dir_fd, &dir) != 0)
        return false;
    snprintf(boot_id + BOOT_ID_CHARS / 2, BOOT_ID_CHARS / 2 + 1, "-%017llx",
             (unsigned long long)dir.st_ino ^ (unsigned long long)dir.st_dev << 32);
    return true;
}

bool incarnations_begin(struct incarnations *incarnations, int dir_fd, const char *incarnation)
{
    char boot_id[BOOT_ID_CHARS + 1] = "", text[TEXT_MAX + LINE_CHARS + 1];
    size_t len, skip;
    ssize_t got;

    *incarnations = (struct incarnations){.has_boot = true};
    if (dir_fd < 0)
        return true;
    incarnations->has_boot = boot_read(dir_fd, boot_id);
    got = text_read(openat(dir_fd, file_name, O_RDONLY | O_CLOEXEC), text, TEXT_MAX);
    len = got > 0 ? (size_t)got : 0;
    if (len >= LINE_CHARS && memcmp(text + len - LINE_CHARS, incarnation, MEMBER_ID_CHARS) == 0)
        len -= LINE_CHARS; /* written before, and perhaps not durable */
    if (got < 0 ? !parse_failed(incarnations) : !incarnations_parse(incarnations, text, len, boot_id))
        len = (size_t)snprintf(text, sizeof(text), "%s %s\n", INCARNATION_LOST, no_boot);
    skip = len >= INCARNATIONS_MAX * LINE_CHARS ? len - (INCARNATIONS_MAX - 1) * LINE_CHARS : 0;
    memmove(text, text + skip, len - skip);
    len -= skip;
    /* Without a boot_id, too: a successor that knew nothing of this one would let newer writes pass. */
    len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s\n", incarnation,
                            incarnations->has_boot ? boot_id : no_boot);
    if (text_write(dir_fd, text, len))
        return true;
    for (unsigned i = 0; i < incarnations->count; i++)
        incarnations->former[i].is = INCARNATION_UNPROVEN;
    return false;
}

void incarnations_end(int dir_fd, const char *incarnation)
{
    char text[TEXT_MAX];
    ssize_t got = dir_fd < 0 ? 0 : text_read(openat(dir_fd, file_name, O_RDONLY | O_CLOEXEC), text, TEXT_MAX);
    size_t len = got > 0 ? (size_t)got : 0;

    if (len >= LINE_CHARS && memcmp(text + len - LINE_CHARS, incarnation, MEMBER_ID_CHARS) == 0) {
        memcpy(text + len - 1 - BOOT_ID_CHARS, ended_boot, BOOT_ID_CHARS);
        text_write(dir_fd, text, len);
    }
}

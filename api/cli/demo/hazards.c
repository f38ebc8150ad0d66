/* hazards.c - the ten hazards as tables: what happens in each part, and what must have been observed; and the
 * timeline of a part, on which that is evaluated. */
#include <stdlib.h>
#include <string.h>

#include "api/cli/demo/demo.h"

enum { JUMP_S_MIN = 3500, AHEAD_MS = 3500000, WAITED_TTLS = 2, TRIES_MIN = 3, LATE_MS = 3000, READERS = 6 };

#define WRITTEN "written|refused"
#define WRITTEN_OR_OVER "written|refused|over"
#define RELEASED "released|lost"

/* -- a late write: A writes after B has taken over and has written */

static const struct scene a_stops[] = {
    {ORDER, "A", "take", "A takes", "granted", NULL, 0},
    {PAUSE, .percent = 10},
    {ORDER, "A", "write", "A first", WRITTEN, STALE_A_FIRST, 0},
    {PAUSE, .percent = 10},
    {ORDER, "A", "work", "A late", "holds", STALE_A_LATE, 50},
    {STOP, "A", .label = "A stops"},
    {0},
};
static const struct scene a_continues[] = {
    {ORDER, "B", "take", "B takes", "granted", NULL, 0},
    {PAUSE, .percent = 15},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {CONTINUE, "A", .label = "A continues"},
    {AWAIT, "A", .until = WRITTEN},
    {ORDER, "B", "read", "after", "reads", NULL, 0},
    {0},
};
static const struct scene b_goes_on[] = {
    {PAUSE, .percent = 15},
    {ORDER, "B", "write", "B last", WRITTEN, STALE_B_LAST, 0},
    {PAUSE, .percent = 10},
    {ORDER, "B", "read", "end", "reads", NULL, 0},
    {0},
};
static const struct scene a_writes_and_looks[] = {
    {ORDER, "A", "take", "A takes", "granted", NULL, 0},
    {PAUSE, .percent = 5},
    {ORDER, "A", "write", "A first", WRITTEN, STALE_A_FIRST, 0},
    {PAUSE, .percent = 10},
    {ORDER, "A", "look", "A late", "holds", NULL, 0},
    {0},
};
static const struct scene b_writes_then_a[] = {
    {ORDER, "B", "take", "B takes", "granted", NULL, 0},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {PAUSE, .percent = 10},
    {ORDER, "A", "toil", "A late", WRITTEN, STALE_A_LATE, 5},
    {ORDER, "B", "read", "after", "reads", NULL, 0},
    {0},
};

/* Both wrote, and B's work is lost. */
static const struct check work_lost[] = {
    {HAPPENED, "A takes: granted", NULL, 0, "A did not get the lock"},
    {HAPPENED, "A first: written", NULL, 0, "A's first write did not get through, though A held the lock"},
    {HAPPENED, "A late: holds", NULL, 0, "A did not believe that it held the lock"},
    {BEFORE, "A late: holds", "B takes: granted", 0, "B did not get the lock after A's look"},
    {HAPPENED, "B first: written", NULL, 0, "B's write did not get through, though B held the lock"},
    {BEFORE, "B first: written", "A late: written", 0,
     "with the recipe, A's late write did not get through after B's"},
    {TEXT_IS, "after: reads", STALE_A_LATE, 0, "with the recipe, B's work was not lost"},
    {0},
};
/* A was refused, B's work stands and B could go on. */
static const struct check fence_held[] = {
    {HAPPENED, "A takes: granted", NULL, 0, "A did not get the lease"},
    {HAPPENED, "A first: written", NULL, 0, "A's first write did not get through, though A held the lease"},
    {HAPPENED, "A late: holds", NULL, 0, "A did not believe that it held the lease"},
    {BEFORE, "A late: holds", "B takes: granted", 0, "B did not get the lease after A's look"},
    {TOKEN_ROSE, "A takes: granted", "B takes: granted", 0, "B's token is not greater than A's"},
    {HAPPENED, "B first: written", NULL, 0, "B's write did not get through, though B held the lease"},
    {NEVER, "A late: written", NULL, 0, "with the fence, A's late write got through"},
    {STALE, "A late: refused", "A late: written", 0,
     "with the fence, A's late write was not refused as 412 stale-token"},
    {BEFORE, "B takes: granted", "A late: refused", 0, "A was refused before B came"},
    {TEXT_IS, "after: reads", STALE_B_FIRST, 0, "with the fence, the resource did not hold B's work"},
    {HAPPENED, "B last: written", NULL, 0, "with the fence, B could not go on writing"},
    {TEXT_IS, "end: reads", STALE_B_LAST, 0,
     "with the fence, the resource did not hold B's last work at the end"},
    {0},
};
static const struct check was_stopped[] = {
    {BEFORE, "A late: holds", "A stops: stopped", 0, "A was not stopped before its late write"},
    {BEFORE, "A stops: stopped", "B takes: granted", 0, "B came before A was stopped"},
    {BEFORE, "B takes: granted", "A continues: continued", 0, "A went on before B had come"},
    {0},
};
/* A was awake: both held it at once, each by its own clock. */
static const struct check two_holders[] = {
    {IN_TIME, "A late: holds", "B takes: granted", 0, "with the recipe, there were not two holders at once"},
    {IN_TIME, "A late: holds", "A late: written", 0, "A wrote when its lock was over by its own clock"},
    {0},
};

/* By its own clock A held it when B wrote. */
static const struct check both_held[] = {
    {IN_TIME, "A late: holds", "B takes: granted", 0, "with the quorum, there were not two holders at once"},
    {IN_TIME, "A late: holds", "B first: written", 0, "A's lease was over by its own clock when B wrote"},
    {0},
};

/* -- the clock of Redis jumps, and with it the end of every lock comes at once */

static const struct scene clock_jumps[] = {{JUMP, .label = "clock"}, {0}};

static const struct check clock_jumped[] = {
    {NUMBER_MIN, "clock: jumped", NULL, JUMP_S_MIN, "the clock of Redis did not jump"},
    {BEFORE, "A late: holds", "clock: jumped", 0, "the clock jumped before A's look"},
    {BEFORE, "clock: jumped", "B takes: granted", 0, "B came before the clock jumped"},
    {0},
};

/* -- A's write is on its way for longer than its lock runs */

static const struct scene slow_wire[] = {
    {ORDER, "A", "take", "A takes", "granted", NULL, 0},
    {ORDER, "A", "write", "A first", WRITTEN, STALE_A_FIRST, 0},
    {ORDER, "relay", "hold", "wire", "holding", "from A to what it writes to", 0},
    {ORDER, "A", "work", "A late", "holds", STALE_A_LATE, 5},
    {AWAIT, "relay", .until = "kept"},
    {ORDER, "B", "take", "B takes", "granted", NULL, 0},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {PAUSE, .percent = 15},
    {ORDER, "relay", "flow", "wire flows", "passed", NULL, 0},
    {AWAIT, "A", .until = WRITTEN},
    {ORDER, "B", "read", "after", "reads", NULL, 0},
    {0},
};
/* A sent its write while it held the lock; the wire had it until B had written. */
static const struct check wire_was_slow[] = {
    {NUMBER_MIN, "wire: kept", NULL, 1, "the wire did not keep A's write"},
    {BEFORE, "A late: holds", "wire: kept", 0, "the wire did not keep A's write"},
    {IN_TIME, "A late: holds", "wire: kept", 0, "A did not send its write in time"},
    {BEFORE, "wire: kept", "B takes: granted", 0, "B came before A's write was on the wire"},
    {BEFORE, "B first: written", "wire flows: passed", 0, "A's write arrived before B had written"},
    {0},
};

/* -- the holder dies between the two commands of its lock */

static const struct scene a_dies[] = {
    {ORDER, "A", "take", "A takes", "set|granted", NULL, 0},
    {KILL, "A", .label = "A dies"},
    {ORDER, "B", "take", "B takes", "granted|vain", NULL, 300},
    {ASK, .order = "PTTL orders:41", .label = "time left"},
    {0},
};
static const struct scene b_writes[] = {
    {PAUSE, .percent = 10},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {PAUSE, .percent = 10},
    {ORDER, "B", "read", "end", "reads", NULL, 0},
    {0},
};
static const struct check locked_for_ever[] = {
    {BEFORE, "A takes: set", "A dies: killed", 0, "A did not die after SETNX"},
    {NEVER, "A takes: granted", NULL, 0, "A came to its EXPIRE"},
    {NEVER, "B takes: granted", NULL, 0, "with the recipe, B got the lock of the dead A"},
    {NUMBER_MIN, "B takes: vain", NULL, TRIES_MIN,
     "B did not wait long enough to say that it waited in vain"},
    {TTLS_LATER, "A dies: killed", "B takes: vain", WAITED_TTLS,
     "B did not wait long enough to say that it waited in vain"},
    {NUMBER_IS, "time left: said", NULL, -1, "the lock of the dead A would have ended by itself"},
    {0},
};
static const struct check lease_ended[] = {
    {BEFORE, "A takes: granted", "A dies: killed", 0, "A did not die after its grant"},
    {BEFORE, "A dies: killed", "B takes: granted", 0, "B did not get the lease of the dead A"},
    {TOKEN_ROSE, "A takes: granted", "B takes: granted", 0, "B's token is not greater than A's"},
    {SOON_AFTER, "A takes: granted", "B takes: granted", LATE_MS, "B got the lease long after A's ttl"},
    {HAPPENED, "B first: written", NULL, 0, "B could not write"},
    {TEXT_IS, "end: reads", STALE_B_FIRST, 0, "the resource did not hold B's work"},
    {0},
};

/* -- a lock whose end is a time of day, compared with the clock of the client that wants it */

static const struct scene ends_overwritten[] = {
    {ORDER, "B", "take", "B takes", "granted", NULL, 0},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {PAUSE, .percent = 10},
    {ASK, .order = "GET orders:41", .label = "end by B"},
    {ORDER, "A", "write", "A late", WRITTEN_OR_OVER, STALE_A_LATE, 0},
    {ORDER, "B", "read", "after", "reads", NULL, 0},
    {ORDER, "A", "extend", "A extends", "extended", NULL, 0},
    {ASK, .order = "GET orders:41", .label = "end by A"},
    {0},
};
static const struct scene b_must_wait[] = {
    {ORDER, "B", "take", "B takes", "held|granted", NULL, 0},
    {ORDER, "A", "write", "A late", WRITTEN_OR_OVER, STALE_A_LATE, 0},
    {ORDER, "A", "read", "after", "reads", NULL, 0},
    {ORDER, "A", "release", "A releases", RELEASED, NULL, 0},
    {AWAIT, "B", .until = "granted"},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {PAUSE, .percent = 10},
    {ORDER, "A", "toil", "A too late", WRITTEN, STALE_A_FIRST, 5},
    {ORDER, "B", "read", "end", "reads", NULL, 0},
    {0},
};
static const struct check overwrote[] = {
    {OVERWRITTEN, "end by A: said", "end by B: said", AHEAD_MS,
     "they did not overwrite each other's end of the lock"},
    {BEFORE, "B takes: granted", "A extends: extended", 0, "A extended before B came"},
    {0},
};
static const struct check b_had_to_wait[] = {
    {HAPPENED, "A takes: granted", NULL, 0, "A did not get the lease"},
    {HAPPENED, "A first: written", NULL, 0, "A's first write did not get through, though A held the lease"},
    {BEFORE, "A late: holds", "B takes: held", 0, "B was not told that A holds the lease"},
    {HAPPENED, "A late: written", NULL, 0, "A's write did not get through, though A held the lease"},
    {TEXT_IS, "after: reads", STALE_A_LATE, 0, "the resource did not hold A's work"},
    {HAPPENED, "A releases: released", NULL, 0, "A had lost the lease before it gave it back"},
    {BEFORE, "A releases: leaving", "B takes: granted", 0, "B got the lease while A held it"},
    {TOKEN_ROSE, "A takes: granted", "B takes: granted", 0, "B's token is not greater than A's"},
    {HAPPENED, "B first: written", NULL, 0, "B's write did not get through, though B held the lease"},
    {STALE, "A too late: refused", "A too late: written", 0,
     "A's write after B's grant was not refused as 412 stale-token"},
    {TEXT_IS, "end: reads", STALE_B_FIRST, 0, "the resource did not hold B's work"},
    {0},
};

/* -- a holder that comes late releases the lock of its successor */

static const struct scene a_takes[] = {
    {ORDER, "A", "take", "A takes", "granted", NULL, 0}, {PAUSE, .percent = 10}, {0}};
static const struct scene a_comes_late[] = {
    {STOP, "A", .label = "A stops"},
    {ORDER, "B", "take", "B takes", "granted", NULL, 0},
    {PAUSE, .percent = 10},
    {ORDER, "B", "look", "B first", "holds", NULL, 0},
    {CONTINUE, "A", .label = "A continues"},
    {PAUSE, .percent = 5},
    {0},
};
static const struct scene a_releases[] = {{ORDER, "A", "release", "A releases", "deleted|lost", NULL, 0},
                                          {0}};
static const struct scene a_gets[] = {{ORDER, "A", "release", "A releases", "looked", NULL, 0}, {0}};
static const struct scene a_deletes[] = {{AWAIT, "A", .until = "deleted|lost"}, {0}};
static const struct scene c_takes[] = {
    {ORDER, "C", "take", "C takes", "granted|held", NULL, 0},
    {PAUSE, .percent = 10},
    {ORDER, "B", "write", "B first", WRITTEN_OR_OVER, STALE_B_FIRST, 0},
    {PAUSE, .percent = 8},
    {0},
};
static const struct scene b_releases[] = {
    {ORDER, "B", "release", "B releases", RELEASED, NULL, 0},
    {AWAIT, "C", .until = "granted"},
    {PAUSE, .percent = 15},
    {ORDER, "C", "read", "end", "reads", NULL, 0},
    {0},
};
static const struct check came_late[] = {
    {BEFORE, "A takes: granted", "A stops: stopped", 0, "A was not stopped while it held"},
    {BEFORE, "A stops: stopped", "B takes: granted", 0, "B did not come while A was stopped"},
    {BEFORE, "B takes: granted", "A continues: continued", 0, "A went on before B had come"},
    {0},
};
static const struct check between_get_and_del[] = {
    {BEFORE, "A releases: looked", "A stops: stopped", 0, "A was not stopped between GET and DEL"}, {0}};
static const struct check lock_deleted[] = {
    {BEFORE, "B takes: granted", "A releases: deleted", 0, "A did not release while B had the lock"},
    {NUMBER_IS, "A releases: deleted", NULL, 1, "A's DEL removed nothing"},
    {BEFORE, "A releases: deleted", "C takes: granted", 0,
     "with the recipe, C did not get the lock after A's DEL"},
    {IN_TIME, "B first: holds", "C takes: granted", 0, "with the recipe, there were not two holders at once"},
    {0},
};
static const struct check release_refused[] = {
    {TOKEN_ROSE, "A takes: granted", "B takes: granted", 0, "B's token is not greater than A's"},
    {BEFORE, "B takes: granted", "A releases: lost", 0,
     "A was not told at its release that it had lost the lease"},
    {NUMBER_IS, "A releases: lost", NULL, 410, "A's release was refused, but not as 410"},
    {NEVER, "A releases: released", NULL, 0, "A's release was taken for good"},
    {BEFORE, "A releases: lost", "C takes: held", 0, "C was not told that B holds the lease"},
    {HAPPENED, "B first: written", NULL, 0, "B's write did not get through, though B held the lease"},
    {HAPPENED, "B releases: released", NULL, 0, "B had lost the lease before it gave it back"},
    {BEFORE, "B releases: leaving", "C takes: granted", 0, "C got the lease while B held it"},
    {TOKEN_ROSE, "B takes: granted", "C takes: granted", 0, "C's token is not greater than B's"},
    {TEXT_IS, "end: reads", STALE_B_FIRST, 0, "the resource did not hold B's work"},
    {0},
};

/* -- the master dies before its replica has the lock */

static const struct scene replica_lags[] = {
    {ORDER, "relay", "hold", "wire", "holding", "from the master to its replica", 0}, {0}};
static const struct scene master_dies[] = {
    {CRASH, .label = "failover"}, {ASK, .order = "EXISTS orders:41", .label = "lock on the replica"}, {0}};

static const struct check failed_over[] = {
    {BEFORE, "A takes: granted", "failover: promoted", 0, "A did not get it from the master"},
    {BEFORE, "A late: holds", "failover: promoted", 0, "the master died before A's look"},
    {BEFORE, "failover: promoted", "B takes: granted", 0, "B came before the failover"},
    {0},
};
static const struct check lock_lost[] = {
    {NUMBER_IS, "lock on the replica: said", NULL, 0, "the replica had the lock"}, {0}};

/* -- a lock that ran out before unlock(): A is not stopped, its work just takes longer than its lock runs */

static const struct scene long_work[] = {
    {ORDER, "A", "take", "A takes", "granted", NULL, 0},
    {ORDER, "A", "write", "A first", WRITTEN, STALE_A_FIRST, 0},
    {ORDER, "B", "take", "B takes", "held|granted", NULL, 0},
    {ORDER, "A", "toil", "A late", NULL, STALE_A_LATE, 150},
    {AWAIT, "B", .until = "granted"},
    {ORDER, "B", "write", "B first", WRITTEN, STALE_B_FIRST, 0},
    {AWAIT, "A", .until = WRITTEN},
    {ORDER, "B", "read", "after", "reads", NULL, 0},
    {ORDER, "A", "release", "A releases", RELEASED, NULL, 0},
    {0},
};
static const struct check loss_told_too_late[] = {
    {HAPPENED, "A takes: granted", NULL, 0, "A did not get the lock"},
    {BEFORE, "B takes: held", "B takes: granted", 0, "B did not have to wait for A's lock"},
    {BEFORE, "B first: written", "A late: written", 0,
     "with the recipe, A's late write did not get through after B's"},
    {TEXT_IS, "after: reads", STALE_A_LATE, 0, "with the recipe, B's work was not lost"},
    {BEFORE, "A late: written", "A releases: lost", 0,
     "with the recipe, A was not told after its write that it had lost the lock"},
    {0},
};
static const struct check loss_told_in_time[] = {
    {HAPPENED, "A takes: granted", NULL, 0, "A did not get the lease"},
    {HAPPENED, "A first: written", NULL, 0, "A's first write did not get through, though A held the lease"},
    {BEFORE, "B takes: held", "B takes: granted", 0, "B did not have to wait for A's lease"},
    {TOKEN_ROSE, "A takes: granted", "B takes: granted", 0, "B's token is not greater than A's"},
    {HAPPENED, "B first: written", NULL, 0, "B's write did not get through, though B held the lease"},
    {STALE, "A late: refused", "A late: written", 0,
     "with Pawl, A's late write was not refused as 412 stale-token"},
    {TEXT_IS, "after: reads", STALE_B_FIRST, 0, "with Pawl, the resource did not hold B's work"},
    {BEFORE, "A late: refused", "A releases: lost", 0, "A's release was not told that the lease is lost"},
    {NUMBER_IS, "A releases: lost", NULL, 410, "A's release was refused, but not as 410"},
    {0},
};

/* -- readers who keep coming, and a writer who never gets in */

static const struct scene c_finds_a_reader[] = {
    {ORDER, "A", "share", "A reads", "granted", NULL, 0},
    {PAUSE, .percent = 10},
    {ORDER, "C", "take", "C takes", "held|granted", NULL, 250},
    {0},
};
/* B comes before A leaves, and A before B leaves. */
#define ROUND                                                                                                \
    {PAUSE, .percent = 25}, {ORDER, "B", "share", "reader", "granted", NULL, 0},                             \
        {ORDER, "A", "release", "reader leaves", RELEASED, NULL, 0}, {PAUSE, .percent = 25},                 \
        {ORDER, "A", "share", "reader", "granted", NULL, 0},                                                 \
    {                                                                                                        \
        ORDER, "B", "release", "reader leaves", RELEASED, NULL, 0                                            \
    }
static const struct scene readers_come[] = {
    ROUND, ROUND, ROUND, ROUND, ROUND, {AWAIT, "C", .until = "vain|granted"}, {0}};
/* The same with Pawl, as far as the readers get. */
static const struct scene one_line[] = {
    {ORDER, "A", "share", "A reads", "granted", NULL, 0},
    {PAUSE, .percent = 10},
    {ORDER, "C", "take", "C takes", "held|granted", NULL, 0},
    {PAUSE, .percent = 25},
    {ORDER, "B", "share", "reader", "held|granted", NULL, 0},
    {PAUSE, .percent = 15},
    {ORDER, "A", "release", "A leaves", RELEASED, NULL, 0},
    {AWAIT, "C", .until = "granted"},
    {ORDER, "A", "share", "A again", "held|granted", NULL, 0},
    {PAUSE, .percent = 10},
    {ORDER, "C", "write", "C writes", WRITTEN, READ_LOCK_NEWS, 0},
    {PAUSE, .percent = 10},
    {ORDER, "C", "release", "C leaves", RELEASED, NULL, 0},
    {AWAIT, "B", .until = "granted"},
    {AWAIT, "A", .until = "granted"},
    {ORDER, "B", "read", "end", "reads", NULL, 0},
    {0},
};
static const struct check writer_starved[] = {
    {BEFORE, "A reads: granted", "C takes: held", 0, "C did not find a reader"},
    {NEVER, "C takes: granted", NULL, 0, "with the recipe, the writer got in"},
    {NUMBER_MIN, "C takes: vain", NULL, TRIES_MIN,
     "the writer did not wait long enough to say that it waited in vain"},
    {TTLS_LATER, "C takes: held", "C takes: vain", WAITED_TTLS,
     "the writer did not wait long enough to say that it waited in vain"},
    {PASSED_BY, "C takes: held", "C takes: vain", READERS, "too few readers came while the writer waited"},
    {NEVER, "reader leaves: lost", NULL, 0, "a reader's lock ran out"},
    {0},
};
static const struct check writer_got_in[] = {
    {BEFORE, "A reads: granted", "C takes: held", 0, "C did not find a reader"},
    {BEFORE, "C takes: held", "C takes: granted", 0, "the writer did not get in"},
    {BEFORE, "A leaves: leaving", "C takes: granted", 0, "the writer got in while a reader was there"},
    {HAPPENED, "A leaves: released", NULL, 0, "the reader's lease ran out"},
    {BEFORE, "C takes: held", "reader: held", 0, "the second reader did not have to wait"},
    {HAPPENED, "C writes: written", NULL, 0, "the writer could not write"},
    {HAPPENED, "C leaves: released", NULL, 0, "the writer's lease ran out"},
    {BEFORE, "C writes: written", "reader: granted", 0, "a reader overtook the writer"},
    {BEFORE, "C writes: written", "A again: granted", 0, "a reader got in beside the writer"},
    {TEXT_IS, "end: reads", READ_LOCK_NEWS, 0, "the reader did not see what the writer wrote"},
    {0},
};

/* -- all of them */

const struct hazard hazards[] = {
    {"stale-holder",
     "the holder stands still past its TTL, another takes over, then the first one writes",
     "The stale holder, with real processes: a redis-server with a lock on it, Pawl with\n"
     "another one, and workers who want to work on the same order. About 10 seconds.",
     {0, 1, 100},
     {{"1  Without the fence: SET NX PX with a random value, released by a script; a plain file",
       {"px", {a_stops, a_continues}, {was_stopped, work_lost}},
       "B's work is lost: nobody knows any more that this order was shipped."},
      {"2  With the fence: the same, but they write through the gateway with their tokens",
       {"pawl", {a_stops, a_continues, b_goes_on}, {was_stopped, fence_held}},
       "A's late write was refused, because B's token is the greater one."}},
     "The fence held: the same late write, harmful in part 1, changed nothing in part 2."},
    {"clock-jump",
     "Redis' clock jumps forward and a lock ends early: two holders, both awake",
     "A clock that jumps, with real processes: two redis-servers whose clock of the day is\n"
     "shifted by a preloaded shim, one with a lock on it, one with Pawl; and workers. About\n"
     "3 seconds.",
     {NEEDS_CLOCK_OF_REDIS, 1, 200},
     {{"1  The recipe: SET NX PX with a random value; Redis ends keys by its clock of the day",
       {"px", {a_writes_and_looks, clock_jumps, b_writes_then_a}, {clock_jumped, two_holders, work_lost}},
       "Both held it at once, nobody stood still, and B's work is lost."},
      {"2  With Pawl: the same jump. It ends A's lease early, and so A's token is over",
       {"pawl", {a_writes_and_looks, clock_jumps, b_writes_then_a, b_goes_on}, {clock_jumped, fence_held}},
       "A could not know that its lease was over. The gateway knew."}},
     "The fence held: a wrong clock can end a lease early, but lets no stale write in."},
    {"slow-network",
     "a write hangs in the network until its sender's lock has run out, then arrives",
     "A slow network, with real processes: a redis-server with a lock and a value on it,\n"
     "Pawl, workers, and a relay through which A reaches what it writes to. About 7 seconds.",
     {NEEDS_RELAY, 1, 100},
     {{"1  The recipe: SET NX PX with a random value; they write to a value in a Redis",
       {"px", {slow_wire}, {wire_was_slow, work_lost}},
       "A sent its write in time, stood never still, and B's work is lost all the same."},
      {"2  With Pawl: the same delay, on the wire from A to the gateway",
       {"pawl", {slow_wire, b_goes_on}, {wire_was_slow, fence_held}},
       "A's write was refused when it arrived: that is where its token is compared."}},
     "The fence held: what arrives late is refused, whenever it was sent."},
    {"crash-before-expire",
     "SETNX, then EXPIRE: the holder dies between the two, and everybody waits for ever",
     "A crash between two commands, with real processes: a redis-server with a lock on it,\n"
     "Pawl, and workers who want to work on the same order. About 10 seconds.",
     {0, 1, 100},
     {{"1  The recipe: SETNX, and when that has worked, EXPIRE",
       {"expire", {a_dies}, {locked_for_ever}},
       "The lock has no end (PTTL -1): B, and everybody after it, would wait for ever."},
      {"2  With Pawl: A dies just after its grant. A grant and its end are one step",
       {"pawl", {a_dies, b_writes}, {lease_ended}},
       "B got the lease when A's had run out. There is no moment at which it had no end."}},
     "Pawl held: there is no grant without an end."},
    {"timestamp-lock",
     "SETNX with a time as value, and GETSET: clients with different clocks both hold it",
     "A lock with a time in it, with real processes: a redis-server with a lock on it, Pawl,\n"
     "and workers. B's clock of the day is an hour ahead (a preloaded shim shifts it). About\n"
     "4 seconds.",
     {NEEDS_CLOCK_OF_B, 1, 200},
     {{"1  The recipe: SETNX with the end as value; whoever finds it over takes it by GETSET",
       {"timestamp", {a_writes_and_looks, ends_overwritten}, {two_holders, overwrote, work_lost}},
       "Both held it, each overwrote the other's end of the lock, and B's work is lost."},
      {"2  With Pawl: the same clocks. Only the store's counts, and answers say durations",
       {"pawl", {a_writes_and_looks, b_must_wait}, {b_had_to_wait}},
       "B had to wait until A gave it back, whatever B's clock said."}},
     "Pawl held: no client's clock decides who holds a lease."},
    {"wrong-release",
     "DEL without an owner check, or GET and then DEL: A releases B's lock",
     "A wrong release, with real processes: a redis-server with locks on it, Pawl, and three\n"
     "workers who want to work on the same order. About 15 seconds.",
     {0, 1, 150},
     {{"1  The recipe: SET NX PX, released by DEL without looking whose it is",
       {"del", {a_takes, a_comes_late, a_releases, c_takes}, {came_late, lock_deleted}},
       "A has deleted B's lock, and so C holds it as well as B."},
      {"2  The better recipe: GET, and when it is its own, DEL; A is stopped between the two",
       {"get-del",
        {a_takes, a_gets, a_comes_late, a_deletes, c_takes},
        {between_get_and_del, came_late, lock_deleted}},
       "A looked, and deleted B's lock all the same: C holds it as well as B."},
      {"3  With Pawl: a release names its hold, and is compared in one step",
       {"pawl", {a_takes, a_comes_late, a_releases, c_takes, b_releases}, {came_late, release_refused}},
       "A's release changed nothing; C stood in line until B gave the lease back."}},
     "Pawl held: nobody releases what another holds."},
    {"failover",
     "the master dies before its replica has the lock: two holders",
     "A failover, with real processes: a master and a replica that lags, once with a lock on\n"
     "them and once with Pawl; and workers who want to work on the same order. About 6\n"
     "seconds.",
     {NEEDS_REPLICA, 1, 300},
     {{"1  The recipe: SET NX PX with a random value on a master; a plain file",
       {"px",
        {replica_lags, a_writes_and_looks, master_dies, b_writes_then_a},
        {failed_over, lock_lost, two_holders, work_lost}},
       "Both held it at once: the replica had never heard of A. B's work is lost."},
      {"2  With Pawl: the same failover of Pawl's own Redis",
       {"pawl",
        {replica_lags, a_writes_and_looks, master_dies, b_writes_then_a, b_goes_on},
        {failed_over, fence_held}},
       "The services saw that the store had forgotten: a new epoch, higher tokens, A is over."}},
     "The fence held: a failover can end a lease early, but lets no stale write in."},
    {"redlock-pause",
     "a majority of five Redis servers, and a holder that stands still: two holders",
     "Redlock and a pause, with real processes: five redis-servers with a lock on the\n"
     "majority of them, then Pawl on one Redis, then Pawl on a quorum of five whose clock of\n"
     "the day a preloaded shim shifts; and workers who want to work on the same order. About\n"
     "15 seconds.",
     {NEEDS_CLOCK_OF_REDIS, 5, 100},
     {{"1  The recipe: SET NX PX on the majority of five independent servers; a plain file",
       {"redlock", {a_stops, a_continues}, {was_stopped, work_lost}},
       "B's work is lost. Five servers agreed twice, and no one asked them before the write."},
      {"2  With Pawl: one Redis, the same pause; the token is compared where the write happens",
       {"pawl", {a_stops, a_continues, b_goes_on}, {was_stopped, fence_held}},
       "A's late write was refused. One comparison did what a majority cannot."},
      {"3  With Pawl on a quorum of five: the same pause, and the clocks of all five jump",
       {"pawl-quorum",
        {a_stops, clock_jumps, a_continues, b_goes_on},
        {clock_jumped, was_stopped, both_held, fence_held}},
       "Two held it at once, as with any majority; their tokens told who came first."}},
     "The fence held where the majority did not."},
    {"late-unlock",
     "a registry lock that ran out before unlock(): the loss is noticed only afterwards",
     "An unlock that comes too late, with real processes: a redis-server with a lock on it,\n"
     "Pawl, and workers. Nobody stands still; A's work just takes longer than its lock.\n"
     "About 8 seconds.",
     {0, 1, 100},
     {{"1  The recipe: a lock registry, lock(), work, unlock(); a plain file",
       {"px", {long_work}, {loss_told_too_late}},
       "unlock() says that something went wrong, when B's work is lost already."},
      {"2  With Pawl: the same work, too long by half",
       {"pawl", {long_work}, {loss_told_in_time}},
       "A is told by its write, before anything is lost, and again by its release."}},
     "The fence held: the loss is told where the harm would be done."},
    {"read-lock-starvation",
     "a read-write lock whose readers keep coming: the writer never gets in",
     "Readers and a writer, with real processes: a redis-server with a read-write lock on\n"
     "it, Pawl, two readers (A and B) who come again and again, and a writer (C). About 8\n"
     "seconds.",
     {0, 1, 100},
     {{"1  The recipe: any number of readers; a writer must find none",
       {"readers", {c_finds_a_reader, readers_come}, {writer_starved}},
       "The writer asked all the time, and every reader who came later passed it by."},
      {"2  With Pawl: one line for readers and writers, first come, first served",
       {"pawl", {one_line}, {writer_got_in}},
       "The writer got in when the reader before it had left; no reader passed it by."}},
     "Pawl held: a waiting writer is not passed by."},
    {0},
};

/* -- judged */

enum { STATUS_STALE = 412 };

void timeline_add(struct timeline *timeline, const struct timeline_event *event)
{
    if (timeline->count < TIMELINE_MAX)
        timeline->events[timeline->count++] = *event;
}

static bool event_is(const struct timeline_event *event, const char *name)
{
    size_t len = strlen(event->label);

    return strncmp(name, event->label, len) == 0 && name[len] == ':' &&
           strcmp(name + len + strlen(": "), event->word) == 0;
}

const struct timeline_event *timeline_find(const struct timeline *timeline, const char *name)
{
    for (size_t i = 0; i < timeline->count; i++)
        if (event_is(&timeline->events[i], name))
            return &timeline->events[i];
    return NULL;
}

static int64_t readers_between(const struct timeline *timeline, uint64_t from_ms, uint64_t to_ms)
{
    int64_t count = 0;

    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_event *event = &timeline->events[i];

        count += event_is(event, "reader: granted") && event->at_ms >= from_ms && event->at_ms <= to_ms;
    }
    return count;
}

static bool check_holds(const struct check *check, const struct timeline *timeline)
{
    const struct timeline_event *first = timeline_find(timeline, check->first);
    const struct timeline_event *then = check->then != NULL ? timeline_find(timeline, check->then) : NULL;
    bool both = first != NULL && then != NULL;
    uint64_t number = (uint64_t)check->number;

    switch (check->kind) {
    case CHECKS_END: return true;
    case HAPPENED: return first != NULL;
    case NEVER: return first == NULL;
    case BEFORE: return both && first->at_ms <= then->at_ms;
    case IN_TIME: return both && first->number > 0 && then->at_ms < first->at_ms + (uint64_t)first->number;
    case NUMBER_IS: return first != NULL && first->number == check->number;
    case NUMBER_MIN: return first != NULL && first->number >= check->number;
    case TEXT_IS: return first != NULL && strcmp(first->text, check->then) == 0;
    case STALE:
        return first != NULL && first->number == STATUS_STALE && strcmp(first->text, "stale-token") == 0 &&
               then == NULL;
    case TOKEN_ROSE: return both && first->number > 0 && then->number > first->number;
    case TTLS_LATER: return both && then->at_ms >= first->at_ms + number * timeline->ttl_ms;
    case SOON_AFTER: return both && then->at_ms <= first->at_ms + timeline->ttl_ms + number;
    case OVERWRITTEN: return both && first->number > 0 && then->number - first->number > check->number;
    case PASSED_BY: return both && readers_between(timeline, first->at_ms, then->at_ms) >= check->number;
    }
    abort();
}

const char *judge(const struct hazard_part *part, const struct timeline *timeline)
{
    for (const struct check *const *list = part->with.checks; *list != NULL; list++) {
        for (const struct check *check = *list; check->kind != CHECKS_END; check++)
            if (!check_holds(check, timeline))
                return check->otherwise;
    }
    return NULL;
}

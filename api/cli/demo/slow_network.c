/* slow_network.c - the holder's write is on its way for longer than the holder's lock runs. */
#include "api/cli/demo/hazard.h"

static const struct scene scenes[] = {
    {TELL, "A", "take", 0, NULL, "A takes", "granted"},
    {TELL, "A", "write", 0, STALE_A_FIRST, "A first", "written|refused"},
    {TELL, "relay", "hold", 0, "from A to what it writes to", "wire", "holding"},
    {TELL, "A", "work", 5, STALE_A_LATE, "A late", "holds"},
    {AWAIT, "relay", NULL, 0, NULL, NULL, "kept"},
    {TELL, "B", "take", 0, NULL, "B takes", "granted"},
    {TELL, "B", "write", 0, STALE_B_FIRST, "B first", "written|refused"},
    {PAUSE, NULL, NULL, 15, NULL, NULL, NULL},
    {TELL, "relay", "flow", 0, NULL, "wire flows", "passed"},
    {AWAIT, "A", NULL, 0, NULL, NULL, "written|refused"},
    {TELL, "B", "read", 0, NULL, "after", "reads"},
    {0},
};

/* A sent its write while it held the lock; the wire had it until B had written. */
static const char *judge_wire(const struct seen *seen)
{
    const struct seen_event *look = seen_find(seen, "A late", "holds"),
                            *kept = seen_find(seen, "wire", "kept");
    const struct seen_check checks[] = {
        {kept->number > 0 && seen_before(seen, "A late", "holds", "wire", "kept"),
         "the wire did not keep A's write"},
        {kept->at_ms < look->at_ms + (uint64_t)look->number, "A did not send its write in time"},
        {seen_before(seen, "wire", "kept", "B takes", "granted"), "B came before A's write was on the wire"},
        {seen_before(seen, "B first", "written", "wire flows", "passed"),
         "A's write arrived before B had written"},
    };

    return SEEN_FIRST_OTHERWISE(checks);
}

static const char *judge_recipe(const struct seen *seen)
{
    const char *otherwise = judge_wire(seen);

    return otherwise != NULL ? otherwise : stale_judge_recipe(seen);
}

static const char *judge_pawl(const struct seen *seen)
{
    const char *otherwise = judge_wire(seen);

    return otherwise != NULL ? otherwise : stale_judge_pawl(seen);
}

const struct hazard hazard_slow_network = {
    .name = "slow-network",
    .line = "a write hangs in the network until its sender's lock has run out, then arrives",
    .intro = "A slow network, with real processes: a redis-server with a lock and a value on it,\n"
             "Pawl, workers, and a relay through which A reaches what it writes to. About 7 seconds.",
    .needs = NEEDS_RELAY,
    .nodes = 1,
    .ttl_percent = 100,
    .parts =
        {
            {.headline = "1  The recipe: SET NX PX with a random value; they write to a value in a Redis",
             .lock = "px",
             .scenes = scenes,
             .judge = judge_recipe,
             .lesson = "A sent its write in time, stood never still, and B's work is lost all the same."},
            {.headline = "2  With Pawl: the same delay, on the wire from A to the gateway",
             .lock = "pawl",
             .scenes = scenes,
             .then = stale_then_goes_on,
             .judge = judge_pawl,
             .lesson = "A's write was refused when it arrived: that is where its token is compared."},
        },
    .verdict = "The fence held: what arrives late is refused, whenever it was sent.",
};

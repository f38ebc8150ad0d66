/* insync.pml - no answer that was acknowledged to a client is lost, whichever node of Redis is promoted, and
 * however often: the in-sync set, acknowledgements of all of it, records and promises of the registrars.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Sets are bit masks. Two
 * operations stand for all: 0 is acknowledged first, 1 is run again and again and must see it. Each both reads
 * and writes; a read stands for all that it saw. Every step of the last loop is atomic: a script on a node, what
 * a replica takes over, or a registrar's file that has become durable. */
#ifndef NODES
#define NODES 2
#endif
#ifndef REGISTRARS
#define REGISTRARS 1
#endif
#ifndef EPOCHS
#define EPOCHS 3 /* gates, the first epoch included */
#endif
#ifndef CHANGES
#define CHANGES 2 /* of the in-sync set in one epoch */
#endif

#ifndef FIRST_SET
#define FIRST_SET (BIT(NODES) - 1)
#endif

#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define HOW_MANY(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define MAJORITY (REGISTRARS / 2 + 1)
#define ALL_NODES (BIT(NODES) - 1)
#define IS_SUBSET(a, b) (((a) & ~(b)) == 0)

/* The nodes: their data, and how these came to be. */
byte primaries = 1;       /* the nodes that take themselves for the primary */
byte has[NODES];          /* the operations that are in its data */
byte stream[NODES];       /* master_replid */
byte before[NODES];       /* master_replid2: the stream of which it was a replica when it was promoted */
#ifdef WITH_DISKS
byte off_disk;            /* those whose data are in memory only, since a full resync */
byte disk[NODES];         /* the operations that such a one has when it starts again */
#endif

#ifdef WITH_LINEAGE
/* In its data: the record, and the last stream of which a gate has found that it goes on with such a record. */
byte own[NODES], own_set[NODES], own_stream[NODES];
byte led_from[NODES], led_to[NODES];
#endif

/* The gate of a primary that is not open. */
byte ballot[NODES];       /* the epoch that would begin */
byte heard[NODES];        /* the registrars that have reported */
byte newest[NODES], newest_set[NODES], newest_stream[NODES]; /* the newest record among the reports */

/* The epoch of a primary. The number of a record: the gate's epoch, then how often the set was changed. */
byte opened;              /* the nodes whose gate is open */
byte alive;               /* those of which services have a lease on the epoch */
byte number[NODES];
byte in_sync[NODES];      /* the set that is recorded, or is being recorded */
byte needed[NODES];       /* the nodes that must acknowledge */
byte growing[NODES];      /* the node that is being added, + 1; CAUGHT_UP */
#define CAUGHT_UP 16
#define FIRST_OF(epoch) ((epoch) * 8)
#define EPOCH_OF(number) ((number) / 8)
#define CHANGES_OF(number) ((number) % 8)

/* The registrars' files. */
byte recorded[REGISTRARS], recorded_set[REGISTRARS], recorded_stream[REGISTRARS];
byte promised[REGISTRARS]; /* it acts in no older epoch */
#ifdef ONE_IS_SET_BACK
bool is_back;             /* registrar 0 has its first file again */
byte knows;               /* the registrars whose file says that 0 had more */
byte used;                /* the number of the newest record that services, which live, have acted by */
#endif

byte last_epoch = 1;

/* The operations. */
#define RAN 1
#define ACKNOWLEDGED 2
byte did[2];
byte at[2];               /* the node that has run it */
byte known[2];            /* the nodes that the service knew must acknowledge it */
byte acked[2];            /* the nodes that have acknowledged it */
byte deposed;             /* the operations whose node has left the stream in which they ran */
byte saw;                 /* those that saw the other one */
bool missed;              /* 1 must not be acknowledged: it did not see 0, nor 0 it */

byte i;                   /* within one step only */

/* -- what the mutants take away, one each */

#ifdef MUTANT_WITHOUT_ACKNOWLEDGEMENTS
#define ARE_ENOUGH(set, w) true
#elif defined(MUTANT_ONE_REPLICA_IS_ENOUGH)
#define ARE_ENOUGH(set, w) (acked[w] != 0)
#else
#define ARE_ENOUGH(set, w) IS_SUBSET((set) & ~BIT(at[w]), acked[w])
#endif

#ifdef MUTANT_OLD_ACKNOWLEDGEMENTS_COVER
#define ACKED_AT_ONCE(n) (ALL_NODES & ~primaries)
#else
#define ACKED_AT_ONCE(n) 0
#endif

#ifdef MUTANT_WITNESS_OF_ANOTHER_STREAM
#define ACKNOWLEDGES(w, m) (did[w] == RAN && at[w] == (m))
#else
#define ACKNOWLEDGES(w, m) (did[w] == RAN && at[w] == (m) && !HAS(deposed, w))
#endif

#if !defined(WITH_DISKS)
#define ON_DISK(n) true
#define COUNTS(n) true
#elif defined(MUTANT_DISK_IS_NOT_ASKED)
#define ON_DISK(n) (!HAS(off_disk, n))
#define COUNTS(n) true
#else
#define ON_DISK(n) (!HAS(off_disk, n))
#define COUNTS(n) ON_DISK(n)
#endif

#ifdef MUTANT_ONE_REPORT_IS_ENOUGH
#define ARE_HEARD(n) (heard[n] != 0)
#else
#define ARE_HEARD(n) (HOW_MANY(heard[n] & ~SET_BACK(heard[n])) >= MAJORITY)
#endif

#if !defined(ONE_IS_SET_BACK)
#define SET_BACK(who) 0
#define IS_NEWEST(n) true
#define USES(n) skip
#else
#ifdef MUTANT_SET_BACK_COUNTS
#define SET_BACK(who) 0
#else
#define SET_BACK(who) (is_back && (knows & (who)) != 0)
#endif
#ifdef MUTANT_NEWEST_AMONG_A_MAJORITY
#define IS_NEWEST(n) true
#else
#define IS_NEWEST(n) (newest[n] >= used)
#endif
#define USES(n) used = (number[n] > used -> number[n] : used)
#endif

#if !defined(WITH_LINEAGE)
#define IS_LED(n, record) false
#elif defined(MUTANT_LINEAGE_OF_ANY_RECORD)
#define IS_LED(n, record) (stream[n] == led_to[n] || before[n] == led_to[n])
#else
#define IS_LED(n, record) ((stream[n] == led_to[n] || before[n] == led_to[n]) && led_from[n] == (record))
#endif
#define GOES_ON(n, id, record) (stream[n] == (id) || before[n] == (id) || IS_LED(n, record))
#ifdef MUTANT_ANY_NODE_IS_ADMITTED
#define IS_FIT(n) true
#elif defined(MUTANT_ADMITTED_BY_NAME)
#define IS_FIT(n) HAS(newest_set[n], n)
#else
#define IS_FIT(n) (HAS(newest_set[n], n) && GOES_ON(n, newest_stream[n], newest[n]))
#endif

#if !defined(WITH_LINEAGE)
#define NOTES(n) skip
#define LEADS(n) skip
#define COPIES_LINEAGE(n, m) skip
#define BEGINS_WITH_LINEAGE(n) skip
#else
#define BEGINS_WITH_LINEAGE(n) own[n] = FIRST_OF(1); own_set[n] = FIRST_SET; own_stream[n] = 1
#define NOTES(n) own[n] = number[n]; own_set[n] = in_sync[n]; own_stream[n] = stream[n]
#ifdef MUTANT_LINEAGE_OF_ANY_NODE
#define IS_OF_OWN_SET(n) true
#else
#define IS_OF_OWN_SET(n) HAS(own_set[n], n)
#endif
#ifdef MUTANT_LINEAGE_BY_NAME
#define GOES_ON_WITH_OWN(n) true
#else
#define GOES_ON_WITH_OWN(n) GOES_ON(n, own_stream[n], own[n])
#endif
#define LEADS(n) \
    if \
    :: IS_OF_OWN_SET(n) && GOES_ON_WITH_OWN(n) -> led_from[n] = own[n]; led_to[n] = stream[n] \
    :: else \
    fi
#define COPIES_LINEAGE(n, m) \
    own[n] = own[m]; own_set[n] = own_set[m]; own_stream[n] = own_stream[m]; \
    led_from[n] = led_from[m]; led_to[n] = led_to[m]
#endif

#ifdef MUTANT_REPORT_IS_NO_PROMISE
#define PROMISES(s, epoch) skip
#define ACTS_IN(s, n) true
#else
#define PROMISES(s, epoch) promised[s] = (epoch)
#define ACTS_IN(s, n) (promised[s] <= EPOCH_OF(number[n]))
#endif

#ifdef MUTANT_SHRINK_BEFORE_RECORD
#define SHRINKS_AT_ONCE(n) needed[n] = in_sync[n]
#else
#define SHRINKS_AT_ONCE(n) skip
#endif

#ifdef MUTANT_GROW_BEFORE_CAUGHT_UP
#define GROWS_TO(m) ((m) + 1 + CAUGHT_UP)
#else
#define GROWS_TO(m) ((m) + 1)
#endif
#ifdef MUTANT_GROW_IN_THE_SAME_EPOCH
byte stale[NODES];        /* what a stalled service knows: the nodes that were needed before the set grew */
#define KNOWS_STILL(n) stale[n] = needed[n]
#else
#define KNOWS_STILL(n) skip /* its scripts are refused: another epoch */
#endif
#ifdef MUTANT_GROWN_EPOCH_IS_A_NUMBER
#define GROWN(n) number[n] = FIRST_OF(last_epoch + 1); last_epoch++
#define CAN_GROW last_epoch < EPOCHS
#else
#define GROWN(n) skip
#define CAN_GROW true
#endif

#ifdef MUTANT_OPEN_BEFORE_RECORD
#define IS_RECORDED(n) true
#else
#define IS_RECORDED(n) (RECORDS_OF(n) >= MAJORITY)
#endif

#ifdef MUTANT_NO_LEASE_ON_THE_EPOCH
#define ENDS_OLDER_EPOCHS(n) alive = alive | BIT(n)
#else
#define ENDS_OLDER_EPOCHS(n) \
    alive = BIT(n); \
    if \
    :: did[0] == RAN -> forget_operation(0) \
    :: else \
    fi; \
    forget_operation(1)
#endif

#define IS_PRIMARY(n) HAS(primaries, n)
#define HAS_RECORDED(s, n) (recorded[s] == number[n])
#if REGISTRARS == 1
#define RECORDS_OF(n) HAS_RECORDED(0, n)
#define ACTING_IN(n) ACTS_IN(0, n)
#else
#define RECORDS_BUT_OLD(n) (HAS_RECORDED(0, n) | HAS_RECORDED(1, n) << 1 | HAS_RECORDED(2, n) << 2)
#define RECORDS_OF(n) HOW_MANY(RECORDS_BUT_OLD(n) & ~SET_BACK(RECORDS_BUT_OLD(n)))
#define ACTING_IN(n) ((ACTS_IN(0, n) && !SET_BACK(6)) + ACTS_IN(1, n) + ACTS_IN(2, n))
#endif
#define MAY_CHANGE(n) \
    (HAS(opened, n) && in_sync[n] == needed[n] && growing[n] == 0 && CHANGES_OF(number[n]) < CHANGES)

/* --copies: what is told is on the disks of so many that may take over by the record. A node that joins is one of
 * them when a record that names it is (insync.lua, added). */
#ifndef COPIES
#define COPIES 1
#define LEAST 0 /* what takes itself out of the set is `gone` */
#define ARE_COPIED(w) true
#define ARE_TOLD_BY(w) true
#define JOINED(n, m) skip
#define NOBODY_JOINS(n) skip
#define ADDED(n)
#else
#define LEAST COPIES
byte added[NODES];        /* the node whose record is not known to be recorded */
#ifdef MUTANT_COPY_BEFORE_ITS_RECORD
#define COPIES_OF(n) (growing[n] != 0 -> in_sync[n] : needed[n])
#else
#define COPIES_OF(n) ((growing[n] != 0 -> in_sync[n] : needed[n]) & ~added[n])
#endif
#define ARE_COPIED(w) (HAS(opened, at[w]) && HOW_MANY(COPIES_OF(at[w])) >= COPIES)
#define ARE_TOLD_BY(w) (HOW_MANY((acked[w] | BIT(at[w])) & recorded_set[0]) >= COPIES)
#define JOINED(n, m) added[n] = BIT(m)
#define NOBODY_JOINS(n) added[n] = 0
#define ADDED(n) :: is_added(n)
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_TWO_PROMOTIONS
bool is_led;
#define WHEN_SEEN assert(!is_led)
#define LED(n) is_led = is_led || !(stream[n] == newest_stream[n] || before[n] == newest_stream[n])
#else
#define LED(n) skip
#endif
#ifdef REACH_TWO_PROMOTIONS
#elif defined(REACH_FAILOVER)
#define WHEN_SEEN assert(at[1] == 0)
#elif defined(REACH_SHRINK_AND_FAILOVER)
bool has_shrunk;
#define WHEN_SEEN assert(at[1] == 0 || !has_shrunk)
#elif defined(REACH_GROWTH_AND_FAILOVER)
bool has_grown;
#define WHEN_SEEN assert(at[1] == 0 || !has_grown)
#elif defined(REACH_DISK)
bool was_off_disk;
#define WHEN_SEEN assert(at[1] == 0 || !was_off_disk)
#elif defined(REACH_SET_BACK_IS_LEFT_OUT)
#define WHEN_SEEN assert(at[1] == 0 || !is_back)
#else
#define WHEN_SEEN skip
#endif
#ifdef REACH_SHRINK_AND_FAILOVER
#define SHRUNK has_shrunk = true
#else
#define SHRUNK skip
#endif
#ifdef REACH_GROWTH_AND_FAILOVER
#define GREW has_grown = true
#else
#define GREW skip
#endif
#ifdef REACH_DISK
#define WAS_OFF_DISK was_off_disk = true
#else
#define WAS_OFF_DISK skip
#endif

/* -- within a step */

/* What nobody will be told need not be in anybody's data. */
inline forget_operation(w)
{
    did[w] = 0; at[w] = 0; known[w] = 0; acked[w] = 0;
    deposed = deposed & ~BIT(w); saw = saw & ~BIT(w);
    has[0] = has[0] & ~BIT(w); has[1] = has[1] & ~BIT(w);
#if NODES > 2
    has[2] = has[2] & ~BIT(w);
#endif
#ifdef WITH_DISKS
    disk[0] = disk[0] & ~BIT(w); disk[1] = disk[1] & ~BIT(w);
#if NODES > 2
    disk[2] = disk[2] & ~BIT(w);
#endif
#endif
    missed = (w == 1 -> 0 : missed)
}

inline forget_gate(n)
{
    ballot[n] = 0; heard[n] = 0; newest[n] = 0; newest_set[n] = 0; newest_stream[n] = 0
}

inline forget_epoch(n)
{
    forget_gate(n);
    opened = opened & ~BIT(n); alive = alive & ~BIT(n);
    number[n] = 0; in_sync[n] = 0; needed[n] = 0; growing[n] = 0; NOBODY_JOINS(n)
}

inline leaves_stream(n)
{
#ifndef MUTANT_SAME_RUN_IS_ENOUGH
    forget_epoch(n);
#endif
    deposed = deposed | (did[0] == RAN && at[0] == n) | ((did[1] == RAN && at[1] == n) << 1)
}

#if !defined(WITH_LINEAGE)
#define IS_OF_LINEAGE(id) false
#elif NODES > 2
#define IS_OF_LINEAGE(id) \
    (own_stream[0] == (id) || own_stream[1] == (id) || own_stream[2] == (id) || led_to[0] == (id) || \
     led_to[1] == (id) || led_to[2] == (id))
#else
#define IS_OF_LINEAGE(id) \
    (own_stream[0] == (id) || own_stream[1] == (id) || led_to[0] == (id) || led_to[1] == (id))
#endif
#if NODES > 2
#define IS_OF_NODE(id) \
    (stream[0] == (id) || stream[1] == (id) || stream[2] == (id) || before[0] == (id) || before[1] == (id) || \
     before[2] == (id) || newest_stream[0] == (id) || newest_stream[1] == (id) || newest_stream[2] == (id) || \
     IS_OF_LINEAGE(id))
#else
#define IS_OF_NODE(id) \
    (stream[0] == (id) || stream[1] == (id) || before[0] == (id) || before[1] == (id) || \
     newest_stream[0] == (id) || newest_stream[1] == (id) || IS_OF_LINEAGE(id))
#endif
#if REGISTRARS > 1
#define IS_RECORDED_STREAM(id) (recorded_stream[0] == (id) || recorded_stream[1] == (id) || recorded_stream[2] == (id))
#else
#define IS_RECORDED_STREAM(id) (recorded_stream[0] == (id))
#endif

/* 1 is that of the first epoch, which a registrar that is set back has. */
inline begin_stream(n)
{
    before[n] = stream[n]; stream[n] = 0; i = 2;
    do
    :: IS_OF_NODE(i) || IS_RECORDED_STREAM(i) -> i++
    :: else -> break
    od;
    stream[n] = i; i = 0
}

inline acknowledge(w, n, m)
{
    acked[w] = acked[w] | ((ACKNOWLEDGES(w, m) && COUNTS(n)) << n)
}

/* -- what happens: nodes. Anybody promotes any node at any time, and any node may copy any primary. */

/* Also of one that is a primary: redis-cli --rdb, or the first replica, begins a stream without any loss. */
#ifdef STREAMS_STAY
#define BEGINS_ANEW(n) !IS_PRIMARY(n)
#else
#define BEGINS_ANEW(n) true
#endif
inline is_promoted(n)
{
    d_step {
        BEGINS_ANEW(n) ->
        leaves_stream(n); begin_stream(n);
        primaries = primaries | BIT(n)
    }
}

inline copies(n, m)
{
    d_step {
        IS_PRIMARY(m) ->
        leaves_stream(n); primaries = primaries & ~BIT(n);
#ifdef MUTANT_SAME_RUN_IS_ENOUGH
        if
        :: number[m] != 0 -> forget_epoch(n)
        :: else
        fi;
#endif
        has[n] = has[m]; stream[n] = stream[m]; before[n] = before[m]; COPIES_LINEAGE(n, m);
        acknowledge(0, n, m); acknowledge(1, n, m);
        if
        :: growing[m] == n + 1 && COUNTS(n) -> growing[m] = growing[m] | CAUGHT_UP
        :: else
        fi
    }
}

#ifdef WITH_DISKS
/* What was on its disk stays there until the rewrite has ended. */
inline begins_full_resync(n, m)
{
    d_step {
        IS_PRIMARY(m) && !IS_PRIMARY(n) && ON_DISK(n) ->
        disk[n] = has[n]; off_disk = off_disk | BIT(n); WAS_OFF_DISK
    }
}

inline ends_rewrite(n)
{
    d_step {
        HAS(off_disk, n) ->
        off_disk = off_disk & ~BIT(n); disk[n] = 0
    }
}

/* Its lineage is what it was, which is worse than what Redis does. */
inline starts_again(n)
{
    d_step {
        HAS(off_disk, n) ->
        leaves_stream(n); primaries = primaries & ~BIT(n);
        has[n] = disk[n]; off_disk = off_disk & ~BIT(n); disk[n] = 0
    }
}
#endif

/* -- who may take over */

inline shuts(n)
{
    d_step {
        IS_PRIMARY(n) && last_epoch < EPOCHS && !(ballot[n] == last_epoch && heard[n] == 0) ->
        forget_epoch(n);
        last_epoch++; ballot[n] = last_epoch; LEADS(n)
    }
}

inline reports(n, s)
{
    d_step {
        ballot[n] > promised[s] && !HAS(heard[n], s) ->
        PROMISES(s, ballot[n]);
        heard[n] = heard[n] | BIT(s);
        if
        :: recorded[s] >= newest[n] ->
            newest[n] = recorded[s]; newest_set[n] = recorded_set[s]; newest_stream[n] = recorded_stream[s]
        :: else
        fi
    }
}

inline is_admitted(n)
{
    d_step {
        ballot[n] != 0 && ARE_HEARD(n) && IS_NEWEST(n) && IS_FIT(n) ->
        LED(n);
        number[n] = FIRST_OF(ballot[n]); in_sync[n] = newest_set[n]; needed[n] = newest_set[n];
        forget_gate(n)
    }
}

inline records(n, s)
{
    d_step {
        number[n] > recorded[s] && ACTS_IN(s, n) ->
        promised[s] = (EPOCH_OF(number[n]) > promised[s] -> EPOCH_OF(number[n]) : promised[s]);
        recorded[s] = number[n]; recorded_set[s] = in_sync[n]; recorded_stream[s] = stream[n]
    }
}

/* A lease on an older epoch has ended by now: 3.3 s since the last echo of those that were heard. */
inline opens(n)
{
    d_step {
        number[n] != 0 && !HAS(opened, n) && IS_RECORDED(n) ->
        opened = opened | BIT(n); USES(n); NOTES(n);
        ENDS_OLDER_EPOCHS(n)
    }
}

/* A majority echoes the heartbeats of its services. */
inline is_echoed(n)
{
    d_step {
        HAS(opened, n) && !HAS(alive, n) && ACTING_IN(n) >= MAJORITY -> alive = alive | BIT(n)
    }
}

/* -- the set */

inline shrinks(n, m)
{
    d_step {
        MAY_CHANGE(n) && HAS(in_sync[n], m) && HOW_MANY(in_sync[n]) > LEAST ->
        in_sync[n] = in_sync[n] & ~BIT(m); number[n]++; NOTES(n); SHRINKS_AT_ONCE(n)
    }
}

inline is_in_force(n)
{
    d_step {
        HAS(opened, n) && needed[n] != in_sync[n] && growing[n] == 0 && RECORDS_OF(n) >= MAJORITY ->
        needed[n] = in_sync[n]; SHRUNK; USES(n)
    }
}

inline begins_to_grow(n, m)
{
    d_step {
        MAY_CHANGE(n) && !HAS(in_sync[n], m) && CAN_GROW ->
        KNOWS_STILL(n); GROWN(n);
        needed[n] = needed[n] | BIT(m); growing[n] = GROWS_TO(m)
    }
}

inline has_grown_by(n, m)
{
    d_step {
        growing[n] == (m) + 1 + CAUGHT_UP ->
        in_sync[n] = needed[n]; number[n]++; growing[n] = 0; NOTES(n); JOINED(n, m); GREW
    }
}

#if COPIES > 1
inline is_added(n)
{
    d_step { added[n] != 0 && RECORDS_OF(n) >= MAJORITY -> added[n] = 0 }
}
#endif

inline gives_up_growing(n, m)
{
    d_step {
        growing[n] == (m) + 1 ->
        needed[n] = in_sync[n]; growing[n] = 0
    }
}

/* -- a registrar that is set back */

#ifdef ONE_IS_SET_BACK
inline learns(s)
{
    d_step {
        !is_back && recorded[0] > FIRST_OF(1) && !HAS(knows, s) -> knows = knows | BIT(s)
    }
}

#ifdef SERVICES_LIVE
#define SOMEBODY_KNOWS (primaries == alive)
#else
#define SOMEBODY_KNOWS (knows == 6)
#endif

inline is_set_back()
{
    d_step {
        !is_back && SOMEBODY_KNOWS && (recorded[0] > FIRST_OF(1) || promised[0] > 1) ->
        is_back = true; recorded[0] = FIRST_OF(1); recorded_set[0] = FIRST_SET; recorded_stream[0] = 1; promised[0] = 1
    }
}
#endif

/* -- operations */

inline runs_with(w, n, set)
{
    d_step {
        did[w] == 0 && HAS(alive & opened & primaries, n) && (set) != 0 ->
        did[w] = RAN; at[w] = n; known[w] = set; acked[w] = ACKED_AT_ONCE(n);
        saw = saw | (HAS(has[n], 1 - w) << w);
        missed = (w == 1 -> did[0] == ACKNOWLEDGED && !HAS(has[n], 0) : missed);
        has[n] = has[n] | BIT(w)
    }
}

#define IS_COVERED(w) \
    (did[w] == RAN && COUNTS(at[w]) && ARE_COPIED(w) && \
     (ARE_ENOUGH(known[w], w) || (!HAS(deposed, w) && HAS(opened, at[w]) && ARE_ENOUGH(needed[at[w]], w))))

inline is_acknowledged()
{
    d_step {
        IS_COVERED(0) ->
        assert(ARE_TOLD_BY(0));
        missed = missed | (did[1] == RAN && (saw & 3) == 0);
        did[0] = ACKNOWLEDGED; at[0] = 0; known[0] = 0; acked[0] = 0; deposed = deposed & ~1; saw = saw & ~1
    }
}

/* A later one, which must have seen it. */
inline has_seen_it()
{
    d_step {
        did[0] == ACKNOWLEDGED && IS_COVERED(1) ->
        assert(!missed); WHEN_SEEN;
        forget_operation(1)
    }
}

#ifdef MUTANT_GROW_IN_THE_SAME_EPOCH
#define RUNS(w, n) :: runs_with(w, n, needed[n]) :: runs_with(w, n, stale[n])
#else
#define RUNS(w, n) :: runs_with(w, n, needed[n])
#endif
#if REGISTRARS > 1
#define OF_EACH_REGISTRAR(step, n) :: step(n, 0) :: step(n, 1) :: step(n, 2)
#else
#define OF_EACH_REGISTRAR(step, n) :: step(n, 0)
#endif
#ifdef WITH_DISKS
#define DISK(n) :: ends_rewrite(n) :: starts_again(n)
#define RESYNC(n, m) :: begins_full_resync(n, m)
#else
#define DISK(n)
#define RESYNC(n, m)
#endif
#define NODE(n) \
    :: is_promoted(n) :: shuts(n) :: is_admitted(n) :: opens(n) :: is_echoed(n) :: is_in_force(n) \
    OF_EACH_REGISTRAR(reports, n) OF_EACH_REGISTRAR(records, n) RUNS(0, n) RUNS(1, n) DISK(n) ADDED(n)
#ifdef WITHOUT_GROWTH
#define GROWTH(n, m)
#else
#define GROWTH(n, m) :: begins_to_grow(n, m) :: has_grown_by(n, m) :: gives_up_growing(n, m)
#endif
#define COPY(n, m) :: copies(n, m) RESYNC(n, m)
#define CHANGE(n, m) :: shrinks(n, m) GROWTH(n, m)
#define PAIR(n, m) COPY(n, m) CHANGE(n, m)

init {
    d_step {
        do
        :: i < NODES -> stream[i] = 1; BEGINS_WITH_LINEAGE(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < REGISTRARS ->
            recorded[i] = FIRST_OF(1); recorded_set[i] = FIRST_SET; recorded_stream[i] = 1; promised[i] = 1; i++
        :: else -> break
        od;
        i = 0; number[0] = FIRST_OF(1); in_sync[0] = FIRST_SET; needed[0] = FIRST_SET; opened = 1; alive = 1
    }
    do
    NODE(0) NODE(1) PAIR(0, 1) PAIR(1, 0)
#if NODES > 2 && defined(ONE_IS_NEVER_PROMOTED)
    COPY(2, 0) COPY(2, 1) CHANGE(0, 2) CHANGE(1, 2)
#elif NODES > 2
    NODE(2) PAIR(0, 2) PAIR(2, 0) PAIR(1, 2) PAIR(2, 1)
#endif
#ifdef ONE_IS_SET_BACK
    :: learns(1) :: learns(2) :: is_set_back()
#endif
    :: is_acknowledged()
    :: has_seen_it()
    od
}

/* floor.pml - no token is granted twice, and none below one that was granted before, whatever becomes of the
 * store: the floors, the lists of members, and the admission of a new epoch (docs/decisions/0010).
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Sets of lease services
 * are bit masks. A service is its state directory: a deleted one comes back under a number that nobody knows
 * any more. Every step of the last loop is atomic: a script in the store, or a file that has become durable. */
#ifndef MAX
#define MAX 2 /* the highest token */
#endif

#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define LARGER(a, b) ((a) > (b) -> (a) : (b))
#define ANY_OTHER(i, test) ((i != 0 && test(0, i)) || (i != 1 && test(1, i)) || (i != 2 && test(2, i)))
#define NAMED (list[0] | list[1] | list[2] | next_list[0] | next_list[1] | next_list[2])

/* The state directories; the process of one that was deleted still knows what was in it. */
byte there;            /* the directories that are there */
byte floor[3];         /* no token above it was granted */
byte list[3];          /* the lease services that are in the store, or on the way in */
byte recorded[3];      /* of those on the way in: whose present entry the list has (its roll is high enough) */

/* A write of a state directory that is under way: what the store answered, and is not yet durable. */
byte next_list[3], next_recorded[3], next_floor[3];

/* The store. */
byte counter, ceiling; /* the last token; none above it is granted */
byte in, pending;      /* the lease services; "out" is an "in" that does nothing */
byte open;             /* after recover: 1 the first that comes needs nobody to vouch for it; 2 + i: it is i */
bool gated;
byte reported;

byte highest;          /* that was ever granted; nobody knows it */
byte once;             /* what a mutant, or a check of what is reachable, remembers */
byte needed, firm, may; /* within one step only */

/* -- what the mutants take away, one each */

#if defined(MUTANT_REPORT_WHILE_WRITING) || defined(MUTANT_REPORTS_COME_BACK)
#define REPORTS_ARE_KEPT /* else a report is what the directory says: that does not change while gated */
byte told_list[3], told_floor[3];
#define REPORTED_LIST(i) told_list[i]
#define REPORTED_FLOOR(i) told_floor[i]
#define TELL(i) told_list[i] = list[i]; told_floor[i] = floor[i]; once = once | BIT(i)
#elif defined(MUTANT_FORGOTTEN_ARE_SKIPPED)
byte skipped[3]; /* forgotten after the list had been recorded */
#define REPORTED_LIST(i) (list[i] & ~skipped[i])
#define REPORTED_FLOOR(i) floor[i]
#define TELL(i) skip
#else
#define REPORTED_LIST(i) list[i]
#define REPORTED_FLOOR(i) floor[i]
#define TELL(i) skip
#endif

#ifdef MUTANT_REPORT_WHILE_WRITING
#define SETTLED(i) true
#else
#define SETTLED(i) (next_list[i] == 0)
#endif

#ifdef MUTANT_REPORTS_COME_BACK
#define REPORTED_BEFORE once
#define HAS_NEWS(i) (!HAS(reported, i) || told_list[i] != list[i] || told_floor[i] != floor[i])
#else
#define REPORTED_BEFORE 0
#define HAS_NEWS(i) (!HAS(reported, i))
#endif

#ifdef MUTANT_FORGOTTEN_ARE_SKIPPED
#define SKIP(i) \
    skipped[0] = skipped[0] | (list[0] & BIT(i)); skipped[1] = skipped[1] | (list[1] & BIT(i)); \
    skipped[2] = skipped[2] | (list[2] & BIT(i)); once = ceiling
#define SKIP_NONE(i) skipped[i] = 0
#define COUNTER_LEFT once /* the store is put back to when one was forgotten */
#else
#define SKIP(i) skip
#define SKIP_NONE(i) skip
#define COUNTER_LEFT 0
#endif

#ifdef MUTANT_NO_CEILING
#define LIMIT MAX
#else
#define LIMIT ceiling
#endif

#ifdef MUTANT_TOLD_BEFORE_DURABLE
#define DURABLE(i) (floor[i] < MAX -> floor[i] + 1 : floor[i])
#else
#define DURABLE(i) floor[i]
#endif

#ifdef MUTANT_LIST_WITHOUT_FLOOR
#define WITH_FLOOR 0
#else
#define WITH_FLOOR ceiling
#endif

#ifdef MUTANT_NO_FLOOR
#define FLOOR_OF(i) 0
#else
#define FLOOR_OF(i) (HAS(needed, i) -> REPORTED_FLOOR(i) : 0)
#endif

#ifdef MUTANT_OWN_FILE_ONLY
#define LISTED_BY(i) 0
#else
#define LISTED_BY(i) (HAS(needed, i) -> REPORTED_LIST(i) : 0)
#endif

#ifdef MUTANT_STATES_OF_THE_STORE
#define IN_AFTER (firm | once)
#elif defined(MUTANT_ALL_NEEDED_ARE_IN)
#define IN_AFTER needed
#else
#define IN_AFTER firm
#endif

#ifdef MUTANT_NO_GATE
#define GATE false
#else
#define GATE true
#endif

#ifdef MUTANT_ROLL_OF_ANOTHER_LIFE /* what lands late seems to have all that are on the way in */
#define ROLL_OF(i) (next_list[i] != 0 -> 7 : 0)
#define KEEP_ROLLS \
    next_recorded[0] = ROLL_OF(0); next_recorded[1] = ROLL_OF(1); next_recorded[2] = ROLL_OF(2)
#else
#define KEEP_ROLLS skip
#endif

#ifdef MUTANT_THE_FIRST_GOES
#define SOMEBODY_STAYS true
#else
#define SOMEBODY_STAYS (in != 0)
#endif

#ifdef MUTANT_OLD_DIRECTORY_IS_A_VOUCHER
#define NOBODY_TO_ASK(i) (list[i] != 0)
#else
#define NOBODY_TO_ASK(i) false
#endif

#ifdef MUTANT_RECOVERED_WITH_ANOTHER_LEFT
#define DESTROY_ALL_BUT(here) skip
#else
#define DESTROY_ALL_BUT(here) destroy_unless(0, here); destroy_unless(1, here); destroy_unless(2, here)
#endif

#ifdef MUTANT_RECOVERED_THOUGH_ADMISSIBLE
#define RECOVERED_ANYHOW true
#else
#define RECOVERED_ANYHOW false
#endif

/* Judged live: anybody may be, and nobody must be. One whose process and file are gone may have told
 * anything before. */
#define RUNS(i) (HAS(there, i) || list[i] != 0)
#ifdef MUTANT_JOINS_UNRECORDED
#define vouches(j, i) (HAS(in, j))
#else
#define vouches(j, i) (HAS(in, j) && (HAS(recorded[j], i) || !RUNS(j)))
#endif
#ifdef WITHOUT_SPARE_CHECKS
#define covers(j, i) (HAS(in, j))
#define HIGH_ENOUGH(i) true
#else
#define covers(j, i) (HAS(in, j) && ((floor[j] >= counter && floor[j] >= ceiling) || !RUNS(j)))
#define HIGH_ENOUGH(i) (floor[i] >= ceiling)
#endif

/* -- how much is tried */

#ifdef MANY_WRITES
#define MAY_WRITE(i) (next_list[i] == 0)
#else
#define MAY_WRITE(i) ((next_list[0] | next_list[1] | next_list[2]) == 0)
#endif

#if SERVICES == 2
#define EACH(step) :: step(0) :: step(1)
#else
#define EACH(step) :: step(0) :: step(1) :: step(2)
#endif

#ifdef SYMMETRY
#include "floor_symmetry.pml"
#else
#define DONE skip
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_ADMITTED_BY_ALL
#define WHEN_ADMITTED once = (needed == 7)
#elif defined(REACH_TWO_ADMISSIONS)
#define WHEN_ADMITTED once = (highest > once -> once + 1 : once)
#else
#define WHEN_ADMITTED skip
#endif
#ifdef REACH_RECOVERED
#define WHEN_RECOVERED once = 1
#else
#define WHEN_RECOVERED skip
#endif
#if defined(REACH_ADMITTED_BY_ALL) || defined(REACH_RECOVERED)
#define WHEN_GRANTED assert(once == 0)
#elif defined(REACH_TWO_ADMISSIONS)
#define WHEN_GRANTED assert(once < 2)
#else
#define WHEN_GRANTED skip
#endif
#ifdef REACH_REFUSED_ALONE
#define WHEN_REFUSED(i) assert(!(reported == BIT(i) && HAS(list[i], i) && floor[i] < highest))
#else
#define WHEN_REFUSED(i) skip
#endif

/* -- within a step */

inline forget_write(i)
{
    next_list[i] = 0; next_recorded[i] = 0; next_floor[i] = 0
}

inline forget_file(i)
{
    floor[i] = 0; list[i] = 0; recorded[i] = 0
}

/* These have another entry in the store from now on, or none. */
inline entries_end(set)
{
    recorded[0] = recorded[0] & ~(set); next_recorded[0] = next_recorded[0] & ~(set);
    recorded[1] = recorded[1] & ~(set); next_recorded[1] = next_recorded[1] & ~(set);
    recorded[2] = recorded[2] & ~(set); next_recorded[2] = next_recorded[2] & ~(set)
}

/* The closure: i, those in its list, those in theirs. Firm are those that are in all of these lists; a
 * directory that does not name itself was never in, and its list does not count. */
inline find_needed(i)
{
    needed = BIT(i);
    needed = needed | LISTED_BY(0) | LISTED_BY(1) | LISTED_BY(2);
    needed = needed | LISTED_BY(0) | LISTED_BY(1) | LISTED_BY(2);
    firm = 0;
    if
    :: HAS(reported, i) && (needed & ~reported) == 0 ->
        firm = (HAS(needed, 0) && HAS(REPORTED_LIST(0), 0) -> REPORTED_LIST(0) : 7) &
               (HAS(needed, 1) && HAS(REPORTED_LIST(1), 1) -> REPORTED_LIST(1) : 7) &
               (HAS(needed, 2) && HAS(REPORTED_LIST(2), 2) -> REPORTED_LIST(2) : 7) & needed;
        firm = firm & (HAS(REPORTED_LIST(0), 0) | HAS(REPORTED_LIST(1), 1) << 1 | HAS(REPORTED_LIST(2), 2) << 2)
    :: else
    fi
}

inline destroy_unless(i, here)
{
    if
    :: !HAS(here, i) && (list[i] != 0 || HAS(NAMED, i)) ->
        there = there & ~BIT(i); forget_file(i); forget_write(i)
    :: else
    fi
}

/* -- what happens */

/* An empty directory, under a number that is not in anybody's list. */
inline is_made(i)
{
    d_step {
        !RUNS(i) && !HAS(in | pending | reported | NAMED, i) ->
        there = there | BIT(i); DONE
    }
}

inline is_deleted(i)
{
    d_step {
        HAS(there, i) ->
        there = there & ~BIT(i); forget_write(i); DONE
    }
}

/* And starts again, unless its directory is gone; then what it has reported is all that is left. */
inline crashes(i)
{
    d_step {
        next_list[i] != 0 || (!HAS(there, i) && list[i] != 0 && !HAS(reported, i)) ->
        forget_write(i);
        if
        :: !HAS(there, i) -> forget_file(i)
        :: else
        fi;
        DONE
    }
}

inline joins(i)
{
    d_step {
        !gated && HAS(there, i) && !HAS(in | pending, i) ->
        pending = pending | BIT(i);
        if
        :: open == 1 -> open = 2 + i
        :: else
        fi;
        DONE
    }
}

inline begins_to_write(i)
{
    d_step {
        !gated && HAS(there, i) && HAS(in | pending, i) && MAY_WRITE(i) &&
        (list[i] != (in | pending) || recorded[i] != pending || floor[i] < ceiling) ->
        next_list[i] = in | pending; next_recorded[i] = pending; next_floor[i] = WITH_FLOOR; DONE
    }
}

inline has_written(i)
{
    d_step {
        next_list[i] != 0 ->
        list[i] = next_list[i]; recorded[i] = next_recorded[i]; floor[i] = LARGER(floor[i], next_floor[i]);
        SKIP_NONE(i); forget_write(i); DONE
    }
}

/* A floor ahead: a write that changes nothing else. */
inline has_written_a_floor(i)
{
    d_step {
        !gated && HAS(there, i) && HAS(in, i) && floor[i] < MAX ->
        floor[i]++; DONE
    }
}

inline enters(i)
{
    d_step {
        !gated && HAS(there, i) && HAS(pending, i) && HAS(recorded[i], i) && HIGH_ENOUGH(i) &&
        (open == 2 + i || ANY_OTHER(i, vouches) || NOBODY_TO_ASK(i)) ->
        pending = pending & ~BIT(i); in = in | BIT(i); entries_end(BIT(i));
        if
        :: open == 2 + i -> open = 0
        :: else
        fi;
        DONE
    }
}

/* The others are judged dead, or have told as much. */
inline raises_the_ceiling(i)
{
    d_step {
        !gated && RUNS(i) && HAS(in, i) && DURABLE(i) > ceiling ->
        ceiling = DURABLE(i); DONE
    }
}

/* It leaves, or is forgotten and does not know. */
inline goes(i)
{
    d_step {
        !gated && ((HAS(pending, i) && SOMEBODY_STAYS) || (HAS(in, i) && ANY_OTHER(i, covers))) ->
        in = in & ~BIT(i); pending = pending & ~BIT(i); entries_end(BIT(i)); SKIP(i);
        if
        :: open == 2 + i -> open = 0
        :: else
        fi;
        DONE
    }
}

#ifdef MUTANT_LEAVES_THE_WAY_IN_AS_OUT
inline leaves_as_out(i)
{
    d_step {
        !gated && HAS(pending, i) && in == 0 ->
        pending = pending & ~BIT(i); in = BIT(i); entries_end(BIT(i)); DONE
    }
}
#endif

inline reports(i)
{
    d_step {
        gated && RUNS(i) && SETTLED(i) && HAS_NEWS(i) && (list[i] != 0 || HAS(NAMED, i)) ->
        reported = reported | BIT(i); TELL(i); DONE
    }
}

inline admits(i)
{
    d_step {
        gated && HAS(reported, i) ->
        find_needed(i);
        if
        :: firm != 0 ->
            WHEN_ADMITTED;
            counter = LARGER(counter, LARGER(FLOOR_OF(0), LARGER(FLOOR_OF(1), FLOOR_OF(2))));
            in = IN_AFTER; ceiling = counter; gated = false; reported = 0
        :: else -> WHEN_REFUSED(i)
        fi;
        needed = 0; firm = 0; DONE
    }
}

/* The store is lost, or put back, or just begins anew. That it is put back to a counter in between is no
 * other case: the greatest floor must do without it. */
inline is_put_back()
{
    d_step {
        !gated || reported != 0 ->
        counter = COUNTER_LEFT; ceiling = (GATE -> 0 : ceiling); gated = GATE;
        in = (GATE -> 0 : in); pending = 0; open = 0; reported = REPORTED_BEFORE; entries_end(7);
        KEEP_ROLLS; DONE
    }
}

/* The operator's word: N is not below any token, and what has not reported is gone for ever. Refused as long as
 * somebody may admit. */
inline is_recovered()
{
    d_step {
        gated ->
        find_needed(0);
        may = firm;
        find_needed(1);
        may = may | firm;
        find_needed(2);
        may = may | firm;
        if
        :: may == 0 || RECOVERED_ANYHOW ->
            counter = LARGER(counter, highest); ceiling = counter;
            DESTROY_ALL_BUT(reported);
            gated = false; reported = 0; open = 1; WHEN_RECOVERED
        :: else
        fi;
        may = 0; needed = 0; firm = 0; DONE
    }
}

/* The same in a life in which nobody is in any more. */
inline is_recovered_in_life()
{
    d_step {
        !gated && open != 1 ->
        counter = LARGER(counter, highest); ceiling = counter;
        needed = 7 & ~in & ~(open > 1 -> BIT(open - 2) : 0);
        DESTROY_ALL_BUT(needed);
        needed = 0; in = 0; pending = 0; open = 1; entries_end(7); DONE
    }
}

inline grants()
{
    d_step {
        !gated && counter < LIMIT ->
        counter++;
        assert(counter > highest);
        highest = counter; WHEN_GRANTED; DONE
    }
}

init {
    d_step { there = 1; list[0] = 1; in = 1; DONE }
    do
    :: grants()
    EACH(is_made)
    EACH(crashes)
    EACH(joins)
    EACH(begins_to_write)
    EACH(has_written)
    EACH(has_written_a_floor)
    EACH(enters)
    EACH(raises_the_ceiling)
    EACH(goes)
    EACH(reports)
    EACH(admits)
    :: is_put_back()
#ifndef NOTHING_IS_DELETED
    EACH(is_deleted)
    :: is_recovered()
    :: is_recovered_in_life()
#endif
#ifdef MUTANT_LEAVES_THE_WAY_IN_AS_OUT
    EACH(leaves_as_out)
#endif
#ifdef MUTANT_STATES_OF_THE_STORE
    :: d_step { !gated && once != in -> once = in }
#endif
    od
}

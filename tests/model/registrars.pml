/* registrars.pml - no life of the store begins below a token that was granted, when a majority of registrars
 * counts instead of all lease services (docs/decisions/0044): the switch to it, lost and old state directories.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Sets of lease services
 * are bit masks: 0, 1 and 2 are the registrars, 3 is another lease service, or one with an empty directory. A
 * service is its state directory. What may be granted is granted at once, up to the ceiling. Every step of the
 * last loop is atomic: a script in the store, a file that has become durable, or a store that is lost and
 * admitted by those that report. */
#ifndef MAX
#define MAX 2 /* the highest token */
#endif

#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define LARGER(a, b) ((a) > (b) -> (a) : (b))
#define SMALLER(a, b) ((a) < (b) -> (a) : (b))
#define REGISTRARS 7
#define NOBODY 4
#define HOW_MANY(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2))
#define THOSE(test) (test(0) | test(1) << 1 | test(2) << 2)

/* The state directories. Of one that was lost the store has what it told before, as long as it is in. */
byte there;            /* the directories that are there */
byte lost;             /* of registrars: one at most */
byte floor[4];         /* no token above it was granted */
byte list[4];          /* the lease services that are in the store, or on the way in */
byte recorded[4];      /* of those on the way in: whose present entry the list has (its roll is high enough) */
byte marked;           /* those with the mark: a majority of the registrars counts */

/* The write of a state directory that is under way: what the store answered, and is not yet durable. */
byte writer = NOBODY, next_list, next_recorded, next_floor;
bool next_mark, next_knows;

/* A copy of a registrar's directory that may be put back, and who has seen more of it than the copy has. */
byte copy_of = NOBODY, copy_floor, copy_list;
bool is_newer;         /* the directory has more than the copy */
bool is_known;         /* and the store has been told so */
byte knows;            /* those that have recorded it */
bool is_old;           /* the copy was put back */
byte believed;         /* the floor that the store has of it nevertheless, as long as it is silent */

/* The store. */
byte ceiling;          /* no token above it is granted */
byte in, pending;      /* the lease services */
byte set;              /* the registrars: the first three that were in */
bool majority;         /* of them counts */

byte highest;          /* the highest token that was ever granted; nobody knows it */
byte counted, firm, needed, top; /* within one step only */

/* -- what the mutants take away, one each */

#ifdef MUTANT_CEILING_OF_A_MINORITY
#define REACHED(a, b, c) LARGER(a, LARGER(b, c))
#else
#define REACHED(a, b, c) LARGER(SMALLER(a, b), LARGER(SMALLER(a, c), SMALLER(b, c)))
#endif

#ifdef MUTANT_TOLD_BEFORE_DURABLE
#define DURABLE(i) (floor[i] < MAX -> floor[i] + 1 : floor[i])
#else
#define DURABLE(i) (i == copy_of -> LARGER(floor[i], believed) : floor[i])
#endif
#ifdef WITHOUT_SPARE_CHECKS
#define FLOOR_OF(i) (HAS(in | pending, i) -> DURABLE(i) : 0)
#else
#define FLOOR_OF(i) (HAS(in, i) -> DURABLE(i) : 0)
#endif
#ifdef MUTANT_FLOOR_OF_AN_OUTSIDER
#define REACHED_BY_MAJORITY \
    LARGER(REACHED(FLOOR_OF(0), FLOOR_OF(1), FLOOR_OF(2)), REACHED(FLOOR_OF(3), FLOOR_OF(1), FLOOR_OF(2)))
#elif defined(MUTANT_SWITCH_WHILE_FILLING)
#define REACHED_BY_MAJORITY (set == 1 -> FLOOR_OF(0) : REACHED(FLOOR_OF(0), FLOOR_OF(1), FLOOR_OF(2)))
#else
#define REACHED_BY_MAJORITY REACHED(FLOOR_OF(0), FLOOR_OF(1), FLOOR_OF(2))
#endif

#ifdef MUTANT_ONE_LESS_IS_HEARD
#define ARE_HEARD(set) (HOW_MANY(set) >= 1)
#else
#define ARE_HEARD(set) (HOW_MANY(set) >= 2)
#endif

#ifdef MUTANT_SWITCH_WHILE_FILLING
#define IS_FULL true
#define SET_AFTER(all) (all)
#else
#define IS_FULL (set == REGISTRARS)
#define SET_AFTER(all) (majority -> REGISTRARS : (all))
#endif
#define COVERS_ALL(i) (HAS(in, i) && floor[i] >= ceiling)
#if defined(WITHOUT_SPARE_CHECKS) || defined(MUTANT_SWITCH_WHILE_FILLING)
#define ARE_COVERED true
#else
#define ARE_COVERED (COVERS_ALL(0) + COVERS_ALL(1) + COVERS_ALL(2) >= 2)
#endif

#ifdef WITHOUT_SPARE_CHECKS
#define HIGH_ENOUGH(i) true
#else
#define HIGH_ENOUGH(i) (floor[i] >= ceiling)
#endif

#ifdef MUTANT_MARK_BEFORE_THE_STORE
#define MARK (set == REGISTRARS)
#else
#define MARK majority
#endif

#ifdef MUTANT_LIST_WITHOUT_FLOOR
#define WITH_FLOOR 0
#else
#define WITH_FLOOR ceiling
#endif

#ifdef MUTANT_REPORT_WHILE_WRITING
#define CAN_REPORT(i) (HAS(there, i) && list[i] != 0)
#elif defined(MUTANT_LOST_ONE_KEEPS_ITS_ID)
#define CAN_REPORT(i) (HAS(there, i) && writer != i)
#else
#define CAN_REPORT(i) (HAS(there, i) && list[i] != 0 && writer != i)
#endif

#ifdef MUTANT_OLD_ONE_COUNTS
#define IS_SET_BACK(who) false
#else
#define IS_SET_BACK(who) (is_old && (knows & (who)) != 0)
#endif
#ifdef MUTANT_STORE_BELIEVES_THE_HIGHER
#define TELL(i) skip
#else
#define TELL(i) believed = (copy_of == i -> 0 : believed)
#endif

/* Whose mark says that a majority counts: that of a registrar that reports. */
#ifdef MUTANT_MARK_OF_AN_OUTSIDER
#define SAY_MAJORITY(who) ((marked & (who)) != 0)
#elif defined(MUTANT_MARK_OF_THE_STORE)
bool was_saved;        /* with the mark, and this ceiling: it may come back */
byte saved_ceiling;
bool is_past;          /* a later life began */
byte later;            /* those that have recorded something of a later life */
#define SAY_MAJORITY(who) ((marked & (who)) != 0 || (was_saved && (later & (who)) == 0))
#elif defined(MUTANT_NOBODY_NEEDS_THE_MARK)
#define SAY_MAJORITY(who) true
#else
#define SAY_MAJORITY(who) ((marked & (who) & REGISTRARS) != 0)
#endif
#ifdef MUTANT_MARK_OF_THE_STORE
#define TOP_OF_THE_STORE saved_ceiling
#define IS_LATER(i) later = later | (is_past << i)
#define PAST is_past = was_saved
#else
#define TOP_OF_THE_STORE 0
#define IS_LATER(i) skip
#define PAST skip
#endif

#ifdef MUTANT_NEW_LIFE_FORGETS
#define MAJORITY_AFTER false
#else
#define MAJORITY_AFTER (counted != 0)
#endif

#define OTHERS_HAVE_IT(i) \
    ((i != 0 && HAS(in, 0) && HAS(recorded[0], i)) || (i != 1 && HAS(in, 1) && HAS(recorded[1], i)) || \
     (i != 2 && HAS(in, 2) && HAS(recorded[2], i)) || (i != 3 && HAS(in, 3) && HAS(recorded[3], i)))
#define OTHERS_COVER(i) \
    ((i != 0 && COVERS_ALL(0)) || (i != 1 && COVERS_ALL(1)) || (i != 2 && COVERS_ALL(2)) || (i != 3 && COVERS_ALL(3)))
/* A registrar's own list, which it needs anyhow, counts as well: else two of three, one of them on the way in,
 * would wait for the third. */
#define HAS_IT(j, i) ((HAS(in, j) || j == i) && HAS(recorded[j], i))
#define MAJORITY_HAS_IT(i) (HAS_IT(0, i) + HAS_IT(1, i) + HAS_IT(2, i) >= 2)

/* -- how much is tried */

#if SERVICES == 3
#define EACH(step) :: step(0) :: step(1) :: step(2)
#else
#define EACH(step) :: step(0) :: step(1) :: step(2) :: step(3)
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_TWO_GO_ON
#define WHEN_RAISED assert(!(lost != 0 && in == (REGISTRARS & ~lost) && highest > 0))
#elif defined(REACH_SWITCHED)
#define WHEN_RAISED assert(!(highest > 0 && in == 15))
#else
#define WHEN_RAISED skip
#endif
#ifdef REACH_OLD_ONE_IS_LEFT_OUT
#define WHEN_ADMITTED assert(!(is_old && HAS(needed, copy_of) && !HAS(counted, copy_of)))
#else
#define WHEN_ADMITTED skip
#endif

/* -- within a step */

inline forget_write()
{
    writer = NOBODY; next_list = 0; next_recorded = 0; next_floor = 0; next_mark = 0; next_knows = 0
}

inline forget_copy()
{
    copy_of = NOBODY; copy_floor = 0; copy_list = 0;
    is_newer = 0; is_known = 0; knows = 0; is_old = 0; believed = 0
}

/* What it had more than the copy is there again, or in what it records now. */
inline has_more(i)
{
    if
    :: copy_of == i && is_old -> forget_copy()
    :: copy_of == i && !is_old -> is_newer = true
    :: else
    fi
}

/* These have another entry in the store from now on, or none. */
inline entries_end(ids)
{
    recorded[0] = recorded[0] & ~(ids); recorded[1] = recorded[1] & ~(ids); recorded[2] = recorded[2] & ~(ids);
    recorded[3] = recorded[3] & ~(ids); next_recorded = next_recorded & ~(ids)
}

inline forget_what_it_told(i)
{
    if
    :: !HAS(there, i) -> floor[i] = 0; recorded[i] = 0
    :: else
    fi
}

#define LISTED_BY(i) (HAS(needed, i) -> list[i] : 0)
#define NAMES_ITSELF(i) HAS(list[i], i)
#define NAMED_BY(i) (HAS(needed, i) && NAMES_ITSELF(i) -> list[i] : 15)
#define CANNOT_REPORT(i) (HAS(needed, i) && !CAN_REPORT(i))

/* As in floor.pml: i, those in its list, those in theirs; firm are those that are in all of these lists. */
inline find_closure(i)
{
    needed = BIT(i);
    needed = needed | LISTED_BY(0) | LISTED_BY(1) | LISTED_BY(2) | LISTED_BY(3);
    needed = needed | LISTED_BY(0) | LISTED_BY(1) | LISTED_BY(2) | LISTED_BY(3);
    needed = needed | LISTED_BY(0) | LISTED_BY(1) | LISTED_BY(2) | LISTED_BY(3);
    if
    :: (marked & needed) == 0 &&
       !(CANNOT_REPORT(0) || CANNOT_REPORT(1) || CANNOT_REPORT(2) || CANNOT_REPORT(3)) ->
        firm = needed & NAMED_BY(0) & NAMED_BY(1) & NAMED_BY(2) & NAMED_BY(3) &
               (THOSE(NAMES_ITSELF) | NAMES_ITSELF(3) << 3)
    :: else
    fi
}

/* Exactly these report, registrars. */
inline find_majority(who)
{
    needed = who;
    if
    :: SAY_MAJORITY(who) && (THOSE(CAN_REPORT) & (who)) == ((who) & REGISTRARS) ->
        counted = who & REGISTRARS & ~(IS_SET_BACK(who) -> BIT(copy_of) : 0);
        counted = (ARE_HEARD(counted) -> counted : 0);
        firm = counted & THOSE(NAMES_ITSELF)
    :: else
    fi
}

#define TOLD(i) (HAS(needed, i) -> floor[i] : 0)

inline begin_life()
{
    if
    :: firm != 0 ->
        top = LARGER(LARGER(LARGER(TOLD(0), TOLD(1)), LARGER(TOLD(2), TOLD(3))), TOP_OF_THE_STORE);
        assert(top >= highest); WHEN_ADMITTED;
        ceiling = top; in = firm; pending = 0; majority = MAJORITY_AFTER; set = SET_AFTER(in & REGISTRARS);
        is_known = is_newer && HAS(needed, copy_of); PAST;
        believed = 0; entries_end(15);
        forget_what_it_told(0); forget_what_it_told(1); forget_what_it_told(2); forget_what_it_told(3)
    :: else
    fi;
    needed = 0; counted = 0; firm = 0; top = 0
}

/* -- what happens: state directories */

/* An empty directory, under a number that is not in anybody's list. */
inline is_made(i)
{
    d_step {
        !HAS(there | lost | in | pending | list[0] | list[1] | list[2] | list[3] | next_list, i) ->
        there = there | BIT(i)
    }
}

inline is_lost(i)
{
    d_step {
        HAS(there, i) && (i == 3 || lost == 0) ->
        there = there & ~BIT(i); lost = lost | (BIT(i) & REGISTRARS);
        list[i] = 0; marked = marked & ~BIT(i);
        if
        :: !HAS(in, i) -> floor[i] = 0; recorded[i] = 0
        :: else
        fi;
        if
        :: writer == i -> forget_write()
        :: else
        fi;
        if
        :: copy_of == i -> floor[i] = LARGER(floor[i], believed); forget_copy()
        :: else -> knows = knows & ~BIT(i)
        fi
    }
}

#ifdef MUTANT_LOST_ONE_KEEPS_ITS_ID
inline comes_back_empty(i)
{
    d_step {
        HAS(lost, i) && !HAS(there, i) && !HAS(in, i) ->
        there = there | BIT(i)
    }
}
#endif

/* The write is lost. */
inline crashes(i)
{
    d_step { writer == i -> forget_write() }
}

/* Without the mark an old directory is a false floor, and nothing can tell. */
inline is_copied(i)
{
    d_step {
        HAS(there, i) && HAS(marked, i) && !is_old && !(copy_of == i && !is_newer) ->
        forget_copy();
        copy_of = i; copy_floor = floor[i]; copy_list = list[i]
    }
}

inline tells_of_more()
{
    d_step {
        is_newer && !is_known && HAS(in | pending, copy_of) -> is_known = true
    }
}

inline is_set_back()
{
    d_step {
        is_newer && (REGISTRARS & ~BIT(copy_of) & ~knows) == 0 ->
        is_old = true; is_newer = false;
        believed = (HAS(in, copy_of) -> floor[copy_of] : 0);
        floor[copy_of] = copy_floor; list[copy_of] = copy_list;
        if
        :: writer == copy_of -> forget_write()
        :: else
        fi
    }
}

/* -- members, floors, the ceiling */

inline joins(i)
{
    d_step {
        HAS(there, i) && !HAS(in | pending, i) && writer != i -> pending = pending | BIT(i)
    }
}

#define LEARNS(i) (is_known && MARK && copy_of != i)

/* The answer to a heartbeat, which has told the floor that the directory has. */
inline begins_to_write(i)
{
    d_step {
        HAS(there, i) && HAS(in | pending, i) && writer == NOBODY &&
        (list[i] != (in | pending) || recorded[i] != pending || floor[i] < ceiling || MARK != HAS(marked, i) ||
         (LEARNS(i) && !HAS(knows, i))) ->
        writer = i; TELL(i);
        next_list = in | pending; next_recorded = pending; next_floor = WITH_FLOOR; next_mark = MARK;
        next_knows = LEARNS(i)
    }
}

inline has_written(i)
{
    d_step {
        writer == i ->
        has_more(i);
        list[i] = next_list; recorded[i] = next_recorded; floor[i] = LARGER(floor[i], next_floor);
        marked = (marked & ~BIT(i)) | (next_mark << i); knows = knows | (next_knows << i);
        IS_LATER(i); forget_write()
    }
}

/* A floor ahead: a write that changes nothing else. */
inline has_written_a_floor(i)
{
    d_step {
        HAS(there, i) && HAS(in, i) && floor[i] < MAX && writer != i && !(copy_of == i && is_old) ->
        floor[i]++;
        has_more(i)
    }
}

inline enters(i)
{
    d_step {
        HAS(there, i) && HAS(pending, i) && HAS(recorded[i], i) && HIGH_ENOUGH(i) &&
        (majority -> MAJORITY_HAS_IT(i) : OTHERS_HAVE_IT(i)) ->
        pending = pending & ~BIT(i); in = in | BIT(i); entries_end(BIT(i));
        set = SET_AFTER((set | in) & REGISTRARS)
    }
}

/* It leaves, or is forgotten and does not know: a registrar never. */
inline goes(i)
{
    d_step {
        !HAS(set, i) && ((HAS(pending, i) && in != 0) || (HAS(in, i) && (majority || OTHERS_COVER(i)))) ->
        in = in & ~BIT(i); pending = pending & ~BIT(i); entries_end(BIT(i))
    }
}

inline switches()
{
    d_step {
        !majority && IS_FULL && ARE_COVERED -> majority = true
    }
}

/* Without a majority: the others are judged dead, or have told as much. */
inline raises_the_ceiling(i)
{
    d_step {
        !majority && HAS(in, i) && DURABLE(i) > ceiling -> ceiling = DURABLE(i); highest = ceiling
    }
}

inline majority_raises_the_ceiling()
{
    d_step {
        majority && REACHED_BY_MAJORITY > ceiling ->
        WHEN_RAISED; ceiling = REACHED_BY_MAJORITY; highest = ceiling
    }
}

/* -- the store is lost, or put back, or just begins anew: floors and lists alone must do. Who else reports
 * only makes the new epoch begin higher. */

inline is_admitted_by_all(i)
{
    d_step { find_closure(i); begin_life() }
}

inline is_admitted_by_majority(who)
{
    d_step { find_majority(who); begin_life() }
}

#ifdef MUTANT_NO_GATE
inline goes_on_without_a_gate()
{
    d_step { ceiling = 0; assert(highest == 0) }
}
#endif
#ifdef MUTANT_MARK_OF_THE_STORE
inline is_saved()
{
    d_step { majority && !was_saved -> was_saved = true; saved_ceiling = ceiling }
}
#endif

init {
    d_step {
#ifdef FILLING
        there = 1; in = 1; set = 1; list[0] = 1
#else
        there = 7; in = 7; set = 7; list[0] = 7; list[1] = 7; list[2] = 7
#endif
    }
    do
    EACH(is_made)
    EACH(crashes)
    EACH(joins)
    EACH(begins_to_write)
    EACH(has_written)
    EACH(has_written_a_floor)
    EACH(enters)
    EACH(raises_the_ceiling)
    EACH(is_admitted_by_all)
    :: is_admitted_by_majority(3)
    :: is_admitted_by_majority(5)
    :: is_admitted_by_majority(6)
    :: is_admitted_by_majority(7)
    :: switches()
    :: majority_raises_the_ceiling()
#if SERVICES > 3
    :: goes(3)
#endif
#ifndef NOTHING_IS_LOST
    EACH(is_lost)
#endif
#ifdef ONE_IS_OLD
    :: is_copied(2)
    :: tells_of_more()
    :: is_set_back()
#endif
#ifdef MUTANT_LOST_ONE_KEEPS_ITS_ID
    :: comes_back_empty(0) :: comes_back_empty(1) :: comes_back_empty(2)
#endif
#ifdef MUTANT_ONE_LESS_IS_HEARD
    :: is_admitted_by_majority(1)
#endif
#ifdef MUTANT_MARK_OF_AN_OUTSIDER
    :: is_admitted_by_majority(11) :: is_admitted_by_majority(13) :: is_admitted_by_majority(14)
#endif
#ifdef MUTANT_MARK_OF_THE_STORE
    :: is_saved()
#endif
#ifdef MUTANT_NO_GATE
    :: goes_on_without_a_gate()
#endif
    od
}

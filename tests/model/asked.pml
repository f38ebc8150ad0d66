/* asked.pml - who may have seen or sent something is asked, or is in doubt, when a majority of the registrars
 * admits a store (docs/decisions/0044): lists in three state directories, of which two are heard.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Members 0, 1 and 2 are
 * the registrars, 3 is a gateway; sets of them are bit masks. Each process has its memory for ever: what a new
 * start changes is in complete.pml. A life has one change at most. Every step of the last loop is atomic; a
 * store that is put back is admitted in the same step, by those that report. */
#ifndef LIVES
#define LIVES 2 /* the highest life in which something happens */
#endif

#define BIT(m) (1 << (m))
#define HAS(set, m) (((set) >> (m)) & 1)
#define REGISTRARS 7
#define GATEWAY 3
#define LISTS_WITH(m, set) \
    (HAS(set, 0) * HAS(list[0], m) + HAS(set, 1) * HAS(list[1], m) + HAS(set, 2) * HAS(list[2], m))

/* The memories: the life in which each was in, and those that know of its change. */
byte epoch[4];
byte knows;

/* The state directories: the members, those of them whose present entry on the way in is among them, and
 * those with the gateway in doubt. */
byte list[3], recorded[3];
byte doubted;

/* The store. */
byte life = 1;
bool changed;
byte in = 15, pending;
bool doubt;
byte acts = 15;       /* in this life, on a link that stands */

/* The store as it is on disk: it may come back at any time. */
byte old_life = 1, old_members = 15;
bool old_changed, old_doubt;

/* What nobody knows. */
bool newer;           /* somebody was told what is not on disk */
bool flies;           /* the gateway has sent something that has not landed */

byte members, firm;   /* within one step only */
bool asked, ahead, known;

/* -- what the mutants take away, one each */

#ifdef MUTANT_LISTS_ARE_NOT_ASKED
#define LISTED(who) 0
#else
#define LISTED(who) \
    ((HAS(who, 0) -> list[0] : 0) | (HAS(who, 1) -> list[1] : 0) | (HAS(who, 2) -> list[2] : 0))
#endif

#ifdef MUTANT_NEWCOMER_OF_A_MINORITY
#define ENOUGH 1
#else
#define ENOUGH 2
#endif
#ifdef MUTANT_ROLL_OF_ANOTHER_LIFE
#define HAS_RECORDED(r, m) (HAS(in, r) && HAS(recorded[r], m) || HAS(pending & ~BIT(m), r))
#elif defined(MUTANT_ONE_ON_THE_WAY_IN_COUNTS)
#define HAS_RECORDED(r, m) HAS(recorded[r], m)
#else
#define HAS_RECORDED(r, m) ((HAS(in, r) || r == m) && HAS(recorded[r], m))
#endif

#ifdef MUTANT_GATEWAY_OF_ONE_LIST
#define GATEWAY_ENOUGH 1
#else
#define GATEWAY_ENOUGH 2
#endif

#ifdef MUTANT_FIRM_BY_ITS_OWN_LIST
#define RECORD_EACH_OTHER(who, two) skip
#else
#define RECORD_EACH_OTHER(who, two) record(0, two & 1, who); record(1, two & 2, who); record(2, two & 4, who)
#endif

#ifdef MUTANT_DOUBTS_OF_THE_STORE
#define DOUBTED_BY(who) 0
#else
#define DOUBTED_BY(who) (doubted & (who))
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_COMPLETE_WITHOUT_ONE
#define WHEN_COMPLETE(who) assert(!((who) == 14 && life == LIVES && flies))
#else
#define WHEN_COMPLETE(who) skip
#endif

/* -- what happens */

inline changes_something(m)
{
    d_step { HAS(acts, m) && !changed -> changed = true; knows = knows | BIT(m); newer = true }
}

inline gateway_sends()
{
    d_step { HAS(acts, GATEWAY) && !doubt && !flies -> flies = true }
}

/* Learns the numbers. */
inline is_answered(m)
{
    d_step {
        HAS(in, m) && (!HAS(acts, m) || (changed && !HAS(knows, m))) ->
        acts = acts | BIT(m); epoch[m] = life; knows = (knows & ~BIT(m)) | (changed << m)
    }
}

/* The list of an answer has become durable. Only who is in learns numbers from it. */
inline records(r)
{
    d_step {
        (HAS(acts, r) || HAS(pending, r)) &&
        (list[r] != (in | pending) || recorded[r] != pending || HAS(doubted, r) != doubt) ->
        list[r] = in | pending; recorded[r] = pending; doubted = (doubted & ~BIT(r)) | (doubt << r);
        knows = knows | ((HAS(in, r) && changed) << r)
    }
}

inline entries_end(set)
{
    recorded[0] = recorded[0] & ~(set); recorded[1] = recorded[1] & ~(set); recorded[2] = recorded[2] & ~(set)
}

inline joins(m)
{
    d_step { !HAS(in | pending, m) -> pending = pending | BIT(m) }
}

inline enters(m)
{
    d_step {
        HAS(pending, m) && (m == GATEWAY || HAS(recorded[m % 3], m)) &&
        HAS_RECORDED(0, m) + HAS_RECORDED(1, m) + HAS_RECORDED(2, m) >= ENOUGH ->
        pending = pending & ~BIT(m); in = in | BIT(m); entries_end(BIT(m))
    }
}

/* It says farewell, has nothing under way, and changes nothing any more. */
inline gateway_leaves()
{
    d_step {
        HAS(in | pending, GATEWAY) && !flies && !doubt ->
        in = in & ~BIT(GATEWAY); pending = pending & ~BIT(GATEWAY); acts = acts & ~BIT(GATEWAY);
        entries_end(BIT(GATEWAY))
    }
}

inline is_saved()
{
    d_step {
        newer || old_life != life || old_members != (in | pending) || old_doubt != doubt ->
        old_life = life; old_changed = changed; old_members = in | pending; old_doubt = doubt; newer = false
    }
}

#define KNOWS_MORE(m, who, its_life, its_change) \
    (HAS(who, m) && (epoch[m] > its_life || (epoch[m] == its_life && HAS(knows, m) && !its_change)))

inline record(r, has_to, who)
{
    if
    :: has_to -> list[r] = list[r] | (who & REGISTRARS)
    :: else
    fi
}

/* These report. Two registrars record who is firm, and in doubt, before the gate opens. Life 0 is a store that
 * has lost everything. */
inline begin_life(who, two, its_life, its_change, its_members, its_doubt, lacks)
{
    members = its_members | LISTED(who);
    asked = (members & ~(who)) == 0;
    ahead = KNOWS_MORE(0, who, its_life, its_change) || KNOWS_MORE(1, who, its_life, its_change) ||
            KNOWS_MORE(2, who, its_life, its_change) || KNOWS_MORE(3, who, its_life, its_change);
    known = its_doubt || DOUBTED_BY(who) != 0;
    if
    :: asked && !ahead && its_life != 0 -> assert(!(lacks)); WHEN_COMPLETE(who)
    :: else ->
        known = known || HAS(members, GATEWAY);
        assert(known || !flies)
    fi;
    if
    :: life < LIVES ->
        life++;
        doubted = doubted | (known -> two : 0);
        doubt = known;
        firm = (LISTS_WITH(GATEWAY, who) >= GATEWAY_ENOUGH -> BIT(GATEWAY) & who : 0);
        RECORD_EACH_OTHER(who, two);
        firm = firm | (who & (HAS(list[0], 0) | HAS(list[1], 1) << 1 | HAS(list[2], 2) << 2));
        in = firm; pending = who & ~firm;
        acts = 0; changed = false; recorded[0] = 0; recorded[1] = 0; recorded[2] = 0
    :: else
    fi;
    members = 0; firm = 0; asked = 0; ahead = 0; known = 0
}

inline restarts(who, two)
{
    d_step { begin_life(who, two, life, changed, in | pending, doubt, false) }
}

inline is_put_back(who, two)
{
    d_step { begin_life(who, two, old_life, old_changed, old_members, old_doubt, newer) }
}

inline is_lost(who, two)
{
    d_step { begin_life(who, two, 0, false, 0, false, true) }
}

#define WITH_AND_WITHOUT_GATEWAY(step, who, two) :: step(who, two) :: step(who + BIT(GATEWAY), two)
#define EACH_MAJORITY(step) \
    WITH_AND_WITHOUT_GATEWAY(step, 3, 3) WITH_AND_WITHOUT_GATEWAY(step, 5, 5) WITH_AND_WITHOUT_GATEWAY(step, 6, 6) \
    WITH_AND_WITHOUT_GATEWAY(step, 7, 3) WITH_AND_WITHOUT_GATEWAY(step, 7, 5) WITH_AND_WITHOUT_GATEWAY(step, 7, 6)
#define EACH_REGISTRAR(step) :: step(0) :: step(1) :: step(2)
#define EACH(step) EACH_REGISTRAR(step) :: step(GATEWAY)

init {
    atomic {
        list[0] = 15; list[1] = 15; list[2] = 15; epoch[0] = 1; epoch[1] = 1; epoch[3] = 1;
        if
        :: epoch[2] = 1
        :: list[0] = 11; list[1] = 11; in = 11; acts = 11; old_members = 11 /* 2 was away when this life began */
        fi
    }
    do
    EACH(changes_something)
    EACH(is_answered)
    EACH(joins)
    EACH(enters)
    EACH_REGISTRAR(records)
    :: gateway_sends()
    :: gateway_leaves()
    :: is_saved()
    EACH_MAJORITY(restarts)
    EACH_MAJORITY(is_put_back)
    EACH_MAJORITY(is_lost)
#ifdef MUTANT_ONE_IS_HEARD
    WITH_AND_WITHOUT_GATEWAY(is_put_back, 1, 1)
#endif
    od
}

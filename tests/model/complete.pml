/* complete.pml - the store is never said to be complete while a change is lost that somebody was told to be
 * done: numbers of changes, incarnations, and who must be asked (docs/decisions/0010).
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Member 0 is a lease
 * service, which stays; 1 is a gateway, which comes and goes. Incarnations are numbered from 1; 0 means that
 * there is no such entry, or no such process. Every step of the last loop is atomic. */
#ifndef CHANGES
#define CHANGES 3 /* the highest number of a change */
#endif
#ifndef LIVES
#define LIVES 3 /* the highest epoch */
#endif
#ifndef STARTS
#define STARTS 2 /* how often each process starts */
#endif

#define LARGER(a, b) ((a) > (b) -> (a) : (b))

/* The processes: what is in their memory. */
byte incarnation[2]; /* of the process that runs, or is paused */
byte starts[2];
byte epoch[2];       /* of the life in which it is in; 0: in none */
byte seen[2];        /* the highest number of a change in that life that it knows of */
bool may_run[2];     /* the link that it was admitted on still stands */

/* The state directory of the lease service: the incarnation of each member in the list. */
byte listed[2];

/* The store. */
byte changes;        /* its number of changes */
byte life;
byte entry[2];       /* the incarnation of each member */
bool pending;        /* the gateway is on the way in */
bool recorded;       /* the list has the gateway's present entry */
bool gated;
byte told[2];        /* while gated: the incarnation that has reported */

/* The store as it is on disk: it may come back at any time. */
byte old_changes, old_life, old_entry[2];
bool old_pending;

/* What nobody knows. */
byte lives;          /* how many lives there were: a new epoch is above all, as the clock sees to it */
bool lost;           /* a change is not in the store that was told to be done */
bool newer;          /* the same of the store on disk */
bool ended;          /* all holds have ended with this life, which is not on disk, and nobody was told yet */

bool asked, ahead;   /* within one step only */

/* -- what the mutants take away, one each */

#ifdef MUTANT_INCARNATIONS_ARE_NOT_COMPARED
#define IS_ASKED(m, who) ((who) == 0 || told[m] != 0)
#else
#define IS_ASKED(m, who) ((who) == 0 || told[m] == (who))
#endif

#ifdef MUTANT_ONLY_THE_STORE_IS_ASKED
#define FILES_ARE_ASKED true
#else
#define FILES_ARE_ASKED (IS_ASKED(0, listed[0]) && IS_ASKED(1, listed[1]))
#endif
#define STORE_IS_ASKED (IS_ASKED(0, entry[0]) && IS_ASKED(1, entry[1]))

#ifdef MUTANT_NUMBERS_ARE_NOT_COMPARED
#define KNOWS_MORE(m) (told[m] != 0 && epoch[m] > life)
#elif defined(MUTANT_EPOCHS_ARE_NOT_COMPARED)
#define KNOWS_MORE(m) (told[m] != 0 && epoch[m] == life && seen[m] > changes)
#else
#define KNOWS_MORE(m) (told[m] != 0 && (epoch[m] > life || (epoch[m] == life && seen[m] > changes)))
#endif

#ifdef MUTANT_LIST_WITHOUT_NUMBERS
#define LEARN(m) skip
#else
#define LEARN(m) seen[m] = LARGER(seen[m], changes)
#endif

#ifdef MUTANT_PENDING_WRITES
#define IS_RECORDED true
#else
#define IS_RECORDED recorded
#endif

#ifdef MUTANT_FORGOTTEN_ONE_GOES_ON
#define NEW_EPOCH skip
#else
#define NEW_EPOCH lives++; life = lives
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_COMPLETE
#define WHEN_COMPLETE assert(!(newer && changes > 1))
#elif defined(REACH_COMPLETE_AFTER_A_RESTART)
#define WHEN_COMPLETE assert(!(told[1] > 1 && lives > 1))
#else
#define WHEN_COMPLETE skip
#endif

#ifdef REACH_LOST
#define WHEN_INCOMPLETE assert(!(lost && asked))
#else
#define WHEN_INCOMPLETE skip
#endif

/* -- what happens */

/* It dies and starts again at once: a dead one is one that does not move. The next report takes the place of
 * the one that it has made. */
inline starts_again(m)
{
    d_step {
        starts[m] < STARTS ->
        starts[m]++; incarnation[m] = starts[m]; epoch[m] = 0; seen[m] = 0; may_run[m] = false;
        told[m] = 0
    }
}

inline changes_something(m)
{
    d_step {
        !gated && may_run[m] && epoch[m] == life && changes < CHANGES ->
        changes++; seen[m] = changes; newer = true
    }
}

/* An answer that changes nothing, but says that a hold is over. */
inline tells_of_the_end(m)
{
    d_step {
        !gated && may_run[m] && epoch[m] == life && ended ->
        ended = false; newer = true
    }
}

/* In the present life under this incarnation: learns the numbers. */
inline pulses(m)
{
    d_step {
        !gated && incarnation[m] != 0 && entry[m] == incarnation[m] && epoch[m] <= life &&
        !(m == 1 && pending) ->
        seen[m] = (epoch[m] == life -> seen[m] : 0);
        epoch[m] = life; may_run[m] = true; LEARN(m)
    }
}

/* The successor in the same state directory takes the place over. */
inline succeeds(m)
{
    d_step {
        !gated && incarnation[m] != 0 && entry[m] != 0 && entry[m] != incarnation[m] &&
        !(m == 1 && pending) ->
        entry[m] = incarnation[m]; epoch[m] = life; may_run[m] = true; seen[m] = changes;
        if
        :: m == 1 -> recorded = false
        :: else
        fi
    }
}

inline gateway_joins()
{
    d_step {
        !gated && incarnation[1] != 0 && (entry[1] == 0 || (pending && entry[1] != incarnation[1])) ->
        entry[1] = incarnation[1]; pending = true; recorded = false
    }
}

inline gateway_enters()
{
    d_step {
        !gated && pending && IS_RECORDED ->
        pending = false
    }
}

/* It says farewell, and changes nothing any more. */
inline gateway_leaves()
{
    d_step {
        !gated && entry[1] != 0 && entry[1] == incarnation[1] ->
        entry[1] = 0; pending = false; recorded = false; may_run[1] = false
    }
}

/* By an operator. It may only be stalled: a new epoch sees to it that it changes nothing any more. */
inline gateway_is_forgotten()
{
    d_step {
        !gated && entry[1] != 0 && lives < LIVES ->
        entry[1] = 0; pending = false; recorded = false;
        NEW_EPOCH
    }
}

/* The list of a pulse's answer has become durable: whoever records it has learned the numbers before. */
inline lease_records()
{
    d_step {
        !gated && entry[0] == incarnation[0] && epoch[0] == life && may_run[0] ->
        LEARN(0);
        listed[0] = entry[0]; listed[1] = entry[1]; recorded = (entry[1] != 0)
    }
}

inline is_saved()
{
    d_step {
        newer || ended || old_pending != pending || old_entry[0] != entry[0] || old_entry[1] != entry[1] ||
        old_life != life ->
        old_changes = changes; old_life = life; old_pending = pending;
        old_entry[0] = entry[0]; old_entry[1] = entry[1];
        newer = lost; ended = false
    }
}

/* With all that it had, or as it was on disk. */
inline restarts()
{
    d_step {
        !gated || told[0] || told[1] ->
        gated = true; told[0] = 0; told[1] = 0; may_run[0] = false; may_run[1] = false
    }
}

inline is_put_back()
{
    d_step {
        newer || old_life != life || old_entry[0] != entry[0] || old_entry[1] != entry[1] ->
        changes = old_changes; life = old_life; pending = old_pending;
        entry[0] = old_entry[0]; entry[1] = old_entry[1];
        lost = newer; ended = false; recorded = false;
        gated = true; told[0] = 0; told[1] = 0; may_run[0] = false; may_run[1] = false
    }
}

inline reports(m)
{
    d_step {
        gated && told[m] == 0 && incarnation[m] != 0 ->
        told[m] = incarnation[m]
    }
}

/* What was reported is what that incarnation has in memory. */
inline begins_life()
{
    lives++; life = lives;
    changes = LARGER(changes, LARGER((told[0] -> seen[0] : 0), (told[1] -> seen[1] : 0)));
    entry[0] = told[0]; entry[1] = told[1];
    pending = (told[1] != 0 && told[1] != listed[1]);
    recorded = false; gated = false;
    told[0] = 0; told[1] = 0
}

inline is_admitted()
{
    d_step {
        gated && told[0] && lives < LIVES ->
        asked = STORE_IS_ASKED && FILES_ARE_ASKED;
        ahead = KNOWS_MORE(0) || KNOWS_MORE(1);
        if
        :: asked && !ahead ->
            assert(!lost);
            WHEN_COMPLETE
        :: else ->
            WHEN_INCOMPLETE;
            lost = false; ended = true
        fi;
        begins_life();
        asked = false; ahead = false
    }
}

init {
    d_step {
        starts[0] = 1; incarnation[0] = 1; entry[0] = 1; listed[0] = 1; life = 1; lives = 1;
        old_life = 1; old_entry[0] = 1
    }
    do
    :: starts_again(0) :: starts_again(1)
    :: changes_something(0) :: changes_something(1)
    :: tells_of_the_end(0) :: tells_of_the_end(1)
    :: pulses(0) :: pulses(1)
    :: succeeds(0) :: succeeds(1)
    :: gateway_joins() :: gateway_enters() :: gateway_leaves() :: gateway_is_forgotten()
    :: lease_records()
    :: is_saved() :: restarts() :: is_put_back()
    :: reports(0) :: reports(1)
    :: is_admitted()
    od
}

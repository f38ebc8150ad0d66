/* doubt.pml - who may have sent what a store has lost stays in doubt until it is settled, however often the
 * store is lost: the lists in two state directories, the handshake of an admission, removals that come late.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. One gateway sends one
 * write. A doubt is the number of the life that began it; 0: there is none. Every step of the last loop is
 * atomic. */
#ifndef LIVES
#define LIVES 4 /* the highest life: the store is lost three times */
#endif

#define LARGER(a, b) ((a) > (b) -> (a) : (b))

/* Two lease services, both of which are heard unless they are silent; or three registrars, of which two are
 * enough for everything. */
#ifdef MAJORITY
#define SERVICES 3
#define OF_ALL(f, test) f(f(test(0), test(1)), test(2))
#define HOW_MANY(test) ((test(0)) + (test(1)) + (test(2)))
#define EACH(step) :: step(0) :: step(1) :: step(2)
#else
#define SERVICES 2
#define OF_ALL(f, test) f(test(0), test(1))
#define HOW_MANY(test) ((test(0)) + (test(1)))
#define EACH(step) :: step(0) :: step(1)
#endif

/* The gateway, and its write at the upstream. */
bool lives = true;
bool sent, flies; /* flies: it has not landed yet */
byte told_in;     /* the life in which it has told again what it has open; 0: in none */

/* The store. */
byte life = 1;
bool gated;
bool intent;      /* the write is recorded */
bool member = true;
byte doubt;

/* The lease services: what is on disk, and what is being written there. */
bool listed[SERVICES]; /* the gateway, as a member */
byte disk[SERVICES];   /* the doubt */
bool counts[SERVICES]; /* is in, and in the lists: an admission needs its report */
bool is_up[SERVICES];  /* and has not been silent since: alone it is enough */
bool writing[SERVICES], new_listed[SERVICES];
byte new_disk[SERVICES], new_life[SERVICES];

/* Reports to the gate. */
bool told[SERVICES], told_listed[SERVICES];
byte told_disk[SERVICES];

byte known;       /* within one step only */

/* -- what the mutants take away, one each */

#ifdef MUTANT_UNION_LEFT_OUT
#define REPORTED(s) 0
#else
#define REPORTED(s) (told[s] -> told_disk[s] : 0)
#endif

#if defined(MUTANT_WRITTEN_AFTER_THE_GATE_OPENS)
#define HAS_RECORDED(s) true
#elif defined(MAJORITY)
#define HAS_IT(s) (told[s] && told_disk[s] == known)
#ifdef MUTANT_ONE_DIRECTORY_IS_ENOUGH
#define HAVE_RECORDED (HOW_MANY(HAS_IT) >= 1)
#else
#define HAVE_RECORDED (HOW_MANY(HAS_IT) >= 2)
#endif
#elif defined(MUTANT_ONE_DIRECTORY_IS_ENOUGH)
#define HAS_RECORDED(s) ((s) == 1 || !told[s] || told_disk[s] == known)
#else
#define HAS_RECORDED(s) (!told[s] || told_disk[s] == known)
#endif

#ifndef HAVE_RECORDED
#define HAVE_RECORDED (HOW_MANY(HAS_RECORDED) == SERVICES)
#endif

#ifdef MUTANT_REMOVAL_WITHOUT_THE_LIFE
#define IS_OF(begun, ended) true
#else
#define IS_OF(begun, ended) ((begun) <= (ended))
#endif

#ifdef MUTANT_OLD_DOUBT_KEEPS_ITS_LIFE
#define BEGINS_ANEW false
#else
#define BEGINS_ANEW (known != 0)
#endif

#ifdef MUTANT_NEWCOMER_COUNTS_AT_ONCE
#define NEWCOMER_COUNTS true
#else
#define NEWCOMER_COUNTS false
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_SETTLED
#define WHEN_SENT assert(!(life == LIVES && sent && !lives))
#else
#define WHEN_SENT skip
#endif
#ifdef REACH_KNOWN_BY_A_DIRECTORY_ONLY
#define WHEN_ADMITTED assert(!(life == LIVES && known > 0 && doubt == 0 && !member && HOW_MANY(IS_LISTED) == 0))
#else
#define WHEN_ADMITTED skip
#endif

#define LISTS_IT(s) (counts[s] && listed[s])
#define IS_LISTED(s) (told[s] && told_listed[s])
#define IS_TOLD(s) told[s]
#ifdef MAJORITY
#define ALL(step) step(0); step(1); step(2)
#define NOW_COUNTS(s) counts[s] = told[s]
#define ARE_HEARD (HOW_MANY(IS_TOLD) >= 2)
#ifdef MUTANT_ONE_LIST_IS_ENOUGH
#define IS_RECORDED (HOW_MANY(LISTS_IT) >= 1)
#else
#define IS_RECORDED (HOW_MANY(LISTS_IT) >= 2)
#endif
#else
#define ALL(step) step(0); step(1)
#define NOW_COUNTS(s) skip
#define NEEDS_NOT(s) (told[s] || !counts[s])
#define MAY_ADMIT(s) (told[s] && counts[s])
#define ARE_HEARD (HOW_MANY(NEEDS_NOT) == SERVICES && HOW_MANY(MAY_ADMIT) > 0)
#define LISTS_IT_ALONE(s) (is_up[s] && listed[s])
#define IS_RECORDED (HOW_MANY(LISTS_IT_ALONE) > 0)
#endif

inline is_silent_unless_listed(s)
{
    is_up[s] = is_up[s] && listed[s]
}

inline forget_report(s)
{
    told[s] = false; told_listed[s] = false; told_disk[s] = 0
}

inline goes_on(s)
{
    NOW_COUNTS(s);
    is_up[s] = told[s] && counts[s]
}

/* -- the gateway */

/* It is in: all that are not silent have recorded it. */
inline sends()
{
    d_step {
        lives && !sent && !gated && member && doubt == 0 && IS_RECORDED ->
        sent = true; flies = true; intent = true;
        ALL(is_silent_unless_listed)
    }
}

inline lands()
{
    d_step { flies -> flies = false }
}

inline is_answered()
{
    d_step { lives && sent && !flies && intent && !gated -> intent = false }
}

inline dies()
{
    d_step { lives -> lives = false }
}

/* All that it has open is recorded again ... */
inline tells_again()
{
    d_step { lives && !gated && doubt != 0 && told_in != life -> intent = intent || flies; told_in = life }
}

/* ... and its word that this was all may come late, also when it is dead. */
inline leaves_doubt()
{
    d_step { !gated && told_in != 0 && doubt != 0 && IS_OF(doubt, told_in) -> doubt = 0 }
}

/* The operator is right. */
inline is_settled()
{
    d_step { !lives && !flies && !gated && (doubt != 0 || intent) -> doubt = 0; intent = false }
}

/* -- a write with a newer token */

inline newer_is_sent()
{
    d_step { !gated && doubt == 0 && !intent && sent -> assert(!flies); WHEN_SENT }
}

/* -- the state directories */

/* The list of an answer to a pulse: all of it in one write, which takes its time. */
inline is_told_the_list(s)
{
    d_step {
        !gated && !writing[s] && (listed[s] != member || disk[s] != doubt || !is_up[s]) ->
        writing[s] = true; new_listed[s] = member; new_disk[s] = doubt; new_life[s] = life
    }
}

inline has_written(s)
{
    d_step {
        writing[s] ->
        writing[s] = false; listed[s] = new_listed[s]; disk[s] = new_disk[s];
        counts[s] = counts[s] || (!gated && new_life[s] == life);
        is_up[s] = is_up[s] || (!gated && new_life[s] == life);
        new_listed[s] = false; new_disk[s] = 0; new_life[s] = 0
    }
}

/* Its disk goes; another one is there that has a part in this life. It comes back with an empty directory. */
inline is_replaced(s)
{
    d_step {
        !gated && is_up[1 - s] && counts[s] ->
        listed[s] = false; disk[s] = 0; counts[s] = NEWCOMER_COUNTS; is_up[s] = NEWCOMER_COUNTS;
        writing[s] = false; new_listed[s] = false; new_disk[s] = 0; new_life[s] = 0
    }
}

/* -- the store is lost, altogether or in parts, and admitted */

inline store_is_lost()
{
    atomic {
        life < LIVES ->
        gated = true;
        ALL(forget_report);
        if
        :: true
        :: intent -> intent = false
        fi;
        if
        :: true
        :: doubt != 0 -> doubt = 0
        fi;
        if
        :: true
        :: member -> member = false
        fi
    }
}

inline reports(s)
{
    d_step {
        gated && !writing[s] &&
        (!told[s] || told_disk[s] != disk[s] || told_listed[s] != listed[s]) ->
        told[s] = true; told_disk[s] = disk[s]; told_listed[s] = listed[s]
    }
}

/* Whom the new epoch puts in doubt, and who was before: nothing is ever proven complete here. */
inline weigh()
{
    known = LARGER(doubt, OF_ALL(LARGER, REPORTED));
    known = (BEGINS_ANEW || member || HOW_MANY(IS_LISTED) > 0 -> life + 1 : known)
}

inline records(s)
{
    d_step {
        gated && told[s] ->
        weigh();
        if
        :: disk[s] != known && !writing[s] -> disk[s] = known
        :: else
        fi;
        known = 0
    }
}

inline is_admitted()
{
    d_step {
        gated && ARE_HEARD ->
        weigh();
        if
        :: HAVE_RECORDED ->
            life++; gated = false;
            WHEN_ADMITTED;
            doubt = known; member = lives;
            ALL(goes_on);
            ALL(forget_report)
        :: else
        fi;
        known = 0
    }
}

inline begins(s)
{
    counts[s] = true; is_up[s] = true
}

init {
    d_step { ALL(begins) }
    do
    :: sends() :: lands() :: is_answered() :: dies()
    :: tells_again() :: leaves_doubt() :: is_settled()
    :: newer_is_sent()
    EACH(is_told_the_list)
    EACH(has_written)
#ifdef MAJORITY /* one that is replaced is one that is silent for ever */
    :: life == LIVES /* nothing more need happen */
#else
    EACH(is_replaced)
#endif
    :: store_is_lost()
    EACH(reports)
    EACH(records)
    :: is_admitted()
    od
}

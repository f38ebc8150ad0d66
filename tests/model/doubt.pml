/* doubt.pml - who may have sent what a store has lost stays in doubt until it is settled, however often the
 * store is lost: the lists in two state directories, the handshake of an admission, removals that come late.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. One gateway sends one
 * write. A doubt is the number of the life that began it; 0: there is none. Every step of the last loop is
 * atomic. */
#ifndef LIVES
#define LIVES 4 /* the highest life: the store is lost three times */
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
bool listed[2];   /* the gateway, as a member */
byte disk[2];     /* the doubt */
bool counts[2];   /* is in, and in the lists: an admission needs its report */
bool is_up[2];    /* and has not been silent since: alone it is enough */
bool writing[2], new_listed[2];
byte new_disk[2], new_life[2];

/* Reports to the gate. */
bool told[2], told_listed[2];
byte told_disk[2];

byte known;       /* within one step only */

#define LARGER(a, b) ((a) > (b) -> (a) : (b))

/* -- what the mutants take away, one each */

#ifdef MUTANT_UNION_LEFT_OUT
#define REPORTED(s) 0
#else
#define REPORTED(s) (told[s] -> told_disk[s] : 0)
#endif

#if defined(MUTANT_WRITTEN_AFTER_THE_GATE_OPENS)
#define HAS_RECORDED(s) true
#elif defined(MUTANT_ONE_DIRECTORY_IS_ENOUGH)
#define HAS_RECORDED(s) ((s) == 1 || !told[s] || told_disk[s] == known)
#else
#define HAS_RECORDED(s) (!told[s] || told_disk[s] == known)
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
#define WHEN_ADMITTED assert(!(life == LIVES && known > 0 && doubt == 0 && !member && !told_listed[0] && !told_listed[1]))
#else
#define WHEN_ADMITTED skip
#endif

/* -- the gateway */

/* It is in: all that are not silent have recorded it. */
inline sends()
{
    d_step {
        lives && !sent && !gated && member && doubt == 0 && ((is_up[0] && listed[0]) || (is_up[1] && listed[1])) ->
        sent = true; flies = true; intent = true;
        is_up[0] = is_up[0] && listed[0]; is_up[1] = is_up[1] && listed[1]
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
        gated = true; told[0] = false; told[1] = false;
        told_listed[0] = false; told_listed[1] = false; told_disk[0] = 0; told_disk[1] = 0;
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

/* Whom the new life puts in doubt, and who was before: nothing is ever proven complete here. */
inline weigh()
{
    known = LARGER(doubt, LARGER(REPORTED(0), REPORTED(1)));
    known = (BEGINS_ANEW || member || (told[0] && told_listed[0]) || (told[1] && told_listed[1]) -> life + 1 : known)
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

#define IS_COMPLETE(s) (told[s] || !counts[s])

inline is_admitted()
{
    d_step {
        gated && IS_COMPLETE(0) && IS_COMPLETE(1) && ((told[0] && counts[0]) || (told[1] && counts[1])) ->
        weigh();
        if
        :: HAS_RECORDED(0) && HAS_RECORDED(1) ->
            life++; gated = false;
            WHEN_ADMITTED;
            doubt = known; member = lives;
            is_up[0] = told[0] && counts[0]; is_up[1] = told[1] && counts[1];
            told[0] = false; told[1] = false;
            told_listed[0] = false; told_listed[1] = false; told_disk[0] = 0; told_disk[1] = 0
        :: else
        fi;
        known = 0
    }
}

init {
    d_step { counts[0] = true; counts[1] = true; is_up[0] = true; is_up[1] = true }
    do
    :: sends() :: lands() :: is_answered() :: dies()
    :: tells_again() :: leaves_doubt() :: is_settled()
    :: newer_is_sent()
    :: is_told_the_list(0) :: is_told_the_list(1)
    :: has_written(0) :: has_written(1)
    :: is_replaced(0) :: is_replaced(1)
    :: store_is_lost()
    :: reports(0) :: reports(1)
    :: records(0) :: records(1)
    :: is_admitted()
    od
}

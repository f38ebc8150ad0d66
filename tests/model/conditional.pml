/* conditional.pml - what gateways send to an upstream that honours If-Match, or that checks tokens itself,
 * lands in the order of the tokens, and an open write keeps no newer one waiting.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Write w carries the
 * token w + 1. A gateway that is paused or dead is one that takes no step. Every step of the last loop is
 * atomic. */
#define LAST 3
#define TOKEN(w) ((w) + 1)

/* The sender of each write. */
#define IDLE 0
#define HAS_READ 1 /* the version */
#define MAY_SEND 2 /* admitted */
#define SENT 3     /* its intent is open from MAY_SEND on, until it is DONE or begins anew */
#define DONE 4
byte at[LAST];
byte version[LAST]; /* of the upstream, when the gateway has read it */

/* The request of each write. */
#define NONE 0
#define FLYING 1
#define LANDED 2
byte request[LAST];

/* The upstream. */
#define ABSENT 0
#define FIRST 1
#ifdef MUTANT_SEVERAL_URLS
#define URL(w) ((w) % 2)
#else
#define URL(w) 0
#endif
byte current[2];    /* each of its URLs has this version */
byte last = FIRST;  /* version that it has given */
byte seen;          /* the highest token that an upstream that checks has seen */

byte granted;       /* the highest token */
bool live;          /* its hold */
byte top;           /* the highest token that has landed, or with which a fenced read was answered */

/* -- the variants, and what the mutants take away, one each */

#ifdef UPSTREAM_CHECKS
#define NEEDS_VERSION(w) false
#define IS_WANTED(w) (TOKEN(w) >= seen)
#ifdef READS_ARE_SEEN
#define SHOW(t) seen = (t)
#else
#define SHOW(t) skip
#endif
#else
#define IS_WANTED(w) (version[w] == current[URL(w)])
#define SHOW(t) skip
#ifdef MUTANT_ADMIT_READ_WRITE
#define NEEDS_VERSION(w) false
#else
#define NEEDS_VERSION(w) true
#endif
#endif

#ifdef MUTANT_VERSIONS_REPEAT /* a hash of what is there */
#define NEXT_VERSION (current[0] == FIRST -> FIRST + 1 : FIRST)
#else
#define NEXT_VERSION (last + 1)
#endif

/* What is not there has no version that never repeats: a request to create it is ordered, as in intents.pml. */
#if defined(MUTANT_ABSENCE_IS_A_VERSION) || defined(MUTANT_ADMIT_READ_WRITE)
#define CREATES(v, t) false
#else
#define CREATES(v, t) (IS_OPEN(v, t) && version[v] == ABSENT)
#endif

#ifdef MUTANT_SENT_AGAIN_WITHOUT_ADMISSION
#define AFTER_MISMATCH(w) at[w] = MAY_SEND; version[w] = current[URL(w)]
#else
#define AFTER_MISMATCH(w) at[w] = IDLE; version[w] = ABSENT
#endif

#if defined(MUTANT_READ_DOES_NOT_WAIT) || defined(READS_ARE_SEEN)
#define READ_MUST_WAIT(t) false
#else
#define READ_MUST_WAIT(t) (IS_OPEN(0, t) || IS_OPEN(1, t) || IS_OPEN(2, t))
#endif

#define IS_OPEN(v, t) ((at[v] == MAY_SEND || at[v] == SENT) && TOKEN(v) < (t))
#ifdef UPSTREAM_CHECKS
#define IS_BLOCKED(t) false
#else
#define IS_BLOCKED(t) (CREATES(0, t) || CREATES(1, t) || CREATES(2, t))
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_PAST_AN_OPEN_ONE
#define WHEN_LANDED(w) assert(!(IS_OPEN(0, TOKEN(w)) && request[0] == FLYING && IS_OPEN(1, TOKEN(w))))
#elif defined(REACH_SECOND_ATTEMPT)
byte once;
#define WHEN_LANDED(w) assert(once != TOKEN(w))
#else
#define WHEN_LANDED(w) skip
#endif
#ifdef REACH_REFUSED_BY_THE_UPSTREAM
#define WHEN_UNWANTED(w) assert(TOKEN(w) >= top)
#elif defined(REACH_SECOND_ATTEMPT)
#define WHEN_UNWANTED(w) once = TOKEN(w)
#else
#define WHEN_UNWANTED(w) skip
#endif

/* -- what happens */

inline grants()
{
    d_step { granted < LAST -> granted++; live = true }
}

inline hold_ends()
{
    d_step { live -> live = false }
}

inline reads_version(w)
{
    d_step {
#ifdef MUTANT_ADMIT_READ_WRITE
        at[w] == MAY_SEND && version[w] == ABSENT && current[URL(w)] != ABSENT ->
        version[w] = current[URL(w)]
#else
        at[w] == IDLE && TOKEN(w) <= granted && NEEDS_VERSION(w) ->
        at[w] = HAS_READ; version[w] = current[URL(w)]
#endif
    }
}

inline is_admitted(w)
{
    d_step {
        at[w] == (NEEDS_VERSION(w) -> HAS_READ : IDLE) && TOKEN(w) <= granted && !IS_BLOCKED(TOKEN(w)) ->
        if
        :: live && granted == TOKEN(w) -> at[w] = MAY_SEND
        :: else -> at[w] = DONE; version[w] = ABSENT
        fi
    }
}

/* Once in each attempt. */
inline sends(w)
{
    d_step {
#ifdef MUTANT_ADMIT_READ_WRITE
        version[w] != ABSENT &&
#endif
        at[w] == MAY_SEND -> at[w] = SENT; request[w] = FLYING
    }
}

/* It writes, or it deletes. */
inline lands(w, next)
{
    d_step {
        request[w] == FLYING && IS_WANTED(w) && (next != ABSENT || current[URL(w)] != ABSENT) ->
        assert(TOKEN(w) >= top);
        WHEN_LANDED(w);
        top = TOKEN(w); seen = TOKEN(w); request[w] = LANDED;
#ifndef UPSTREAM_CHECKS
        current[URL(w)] = next;
        last = (next > last -> next : last)
#endif
    }
}

inline is_answered(w)
{
    d_step { request[w] == LANDED -> request[w] = NONE; at[w] = DONE; version[w] = ABSENT }
}

/* 412: the gateway begins anew. */
inline is_unwanted(w)
{
    d_step {
        request[w] == FLYING && !IS_WANTED(w) ->
        WHEN_UNWANTED(w);
        request[w] = NONE; AFTER_MISMATCH(w)
    }
}

inline reads(t)
{
    d_step {
        live && granted == t && !READ_MUST_WAIT(t) ->
        top = (t > top -> t : top); SHOW(t)
    }
}

#define EACH(step) :: step(0) :: step(1) :: step(2)

init {
    if
    :: current[0] = FIRST; current[1] = FIRST
    :: true /* nothing is there yet */
    fi;
end:
    do
    :: grants()
    :: hold_ends()
    EACH(reads_version)
    EACH(is_admitted)
    EACH(sends)
    :: lands(0, NEXT_VERSION) :: lands(1, NEXT_VERSION) :: lands(2, NEXT_VERSION)
#if !defined(UPSTREAM_CHECKS) && !defined(NOTHING_IS_DELETED)
    :: lands(0, ABSENT) :: lands(1, ABSENT) :: lands(2, ABSENT)
#endif
    EACH(is_answered)
    EACH(is_unwanted)
#ifndef NO_READS
    :: reads(1) :: reads(2) :: reads(3)
#endif
    od
}

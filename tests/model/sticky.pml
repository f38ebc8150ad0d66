/* sticky.pml - an intent that stays open over the writes of one worker lets no older write through: checks
 * that name it, its close, what becomes of it when an end is unknown or its gateway is dead.
 *
 * README.md says what is modelled and left out. The steps, and where they are in the code:
 *   asks, is_admitted        forward_ask(), intent_admit.lua: one of its own (o), or one that stays open (o~)
 *   is_promoted              intent_promote.lua
 *   checks, is_checked       intent_check.lua, of a later write: the same script finds hold and intent
 *   sends                    forward_admitted(), forward_send()
 *   is_answered, times_out   forward_over(); the end of the write, known or not
 *   ends                     sticky_close(), the worker's word on its sticky intent
 *   word_arrives             intent_close.lua "close" and "unknown"
 *   is_taken_over, is_said_to_be_dead   intent_takeover.lua; the same for "dead" with force
 *   is_settled               intent_resolve.lua, or a grace that is over
 *   store_is_lost, tells     admit.lua of a new epoch, intent_again.lua
 *
 * Write v carries TOKEN(v) and is sent once at most. Workers 0 and 1 are of one gateway, 2 and 3 of another.
 * A sticky intent has the number of the write that opened it. Every step of the last loop is atomic. */
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)

#ifdef TOKENS_1_2_2_3
#define TOKEN(v) (((v) + 1) / 2 + 1)
#define LAST 3
#elif defined(TOKENS_1_1_2_2)
#define TOKEN(v) ((v) / 2 + 1)
#define LAST 2
#elif defined(TOKENS_1_1_1_2)
#define TOKEN(v) ((v) / 3 + 1)
#define LAST 2
#else
#define TOKEN(v) ((v) / 2 + 1) /* 1, 1, 2 */
#define LAST 2
#define THREE
#endif
#ifdef THREE
#define WRITES 3
#define FOURTH(text)
#else
#define WRITES 4
#define FOURTH(text) text
#endif
#define EACH(step) :: step(0) :: step(1) :: step(2) FOURTH(:: step(3))
#define ANY(test, a) (test(0, a) || test(1, a) || test(2, a) FOURTH(|| test(3, a)))
#define ALL(step, a) step(0, a); step(1, a); step(2, a) FOURTH(; step(3, a))

/* The sender of each write. */
#define IDLE 0
#define ASKED 1        /* its admission is on the way */
#define WAITS 2        /* it is queued in the store */
#define ADMITTED 3     /* the reply is on the way: an intent of its own */
#define OPENED 4       /* the same: its intent is one that stays open */
#define CHECKS 5       /* its check is on the way */
#define PASSED 6       /* the reply is on the way: go */
#define SENT 7
#define UNSURE 8       /* its end is not known */
#define DONE 9
#define ASKED_FORMER 10 /* the same of one that is dead */
#define FORMER 11
byte at[WRITES], who[WRITES]; /* who: the worker */
byte via[WRITES];      /* 1 + the sticky intent by which it goes; 0: one of its own */
bool flies[WRITES];    /* the request has not landed yet */
byte former;           /* those of dead incarnations */

/* What a worker knows of the sticky intent that write v opened. */
#define OPEN 1
#define TAINTED 2      /* a write of it has an unknown end: nothing goes by it any more */
byte known[WRITES];
#define CLOSE 1
#define TELL 2
byte word[WRITES];     /* its last word, on the way to the store */

/* The store: intents. */
#define NONE 0
#define QUEUED 1
#define SENDING 2
#define UNKNOWN 3
#define DEAD 4
byte intent[WRITES];

byte granted;          /* the highest token: the hold of the one before is over */
byte top;              /* the highest token with which something was sent, or a fenced read answered */

#ifdef STORE_IS_LOST
byte told = 3, dealt = 3;
bool is_lost, ended;    /* ended: the hold of the highest token */
#define IS_LIVE !ended
#define IN_DOUBT (told != 3 || dealt != 3)
#define MUST_BE_DEALT_WITH(g) dealt = (HAS(told, g) -> dealt : dealt & ~BIT(g))
#else
#define IS_LIVE true
#define IN_DOUBT false
#define MUST_BE_DEALT_WITH(g) skip
#endif
#ifdef BY_MARK
byte mark;
#define HOLDS(t) ((t) >= mark && (t) <= granted)
#define RAISE(t) mark = t
#else
#define HOLDS(t) (IS_LIVE && (t) == granted)
#define RAISE(t) skip
#endif

/* -- what the mutants take away, one each */

#ifdef MUTANT_INTENT_OF_THE_PROCESS /* its workers use it, and the one that opened it counts its own writes */
#define MAY_USE(i, x) (who[i] / 2 == (x) / 2)
#define COUNTS(v, i) (who[v] == who[i])
#else
#define MAY_USE(i, x) (who[i] == (x))
#define COUNTS(v, i) true
#endif
#ifdef MUTANT_CHECK_IN_FLIGHT_IS_NOT_COUNTED
#define UNDER_WAY(v) (at[v] == SENT)
#elif defined(MUTANT_UNKNOWN_WHILE_OTHERS_ARE_UNDER_WAY)
#define UNDER_WAY(v) (known[via[v] - 1] != TAINTED && at[v] >= CHECKS && at[v] <= SENT)
#else
#define UNDER_WAY(v) (at[v] >= CHECKS && at[v] <= SENT)
#endif
#define is_under_way(v, i) (via[v] == (i) + 1 && UNDER_WAY(v) && COUNTS(v, i))

#if defined(MUTANT_CHECK_WITHOUT_THE_INTENT)
#define FINDS(v) true
#elif defined(MUTANT_CHECK_DOES_NOT_LOOK_AT_THE_STATE)
#define FINDS(v) (intent[via[v] - 1] != NONE)
#else
#define FINDS(v) (intent[via[v] - 1] == SENDING)
#endif
#ifdef WITHOUT_THE_REST /* spare for the order: the hold, and the doubt */
#define MAY_PASS(t) true
#else
#define MAY_PASS(t) (HOLDS(t) && !IN_DOUBT)
#endif

#ifdef MUTANT_USED_AFTER_UNKNOWN
#define IS_USABLE(i) (known[i] != 0 || word[i] == TELL)
#elif defined(MUTANT_USED_AFTER_THE_CLOSE)
#define IS_USABLE(i) (known[i] == OPEN || word[i] == CLOSE)
#else
#define IS_USABLE(i) (known[i] == OPEN)
#endif
#ifdef MUTANT_UNKNOWN_CLOSES
#define LAST_WORD(i) CLOSE
#else
#define LAST_WORD(i) (known[i] == TAINTED -> TELL : CLOSE)
#endif
#define is_older(v, t) (intent[v] != NONE && TOKEN(v) < (t))
#ifdef MUTANT_UNKNOWN_IS_NOT_TOLD_AGAIN
#define IS_TOLD(i) (known[i] != 0)
#else
#define IS_TOLD(i) (known[i] != 0 || ANY(is_unsure_by, i))
#endif
#define is_unsure_by(v, i) (via[v] == (i) + 1 && at[v] == UNSURE && flies[v])

/* -- what must be reachable: these assertions must fail */

#if defined(REACH_USED) /* a newer write is sent after one went by an older sticky intent */
byte by;
#define NOTE_PASS by = 1
#define WHEN_SENT(v) assert(!(TOKEN(v) == LAST && by))
#elif defined(REACH_NOT_FOUND) /* a living worker's check does not find its intent, and the write is sent */
byte by;
#define NOTE_PASS skip
#define WHEN_SENT(v) assert(!(by && via[v] == 0 && BIT(v) == by))
#define NOTE_MISS(v) by = BIT(v)
#elif defined(REACH_SETTLED)
byte by;
#define NOTE_PASS skip
#define NOTE_SETTLED(i) by = (known[i] == OPEN)
#define WHEN_SENT(v) assert(!(by && TOKEN(v) == LAST))
#else
#define NOTE_PASS skip
#define WHEN_SENT(v) skip
#endif
#ifndef NOTE_MISS
#define NOTE_MISS(v) skip
#endif
#ifndef NOTE_SETTLED
#define NOTE_SETTLED(i) skip
#endif

/* -- within a step */

inline remove(i) { intent[i] = NONE }

/* What can do nothing any more is the same, however it came to that. */
inline rest(v, a)
{
    if
    :: at[v] >= SENT && at[v] != ASKED_FORMER && !flies[v] && (at[v] != SENT) && via[v] != v + 1 && intent[v] == NONE ->
        at[v] = DONE; via[v] = 0; who[v] = 0; former = former & ~BIT(v)
    :: at[v] >= UNSURE && at[v] != ASKED_FORMER && !flies[v] && via[v] == v + 1 && intent[v] == NONE && known[v] == 0 &&
       word[v] == 0 && !(via[0] == v + 1 && v != 0) && !(via[1] == v + 1 && v != 1) && !(via[2] == v + 1 && v != 2) FOURTH(&& !(via[3] == v + 1 && v != 3)) ->
        at[v] = DONE; via[v] = 0; who[v] = 0; former = former & ~BIT(v)
    :: else
    fi
}
inline settle() { ALL(rest, 0) }

inline cancel(v, t)
{
    if
    :: intent[v] == QUEUED && TOKEN(v) < t -> remove(v)
    :: else
    fi
}

/* -- the lease */

inline grants()
{
    d_step {
        granted < LAST -> granted++;
#ifdef STORE_IS_LOST
        ended = false
#endif
    }
}

/* -- a write */

/* Workers and gateways are alike, and so are the writes of one token. */
#define IN_TURN(v) ((v) == 0 || TOKEN(v) != TOKEN((v) - 1) || at[(v) - 1] != IDLE)

inline asks(v, x)
{
    d_step {
        at[v] == IDLE && TOKEN(v) <= granted && IN_TURN(v) && (x == 0 || v > 0) && (x < 3 || v > 1) ->
        at[v] = ASKED; who[v] = x
    }
}

inline is_admitted(v)
{
    atomic {
        at[v] == ASKED || at[v] == ASKED_FORMER ->
        if
        :: !HOLDS(TOKEN(v)) || IN_DOUBT -> at[v] = DONE; who[v] = 0; former = former & ~BIT(v)
        :: else ->
            RAISE(TOKEN(v)); ALL(cancel, TOKEN(v));
            if
            :: ANY(is_older, TOKEN(v)) ->
                intent[v] = QUEUED; at[v] = (at[v] == ASKED -> WAITS : FORMER)
            :: !ANY(is_older, TOKEN(v)) -> intent[v] = SENDING; at[v] = (at[v] == ASKED -> ADMITTED : FORMER)
            :: !ANY(is_older, TOKEN(v)) -> intent[v] = SENDING; at[v] = (at[v] == ASKED -> OPENED : FORMER)
            fi
        fi;
        d_step { settle() }
    }
}

inline is_promoted(v)
{
    atomic {
        (at[v] == WAITS || (at[v] == FORMER && intent[v] == QUEUED)) &&
        !(intent[v] == QUEUED && HOLDS(TOKEN(v)) && !IN_DOUBT && ANY(is_older, TOKEN(v))) && !(intent[v] == QUEUED && IN_DOUBT) ->
        if
        :: intent[v] == QUEUED && HOLDS(TOKEN(v)) ->
            intent[v] = SENDING; at[v] = (at[v] == WAITS -> ADMITTED : FORMER)
        :: intent[v] == QUEUED && HOLDS(TOKEN(v)) ->
            intent[v] = SENDING; at[v] = (at[v] == WAITS -> OPENED : FORMER)
        :: else -> intent[v] = NONE; at[v] = (at[v] == WAITS -> DONE : FORMER)
        fi;
        d_step { settle() }
    }
}

/* By sticky intent i, at worker x. */
inline checks(v, i, x)
{
    d_step {
        at[v] == IDLE && IN_TURN(v) && IS_USABLE(i) && v != i && TOKEN(v) == TOKEN(i) && MAY_USE(i, x) && !HAS(former, i) ->
        at[v] = CHECKS; who[v] = x; via[v] = i + 1
    }
}

/* Not found: it is admitted as if there were no sticky ones. */
inline is_checked(v)
{
    d_step {
        at[v] == CHECKS ->
        if
        :: MAY_PASS(TOKEN(v)) && FINDS(v) -> at[v] = PASSED; NOTE_PASS
        :: else -> at[v] = ASKED; via[v] = 0; NOTE_MISS(v)
        fi;
        settle()
    }
}

inline sends(v)
{
    d_step {
        at[v] == ADMITTED || at[v] == OPENED || at[v] == PASSED ->
        if
        :: at[v] == OPENED -> known[v] = OPEN; via[v] = v + 1
        :: else
        fi;
        WHEN_SENT(v);
        assert(TOKEN(v) >= top);
        at[v] = SENT; flies[v] = true; top = TOKEN(v)
    }
}

/* Its client has left, or the reply does not come; a check of which nothing is known is not sent either. */
inline gives_up(v)
{
    d_step {
        at[v] == WAITS || (at[v] >= ADMITTED && at[v] <= PASSED) ->
        if
        :: at[v] == OPENED -> known[v] = OPEN; via[v] = v + 1
        :: at[v] == WAITS || at[v] == ADMITTED -> intent[v] = NONE
        :: else
        fi;
        at[v] = DONE; settle()
    }
}

inline lands(v)
{
    d_step { flies[v] -> assert(TOKEN(v) >= top); flies[v] = false; settle() }
}

inline is_answered(v)
{
    d_step {
        at[v] == SENT && !flies[v] ->
        at[v] = DONE;
        if
        :: via[v] == 0 -> intent[v] = NONE
        :: else
        fi;
        settle()
    }
}

inline times_out(v)
{
    d_step {
        at[v] == SENT ->
        at[v] = UNSURE;
        if
        :: via[v] == 0 -> intent[v] = (intent[v] == SENDING -> UNKNOWN : intent[v])
        :: else -> known[via[v] - 1] = (known[via[v] - 1] -> TAINTED : 0)
        fi;
        settle()
    }
}

/* 50 ms after the last answer, or since a newer token asks: at any time at which nothing of it is under way. */
inline ends(i)
{
    d_step { known[i] && !ANY(is_under_way, i) -> word[i] = LAST_WORD(i); known[i] = 0 }
}

inline word_arrives(i)
{
    d_step {
        word[i] ->
        if
        :: word[i] == CLOSE -> remove(i)
        :: word[i] == TELL && intent[i] == SENDING -> intent[i] = UNKNOWN
        :: else
        fi;
        word[i] = 0; settle()
    }
}

/* -- deaths */

inline bury(v, g)
{
    if
    :: at[v] != IDLE && !(at[v] == DONE && !known[v] && intent[v] == NONE) && who[v] / 2 == g && !HAS(former, v) ->
        former = former | BIT(v); known[v] = 0;
        at[v] = (at[v] == ASKED -> ASKED_FORMER : (at[v] == UNSURE || at[v] == DONE -> at[v] : FORMER))
    :: else
    fi
}
#define is_of(v, g) (at[v] != IDLE && who[v] / 2 == (g) && !HAS(former, v) && (at[v] != DONE || known[v]))

inline dies(g)
{
    d_step { ANY(is_of, g) -> ALL(bury, g); MUST_BE_DEALT_WITH(g); settle() }
}

inline is_taken_over(i)
{
    d_step {
        HAS(former, i) && (intent[i] == QUEUED || intent[i] == SENDING || intent[i] == UNKNOWN) ->
        intent[i] = (intent[i] == QUEUED -> NONE : DEAD); settle()
    }
}

/* An operator says so of one that lives, and is right in this: nothing of it is on its way now. */
#define is_going(v, g) \
    (who[v] / 2 == (g) && !HAS(former, v) && (flies[v] || at[v] == ADMITTED || at[v] == OPENED || at[v] == PASSED))
#define is_recorded(v, g) (intent[v] != NONE && intent[v] != DEAD && who[v] / 2 == (g) && !HAS(former, v))
inline give_up_on(v, g)
{
    if
    :: is_recorded(v, g) -> intent[v] = (intent[v] == QUEUED -> NONE : DEAD)
    :: else
    fi
}
inline is_said_to_be_dead(g)
{
    d_step { ANY(is_recorded, g) && !ANY(is_going, g) -> ALL(give_up_on, g) }
}

/* An operator is right: what is unsure, or of a dead one, will not land any more. Or a grace is over. */
inline stop(v, i)
{
    flies[v] = flies[v] && !((v == i || via[v] == i + 1) && (at[v] == UNSURE || HAS(former, v)))
}
inline is_settled(i)
{
    d_step { intent[i] >= UNKNOWN -> NOTE_SETTLED(i); ALL(stop, i); remove(i); settle() }
}

inline reads(t)
{
    d_step { HOLDS(t) && !IN_DOUBT && !ANY(is_older, t) -> RAISE(t); top = (t > top -> t : top); ALL(cancel, t); settle() }
}

/* -- the store comes back without all that it had */

#ifdef STORE_IS_LOST
inline may_lose(i, a)
{
    if
    :: true
    :: intent[i] != NONE -> remove(i)
    :: intent[i] != SENDING && known[i] == OPEN -> intent[i] = SENDING /* set back */
    fi
}

inline store_is_lost()
{
    atomic {
        !is_lost -> ALL(may_lose, 0);
        d_step {
            ended = true; told = 0; dealt = 0; is_lost = true;
#ifdef BY_MARK
            mark = granted;
#endif
            settle()
        }
    }
}

/* Replies of the life before are not taken any more. */
inline tell_of(v, g)
{
    if
    :: at[v] == IDLE || who[v] / 2 != g || HAS(former, v) || at[v] == ASKED || at[v] == CHECKS
    :: else ->
        if
        :: at[v] == WAITS || at[v] == ADMITTED || at[v] == OPENED -> at[v] = DONE; remove(v)
        :: at[v] == PASSED -> at[v] = DONE
        :: (via[v] == 0 && (at[v] == SENT || at[v] == UNSURE)) || IS_TOLD(v) ->
            intent[v] = (intent[v] != NONE -> intent[v] : (known[v] || at[v] == SENT -> SENDING : UNKNOWN))
        :: else
        fi
    fi
}
inline tells(g)
{
    d_step { !HAS(told, g) -> ALL(tell_of, g); told = told | BIT(g); settle() }
}

inline deal_with(v, g)
{
    if
    :: HAS(former, v) && who[v] / 2 == g && at[v] != ASKED_FORMER -> flies[v] = false; remove(v)
    :: else
    fi
}
inline former_ones_are_dealt_with(g)
{
    d_step { !HAS(dealt, g) -> ALL(deal_with, g); dealt = dealt | BIT(g); settle() }
}
#endif

init {
end:
    do
    :: grants()
    :: asks(0, 0) :: asks(1, 0) :: asks(2, 0) FOURTH(:: asks(3, 0))
    :: asks(1, 1) :: asks(2, 1) FOURTH(:: asks(3, 1))
    :: asks(1, 2) :: asks(2, 2) FOURTH(:: asks(3, 2))
    :: asks(2, 3) FOURTH(:: asks(3, 3))
    :: checks(1, 0, who[0]) :: checks(2, 0, who[0]) :: checks(2, 1, who[1]) FOURTH(:: checks(3, 2, who[2]))
#ifdef MUTANT_INTENT_OF_THE_PROCESS
    :: checks(1, 0, 1 - who[0])
#endif
    EACH(is_admitted) EACH(is_promoted) EACH(is_checked) EACH(sends) EACH(gives_up)
    EACH(lands) EACH(is_answered) EACH(times_out) EACH(ends) EACH(word_arrives)
    :: dies(0) :: dies(1)
    EACH(is_taken_over)
#ifndef NO_FORCE
    :: is_said_to_be_dead(0) :: is_said_to_be_dead(1)
#endif
    EACH(is_settled)
#ifndef NO_READS
    :: reads(1) :: reads(2) :: reads(3)
#endif
#ifdef STORE_IS_LOST
    :: store_is_lost() :: tells(0) :: tells(1)
    :: former_ones_are_dealt_with(0) :: former_ones_are_dealt_with(1)
#endif
    od
}

/* intents.pml - what gateways send to an upstream that cannot check tokens lands in the order of the tokens:
 * admission, intents, answers, deaths, fenced reads, a store that is lost, routes that change.
 *
 * README.md says what is modelled, what is left out, and what each mutant takes away. Write w carries TOKEN(w)
 * and is sent once at most. A gateway that is paused is one that takes no step; a request, an answer or a
 * reply that is lost is one that never arrives. Every step of the last loop is atomic: a script in the store,
 * or what one process does. */
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)

#if defined(TOKENS_1_1_2_2)
#define LAST 2
#define TOKEN(w) ((w) / 2 + 1)
#elif defined(TOKENS_1_2_2_3)
#define LAST 3
#define TOKEN(w) (((w) + 1) / 2 + 1)
#else
#define LAST 3
#define TOKEN(w) ((w) + 1)
#endif

#if defined(TOKENS_1_1_2_2) || defined(TOKENS_1_2_2_3)
#define WRITES 4
#define FOURTH(text) text
#else
#define WRITES 3
#define FOURTH(text)
#endif
#define EACH(step) :: step(0) :: step(1) :: step(2) FOURTH(:: step(3))
#define ANY(test, t, g) (test(0, t, g) || test(1, t, g) || test(2, t, g) FOURTH(|| test(3, t, g)))

/* The sender of each write, in its gateway's memory. */
#define IDLE 0
#define ASKED 1        /* the admission script is on its way */
#define WAITS 2        /* was told "queued" */
#define MAY_SEND 3     /* was told "sending" */
#define SENT 4
#define DONE 5
#define ASKED_FORMER 6 /* the script of one that is dead */
#define FORMER 7       /* dead: a former incarnation */
#define CHECKED 8      /* of a mutant */
byte at[WRITES];
byte who[WRITES];      /* the gateway */

/* The intent of each write, in the store. */
#define NONE 0
#define QUEUED 1
#define SENDING 2
#define UNKNOWN 3
#define DEAD 4
byte intent[WRITES];    /* also NONE when it is over */

/* The request of each write. */
#define FLYING 1
#define LANDED 2       /* and its answer is on the way */
byte request[WRITES];

byte granted;          /* the highest token */
bool live;             /* its hold */
byte top;              /* the highest token that has landed, or with which a fenced read was answered */

/* -- who may act: that is checked inside the scripts */

#ifdef STORE_IS_LOST
byte told = 3;         /* the gateways that have told what they have open */
byte dealt = 3;        /* those whose former incarnations somebody has dealt with */
bool unread[WRITES];   /* the gateway has not read the reply yet */
#define UNREAD(w) unread[w]
#define REPLIED(w) unread[w] = true
#define FORGET_REPLY(w) unread[w] = false
#define MUST_BE_DEALT_WITH(g) dealt = (HAS(told, g) -> dealt : dealt & (~BIT(g) | DEALT_BEFORE))
#ifdef MUTANT_THE_FIRST_TO_TELL_SPEAKS_FOR_ALL
#define IN_DOUBT (told == 0 || dealt != 3)
#else
#define IN_DOUBT (told != 3 || dealt != 3)
#endif
#else
#define UNREAD(w) false
#define REPLIED(w) skip
#define FORGET_REPLY(w) skip
#define MUST_BE_DEALT_WITH(g) skip
#define IN_DOUBT false
#endif

#ifdef ROUTES_CHANGE /* the last token is that of another lease, of which the new routes make the same resource */
bool adopted;
#define LEASE(t) ((t) == LAST)
#define LAST_OF_LEASE (LAST - 1)
#define IS_SERVED(t) (LEASE(t) == adopted)
#else
#define LEASE(t) 0
#define LAST_OF_LEASE LAST
#define IS_SERVED(t) true
#endif
#if defined(MUTANT_ROUTES_DIFFER) || defined(MUTANT_ROUTES_ARE_CHECKED_BEFORE)
#define IN_SCRIPT_SERVED(t) true
#else
#define IN_SCRIPT_SERVED(t) IS_SERVED(t)
#endif
#ifdef MUTANT_ROUTES_ARE_CHECKED_BEFORE
#define BEFORE_SCRIPT_SERVED(t) IS_SERVED(t)
#else
#define BEFORE_SCRIPT_SERVED(t) true
#endif

#ifdef BY_MARK
byte mark;
#define HOLDS(t) ((t) >= mark && (t) <= granted)
#define RAISE(t) mark = t
#elif defined(ROUTES_CHANGE)
#define HOLDS(t) (LEASE(t) || (live && (t) == granted))
#define RAISE(t) skip
#else /* the mark is never above the token of the live hold, and need not be here */
#define HOLDS(t) (live && (t) == granted)
#define RAISE(t) skip
#endif
#define MAY_ACT(t) (HOLDS(t) && IN_SCRIPT_SERVED(t) && !IN_DOUBT)

#ifdef MUTANT_MARKS_IN_EACH_GATEWAY
byte cached[2];
#define IS_ADMISSIBLE(w) (TOKEN(w) >= cached[who[w]])
#define CACHE(w) cached[who[w]] = TOKEN(w)
#else
#define IS_ADMISSIBLE(w) MAY_ACT(TOKEN(w))
#define CACHE(w) skip
#endif

/* -- what else the mutants take away, one each */

#ifdef MUTANT_NO_INTENT
#define RECORDED(state) NONE
#else
#define RECORDED(state) (state)
#endif

#ifdef MUTANT_WAITS_IN_MEMORY
#define IS_SEEN(v, g) (who[v] == g && at[v] != FORMER)
#else
#define IS_SEEN(v, g) true
#endif

#ifdef MUTANT_TIME_OUT_CLOSES
#define AFTER_TIME_OUT NONE
#else
#define AFTER_TIME_OUT UNKNOWN
#endif

#ifdef MUTANT_EARLY_ANSWER_CLOSES
#define AFTER_EARLY_ANSWER NONE
#else
#define AFTER_EARLY_ANSWER UNKNOWN
#endif

#if defined(MUTANT_GRACE_ALONE)
#define GRACE_IS_OVER(w) (intent[w] >= SENDING)
#else
#define GRACE_IS_OVER(w) (intent[w] == DEAD)
#endif
#ifdef MUTANT_APPLIED_AFTER_THE_GRACE
#define NEVER_LANDS(w) skip
#else
#define NEVER_LANDS(w) request[w] = (request[w] == FLYING -> NONE : request[w])
#endif

#ifdef MUTANT_NEGATIVE_PROBE
#define PROBE_SAYS_SO(w) true
#else
#define PROBE_SAYS_SO(w) (request[w] == LANDED)
#endif

#ifdef MUTANT_RESOLVED_WHILE_SENDING
#define IS_RESOLVABLE(w) (intent[w] >= SENDING)
#else
#define IS_RESOLVABLE(w) (intent[w] == UNKNOWN || intent[w] == DEAD)
#endif

#ifdef MUTANT_HEARTBEAT_IS_PROOF
#define IS_PROVEN_DEAD(w) (at[w] > ASKED && at[w] != DONE)
#else
#define IS_PROVEN_DEAD(w) (at[w] == FORMER)
#endif
#ifdef MUTANT_SENDING_GOES_WITH_ITS_GATEWAY
#define OF_THE_DEAD(state) NONE
#else
#define OF_THE_DEAD(state) ((state) == QUEUED -> NONE : DEAD)
#endif

/* That it is still there is enough for the order: who has cancelled it has a newer hold. But a store that is
 * put back has what was cancelled. */
#ifdef MUTANT_QUEUED_IS_SENT_UNCHECKED
#define IS_PROMOTABLE(w) true
#elif defined(WITHOUT_SECOND_LOOK) || defined(MUTANT_PROMOTED_IN_DOUBT)
#define IS_PROMOTABLE(w) (intent[w] == QUEUED)
#else
#define IS_PROMOTABLE(w) (intent[w] == QUEUED && MAY_ACT(TOKEN(w)))
#endif
#ifdef MUTANT_CANCELLED_IS_SENT
#define AFTER_REFUSAL MAY_SEND
#else
#define AFTER_REFUSAL DONE
#endif
#ifdef MUTANT_PROMOTED_PAST_AN_OLDER_ONE
#define MUST_WAIT_ON(w) false
#else
#define MUST_WAIT_ON(w) IS_BLOCKED(TOKEN(w), who[w])
#endif
#ifdef WITHOUT_CANCELLING
#define CANCELS(v, t) false
#else
#define CANCELS(v, t) (intent[v] == QUEUED && TOKEN(v) < (t) && LEASE(TOKEN(v)) == LEASE(t))
#endif

#ifdef MUTANT_INTENT_WITHOUT_REQUEST /* those of one gateway with one token are one */
#define close_same(v, w) \
    intent[v] = (TOKEN(v) == TOKEN(w) && who[v] == who[w] && intent[v] > QUEUED -> NONE : intent[v])
#define CLOSE(w) close_same(0, w); close_same(1, w); close_same(2, w) FOURTH(; close_same(3, w))
#else
#define CLOSE(w) intent[w] = NONE
#endif
#ifdef MUTANT_SILENT_REPEAT /* on another connection: the answer to one of the two is there */
#define AFTER_ANSWER FLYING
#else
#define AFTER_ANSWER NONE
#endif

#ifdef MUTANT_READ_DOES_NOT_WAIT
#define READ_MUST_WAIT(t) false
#else
#define READ_MUST_WAIT(t) IS_BLOCKED(t, 0)
#endif

#ifdef MUTANT_ADOPTED_WITH_OPEN_INTENTS
#define MAY_ADOPT !IN_DOUBT
#elif defined(MUTANT_ADOPTED_IN_DOUBT)
#define MAY_ADOPT (!ANY(is_sent_on, 0, 0))
#else
#define MAY_ADOPT (!IN_DOUBT && !ANY(is_sent_on, 0, 0))
#endif
#if defined(MUTANT_ROUTES_GO_WITH_THE_STORE)
#define RESTORE adopted = false
#elif defined(BY_MARK) && !defined(MUTANT_MARK_GOES_WITH_THE_STORE)
#define RESTORE mark = granted
#elif defined(BY_MARK)
#define RESTORE mark = 0
#else
#define RESTORE skip
#endif

#ifdef MUTANT_INTENTS_GO_WITH_THE_STORE
#define TOLD_BEFORE 3
#else
#define TOLD_BEFORE 0
#endif
#if defined(MUTANT_FORMER_ONES_ARE_FORGOTTEN) || defined(MUTANT_INTENTS_GO_WITH_THE_STORE)
#define DEALT_BEFORE 3
#else
#define DEALT_BEFORE 0
#endif
#ifdef MUTANT_ONLY_WHAT_IS_SENT_IS_TOLD
#define IS_OPEN(w) (at[w] == SENT)
#else
#define IS_OPEN(w) (at[w] == SENT || (at[w] == MAY_SEND && !UNREAD(w)))
#endif
#ifdef MUTANT_REPLY_OF_ANOTHER_LIFE
#define IS_DROPPED(w) (at[w] == WAITS)
#else
#define IS_DROPPED(w) (at[w] == WAITS || UNREAD(w))
#endif

#define is_older(v, t, g) \
    (intent[v] != NONE && TOKEN(v) < (t) && LEASE(TOKEN(v)) == LEASE(t) && IS_SEEN(v, g))
#define IS_BLOCKED(t, g) ANY(is_older, t, g)
#define is_sent_on(v, t, g) (intent[v] > QUEUED)
#define is_begun(v, t, g) (at[v] != IDLE)
#define is_of(v, t, g) (at[v] >= ASKED && at[v] <= SENT && who[v] == (g))

/* -- what must be reachable: a write lands after an older one was ... (itself: PROMOTED); must fail */

#define ANSWERED 1
#define PROMOTED 2
#define GRACE 3
#define PROBED 4
#define RESOLVED 5
#define LOST 6
#define CANCELLED 7
#define WAITED 8
#define ADOPTED 9
#ifdef REACH
byte once;
#define NOTE(event, token) once = (event == REACH -> once | BIT(token) : once)
#define WHEN_LANDED(w) \
    assert((once & (REACH == PROMOTED -> BIT(TOKEN(w)) : BIT(TOKEN(w)) - 1)) == 0)
#define WHEN_READ(t) assert(!(REACH == WAITED && HAS(once, t)))
#else
#define NOTE(event, token) skip
#define WHEN_LANDED(w) skip
#define WHEN_READ(t) skip
#endif

/* -- within a step */

/* What can do nothing any more is the same, however it came to that. */
inline settle(w)
{
    if
    :: intent[w] == NONE && request[w] != FLYING && (at[w] == SENT || at[w] == FORMER || at[w] == DONE) ->
        at[w] = DONE; who[w] = 0; request[w] = NONE
    :: else
    fi
}

inline settle_all()
{
    settle(0); settle(1); settle(2) FOURTH(; settle(3))
}

inline cancel(v, t)
{
    if
    :: CANCELS(v, t) -> intent[v] = NONE; NOTE(CANCELLED, TOKEN(v))
    :: else
    fi
}

inline cancel_older(t)
{
    cancel(0, t); cancel(1, t); cancel(2, t) FOURTH(; cancel(3, t))
}

inline record(w)
{
    RAISE(TOKEN(w)); CACHE(w);
    cancel_older(TOKEN(w));
    intent[w] = RECORDED((IS_BLOCKED(TOKEN(w), who[w]) -> QUEUED : SENDING));
    if
    :: at[w] == ASKED_FORMER -> at[w] = FORMER
    :: else -> at[w] = (intent[w] == QUEUED -> WAITS : MAY_SEND); REPLIED(w)
    fi
}

/* -- the lease */

inline grants()
{
    d_step { granted < LAST_OF_LEASE -> granted++; live = true }
}

inline hold_ends()
{
    d_step { live -> live = false }
}

/* -- a write */

/* The gateways are alike: the first write goes to the first. */
inline asks(w, g)
{
    d_step {
        at[w] == IDLE && (TOKEN(w) <= granted || LEASE(TOKEN(w))) && BEFORE_SCRIPT_SERVED(TOKEN(w)) &&
        (g == 0 || ANY(is_begun, 0, 0)) ->
        at[w] = ASKED; who[w] = g
    }
}

inline is_admitted(w)
{
    d_step {
        at[w] == ASKED || at[w] == ASKED_FORMER ->
        if
        :: !IS_ADMISSIBLE(w) -> at[w] = DONE
#ifdef MUTANT_INTENT_IN_A_SECOND_SCRIPT
        :: else -> at[w] = CHECKED
#else
        :: else -> record(w)
#endif
        fi;
        settle_all()
    }
}

#ifdef MUTANT_INTENT_IN_A_SECOND_SCRIPT
inline is_recorded(w)
{
    d_step { at[w] == CHECKED -> record(w); settle_all() }
}
#endif

/* Also the script of one that is dead. */
inline is_promoted(w)
{
    d_step {
        ((at[w] == WAITS && !UNREAD(w)) || (at[w] == FORMER && intent[w] == QUEUED)) &&
        !(IS_PROMOTABLE(w) && MUST_WAIT_ON(w)) ->
        if
        :: IS_PROMOTABLE(w) ->
            intent[w] = SENDING; NOTE(PROMOTED, TOKEN(w));
            if
            :: at[w] == WAITS -> at[w] = MAY_SEND; REPLIED(w)
            :: else
            fi
        :: else ->
            intent[w] = NONE; at[w] = (at[w] == WAITS -> AFTER_REFUSAL : FORMER)
        fi;
        settle_all()
    }
}

inline sends(w)
{
    d_step { at[w] == MAY_SEND && !UNREAD(w) -> at[w] = SENT; request[w] = FLYING }
}

/* Its client has left, or the upstream takes no connection: it never sends. */
inline gives_up(w)
{
    d_step {
        at[w] == WAITS || at[w] == MAY_SEND ->
        at[w] = DONE; intent[w] = NONE; FORGET_REPLY(w); settle_all()
    }
}

inline lands(w)
{
    d_step {
        request[w] == FLYING ->
        assert(TOKEN(w) >= top);
        WHEN_LANDED(w);
        top = TOKEN(w); request[w] = LANDED; settle_all()
    }
}

inline is_answered(w)
{
    d_step {
        at[w] == SENT && request[w] == LANDED ->
        at[w] = DONE; CLOSE(w); request[w] = AFTER_ANSWER; NOTE(ANSWERED, TOKEN(w)); settle_all()
    }
}

/* By somebody in between, or by the upstream before it has applied it (202, half an answer). */
inline is_answered_early(w)
{
    d_step {
        at[w] == SENT && intent[w] == SENDING && request[w] == FLYING ->
        intent[w] = AFTER_EARLY_ANSWER; settle_all()
    }
}

/* Or the connection breaks. */
inline times_out(w)
{
    d_step { at[w] == SENT && intent[w] == SENDING -> intent[w] = AFTER_TIME_OUT; settle_all() }
}

/* -- a death, and what becomes of the intents */

inline bury(w, g)
{
    if
    :: is_of(w, 0, g) -> at[w] = (at[w] == ASKED -> ASKED_FORMER : FORMER); FORGET_REPLY(w)
    :: else
    fi
}

inline dies(g)
{
    d_step {
        ANY(is_of, 0, g) ->
        bury(0, g); bury(1, g); bury(2, g) FOURTH(; bury(3, g)); MUST_BE_DEALT_WITH(g); settle_all()
    }
}

/* The next incarnation has the lock file; or an operator says so, and is right. */
inline is_known_dead(w)
{
    d_step {
        IS_PROVEN_DEAD(w) && intent[w] != NONE && intent[w] != DEAD ->
        intent[w] = OF_THE_DEAD(intent[w]); settle_all()
    }
}

inline grace_is_over(w)
{
    d_step { GRACE_IS_OVER(w) -> NEVER_LANDS(w); intent[w] = NONE; NOTE(GRACE, TOKEN(w)); settle_all() }
}

inline is_probed(w)
{
    d_step {
        (intent[w] == UNKNOWN || intent[w] == DEAD) && PROBE_SAYS_SO(w) ->
        intent[w] = NONE; NOTE(PROBED, TOKEN(w)); settle_all()
    }
}

/* The operator's word: what has not landed never will. */
inline is_resolved(w)
{
    d_step {
        IS_RESOLVABLE(w) ->
        request[w] = (request[w] == FLYING -> NONE : request[w]);
        intent[w] = NONE; NOTE(RESOLVED, TOKEN(w)); settle_all()
    }
}

/* -- a fenced read */

inline reads(t)
{
    d_step {
        MAY_ACT(t) ->
        RAISE(t); cancel_older(t);
        if
        :: READ_MUST_WAIT(t) -> NOTE(WAITED, t)
        :: else -> WHEN_READ(t); top = (t > top -> t : top)
        fi;
        settle_all()
    }
}

/* -- the store comes back without all that it had: an intent is missing, or is as it was before */

#ifdef STORE_IS_LOST
inline may_lose(w)
{
    if
    :: true
    :: at[w] == MAY_SEND || at[w] == SENT || at[w] == FORMER -> intent[w] = NONE; NOTE(LOST, TOKEN(w))
    :: at[w] == WAITS -> intent[w] = NONE
    :: (at[w] >= WAITS && at[w] <= SENT) || at[w] == FORMER -> intent[w] = QUEUED
    fi
}

inline store_is_lost()
{
    atomic {
        may_lose(0); may_lose(1); may_lose(2) FOURTH(; may_lose(3));
        d_step { live = false; told = TOLD_BEFORE; dealt = DEALT_BEFORE; RESTORE; settle_all() }
    }
}

inline hears(w)
{
    d_step { unread[w] -> unread[w] = false }
}

inline tell_of(w, g)
{
    if
    :: who[w] == g && IS_OPEN(w) -> intent[w] = (intent[w] == UNKNOWN -> UNKNOWN : SENDING)
    :: who[w] == g && !IS_OPEN(w) && IS_DROPPED(w) -> at[w] = DONE; intent[w] = NONE; unread[w] = false
    :: else
    fi
}

/* And from now on takes no reply that an earlier life has given. */
inline tells(g)
{
    d_step {
        !HAS(told, g) ->
        tell_of(0, g); tell_of(1, g); tell_of(2, g) FOURTH(; tell_of(3, g)); told = told | BIT(g); settle_all()
    }
}

inline deal_with(w, g)
{
    if
    :: who[w] == g && at[w] == FORMER -> request[w] = NONE; intent[w] = NONE
    :: else
    fi
}

/* The grace since their deaths is over, or the operator gives his word. */
inline former_ones_are_dealt_with(g)
{
    d_step {
        !HAS(dealt, g) ->
        deal_with(0, g); deal_with(1, g); deal_with(2, g) FOURTH(; deal_with(3, g));
        dealt = dealt | BIT(g); settle_all()
    }
}
#endif

/* -- an operator adopts other routes */

#ifdef ROUTES_CHANGE
#define remove_queued(w) intent[w] = (intent[w] == QUEUED -> NONE : intent[w])

inline routes_are_adopted()
{
    d_step {
        !adopted && MAY_ADOPT ->
        remove_queued(0); remove_queued(1); remove_queued(2) FOURTH(; remove_queued(3));
        adopted = true; NOTE(ADOPTED, 1); settle_all()
    }
}
#endif

init {
end:
    do
    :: grants()
    :: hold_ends()
    :: asks(0, 0) :: asks(1, 0) :: asks(2, 0) FOURTH(:: asks(3, 0))
    :: asks(0, 1) :: asks(1, 1) :: asks(2, 1) FOURTH(:: asks(3, 1))
    EACH(is_admitted)
    EACH(is_promoted)
    EACH(sends)
    EACH(gives_up)
    EACH(lands)
    EACH(is_answered)
    EACH(is_answered_early)
    EACH(times_out)
    :: dies(0) :: dies(1)
    EACH(is_known_dead)
#ifndef NO_READS
    :: reads(1) :: reads(2) :: reads(3)
#endif
#ifndef ONLY_ANSWERS_CLOSE
    EACH(is_resolved)
    EACH(grace_is_over)
    EACH(is_probed)
#endif
#ifdef STORE_IS_LOST
    EACH(hears)
    :: store_is_lost()
    :: tells(0) :: tells(1)
    :: former_ones_are_dealt_with(0) :: former_ones_are_dealt_with(1)
#endif
#ifdef ROUTES_CHANGE
    :: routes_are_adopted()
#endif
#ifdef MUTANT_INTENT_IN_A_SECOND_SCRIPT
    EACH(is_recorded)
#endif
    od
}

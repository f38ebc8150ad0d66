/* line.pml - a lease that is handed on to those in line: in the release's own step when who is first stands at
 * the desk that the release names, else as an offer for 3 s; places that outlive their connection.
 *
 * README.md says what is modelled and left out. The steps, and where they are in the code:
 *   asks, ask_runs, ask_told           acquire.c, wait_begin(); acquire.lua
 *   releases, release_runs, release_told   release.c; release.lua, lib/line.lua hand_on(): both ways
 *   hears, claim_runs, claim_told      wait_told(), wait_claim(), wait_claimed(); claim.lua
 *   times_out, leaves, leave_runs, leave_told   wait_late(), wait_gone(), wait_left(); leave.lua "late", "gone"
 *   again_runs, again_told             wait_look(), wait_found(), when a release has perhaps granted it; again.lua
 *   is_sent_away, is_asked_for, desk_closes, is_silent   wait_sent_away(), wait_again(), queue/inbox.c; desk_lives_until()
 *   link_breaks, is_killed, redis_dies calls without a reply; what was asked may still arrive, or never
 *   offer_ends, place_ends, hold_ends, nobodys_hold_ends   alarms: hand_on.lua; sweep.lua
 *
 * Requests 0 and 1 are of client 0 (one lease_id), the second after the first one's connection is over; 2 is of
 * client 1; 3 is the hold of client 2, which has the lease at first. The name of a hold is its request. No
 * order among calls is assumed. Every step of the last loop is atomic. */
#define REQUESTS 3
#define NOBODY 4
#define CLIENT(k) ((k) == 0 -> 0 : (k) - 1)
#ifndef FAULTS
#define FAULTS 1
#endif
#ifdef KEEPER /* the client that has asked for keep_place_ms */
#define KEEPS(c) ((c) == KEEPER)
#else
#define KEEPS(c) false
#endif
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define EACH(step) :: step(0) :: step(1) :: step(2)

/* Requests, at their workers. */
#define IDLE 0
#define ASKING 1
#define QUEUED 2
#define CLAIMING 3
#define LEAVING 4      /* its time is up */
#define RETURNING 5    /* its client has gone */
#define AGAIN 6        /* asked for by its lease_id */
#define OUT 7
byte at[REQUESTS], where[REQUESTS]; /* where: the id of a desk */
bool gone[REQUESTS], rung[REQUESTS]; /* rung: the message that it was offered the lease is on the way */
byte late[REQUESTS];   /* its call of which nobody hears any more: it may still run */

/* What a script has answered; 0: it has not run yet. */
#define QUEUED_UP 1
#define GRANTED 2
#define LEFT 3
#define SUPERSEDED 4
byte answer[REQUESTS];

/* What clients were told. */
#define NOTHING 0
#define YES 1
#define NO 2           /* certainly: 503, 409 wait-timeout, superseded */
#define MAYBE 3        /* 504, or the connection broke */
byte told[REQUESTS];

/* Desks: worker w has id w + 1, and after it has closed w + 3. */
#define WORKER(d) (((d) - 1) % 2)
byte desk[2] = { 1, 2 };
byte alive = 6;        /* those that the store takes to live */

/* Releases, by client. */
#define NOT_YET 0
#define SENT 1
#define RAN 2
#define LOST 3         /* nobody hears its reply; it may still run */
#define OVER 4
byte release[3], named[3], handed[3]; /* named: the desk; handed: 1 + the request it has granted to, or 0 */

/* The store. */
#define FREE 0
#define OFFERED 1      /* unclaimed, for 3 s */
#define UNTOLD 2       /* claimed, c = "" */
#define HELD 3
byte hold = HELD, holder = 3;
bool over[3];          /* the client had a hold that is over */
bool in_line[2];
byte stands[2], name[2]; /* the desk, 0: none, the place is kept; the request */
byte front;            /* who of the two was there first */

byte faults;
bool right[2];         /* nobody knows: has a right to its place */
byte earlier;
byte given;            /* within one step only */

#define IS_OF(c) (hold != FREE && CLIENT(holder) == (c))
#define IS_TOLD(c) ((c) == 2 || ((c) == 0 && (told[0] == YES || told[1] == YES)) || ((c) == 1 && told[2] == YES))
#define is_under_way(c, k) ((release[c] == SENT || release[c] == RAN) && named[c] == where[k])
#define IS_PERHAPS_GRANTED(k) (is_under_way(0, k) || is_under_way(1, k) || is_under_way(2, k))

/* -- what the mutants take away, one each */

#ifdef MUTANT_503_WHILE_PERHAPS_GRANTED
#define CLOSE_WAITS(k) false
#else
#define CLOSE_WAITS(k) IS_PERHAPS_GRANTED(k)
#endif
#ifdef WITHOUT_WAITING /* spare for time-outs and for who leaves: leave.lua looks itself */
#define LEAVE_WAITS(k) false
#else
#define LEAVE_WAITS(k) IS_PERHAPS_GRANTED(k)
#endif
#ifdef MUTANT_LOST_REPLY_IS_A_NO
#define AFTER_LOST_REPLY(k) QUEUED
#else
#define AFTER_LOST_REPLY(k) (IS_PERHAPS_GRANTED(k) -> (gone[k] -> RETURNING : AGAIN) : QUEUED)
#endif
#ifdef MUTANT_NO_ANSWER_IS_A_NO
#define WITHOUT_ANSWER NO
#else
#define WITHOUT_ANSWER MAYBE
#endif
#ifdef MUTANT_KEPT_PLACE_IS_GRANTED
#define STANDS_THERE(c, d) (stands[c] == (d) || stands[c] == 0)
#elif defined(MUTANT_RELEASE_NAMES_THE_WORKER)
#define STANDS_THERE(c, d) (stands[c] != 0 && WORKER(stands[c]) == WORKER(d))
#else
#define STANDS_THERE(c, d) (stands[c] == (d))
#endif
#ifdef MUTANT_GRANTED_AS_TOLD
#define MERGED HELD
#else
#define MERGED UNTOLD
#endif
#ifdef MUTANT_GONE_ONE_IS_NOT_GIVEN_BACK
#define AFTER_GONE OUT
#else
#define AFTER_GONE RETURNING
#endif
#ifdef MUTANT_CLAIM_KNOWS_ONLY_OFFERS
#define IS_CLAIMABLE (hold == OFFERED)
#elif defined(MUTANT_CLAIM_KNOWS_ONLY_THE_UNTOLD)
#define IS_CLAIMABLE (hold == OFFERED || hold == UNTOLD)
#else
#define IS_CLAIMABLE (hold != FREE)
#endif
#ifdef MUTANT_REPLAY_IS_NOT_TOLD
#define REPLAYED hold
#else
#define REPLAYED HELD
#endif
#ifdef MUTANT_AGAIN_ONLY_LOOKS
#define TAKE_PLACE_AGAIN(k) answer[k] = LEFT
#else
#define TAKE_PLACE_AGAIN(k) stands[CLIENT(k)] = where[k]; answer[k] = QUEUED_UP
#endif
#ifdef MUTANT_PLACE_GOES_WITH_ITS_DESK
#define OUTLIVES(c) false
#else
#define OUTLIVES(c) KEEPS(c)
#endif
#ifdef MUTANT_REJOINS_AT_THE_END
#define AFTER_REJOIN(c) front = (in_line[1 - (c)] -> 1 - (c) : (c))
#else
#define AFTER_REJOIN(c) skip
#endif
#ifdef MUTANT_KEPT_PLACE_IS_PASSED_OVER
#define IS_PASSED_OVER(c) (stands[c] == 0)
#else
#define IS_PASSED_OVER(c) false
#endif

/* -- what must be reachable: these assertions must fail */

#ifdef REACH_MERGED
#define WHEN_TOLD(k) assert(!(hold == UNTOLD && answer[k] == 0 && faults == 0))
#elif defined(REACH_KEPT) /* for the second request, from the offer to a kept place */
#define WHEN_TOLD(k) assert(!(k == 1 && told[0] == NO && over[2] && faults == 0))
#elif defined(REACH_AGAIN)
#define WHEN_TOLD(k) assert(at[k] != AGAIN)
#else
#define WHEN_TOLD(k) skip
#endif

/* -- telling */

inline tell(k, what)
{
    if
    :: gone[k] && what != YES
    :: else ->
        assert(what != NO || !(holder == k && (hold == UNTOLD || hold == HELD)));
        assert(what != YES || (IS_OF(CLIENT(k)) && hold != OFFERED));
        if
        :: what == YES -> WHEN_TOLD(k)
        :: else
        fi;
        told[k] = (what == MAYBE && k > 0 -> NOTHING : what)
    fi;
    if
    :: gone[k] && k == 0 && told[k] == NOTHING -> told[k] = MAYBE
    :: else
    fi;
    gone[k] = false;
    at[k] = OUT; rung[k] = false; answer[k] = 0;
    where[k] = (late[k] -> where[k] : 0)
}

inline call(k, what) { at[k] = what; answer[k] = 0; rung[k] = false }

/* -- in the store */

inline out(c) { in_line[c] = false; right[c] = false; stands[c] = 0; name[c] = 0 }

/* What does not matter is always the same. */
inline tidy()
{
    front = (in_line[0] && in_line[1] -> front : 0); earlier = (right[0] && right[1] -> earlier : 0)
}

inline pass_over(c)
{
    if
    :: in_line[c] && stands[c] && !HAS(alive, stands[c]) && !KEEPS(c) -> out(c)
    :: in_line[c] && ((stands[c] && !HAS(alive, stands[c]) && !OUTLIVES(c)) || IS_PASSED_OVER(c)) ->
        in_line[c] = false /* it has a right to its place all the same */
    :: else
    fi
}

inline give(c, d)
{
    assert(!(right[c] && right[1 - (c)] && earlier == 1 - (c))); /* nobody is overtaken */
    holder = name[c];
    if
    :: d && STANDS_THERE(c, d) ->
        assert(told[holder] != NO);
        hold = MERGED; given = holder + 1
    :: else -> hold = OFFERED; rung[holder] = (at[holder] == ASKING || at[holder] == QUEUED)
    fi;
    out(c)
}

/* d: the desk that a release has named, or 0. */
inline hand_on(d)
{
    hold = FREE; holder = NOBODY; given = 0;
    pass_over(front);
    if
    :: in_line[front] -> give(front, d)
    :: else ->
        pass_over((1 - front));
        if
        :: in_line[1 - front] -> give((1 - front), d)
        :: else
        fi
    fi;
    tidy()
}

/* -- acquire */

inline asks(k, w)
{
    d_step {
        at[k] == IDLE && (k != 1 || gone[0] || told[0] == NO || told[0] == MAYBE) ->
        at[k] = ASKING; where[k] = desk[w]
    }
}

inline acquire_script(k)
{
    if
    :: IS_OF(CLIENT(k)) ->
        holder = (hold == OFFERED -> k : holder); hold = (hold == OFFERED -> HELD : REPLAYED); answer[k] = GRANTED
    :: !IS_OF(CLIENT(k)) && over[CLIENT(k)] -> answer[k] = LEFT
    :: !IS_OF(CLIENT(k)) && !over[CLIENT(k)] && hold == FREE -> holder = k; hold = HELD; answer[k] = GRANTED
    :: !IS_OF(CLIENT(k)) && !over[CLIENT(k)] && hold != FREE && !HAS(alive, where[k]) -> answer[k] = LEFT
    :: else ->
        if
        :: in_line[CLIENT(k)] -> AFTER_REJOIN(CLIENT(k))
        :: else ->
            front = (in_line[1 - CLIENT(k)] -> 1 - CLIENT(k) : 0);
            earlier = (right[1 - CLIENT(k)] -> 1 - CLIENT(k) : 0)
        fi;
        in_line[CLIENT(k)] = true; right[CLIENT(k)] = true;
        name[CLIENT(k)] = k; stands[CLIENT(k)] = where[k]; answer[k] = QUEUED_UP
    fi
}
inline ask_runs(k) { d_step { at[k] == ASKING && !answer[k] -> acquire_script(k) } }

inline ask_told(k)
{
    d_step {
        at[k] == ASKING && answer[k] ->
        if
        :: answer[k] == GRANTED -> tell(k, YES)
        :: answer[k] == QUEUED_UP -> at[k] = QUEUED; answer[k] = 0
        :: else -> tell(k, NO)
        fi
    }
}

inline goes(k) { d_step { at[k] >= QUEUED && at[k] <= AGAIN && at[k] != RETURNING && !gone[k] -> gone[k] = true } }

/* -- claim */

inline hears(k) { d_step { rung[k] && at[k] == QUEUED -> call(k, CLAIMING) } }

inline claim_script(k)
{
    if
    :: holder == k && IS_CLAIMABLE -> hold = (hold == HELD -> HELD : UNTOLD); answer[k] = GRANTED
    :: else -> answer[k] = SUPERSEDED /* or lost */
    fi
}
inline claim_runs(k) { d_step { at[k] == CLAIMING && !answer[k] -> claim_script(k) } }

inline claim_told(k)
{
    d_step {
        at[k] == CLAIMING && answer[k] ->
        if
        :: answer[k] == GRANTED && gone[k] -> call(k, RETURNING)
        :: answer[k] == GRANTED && !gone[k] -> tell(k, YES)
        :: else -> tell(k, NO)
        fi
    }
}

/* -- leave */

inline times_out(k) { d_step { at[k] == QUEUED && !gone[k] && !LEAVE_WAITS(k) -> call(k, LEAVING) } }
inline leaves(k) { d_step { at[k] == QUEUED && gone[k] && !LEAVE_WAITS(k) -> call(k, RETURNING) } }

inline leave_script(k, is_gone)
{
    if
    :: hold != FREE && holder == k && !is_gone -> answer[k] = GRANTED
    :: hold == HELD && holder == k && is_gone -> answer[k] = SUPERSEDED
    :: (hold == OFFERED || hold == UNTOLD) && holder == k && is_gone ->
        assert(!(IS_TOLD(CLIENT(k)) && release[CLIENT(k)] == NOT_YET)); /* else there will be two holders */
        answer[k] = LEFT;
        if
        :: KEEPS(CLIENT(k)) -> hold = OFFERED
        :: else -> hand_on(0)
        fi
    :: !(hold != FREE && holder == k) && in_line[CLIENT(k)] && name[CLIENT(k)] == k ->
        answer[k] = LEFT;
        if
        :: KEEPS(CLIENT(k)) -> stands[CLIENT(k)] = 0
        :: else -> out(CLIENT(k)); tidy()
        fi
    :: else -> answer[k] = SUPERSEDED /* or left */
    fi
}
inline leave_runs(k)
{
    d_step { (at[k] == LEAVING || at[k] == RETURNING) && !answer[k] -> leave_script(k, (at[k] == RETURNING)) }
}

inline leave_told(k)
{
    d_step {
        (at[k] == LEAVING || at[k] == RETURNING) && answer[k] ->
        if
        :: at[k] == LEAVING && answer[k] == GRANTED -> call(k, CLAIMING)
        :: else -> tell(k, NO)
        fi
    }
}

/* -- after a release without a reply */

inline again_script(k)
{
    if
    :: holder == k && IS_CLAIMABLE -> hold = (hold == HELD -> HELD : UNTOLD); answer[k] = GRANTED
    :: !(holder == k && hold != FREE) && in_line[CLIENT(k)] && name[CLIENT(k)] == k -> TAKE_PLACE_AGAIN(k)
    :: else -> answer[k] = SUPERSEDED
    fi
}
inline again_runs(k) { d_step { at[k] == AGAIN && !answer[k] -> again_script(k) } }

inline again_told(k)
{
    d_step {
        at[k] == AGAIN && answer[k] ->
        if
        :: answer[k] == GRANTED && gone[k] -> call(k, RETURNING)
        :: answer[k] == GRANTED && !gone[k] -> tell(k, YES)
        :: answer[k] == QUEUED_UP -> at[k] = QUEUED; answer[k] = 0
        :: else -> tell(k, NO)
        fi
    }
}

/* -- release */

inline releases(c, w) { d_step { IS_TOLD(c) && release[c] == NOT_YET -> release[c] = SENT; named[c] = desk[w] } }

inline release_runs(c)
{
    d_step {
        release[c] == SENT || release[c] == LOST ->
        if
        :: IS_OF(c) && hold != OFFERED -> over[c] = true; hand_on(named[c]); handed[c] = given; given = 0
        :: else
        fi;
        if
        :: release[c] == SENT -> release[c] = RAN
        :: else -> release[c] = OVER; named[c] = 0; handed[c] = 0
        fi
    }
}
inline release_never_runs(c) { d_step { release[c] == LOST -> release[c] = OVER; named[c] = 0 } }

inline tell_handed(k, d)
{
    if
    :: at[k] == QUEUED && gone[k] -> call(k, AFTER_GONE)
    :: at[k] == QUEUED && !gone[k] -> tell(k, YES)
    :: at[k] == OUT && told[k] != YES -> where[k] = d; gone[k] = true; call(k, RETURNING)
    :: else /* the call that is under way will say so */
    fi
}
inline release_told(c)
{
    d_step {
        release[c] == RAN && !(handed[c] && at[handed[c] - 1] == ASKING) ->
        if
        :: handed[c] -> tell_handed(handed[c] - 1, named[c])
        :: else
        fi;
        release[c] = OVER; named[c] = 0; handed[c] = 0
    }
}

/* -- time */

inline offer_ends() { d_step { hold == OFFERED -> hand_on(0); given = 0 } }
inline place_ends(c)
{
    d_step { in_line[c] && KEEPS(c) && (stands[c] == 0 || !HAS(alive, stands[c])) -> out(c); tidy() }
}
inline hold_ends(c)
{
    d_step { IS_TOLD(c) && IS_OF(c) && hold != OFFERED -> over[c] = true; hand_on(0); given = 0 }
}

/* Nobody was told, and nobody will be: only an accident may leave a lease so for its ttl. */
#define ACTS(k) (at[k] != IDLE && at[k] != OUT)
inline nobodys_hold_ends(c)
{
    d_step {
        IS_OF(c) && hold != OFFERED && !IS_TOLD(c) && !(c == 0 && (ACTS(0) || ACTS(1))) && !(c == 1 && ACTS(2)) &&
        handed[0] != holder + 1 && handed[1] != holder + 1 && handed[2] != holder + 1 ->
        assert(faults > 0);
        over[c] = true; hand_on(0); given = 0
    }
}

/* -- desks, and what breaks */

inline new_desk(w) { desk[w] = w + 3; alive = alive | BIT(w + 3) }
inline is_silent(d)
{
    d_step {
        HAS(alive, d) && desk[WORKER(d)] != d && ((in_line[0] && stands[0] == d) || (in_line[1] && stands[1] == d)) ->
        alive = alive & ~BIT(d)
    }
}
inline desk_closes(w)
{
    d_step {
        desk[w] < 3 && faults < FAULTS -> faults++; new_desk(w)
    }
}
inline is_sent_away(k)
{
    d_step { at[k] == QUEUED && where[k] != desk[WORKER(where[k])] && !CLOSE_WAITS(k) -> tell(k, NO) }
}
/* As soon as the new desk is open; it need not wait for the release's outcome. */
inline is_asked_for(k)
{
    d_step {
        at[k] == QUEUED && where[k] != desk[WORKER(where[k])] && IS_PERHAPS_GRANTED(k) ->
        call(k, (gone[k] -> RETURNING : AGAIN)); where[k] = desk[WORKER(where[k])]
    }
}

inline cut(k, w, is_dead)
{
    if
    :: where[k] && WORKER(where[k]) == w && ((at[k] != QUEUED && ACTS(k)) || (at[k] == QUEUED && is_dead)) ->
        late[k] = (answer[k] == 0 && at[k] != QUEUED -> at[k] : 0);
        tell(k, (is_dead -> MAYBE : WITHOUT_ANSWER))
    :: where[k] && WORKER(where[k]) == w && at[k] == QUEUED && !is_dead ->
        at[k] = AFTER_LOST_REPLY(k); where[k] = (at[k] == QUEUED -> where[k] : w + 3);
        rung[k] = rung[k] && at[k] == QUEUED
    :: else
    fi
}
inline cut_release(c, w)
{
    if
    :: named[c] && WORKER(named[c]) == w && release[c] == SENT -> release[c] = LOST
    :: named[c] && WORKER(named[c]) == w && release[c] == RAN -> release[c] = OVER; named[c] = 0; handed[c] = 0
    :: else
    fi
}
inline cut_all(w, is_dead)
{
    cut(0, w, is_dead); cut(1, w, is_dead); cut(2, w, is_dead);
    cut_release(0, w); cut_release(1, w); cut_release(2, w); new_desk(w)
}
inline link_breaks(w) { d_step { desk[w] < 3 && faults < FAULTS -> faults++; cut_all(w, false) } }
inline is_killed(w) { d_step { desk[w] < 3 && faults < FAULTS -> faults++; cut_all(w, true) } }
inline redis_dies()
{
    d_step { desk[0] < 3 && desk[1] < 3 && faults < FAULTS -> faults++; cut_all(0, false); cut_all(1, false) }
}

inline late_runs(k)
{
    d_step {
        late[k] && at[k] == OUT ->
        if
        :: late[k] == ASKING -> acquire_script(k)
        :: late[k] == CLAIMING -> claim_script(k)
        :: late[k] == LEAVING || late[k] == RETURNING -> leave_script(k, (late[k] == RETURNING))
        :: else -> again_script(k)
        fi;
        late[k] = 0; answer[k] = 0; where[k] = 0; given = 0
    }
}
inline late_never_runs(k) { d_step { late[k] && at[k] == OUT -> late[k] = 0; where[k] = 0 } }

init {
    do
    :: asks(0, 0) :: asks(1, 0) :: asks(1, 1) :: asks(2, 0) :: asks(2, 1)
    EACH(ask_runs) EACH(ask_told) :: goes(0) :: goes(1) EACH(hears) EACH(claim_runs) EACH(claim_told)
    EACH(times_out) EACH(leaves) EACH(leave_runs) EACH(leave_told) EACH(again_runs) EACH(again_told)
    :: releases(2, 0)
#if FAULTS == 0
    :: releases(0, 0) :: releases(1, 0)
#endif
    EACH(release_runs) EACH(release_never_runs) EACH(release_told)
    :: offer_ends() :: place_ends(0) :: place_ends(1)
    EACH(hold_ends) EACH(nobodys_hold_ends)
    :: is_silent(1) :: is_silent(2)
    EACH(is_sent_away) EACH(is_asked_for)
#ifndef ONLY
#define ONLY 15
#endif
#if ONLY & 1
    :: desk_closes(0) :: desk_closes(1)
#endif
#if ONLY & 2
    :: link_breaks(0) :: link_breaks(1)
#endif
#if ONLY & 4
    :: is_killed(0) :: is_killed(1)
#endif
#if ONLY & 8
    :: redis_dies()
#endif
    EACH(late_runs) EACH(late_never_runs)
    :: timeout -> /* the lease has gone on, and nobody waits */
        assert(hold == FREE && !in_line[0] && !in_line[1] && !ACTS(0) && !ACTS(1) && !ACTS(2));
        break
    od
}

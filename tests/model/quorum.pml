/* quorum.pml - fencing tokens of NODES stores that know nothing of each other. See tests/model/README.md.
 *
 * An attempt sends `lock` to all nodes, proposes the highest number that a majority answered, and one, sends `commit`
 * to those that answered, and has its token when a majority voted. A node that may have lost something is in
 * quarantine: it answers neither until a healer has sent `barrier` to a majority of nodes, none of them in quarantine,
 * and `heal` to it with the highest number that they answered. */

#ifndef NODES
#define NODES 3
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef WIPES
#define WIPES 1
#endif
#ifndef HEALERS
#define HEALERS 1
#endif
#define MAJORITY (NODES / 2 + 1)
#define FAULTS (NODES / 2)
#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3) + HAS(set, 4))
#define LARGER(a, b) ((a) > (b) -> (a) : (b))
#if NODES == 3
#define EACH_NODE(step, x) :: step(x, 0) :: step(x, 1) :: step(x, 2)
#else
#define EACH_NODE(step, x) :: step(x, 0) :: step(x, 1) :: step(x, 2) :: step(x, 3) :: step(x, 4)
#endif

/* -- safeguards, and what is left without each */
#ifdef MUTANT_VOTE_WITHOUT_LOCK
#define IS_OWN(a, n) true
#elif defined(MUTANT_VOTES_BY_LEASE_ID)
#define IS_OWN(a, n) (owner[n] != 0)
#else
#define IS_OWN(a, n) (owner[n] == (a) + 1)
#endif
#ifdef WITHOUT_SPARE_CHECKS
#define IS_HIGHER(a, n) true
#else
#define IS_HIGHER(a, n) (token[a] > number[n])
#endif
#ifdef MUTANT_COMMIT_TO_LATE_ONES
#define TAKES_LOCK(a) (state[a] == LOCKING || state[a] == COMMITTING)
#else
#define TAKES_LOCK(a) (state[a] == LOCKING)
#endif
#ifdef MUTANT_BARRIER_SPARES_LOCKS
#define END_LOCK(n) skip
#else
#define END_LOCK(n) owner[n] = 0
#endif
#ifdef MUTANT_VOTES_OF_A_MINORITY
#define VOTES (MAJORITY - 1)
#else
#define VOTES MAJORITY
#endif
/* -- bounds: of five nodes, no answers beyond a majority, no healer that gives up while it could go on, and, since 2, 3
 * and 4 are never wiped and so are alike, the order in which attempt 0 locks these */
#ifdef NO_MORE_THAN_A_MAJORITY
#define HAS_ENOUGH(set, least) (COUNT(set) >= (least))
#define IS_IN_ORDER(a, n) (a != 0 || n < 3 || HAS(locks[0], n - 1))
#define CAN_GO_ON(h) (HAS(ill, healed[h] - 1) && quarantine[healed[h] - 1] == healed_at[h])
#else
#define HAS_ENOUGH(set, least) false
#define IS_IN_ORDER(a, n) true
#define CAN_GO_ON(h) false
#endif
#ifdef MUTANT_NO_QUARANTINE
#define IN_QUARANTINE 0
#else
#define IN_QUARANTINE 1
#endif
#ifdef MUTANT_HEALED_BY_THE_ILL
#define MAY_HEAL(h, n) (n != healed[h] - 1)
#else
#define MAY_HEAL(h, n) !HAS(ill, n)
#endif
#ifdef MUTANT_HEALED_BY_A_MINORITY
#define HEALTHY (MAJORITY - 1)
#else
#define HEALTHY MAJORITY
#endif
#ifdef MUTANT_HEAL_OF_AN_EARLIER_QUARANTINE
#define IS_THAT_QUARANTINE(h) HAS(ill, healed[h] - 1)
#else
#define IS_THAT_QUARANTINE(h) (HAS(ill, healed[h] - 1) && quarantine[healed[h] - 1] == healed_at[h])
#endif

/* nodes; owner: an attempt and one */
byte number[NODES]; byte owner[NODES]; byte quarantine[NODES]; byte ill; byte wipes;
/* attempts */
#define NOT_BEGUN 0
#define LOCKING 1
#define COMMITTING 2
#define GRANTED 3 /* one that gives up is one that never gets there: what it sent may arrive all the same */
byte state[ATTEMPTS]; byte token[ATTEMPTS]; byte locks[ATTEMPTS]; byte votes[ATTEMPTS];
/* what was granted before the attempt began */
byte before[ATTEMPTS]; byte highest;
/* healers; healed: a node and one */
byte healed[HEALERS]; byte healed_at[HEALERS]; byte copied[HEALERS]; byte barriers[HEALERS];
#ifdef MUTANT_READ_BEFORE_THE_BARRIER
byte reads[HEALERS];
#define IS_READ(h, n) HAS(reads[h], n)
#else
#define IS_READ(h, n) true
#endif

/* -- an attempt */
inline begins(a)
{
    d_step {
        state[a] == NOT_BEGUN && (a == 0 || state[(a + ATTEMPTS - 1) % ATTEMPTS] != NOT_BEGUN) ->
        state[a] = LOCKING; before[a] = highest
    }
}

/* `lock` arrives, and so does its answer; what is answered too late is the same as never. The lease of another one may
 * be over at any time. */
inline locks_at(a, n)
{
    d_step {
        TAKES_LOCK(a) && !HAS(locks[a], n) && !HAS(ill, n) && !HAS_ENOUGH(locks[a], MAJORITY) && IS_IN_ORDER(a, n) ->
        owner[n] = a + 1; locks[a] = locks[a] | BIT(n);
        if
        :: state[a] == LOCKING -> token[a] = LARGER(token[a], number[n])
        :: else
        fi
    }
}

inline proposes(a)
{
    d_step {
        state[a] == LOCKING && COUNT(locks[a]) >= MAJORITY -> state[a] = COMMITTING; token[a] = token[a] + 1
    }
}

/* `commit` arrives, at any time. */
inline votes_at(a, n)
{
    d_step {
        state[a] >= COMMITTING && token[a] != 0 && HAS(locks[a], n) && !HAS(votes[a], n) && !HAS(ill, n) &&
        IS_OWN(a, n) && IS_HIGHER(a, n) ->
        number[n] = token[a]; votes[a] = votes[a] | BIT(n)
    }
}

/* A look, or a renewal, brings a number along that somebody has voted for, however late. */
inline raises_at(a, n)
{
    d_step {
        votes[a] != 0 && !HAS(ill, n) && number[n] < token[a] -> number[n] = token[a]
    }
}
#ifdef RAISES
#define EACH_RAISES(a) EACH_NODE(raises_at, a)
#else
#define EACH_RAISES(a)
#endif

#define IS_TWICE(a, b) \
    ((b) < ATTEMPTS && (b) != (a) && state[(b) % ATTEMPTS] == GRANTED && token[(b) % ATTEMPTS] == token[a])

inline is_granted(a)
{
    d_step {
        state[a] == COMMITTING && COUNT(votes[a]) >= VOTES ->
        state[a] = GRANTED;
        assert(token[a] > before[a]);
        assert(!IS_TWICE(a, 0) && !IS_TWICE(a, 1) && !IS_TWICE(a, 2));
        highest = LARGER(highest, token[a]);
#ifdef REACH_GRANTED_AFTER_HEALING
        assert(!(wipes == WIPES && ill == 0 && a == ATTEMPTS - 1 && before[a] != 0))
#endif
    }
}

#define ATTEMPT(a) \
    :: begins(a) EACH_NODE(locks_at, a) :: proposes(a) EACH_NODE(votes_at, a) EACH_RAISES(a) :: is_granted(a)

/* -- a node loses everything */
inline is_wiped(any, n)
{
    d_step {
        wipes < WIPES && (COUNT(ill) < FAULTS || HAS(ill, n)) && n <= wipes ->
        wipes++; number[n] = 0; owner[n] = 0;
        quarantine[n]++; ill = (ill & ~BIT(n)) | (IN_QUARANTINE << n)
    }
}

/* -- a healer, any part of whose work may arrive late, or never */
inline begins_to_heal(h, n)
{
    d_step {
        healed[h] == 0 && HAS(ill, n) ->
        healed[h] = n + 1; healed_at[h] = quarantine[n]
    }
}

#ifdef MUTANT_READ_BEFORE_THE_BARRIER
inline reads_at(h, n)
{
    d_step {
        healed[h] != 0 && !HAS(reads[h], n) && MAY_HEAL(h, n) ->
        reads[h] = reads[h] | BIT(n); copied[h] = LARGER(copied[h], number[n])
    }
}
#endif

inline bars_at(h, n)
{
    d_step {
        healed[h] != 0 && !HAS(barriers[h], n) && MAY_HEAL(h, n) && IS_READ(h, n) && !HAS_ENOUGH(barriers[h], HEALTHY) ->
        END_LOCK(n); barriers[h] = barriers[h] | BIT(n);
#ifndef MUTANT_READ_BEFORE_THE_BARRIER
        copied[h] = LARGER(copied[h], number[n])
#endif
    }
}

inline forgets(h)
{
    healed[h] = 0; healed_at[h] = 0; copied[h] = 0; barriers[h] = 0;
#ifdef MUTANT_READ_BEFORE_THE_BARRIER
    reads[h] = 0
#endif
}

inline heals(h)
{
    d_step {
        healed[h] != 0 && COUNT(barriers[h]) >= HEALTHY && IS_THAT_QUARANTINE(h) ->
        number[healed[h] - 1] = copied[h];
        ill = ill & ~BIT(healed[h] - 1);
        forgets(h)
    }
}

inline gives_up_healing(h)
{
    d_step {
        healed[h] != 0 && !CAN_GO_ON(h) -> forgets(h)
    }
}

#define HEALER(h) \
    EACH_NODE(begins_to_heal, h) EACH_NODE(bars_at, h) :: heals(h) :: gives_up_healing(h)

init {
end_of_all:
    do
    ATTEMPT(0)
#if ATTEMPTS > 1
    ATTEMPT(1)
#endif
#if ATTEMPTS > 2
    ATTEMPT(2)
#endif
#if WIPES > 0
    EACH_NODE(is_wiped, 0)
    HEALER(0)
#if HEALERS > 1
    HEALER(1)
#endif
#ifdef MUTANT_READ_BEFORE_THE_BARRIER
    EACH_NODE(reads_at, 0)
#endif
#endif
    od
}

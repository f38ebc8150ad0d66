/* store.h - where leases and resources live; what is behind it the services do not know.
 *
 * Today one Redis. A Sentinel, a quorum of nodes or a Redis Cluster will stand behind the
 * same calls: a call names its script and its keys, never a connection.
 *
 * A store belongs to one loop (thread). All calls made in one turn of the loop leave in one write, in their
 * order; those that may be batched, one behind the other, as one command. Nothing waits for a batch to fill.
 *
 * EVERY call ends exactly once, always later (never from inside store_run), in one of three ways:
 *   STORE_DONE      the script ran to its end and its reply is there; what it wrote is as durable as the
 *                   store's settings promise
 *   STORE_NOT_SENT  it certainly did not happen and never will
 *   STORE_UNKNOWN   it may have happened, may still happen, or may not: nobody can say
 * The store never repeats a call whose outcome it does not know. */
#ifndef PAWL_SHARED_STORE_H
#define PAWL_SHARED_STORE_H

#include <stdint.h>

#include "shared/loop/loop.h"
#include "shared/text/bytes.h"

struct store;

/* All Lua scripts as one library of functions, embedded by the build (build/gen/scripts.c). Library and
 * functions have the hash of the text in their names, so two releases can use one Redis. */
struct store_library {
    const char *name; /* "pawl_HASH" */
    const char *text; /* as FUNCTION LOAD takes it; its first two lines are a library's alone */
    size_t len;
    const char *batch; /* the function that runs several (shared/member/scripts/lib/batch.lua); NULL: none */
};

/* One of its functions. */
struct store_script {
    const char *name;     /* of its file, without ".lua" */
    const char *function; /* "HASH_NAME" */
    /* Its first line when it is sent as a script of its own: its flags. "": it has none. */
    const char *head;
    const struct store_library *library;
    bool batch; /* may run beside others in one call */
    bool twice; /* it is there a second time as "HASH_NAME_ro", which may not write */
    bool reads; /* it shows something, perhaps much: no more at once than Redis answers soon */
};

enum store_outcome { STORE_DONE, STORE_NOT_SENT, STORE_UNKNOWN };

/* Why Redis refuses what it is asked: one row for each word that such an error begins with. */
struct store_refusal {
    const char *code;        /* "OOM" */
    const char *check;       /* the failing check in one word, for /readyz */
    const char *what, *todo; /* for people: what is the case; what to do now. NULL: its text says it */
    enum store_refused {
        STORE_REFUSED_BEFORE_START, /* nothing of the script ran, if the error is not from inside it */
        STORE_REFUSED_FIRST_WRITE   /* nothing was written */
    } when;
};
#define STORE_FULL "store-full" /* its check when there is no memory left for what was asked */
#define STORE_NOT_KEPT "store-not-kept"

/* A list of integers, texts, nils and lists; one value is a list of one. Valid during the continuation. */
struct store_reply;
size_t store_reply_count(const struct store_reply *reply);
/* Element i as text; an integer element as its decimal text is NOT given: then, for nil, and beyond the
 * end: {NULL, 0}. */
struct bytes store_reply_text(const struct store_reply *reply, size_t i);
/* Element i, an integer, or a text that is a decimal of at most 18 digits, in the one way to write it; else
 * INT64_MIN. */
int64_t store_reply_integer(const struct store_reply *reply, size_t i);
/* Element i as a list of its own, or NULL. */
const struct store_reply *store_reply_list(const struct store_reply *reply, size_t i);
/* Whether the first element is this word: what C switches on. */
bool store_reply_is(const struct store_reply *reply, const char *word);

struct store_call;
/* The end of a call. Its return value is that of the request's step. */
typedef enum step store_done_fn(struct store_call *call, enum store_outcome outcome,
                                const struct store_reply *reply);

struct store_call {
    /* Set by the caller before store_run(). */
    store_done_fn *done;
    bool at_once;    /* does not wait for the in-sync set: store_keep() */
    bool is_kept;    /* of store_ask(): waits for it, as scripts do */
    bool is_heavy;   /* the store's own: it reads, perhaps much, or carries much */
    uint8_t numbers; /* how many of the last arguments are whole numbers, and are packed as such */
    /* The store's own, from store_run() until done is called. */
    STAILQ_ENTRY(store_call) next;
    const struct store_script *script;
    const struct bytes *argv;
    unsigned key_count, arg_count;
    uint64_t began_us, deadline_ms, place, number; /* number: in the order of store_run() */
    uint64_t held_us;                              /* since when its answer waits for the in-sync set */
    unsigned state, batch;                         /* batch: of the first of a batch: how many calls it has */
    struct redisReply *reply; /* while it waits for the in-sync set; place is an offset of the stream then */
    /* Of Redis' answer, if that was such a refusal, also when it could then be answered without a write; else
     * NULL: good when done is called. */
    const struct store_refusal *refusal;
};

/* Whether it was refused, and certainly not done, because Redis is full. */
bool store_call_was_too_much(const struct store_call *call);
/* Whether it was not sent, because so much else was asked: only of what reads. */
bool store_call_was_overload(const struct store_call *call);
/* Whether it was not sent, because its answer could not have been kept. */
bool store_call_was_not_kept(const struct store_call *call);

enum { STORE_ARGS_MAX = 128 };

/* Run a script. argv holds key_count keys, then the arguments, arg_count in all, at most STORE_ARGS_MAX; argv
 * and the bytes that it points to are the caller's and must live until done is called (a function that Redis
 * does not have is loaded, and the call sent once more, unless a later one with a key of it has left). The
 * deadline is the store's timeout, from now; of what is heavy, and may wait half as long before, then. */
void store_run(struct store *store, struct store_call *call, const struct store_script *script,
               unsigned key_count, unsigned arg_count, const struct bytes *argv);

/* Ask one command of Redis that changes nothing, by its words; what Redis answers is never UNKNOWN. It costs
 * Redis a fraction of a script. The words must live as argv above. */
void store_ask(struct store *store, struct store_call *call, unsigned count, const struct bytes *words);

/* Who opens a store embeds this, and finds itself with container_of. */
struct store_owner {
    /* A call has ended that may have reached Redis. */
    void (*answered)(const struct store_owner *owner, uint64_t took_us);
    /* Its answer has waited so long for the in-sync set. NULL: nobody asks. */
    void (*kept)(const struct store_owner *owner, uint64_t waited_us);
};

/* Paths of the caller's, read anew for each connection. Of rediss://: whom its certificate must come from
 * (NULL: whom the system trusts), and a certificate to show with its key; and the password (what was read
 * before counts while it cannot be read). Each may be NULL. */
struct store_files {
    const char *ca, *cert, *key, *password;
    const char *sentinel_password; /* of sentinel://; password is that of the nodes */
};

struct store_finder;

struct store_options {
    /* redis[s]://[user[:password]@]host[:port][/db], unix:///path[?db=N],
     * sentinel[s]://[user[:password]@]host[:port][,host[:port]...]/name */
    const char *url;
    struct store_files files;
    const char *password;                /* overrides the one in the url; NULL: none */
    unsigned timeout_ms;                 /* for each call, and for each step of connecting */
    bool allow_unsafe;                   /* do not look at the settings that can lose locks */
    const struct store_library *library; /* whose functions are run */
    bool sends_whole; /* never load it: each call is an EVAL of its text (the command line's own calls) */
    const struct store_owner *owner; /* outlives the store; NULL: nobody counts */
    /* Of sentinel://: store_finder() of a store that is closed later, of this thread or another; NULL: the
     * store finds the primary itself. A subscriber needs one. */
    struct store_finder *finder;
};

/* Begins to connect; never fails (a bad url was refused by store_url_check). options->library must
 * outlive the store; the texts are copied. While no link stands, calls end NOT_SENT. */
struct store *store_open(struct loop *loop, const struct store_options *options);
/* Ends all calls still open: those that were never handed to the kernel NOT_SENT, the others UNKNOWN.
 * Calls that their continuations make meanwhile end NOT_SENT too. Not from inside a continuation. */
void store_close(struct store *store);

enum { STORE_NODES_MAX = 5, STORE_NODES_SEEN = 16, STORE_NODE_MAX = 264 };

/* -- the primary that sentinels watch: links and subscribers go where it is, and leave a node that is not. */
/* NULL: the url is not of sentinel://. */
struct store_finder *store_finder(const struct store *store);
struct store_election {
    unsigned sentinels, heard; /* how many there are, how many of them are subscribed to */
    unsigned failovers;        /* how often another node has become primary */
    char host[256];            /* the last one that was found; "": none */
    unsigned port;
};
struct store_sentinel {
    char host[256], names[STORE_NODE_MAX]; /* names: the primary, as it says, "host:port"; "": it has not */
    unsigned port, quorum, known;          /* how many must agree, of how many, as it says; 0: not known */
};
/* Of a store that finds its primary itself; how many there are. */
enum { STORE_SENTINELS_MAX = 9 };
unsigned store_sentinels(const struct store *store, struct store_sentinel all[STORE_SENTINELS_MAX]);
/* Whether the url is of sentinel://. */
bool store_election(const struct store *store, struct store_election *now);

/* Has a sentinel make another node the primary (SENTINEL FAILOVER), of its own choice; one after the other is
 * asked. Of a store of sentinel://, on its thread. What came of it; why: what was said last. */
enum store_promotion {
    STORE_PROMOTION_NONE,
    STORE_PROMOTION_ASKED,
    STORE_PROMOTION_BEGUN, /* be it for somebody else; or perhaps: one was asked, and its answer is lost */
    STORE_PROMOTION_REFUSED
};
enum { STORE_PROMOTION_WHY_MAX = 448 };
void store_promote(struct store *store);
enum store_promotion store_promotion(struct store *store, char why[STORE_PROMOTION_WHY_MAX]);

/* NULL, or what is wrong with the files, or that they are given and of no use with this url (a static
 * sentence). */
const char *store_files_check(const char *url, const struct store_files *files);
/* NULL, or what is wrong with the url (a static sentence). has_password: whether it has, or may have, one. */
const char *store_url_check(const char *url, bool *has_password);
enum { STORE_LIST_MAX = 7, STORE_URL_SIZE = 1024 };
/* The same of a list of URLs with commas between them: one store, or the nodes of a quorum; how many. */
const char *store_list_check(const char *list, unsigned *count, bool *has_password);
/* Takes the first URL off such a list. false: it is too long, or the list is over. */
bool store_url_take(struct bytes *list, char url[STORE_URL_SIZE]);

/* -- the link: the one connection that calls leave on. A link stands when its greeting is over, and then
 * calls are taken; it ends when the connection breaks, when a call is over its deadline, and when Redis
 * answers a script with READONLY, MASTERDOWN or LOADING: then it is not any more what it was when it was
 * greeted. What follows is another link, with a greeting of its own. */
bool store_link_stands(const struct store *store);
/* When the link that stands came to stand (loop_now_us()); else the last one; 0: none ever did. */
uint64_t store_link_since_us(const struct store *store);
/* What the network takes of a call on the link that stands, at the least; 0: under 1 ms, or not known. */
uint64_t store_network_us(const struct store *store);
/* How many links have stood since store_open(). Two calls made under one number left on one link, if any. */
uint64_t store_link_number(const struct store *store);
/* The link, if it stands, is ended, and made anew: its address may lead elsewhere by now. Not from inside a
 * continuation. */
void store_reconnect(struct store *store);
/* The run_id of the Redis at the other end of the link that stands, as its greeting has read it (INFO
 * server): 40 hexadecimal digits, another one for each start of a Redis. "" while no link stands. To be
 * copied: any call on the store may end the link, and so may any turn of the loop. */
enum { STORE_RUN_ID_LEN = 40 };
const char *store_run_id(const struct store *store);

/* NULL when calls are being taken, else the failing check in one word or two, for /readyz:
 * "store-connecting", "store-auth", "store-loading", "store-busy", "store-refused", one of store_misled(), or
 * "store-unsafe" (calls are taken all the same); with sentinel:// "store-electing" or "store-unsafe".
 * detail: a sentence for people; never NULL; good until the loop turns. */
const char *store_not_ready(const struct store *store, const char **detail);
/* NULL, or what to do when the address leads to what can be no store, as the last greeting found: a replica
 * ("store-replica"), a Sentinel ("store-sentinel"), a node of a Cluster ("store-cluster"); store_not_ready()
 * says which. No link to one of them ever stands. A static sentence. */
const char *store_misled(const struct store *store);
/* NULL, or the setting that can lose locks ("appendfsync is everysec, must be always"), as last read (at
 * start and every 10 s). New grants must not be made while it is not NULL. Always NULL with allow_unsafe. */
const char *store_unsafe(const struct store *store);
/* A setting that loses nothing and is better another one ("repl-backlog-ttl is 3600"); "": none. */
const char *store_advice(const struct store *store);
/* NULL, or a sentence: why each call carries its whole text, since Redis has not loaded the library. */
const char *store_not_loaded(const struct store *store);
/* Whether that is only the first rewrite of the append-only file: over soon, looked at every 100 ms. */
bool store_unsafe_may_pass(const struct store *store);
/* Whether the settings have been read since store_open(); with allow_unsafe, whether a link has stood. */
bool store_checked(const struct store *store);

/* -- the in-sync set: the nodes that may take over. While it has more than one, a call that is not at_once is
 * DONE only when every node of it has acknowledged all that Redis had done when it answered, of the stream
 * that the link was greeted with; also one that only reads, since a Redis that nobody copies any more may
 * have been deposed. Over its deadline it is UNKNOWN: it may be kept yet. What cannot be kept is NOT_SENT
 * (store_call_was_not_kept()). */

/* As the last look at Redis has shown it; a look comes at least each second. */
struct store_node {
    char name[STORE_NODE_MAX]; /* "host:port", as Redis names it */
    const char *why;           /* NULL: in step; "absent", "not-online", "silent" (does not acknowledge) */
    const char *says;          /* NULL, or what is wrong with it, as it says itself: store_node_says() */
    uint64_t since_ms, offset; /* since_ms: of why, by loop_now_ms(); offset: what it has acknowledged */
    unsigned lag_s;            /* since it last said anything */
    bool heard, was_in;        /* heard: the last look named it; was_in: of the set (the store's own) */
};

/* How often replicas must have connected to Redis (sync_full and sync_partial_ok of INFO) for an
 * acknowledgement to count: what one acknowledges after a full resync is not on its disk before it was
 * asked again. STORE_SYNCS_NONE: they were not asked yet. */
enum { STORE_SYNCS_ANY = -1, STORE_SYNCS_NONE = -2 };

/* The set, of 1 to STORE_NODES_MAX nodes, from now on; the first is the one that the store is connected
 * to. The last `joins` of them are waited for and may not take over yet: they are no copies. With fewer than
 * so many copies, that one counted, nothing is answered. One node and copies 1: nothing waits, and with
 * STORE_SYNCS_ANY Redis is asked nothing. What waits already waits for this set. */
void store_keep(struct store *store, const struct bytes *nodes, unsigned count, unsigned joins,
                unsigned copies, int64_t syncs);
/* Whether answers wait for other nodes. */
bool store_keeps(const struct store *store);
/* Looks at the nodes now, unless it is doing so. */
void store_keep_look(struct store *store);
/* How often they have, as the last look has shown it, and when that look began (loop_now_us()); below 0:
 * none has. */
int64_t store_keep_syncs(const struct store *store, uint64_t *began_us);
/* NULL, or a sentence: why no answer can be kept now; good until the loop turns. */
const char *store_not_kept(const struct store *store);
/* The nodes of the set, in their order, and behind them others that copy the same Redis. NULL: no set was
 * named. */
const struct store_node *store_nodes(const struct store *store, unsigned *count, unsigned *in_set);

/* A node that was in the set is not among them any more while it is away. */
void store_node_forget(struct store *store, const char *name);
/* For people: what node i, of store_nodes(), has said of itself; a static text, or NULL. */
void store_node_says(struct store *store, unsigned i, const char *why);
/* The address that the store is connected to, as a name of that node. */
void store_node_name(const struct store *store, char name[STORE_NODE_MAX]);
/* This machine's own address on that connection; "": there is none, or it is a local socket. */
enum { STORE_ADDRESS_SIZE = 46 };
void store_own_address(const struct store *store, char text[STORE_ADDRESS_SIZE]);

/* Another node, asked of itself, on a connection of its own, with user, password and files of the store. */
struct store_probe;
struct store_probe_answer {
    /* NULL: it is a replica in step with its primary whose disk has what it acknowledges. "asking",
     * "unreachable", "not-a-replica", "link-down", "priority-0", "no-aof", "aof-failed", "rewriting" (after a
     * full resync nothing is on its disk before that is over), "unsafe", "announces-another" (address) */
    const char *why;
    uint64_t since_ms, asked_us; /* since_ms: of why; asked_us: when what it answered was asked */
    char run_id[STORE_RUN_ID_LEN + 1];
    const char *said; /* what the script of store_probe_hear() has returned; NULL: nothing, or not yet */
    char before[STORE_RUN_ID_LEN + 1]; /* the stream that it was promoted from */
};
struct store_probe *store_probe_open(const struct store *store, const char *node);
/* Not from inside a continuation. */
void store_probe_close(struct store_probe *probe);
/* From the next question on this script, which reads and returns a text, is asked, too. The bytes must live
 * as long as the probe. */
void store_probe_hear(struct store_probe *probe, struct bytes script);
/* Unless it is being asked. */
void store_probe_ask(struct store_probe *probe);
const struct store_probe_answer *store_probe_answer(const struct store_probe *probe);
/* For commands of the asker's own (store_ask()), and its settings (store_unsafe()). */
struct store *store_probe_store(struct store_probe *probe);
/* The value of a line "name:value" of INFO; {NULL, 0} when there is none. */
struct bytes reply_info_field(struct bytes info, const char *name);

/* -- messages (Redis Pub/Sub), on a connection of their own: a subscriber. It connects, names itself and
 * comes back by itself, as the store's link does, and asks for a sign of life every second: a link that says
 * nothing for the store's timeout is ended. What was published between deaf() and listens() is lost. */
struct store_subscriber;
struct store_subscriber_owner { /* the owner embeds it and finds itself with container_of */
    /* A message, in the order in which Redis sent them on this link. Both valid during the call only. */
    void (*heard)(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message);
    /* Redis has confirmed the subscription, also again on a new link: what is published from then on is
     * heard, until deaf(). Either may be NULL. */
    void (*listens)(struct store_subscriber_owner *owner, struct bytes channel);
    /* The link has ended: nothing is heard any more. Once for each link that had confirmed a subscription. */
    void (*deaf)(struct store_subscriber_owner *owner);
};

/* Never fails; options as for store_open(), of which it takes url, files, password, timeout_ms and finder. */
struct store_subscriber *store_subscriber_open(struct loop *loop, const struct store_options *options,
                                               struct store_subscriber_owner *owner);
/* Why it ended last, for people; "": it has not, or listens again. */
const char *store_subscriber_why(const struct store_subscriber *subscriber);
/* No callback comes any more. Not from inside one. */
void store_subscriber_close(struct store_subscriber *subscriber);
/* Counted: as many unsubscribes as subscribes end it, and only the first one leads to listens(). The channel
 * is copied. A channel that ends in '*' is a pattern (PSUBSCRIBE); heard() then has the channel that was
 * published to. */
void store_subscriber_subscribe(struct store_subscriber *subscriber, struct bytes channel);
void store_subscriber_unsubscribe(struct store_subscriber *subscriber, struct bytes channel);
/* Ends its link with the turn, and connects anew. */
void store_subscriber_leave(struct store_subscriber *subscriber);
/* false: it stands at another Redis than the store's link, to which the address has led before: it leaves at
 * the end of the turn, and connects anew. */
bool store_subscriber_follow(struct store_subscriber *subscriber, const struct store *store);

/* For metrics; all since store_open(). in_flight: taken and not yet ended, now. */
struct store_counts {
    uint64_t calls, done, not_sent, unknown, reconnects, not_found; /* not_found: functions */
    unsigned in_flight;
};
struct store_counts store_counts(const struct store *store);

#endif

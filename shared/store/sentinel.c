/* sentinel.c - finds the primary that sentinels watch.
 *
 *   search_begin     the primary is not known, or a connection to it has ended: all are asked, every 100 ms
 *   peer_ask         one question on a connection of its own: of a sentinel, who is primary, and which nodes
 *                    there are; of a node, its role
 *   sentinel_names   a sentinel has said who is primary, in an answer or as +switch-master
 *   node_answers     a node has said whether it is a master
 *   decide           of the nodes that say so, the one that most sentinels name is the primary; one that none
 *                    names and that was not promoted from the primary of before is only taken after 2 s
 *   promote          by an operator's wish: one sentinel after the other is asked to begin a failover
 *
 * What a sentinel says is a hint: it comes late (after the election), may be of an hour ago, and some
 * sentinel may say otherwise. Only a node that calls itself a master is taken, also one that no sentinel
 * names; a link to it asks again (handshake.c), and whether it is to be served is decided by the admission.
 * Sentinels do not have to be there while the primary answers.
 *
 * A finder belongs to one loop; links and subscribers of all threads read what it has found. */
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"
#include "shared/text/memory.h"

enum {
    TICK_MS = 100,
    SENTINELS_AGAIN_MS = 500, /* while the primary is not known */
    SENTINELS_REFRESH_MS = 10 * 1000,
    STRANGER_MS = 2000, /* into a search */
    NODES_MAX = 16,
    ANSWER_MAX = 1024 * 1024, /* of a sentinel: some hundred bytes for each node */
    SAID_MAX = 240,
    NOBODY = -1
};

/* A sentinel or a node, and the question that it is asked. */
struct peer {
    struct store_finder *finder;
    bool is_sentinel;
    /* -- the question; there is none without a context */
    struct dial dial;
    bool stands, is_refused; /* is_refused: AUTH, or the name */
    unsigned left;           /* replies to come */
    uint64_t deadline_ms;
    /* -- a node */
    bool says_master;                  /* in answer to the last question */
    char stream[STORE_RUN_ID_LEN + 1]; /* of the last one that answered so */
    char before[STORE_RUN_ID_LEN + 1]; /* the one that it was promoted from */
    uint64_t named_ms;
    /* -- a sentinel */
    struct store_subscriber_owner owner;
    struct store_subscriber *subscriber; /* hears +switch-master */
    int names;                           /* the node that it calls primary; NOBODY */
    unsigned quorum, known;              /* as it says: how many must agree, of how many; 0: not known */
    int lags;                            /* it named this one when another was found; NOBODY */
    bool promotes;                       /* the question is whether it begins a failover */
};

struct store_finder {
    struct loop *loop;
    struct loop_timer timer;
    struct store_url url; /* without a host, and without a password */
    struct store_files files;
    char *password; /* of the nodes, as it was at first; NULL: none */
    unsigned timeout_ms;
    uint64_t sentinels_due_ms, since_ms; /* since_ms: of the search */
    char stream[STORE_RUN_ID_LEN + 1];   /* of the one that was found last */
    struct peer sentinels[SENTINELS_MAX], nodes[NODES_MAX];
    int primary; /* the node that was found last; NOBODY */
    enum store_promotion promotion;
    unsigned promoter; /* the sentinel that is to begin a failover */
    bool was_asked;    /* that one, to do so */
    bool may_promote;  /* one was asked, and its answer was lost */
    /* -- for other threads; under the lock: known, place, said */
    pthread_mutex_t lock;
    bool known;
    struct store_place place;
    char said[SAID_MAX]; /* the last of what speaks against a primary */
    atomic_uint version; /* of the place; 0: none was ever found */
    atomic_uint heard, node_count;
    atomic_bool doubted;
};

static void peer_io(struct loop_watch *watch, int events);
static void decide(struct store_finder *finder, bool is_round_over);

static void note(const struct peer *peer, const char *what, ...) __attribute__((format(printf, 2, 3)));
static void note(const struct peer *peer, const char *what, ...)
{
    struct store_finder *finder = peer->finder;
    char text[160];
    va_list args;

    va_start(args, what);
    vsnprintf(text, sizeof(text), what, args);
    va_end(args);
    pthread_mutex_lock(&finder->lock);
    snprintf(finder->said, sizeof(finder->said), "%s at %.60s port %u %s",
             peer->is_sentinel ? "sentinel" : "node", peer->dial.url.host, peer->dial.url.port, text);
    pthread_mutex_unlock(&finder->lock);
}

/* -- one question */

static struct peer peer_at(struct store_finder *finder, const struct store_place *place, bool is_sentinel)
{
    struct peer peer = {.finder = finder,
                        .is_sentinel = is_sentinel,
                        .dial = {.loop = finder->loop, .url = finder->url, .files = finder->files},
                        .names = NOBODY,
                        .lags = NOBODY};

    memcpy(peer.dial.url.host, place->host, sizeof(place->host));
    peer.dial.url.port = place->port;
    if (is_sentinel) {
        peer.dial.url.user[0] = '\0';
        peer.dial.files.password = finder->files.sentinel_password;
    } else {
        peer.dial.password = dial_password(&peer.dial.url, finder->password);
    }
    return peer;
}

static void peer_end(struct peer *peer)
{
    dial_end(&peer->dial);
    peer->finder->may_promote |= peer->promotes && peer->stands && peer->left > 0;
    peer->promotes = false;
}

static void peer_forget(struct peer *peer)
{
    dial_close(&peer->dial);
    dial_forget_password(peer->dial.password);
}

static void peer_ask(struct peer *peer)
{
    char why[DIAL_WHY_MAX];

    if (dial_is_open(&peer->dial))
        return;
    peer->says_master = peer->stands = peer->is_refused = false;
    if (!dial_begin(&peer->dial, peer_io, why)) {
        peer->promotes = false;
        note(peer, "cannot be reached: %s", why);
        return;
    }
    peer->deadline_ms = loop_now_ms() + peer->finder->timeout_ms;
}

static unsigned peer_questions(const struct peer *peer)
{
    return peer->is_sentinel && !peer->promotes ? 3 : 1;
}

static void peer_put(struct peer *peer)
{
    struct store_wire *wire = &peer->dial.wire;
    const char *name = peer->finder->url.name;

    peer->left = peer_questions(peer);
    if (dial_names_itself(&peer->dial)) {
        peer->left++;
        dial_put_auth(&peer->dial);
    }
    if (!peer->is_sentinel) {
        wire_put_words(wire, "INFO replication");
    } else if (peer->promotes) {
        wire_put_words(wire, "SENTINEL FAILOVER %s", name);
    } else {
        wire_put_words(wire, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", name);
        wire_put_words(wire, "SENTINEL REPLICAS %s", name);
        wire_put_words(wire, "SENTINEL MASTER %s", name);
    }
}

/* -- nodes, and who names them */

/* Who goes on naming the former primary may not have heard of the election yet; and it may be back. */
static unsigned votes(const struct store_finder *finder, int node)
{
    unsigned count = 0;

    for (unsigned i = 0; i < finder->url.sentinel_count; i++)
        count += finder->sentinels[i].names == node && finder->sentinels[i].lags != node;
    return count;
}

/* Where a node that is new goes: NOBODY when there is no room but in place of one that somebody names. */
static int node_room(const struct store_finder *finder)
{
    unsigned count = atomic_load(&finder->node_count);
    int oldest = NOBODY;

    if (count < NODES_MAX)
        return (int)count;
    for (int i = 0; i < NODES_MAX; i++)
        if (i != finder->primary && votes(finder, i) == 0 &&
            (oldest == NOBODY || finder->nodes[i].named_ms < finder->nodes[oldest].named_ms))
            oldest = i;
    return oldest;
}

static int node_find(struct store_finder *finder, struct bytes host, struct bytes port)
{
    struct store_place place = {.port = 0};
    int count = (int)atomic_load(&finder->node_count), at = 0;

    if (!store_place_read(host, port, &place))
        return NOBODY;
    while (at < count && (finder->nodes[at].dial.url.port != place.port ||
                          strcmp(finder->nodes[at].dial.url.host, place.host) != 0))
        at++;
    if (at == count) {
        at = node_room(finder);
        if (at == NOBODY)
            return NOBODY;
        peer_forget(&finder->nodes[at]);
        finder->nodes[at] = peer_at(finder, &place, false);
        atomic_store(&finder->node_count, at < count ? (unsigned)count : (unsigned)at + 1);
        if (!finder->known)
            peer_ask(&finder->nodes[at]);
    }
    finder->nodes[at].named_ms = loop_now_ms();
    return at;
}

static void sentinel_names(struct peer *sentinel, struct bytes host, struct bytes port)
{
    struct store_finder *finder = sentinel->finder;
    int node = node_find(finder, host, port);

    sentinel->names = node;
    sentinel->lags = sentinel->lags == node ? node : NOBODY;
    if (node != NOBODY && finder->known && votes(finder, node) > votes(finder, finder->primary))
        peer_ask(&finder->nodes[node]);
}

/* How it is set to judge, for pawl doctor. */
static void sentinel_judges(struct peer *sentinel, const struct store_reply *list)
{
    for (size_t i = 0; i + 1 < store_reply_count(list); i += 2) {
        int64_t number = bytes_number(store_reply_text(list, i + 1), 9);

        if (bytes_are(store_reply_text(list, i), "quorum"))
            sentinel->quorum = number > 0 ? (unsigned)number : 0;
        else if (bytes_are(store_reply_text(list, i), "num-other-sentinels"))
            sentinel->known = number >= 0 ? (unsigned)number + 1 : 0;
    }
}

static void sentinel_answers(struct peer *sentinel, const redisReply *reply)
{
    const struct store_reply *list = reply_of(reply), *node;

    if (sentinel->promotes) {
        sentinel->finder->promotion = STORE_PROMOTION_BEGUN;
        return;
    }
    if (sentinel->left == 0) {
        sentinel_judges(sentinel, list);
        return;
    }
    if (sentinel->left == 2) {
        sentinel->is_refused = reply->type != REDIS_REPLY_ARRAY;
        if (sentinel->is_refused)
            note(sentinel, "does not know %s", sentinel->finder->url.name);
        else
            sentinel_names(sentinel, store_reply_text(list, 0), store_reply_text(list, 1));
        return;
    }
    for (size_t i = 0; (node = store_reply_list(list, i)) != NULL; i++) {
        struct bytes host = {NULL, 0}, port = {NULL, 0};

        for (size_t k = 0; k + 1 < store_reply_count(node); k += 2)
            if (bytes_are(store_reply_text(node, k), "ip"))
                host = store_reply_text(node, k + 1);
            else if (bytes_are(store_reply_text(node, k), "port"))
                port = store_reply_text(node, k + 1);
        node_find(sentinel->finder, host, port);
    }
}

static void node_answers(struct peer *node, const redisReply *reply)
{
    struct bytes info = store_reply_text(reply_of(reply), 0),
                 stream = reply_info_field(info, "master_replid"),
                 before = reply_info_field(info, "master_replid2");

    node->says_master = bytes_are(reply_info_field(info, "role"), "master");
    snprintf(node->stream, sizeof(node->stream), "%.*s", (int)stream.len, stream.len > 0 ? stream.at : "");
    snprintf(node->before, sizeof(node->before), "%.*s", (int)before.len, before.len > 0 ? before.at : "");
    if (node->says_master)
        decide(node->finder, false);
    else
        note(node, "says that it is no master");
}

/* Of AUTH only the code of the error is kept; a sentinel without a password refuses it, and answers. */
static void peer_take(struct peer *peer, const redisReply *reply)
{
    bool is_auth = --peer->left >= peer_questions(peer);
    struct bytes error = {reply->str, reply->len};

    if (reply->type == REDIS_REPLY_ERROR) {
        if (is_auth)
            error = reply_error_code(error);
        if (!peer->is_refused)
            note(peer, "refuses %s: %.*s", is_auth ? "AUTH" : "to answer",
                 (int)(error.len < 80 ? error.len : 80), error.at);
        peer->is_refused = true;
        if (peer->is_sentinel && bytes_are(reply_error_code(error), "NOAUTH"))
            store_subscriber_leave(peer->subscriber); /* it stands by a password of before */
        if (peer->promotes && bytes_are(reply_error_code(error), "INPROG"))
            peer->finder->promotion = STORE_PROMOTION_BEGUN; /* for somebody else, or for an earlier try */
    } else if (!is_auth) {
        (peer->is_sentinel ? sentinel_answers : node_answers)(peer, reply);
    }
}

/* -- the connection */

static void peer_read(struct peer *peer)
{
    redisContext *context = peer->dial.context;
    void *reply = NULL;

    if (dial_read(&peer->dial) != REDIS_OK || context->reader->len > ANSWER_MAX) {
        note(peer, "does not answer: %s", context->errstr);
        peer_end(peer);
        return;
    }
    while (peer->left > 0 && redisReaderGetReply(context->reader, &reply) == REDIS_OK && reply != NULL) {
        peer_take(peer, reply);
        freeReplyObject(reply);
    }
    if (peer->left == 0 || context->reader->err != 0)
        peer_end(peer);
}

static void peer_write(struct peer *peer)
{
    if (dial_write(&peer->dial) == WIRE_BROKEN)
        peer_end(peer);
}

static void peer_connected(struct peer *peer)
{
    const char *why;
    enum dial_step step = dial_go_on(&peer->dial, &why);

    if (step == DIAL_FAILED) {
        note(peer, "cannot be reached: %s", why);
        peer_end(peer);
    } else if (step == DIAL_STANDS) {
        peer->stands = true;
        peer_put(peer);
        peer_write(peer);
    }
}

static void peer_io(struct loop_watch *watch, int events)
{
    struct peer *peer = container_of(watch, struct peer, dial.watch);

    if (!peer->stands) {
        peer_connected(peer);
        return;
    }
    if (wire_waiting(&peer->dial.wire) > 0)
        peer_write(peer);
    if (peer->dial.context != NULL && events & (LOOP_READ | LOOP_HANGUP))
        peer_read(peer);
}

/* -- the primary */

static void take(struct store_finder *finder, int node)
{
    const struct store_url *url = &finder->nodes[node].dial.url;

    pthread_mutex_lock(&finder->lock);
    if (finder->place.port != url->port || strcmp(finder->place.host, url->host) != 0) {
        memcpy(finder->place.host, url->host, sizeof(finder->place.host));
        finder->place.port = url->port;
        atomic_fetch_add(&finder->version, 1);
    }
    finder->known = true;
    finder->said[0] = '\0';
    memcpy(finder->stream, finder->nodes[node].stream, sizeof(finder->stream));
    pthread_mutex_unlock(&finder->lock);
    for (unsigned i = 0; i < finder->url.sentinel_count; i++)
        if (finder->sentinels[i].names != node)
            finder->sentinels[i].lags = finder->sentinels[i].names;
    finder->primary = node;
    finder->sentinels_due_ms = loop_now_ms() + SENTINELS_REFRESH_MS;
}

/* A former primary that was started again says that it is one, until the sentinels make it a replica: it is
 * none, though the primary has not answered for a moment. */
static bool is_stranger(const struct store_finder *finder, int node)
{
    return finder->primary != NOBODY && node != finder->primary && votes(finder, node) == 0 &&
           strcmp(finder->nodes[node].before, finder->stream) != 0 &&
           loop_now_ms() - finder->since_ms < STRANGER_MS;
}

/* At once a node that no other one is named before; after a round any. */
static void decide(struct store_finder *finder, bool is_round_over)
{
    int count = (int)atomic_load(&finder->node_count), best = NOBODY;
    unsigned most = 0;

    for (int i = 0; i < count; i++) {
        unsigned has = votes(finder, i);

        most = has > most ? has : most;
        if (finder->nodes[i].says_master && !is_stranger(finder, i) &&
            (best == NOBODY || has > votes(finder, best) ||
             (has == votes(finder, best) && i == finder->primary)))
            best = i;
    }
    if (best != NOBODY && (finder->known ? votes(finder, best) > votes(finder, finder->primary)
                                         : is_round_over || votes(finder, best) == most))
        take(finder, best);
}

static void ask_all(struct peer *peers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        peer_ask(&peers[i]);
}

static void ask_sentinels(struct store_finder *finder, uint64_t again_ms)
{
    finder->sentinels_due_ms = loop_now_ms() + again_ms;
    ask_all(finder->sentinels, finder->url.sentinel_count);
}

static void search_begin(struct store_finder *finder)
{
    pthread_mutex_lock(&finder->lock);
    finder->known = false;
    pthread_mutex_unlock(&finder->lock);
    finder->since_ms = loop_now_ms();
    for (unsigned i = 0; i < NODES_MAX; i++)
        finder->nodes[i].says_master = false;
    ask_all(finder->nodes, atomic_load(&finder->node_count));
    ask_sentinels(finder, SENTINELS_AGAIN_MS);
}

static void end_late(struct store_finder *finder, struct peer *peers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (dial_is_open(&peers[i].dial) && loop_now_ms() >= peers[i].deadline_ms) {
            note(&peers[i], "does not answer in %u ms", finder->timeout_ms);
            peer_end(&peers[i]);
        }
    }
}

/* Until one begins; the next one when this one has answered otherwise, or not at all. */
static void promote(struct store_finder *finder)
{
    struct peer *sentinel = &finder->sentinels[finder->promoter];

    if (finder->promotion != STORE_PROMOTION_ASKED || dial_is_open(&sentinel->dial))
        return;
    if (finder->was_asked) {
        finder->was_asked = false;
        finder->promoter++;
        if (finder->promoter == finder->url.sentinel_count)
            finder->promotion = finder->may_promote ? STORE_PROMOTION_BEGUN : STORE_PROMOTION_REFUSED;
        return;
    }
    finder->was_asked = sentinel->promotes = true;
    peer_ask(sentinel);
}

static void finder_tick(struct loop_timer *timer)
{
    struct store_finder *finder = container_of(timer, struct store_finder, timer);

    end_late(finder, finder->sentinels, finder->url.sentinel_count);
    end_late(finder, finder->nodes, atomic_load(&finder->node_count));
    promote(finder);
    if (atomic_exchange(&finder->doubted, false) && finder->known) {
        search_begin(finder);
        return;
    }
    if (!finder->known) {
        decide(finder, true);
        ask_all(finder->nodes, atomic_load(&finder->node_count));
    }
    if (loop_now_ms() >= finder->sentinels_due_ms)
        ask_sentinels(finder, finder->known ? SENTINELS_REFRESH_MS : SENTINELS_AGAIN_MS);
}

/* -- what sentinels announce */

static void sentinel_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct peer *sentinel = container_of(owner, struct peer, owner);
    struct bytes host, port;

    (void)channel;
    if (!bytes_are(bytes_cut(&message, ' '), sentinel->finder->url.name))
        return;
    bytes_cut(&message, ' '); /* host and port of before */
    bytes_cut(&message, ' ');
    host = bytes_cut(&message, ' ');
    port = bytes_cut(&message, ' ');
    sentinel_names(sentinel, host, port);
}

/* What it said until now may be old. */
static void sentinel_listens(struct store_subscriber_owner *owner, struct bytes channel)
{
    struct peer *sentinel = container_of(owner, struct peer, owner);

    (void)channel;
    atomic_fetch_add(&sentinel->finder->heard, 1);
    peer_ask(sentinel);
}

static void sentinel_deaf(struct store_subscriber_owner *owner)
{
    struct peer *sentinel = container_of(owner, struct peer, owner);

    atomic_fetch_sub(&sentinel->finder->heard, 1);
    sentinel->names = NOBODY;
}

static void sentinel_open(struct store_finder *finder, struct peer *sentinel)
{
    const struct store_url *at = &sentinel->dial.url;
    bool has_colons = strchr(at->host, ':') != NULL;
    char url[STORE_HOST_MAX + 32];

    snprintf(url, sizeof(url), "%s://%s%s%s:%u", at->is_tls ? "rediss" : "redis", has_colons ? "[" : "",
             at->host, has_colons ? "]" : "", at->port);
    sentinel->owner = (struct store_subscriber_owner){sentinel_heard, sentinel_listens, sentinel_deaf};
    sentinel->subscriber = store_subscriber_open(
        finder->loop,
        &(struct store_options){.url = url, .files = sentinel->dial.files, .timeout_ms = finder->timeout_ms},
        &sentinel->owner);
    store_subscriber_subscribe(sentinel->subscriber, BYTES("+switch-master"));
}

/* -- open and close */

struct store_finder *finder_open(struct loop *loop, const struct store_url *url,
                                 const struct store_options *options, const char *password)
{
    struct store_finder *finder = must_have(calloc(1, sizeof(*finder)));

    assert(url->sentinel_count > 0);
    finder->loop = loop;
    finder->url = *url;
    finder->files = options->files;
    finder->password = dial_password(&finder->url, password);
    finder->timeout_ms = options->timeout_ms;
    finder->primary = NOBODY;
    pthread_mutex_init(&finder->lock, NULL);
    for (unsigned i = 0; i < url->sentinel_count; i++) {
        struct peer *sentinel = &finder->sentinels[i];

        *sentinel = peer_at(finder, &url->sentinels[i], true);
        sentinel_open(finder, sentinel);
    }
    loop_timer_init(loop, &finder->timer, finder_tick);
    loop_timer_arm(&finder->timer, TICK_MS, TICK_MS);
    search_begin(finder);
    return finder;
}

void finder_close(struct store_finder *finder)
{
    loop_timer_done(&finder->timer);
    for (unsigned i = 0; i < finder->url.sentinel_count; i++) {
        store_subscriber_close(finder->sentinels[i].subscriber);
        peer_forget(&finder->sentinels[i]);
    }
    for (unsigned i = 0; i < NODES_MAX; i++)
        peer_forget(&finder->nodes[i]);
    pthread_mutex_destroy(&finder->lock);
    dial_forget_password(finder->password);
    free(finder);
}

void store_promote(struct store *store)
{
    struct store_finder *finder = store->dial.finder;

    finder->promotion = STORE_PROMOTION_ASKED;
    finder->promoter = 0;
    finder->was_asked = finder->may_promote = false;
}

enum store_promotion store_promotion(struct store *store, char why[STORE_PROMOTION_WHY_MAX])
{
    struct store_finder *finder = store->dial.finder;

    pthread_mutex_lock(&finder->lock);
    snprintf(why, STORE_PROMOTION_WHY_MAX, "%s", finder->said);
    pthread_mutex_unlock(&finder->lock);
    return finder->promotion;
}

/* -- from any thread */

bool finder_leads(struct dial *dial, char why[DIAL_WHY_MAX])
{
    struct store_finder *finder = dial->finder;
    bool known;

    if (finder == NULL)
        return true;
    pthread_mutex_lock(&finder->lock);
    known = finder->known;
    if (known) {
        memcpy(dial->url.host, finder->place.host, sizeof(dial->url.host));
        dial->url.port = finder->place.port;
        dial->found = atomic_load(&finder->version);
    } else {
        snprintf(why, DIAL_WHY_MAX,
                 "No primary of %.60s is known: %u of %u sentinels are heard, %u nodes are known%s%s",
                 finder->url.name, atomic_load(&finder->heard), finder->url.sentinel_count,
                 atomic_load(&finder->node_count), finder->said[0] != '\0' ? "; " : "", finder->said);
    }
    pthread_mutex_unlock(&finder->lock);
    return known;
}

bool finder_has_moved(const struct dial *dial)
{
    return dial->finder != NULL && atomic_load(&dial->finder->version) != dial->found;
}

void finder_doubt(const struct dial *dial)
{
    if (dial->finder != NULL && !finder_has_moved(dial))
        atomic_store(&dial->finder->doubted, true);
}

uint64_t finder_pause_ms(const struct dial *dial, uint64_t pause_ms)
{
    return dial->finder != NULL && pause_ms > TICK_MS ? TICK_MS : pause_ms;
}

bool store_election(const struct store *store, struct store_election *now)
{
    struct store_finder *finder = store->dial.finder;

    if (finder == NULL)
        return false;
    unsigned version = atomic_load(&finder->version);
    pthread_mutex_lock(&finder->lock);
    *now = (struct store_election){.sentinels = finder->url.sentinel_count,
                                   .heard = atomic_load(&finder->heard),
                                   .failovers = version > 0 ? version - 1 : 0,
                                   .port = finder->place.port};
    memcpy(now->host, finder->place.host, sizeof(now->host));
    pthread_mutex_unlock(&finder->lock);
    return true;
}

/* On the finder's own loop. */
unsigned store_sentinels(const struct store *store, struct store_sentinel all[STORE_SENTINELS_MAX])
{
    const struct store_finder *finder = store->dial.finder;

    for (unsigned i = 0; finder != NULL && i < finder->url.sentinel_count; i++) {
        const struct peer *peer = &finder->sentinels[i];
        const struct store_url *names = peer->names != NOBODY ? &finder->nodes[peer->names].dial.url : NULL;

        all[i] = (struct store_sentinel){
            .port = peer->dial.url.port, .quorum = peer->quorum, .known = peer->known};
        memcpy(all[i].host, peer->dial.url.host, sizeof(all[i].host));
        if (names != NULL)
            snprintf(all[i].names, sizeof(all[i].names), "%s:%u", names->host, names->port);
    }
    return finder != NULL ? finder->url.sentinel_count : 0;
}

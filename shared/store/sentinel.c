/* sentinel.c - finds the primary that sentinels watch.
 *
 *   search_begin     the primary is not known, or a connection to it has ended: all are asked, every 100 ms
 *   peer_ask         one question on a connection of its own: of a sentinel, who is primary, and which nodes
 *                    there are; of a node, its role
 *   sentinel_names   a sentinel has said who is primary, in an answer or as +switch-master
 *   node_answers     a node has said whether it is a master
 *   decide           of the nodes that say so, the one that most sentinels name is the primary
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
    NODES_MAX = 16,
    ANSWER_MAX = 1024 * 1024, /* of a sentinel: some hundred bytes for each node */
    SAID_MAX = 240,
    NOBODY = -1
};

/* A sentinel or a node, and the question that it is asked. */
struct peer {
    struct store_finder *finder;
    struct store_place place;
    bool is_sentinel;
    /* -- the question; there is none without a context */
    struct redisContext *context;
    struct loop_watch watch;
    struct store_wire wire;
    bool stands, is_refused; /* is_refused: AUTH, or the name */
    unsigned left;           /* replies to come */
    uint64_t deadline_ms;
    /* -- a node */
    bool says_master; /* in answer to the last question */
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
    struct store_url url, sentinel_url; /* host and port are of who was asked last */
    struct store_files files;
    char *password, *sentinel_password; /* NULL: none */
    unsigned timeout_ms;
    uint64_t sentinels_due_ms;
    struct peer sentinels[SENTINELS_MAX], nodes[NODES_MAX];
    int primary; /* the node that was found last; NOBODY */
    enum store_promotion promotion;
    unsigned promoter; /* the sentinel that is to begin a failover */
    bool was_asked;    /* that one, to do so */
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
             peer->is_sentinel ? "sentinel" : "node", peer->place.host, peer->place.port, text);
    pthread_mutex_unlock(&finder->lock);
}

/* -- one question */

static const struct store_url *peer_url(const struct peer *peer)
{
    struct store_url *url = peer->is_sentinel ? &peer->finder->sentinel_url : &peer->finder->url;

    memcpy(url->host, peer->place.host, sizeof(url->host));
    url->port = peer->place.port;
    return url;
}

static char **peer_password(struct peer *peer)
{
    return peer->is_sentinel ? &peer->finder->sentinel_password : &peer->finder->password;
}

static void peer_end(struct peer *peer)
{
    if (peer->context == NULL)
        return;
    loop_watch_done(&peer->watch);
    redisFree(peer->context);
    peer->context = NULL;
    peer->promotes = false;
    wire_reset(&peer->wire);
}

static void peer_ask(struct peer *peer)
{
    struct store_finder *finder = peer->finder;
    const struct store_files *files = &finder->files;
    char why[DIAL_WHY_MAX];

    if (peer->context != NULL)
        return;
    peer->says_master = peer->stands = peer->is_refused = false;
    dial_password_again(peer_password(peer), peer->is_sentinel ? files->sentinel_password : files->password);
    peer->context = dial_begin(peer_url(peer), why);
    if (peer->context == NULL) {
        peer->promotes = false;
        note(peer, "cannot be reached: %s", why);
        return;
    }
    peer->deadline_ms = loop_now_ms() + finder->timeout_ms;
    loop_watch_init(finder->loop, &peer->watch, peer->context->fd, peer_io, LOOP_WRITE);
}

static unsigned peer_questions(const struct peer *peer)
{
    return peer->is_sentinel && !peer->promotes ? 3 : 1;
}

static void peer_put(struct peer *peer)
{
    struct store_wire *wire = &peer->wire;
    struct bytes name = bytes_of(peer->finder->url.name);
    const struct store_url *url = peer_url(peer);

    peer->left = peer_questions(peer);
    if (dial_names_itself(url, *peer_password(peer))) {
        peer->left++;
        dial_put_auth(wire, url, *peer_password(peer));
    }
    if (!peer->is_sentinel) {
        wire_put_command(wire, (struct bytes[]){BYTES("INFO"), BYTES("replication")}, 2);
        return;
    }
    if (peer->promotes) {
        wire_put_command(wire, (struct bytes[]){BYTES("SENTINEL"), BYTES("FAILOVER"), name}, 3);
        return;
    }
    wire_put_command(wire, (struct bytes[]){BYTES("SENTINEL"), BYTES("GET-MASTER-ADDR-BY-NAME"), name}, 3);
    wire_put_command(wire, (struct bytes[]){BYTES("SENTINEL"), BYTES("REPLICAS"), name}, 3);
    wire_put_command(wire, (struct bytes[]){BYTES("SENTINEL"), BYTES("MASTER"), name}, 3);
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
    while (at < count && (finder->nodes[at].place.port != place.port ||
                          strcmp(finder->nodes[at].place.host, place.host) != 0))
        at++;
    if (at == count) {
        at = node_room(finder);
        if (at == NOBODY)
            return NOBODY;
        peer_end(&finder->nodes[at]);
        finder->nodes[at] = (struct peer){.finder = finder, .place = place};
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

/* How it has been told to judge, for pawl doctor. */
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
    struct bytes role = reply_info_field(store_reply_text(reply_of(reply), 0), "role");

    node->says_master = bytes_are(role, "master");
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
    } else if (!is_auth) {
        (peer->is_sentinel ? sentinel_answers : node_answers)(peer, reply);
    }
}

/* -- the connection */

static void peer_read(struct peer *peer)
{
    redisContext *context = peer->context;
    void *reply = NULL;

    if (dial_read(context, &peer->wire) != REDIS_OK || context->reader->len > ANSWER_MAX) {
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
    enum wire_end end = wire_flush(&peer->wire, peer->context->fd);

    if (end == WIRE_BROKEN)
        peer_end(peer);
    else
        loop_watch_set(&peer->watch, end == WIRE_BLOCKED ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void peer_connected(struct peer *peer)
{
    const char *why;
    int events = LOOP_READ;

    switch (dial_go_on(peer->context, &peer->wire, peer_url(peer), &peer->finder->files, &events, &why)) {
    case DIAL_FAILED:
        note(peer, "cannot be reached: %s", why);
        peer_end(peer);
        return;
    case DIAL_WAITS: loop_watch_set(&peer->watch, events); return;
    case DIAL_STANDS:
        peer->stands = true;
        peer_put(peer);
        peer_write(peer);
        return;
    }
}

static void peer_io(struct loop_watch *watch, int events)
{
    struct peer *peer = container_of(watch, struct peer, watch);

    if (!peer->stands) {
        peer_connected(peer);
        return;
    }
    if (wire_waiting(&peer->wire) > 0)
        peer_write(peer);
    if (peer->context != NULL && events & (LOOP_READ | LOOP_HANGUP))
        peer_read(peer);
}

/* -- the primary */

static void take(struct store_finder *finder, int node)
{
    const struct store_place *place = &finder->nodes[node].place;

    pthread_mutex_lock(&finder->lock);
    if (finder->place.port != place->port || strcmp(finder->place.host, place->host) != 0) {
        finder->place = *place;
        atomic_fetch_add(&finder->version, 1);
    }
    finder->known = true;
    finder->said[0] = '\0';
    pthread_mutex_unlock(&finder->lock);
    for (unsigned i = 0; i < finder->url.sentinel_count; i++)
        if (finder->sentinels[i].names != node)
            finder->sentinels[i].lags = finder->sentinels[i].names;
    finder->primary = node;
    finder->sentinels_due_ms = loop_now_ms() + SENTINELS_REFRESH_MS;
}

/* At once a node that no other one is named before; after a round any. */
static void decide(struct store_finder *finder, bool is_round_over)
{
    int count = (int)atomic_load(&finder->node_count), best = NOBODY;
    unsigned most = 0;

    for (int i = 0; i < count; i++) {
        unsigned has = votes(finder, i);

        most = has > most ? has : most;
        if (finder->nodes[i].says_master && (best == NOBODY || has > votes(finder, best) ||
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
    for (unsigned i = 0; i < NODES_MAX; i++)
        finder->nodes[i].says_master = false;
    ask_all(finder->nodes, atomic_load(&finder->node_count));
    ask_sentinels(finder, SENTINELS_AGAIN_MS);
}

static void end_late(struct store_finder *finder, struct peer *peers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (peers[i].context != NULL && loop_now_ms() >= peers[i].deadline_ms) {
            note(&peers[i], "does not answer in %u ms", finder->timeout_ms);
            peer_end(&peers[i]);
        }
    }
}

/* Until one begins; the next one when this one has answered otherwise, or not at all. */
static void promote(struct store_finder *finder)
{
    struct peer *sentinel = &finder->sentinels[finder->promoter];

    if (finder->promotion != STORE_PROMOTION_ASKED || sentinel->context != NULL)
        return;
    if (finder->was_asked) {
        finder->was_asked = false;
        finder->promoter++;
        if (finder->promoter == finder->url.sentinel_count)
            finder->promotion = STORE_PROMOTION_REFUSED;
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
    const struct store_place *place = &sentinel->place;
    bool has_colons = strchr(place->host, ':') != NULL;
    struct store_files files = finder->files;
    char url[STORE_HOST_MAX + 32];

    snprintf(url, sizeof(url), "%s://%s%s%s:%u", finder->url.is_tls ? "rediss" : "redis",
             has_colons ? "[" : "", place->host, has_colons ? "]" : "", place->port);
    files.password = files.sentinel_password;
    sentinel->owner = (struct store_subscriber_owner){sentinel_heard, sentinel_listens, sentinel_deaf};
    sentinel->subscriber = store_subscriber_open(
        finder->loop, &(struct store_options){.url = url, .files = files, .timeout_ms = finder->timeout_ms},
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
    finder->url = finder->sentinel_url = *url;
    finder->sentinel_url.user[0] = '\0';
    finder->files = options->files;
    finder->password = dial_password(&finder->url, password);
    finder->timeout_ms = options->timeout_ms;
    finder->primary = NOBODY;
    pthread_mutex_init(&finder->lock, NULL);
    for (unsigned i = 0; i < url->sentinel_count; i++) {
        struct peer *sentinel = &finder->sentinels[i];

        *sentinel = (struct peer){.finder = finder,
                                  .place = url->sentinels[i],
                                  .is_sentinel = true,
                                  .names = NOBODY,
                                  .lags = NOBODY};
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
        peer_end(&finder->sentinels[i]);
    }
    for (unsigned i = 0; i < NODES_MAX; i++)
        peer_end(&finder->nodes[i]);
    pthread_mutex_destroy(&finder->lock);
    dial_forget_password(finder->password);
    dial_forget_password(finder->sentinel_password);
    free(finder);
}

void store_promote(struct store *store)
{
    struct store_finder *finder = store->finder;

    finder->promotion = STORE_PROMOTION_ASKED;
    finder->promoter = 0;
    finder->was_asked = false;
}

enum store_promotion store_promotion(struct store *store, char why[STORE_PROMOTION_WHY_MAX])
{
    struct store_finder *finder = store->finder;

    pthread_mutex_lock(&finder->lock);
    snprintf(why, STORE_PROMOTION_WHY_MAX, "%s", finder->said);
    pthread_mutex_unlock(&finder->lock);
    return finder->promotion;
}

/* -- from any thread */

bool finder_where(struct store_finder *finder, struct store_url *url, unsigned *version,
                  char why[FINDER_WHY_MAX])
{
    bool known;

    pthread_mutex_lock(&finder->lock);
    known = finder->known;
    if (known) {
        memcpy(url->host, finder->place.host, sizeof(url->host));
        url->port = finder->place.port;
        *version = atomic_load(&finder->version);
    } else {
        snprintf(why, FINDER_WHY_MAX,
                 "No primary of %.60s is known: %u of %u sentinels are heard, %u nodes are known%s%s",
                 finder->url.name, atomic_load(&finder->heard), finder->url.sentinel_count,
                 atomic_load(&finder->node_count), finder->said[0] != '\0' ? "; " : "", finder->said);
    }
    pthread_mutex_unlock(&finder->lock);
    return known;
}

bool finder_has_moved(const struct store_finder *finder, unsigned version)
{
    return atomic_load(&finder->version) != version;
}

void finder_doubt(struct store_finder *finder, unsigned version)
{
    if (!finder_has_moved(finder, version))
        atomic_store(&finder->doubted, true);
}

uint64_t finder_pause_ms(const struct store_finder *finder, uint64_t pause_ms)
{
    return finder != NULL && pause_ms > TICK_MS ? TICK_MS : pause_ms;
}

bool store_election(const struct store *store, struct store_election *now)
{
    struct store_finder *finder = store->finder;

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
    const struct store_finder *finder = store->finder;

    for (unsigned i = 0; finder != NULL && i < finder->url.sentinel_count; i++) {
        const struct peer *peer = &finder->sentinels[i];
        const struct store_place *names = peer->names != NOBODY ? &finder->nodes[peer->names].place : NULL;

        all[i] = (struct store_sentinel){
            .port = peer->place.port, .quorum = peer->quorum, .known = peer->known};
        memcpy(all[i].host, peer->place.host, sizeof(all[i].host));
        if (names != NULL)
            snprintf(all[i].names, sizeof(all[i].names), "%s:%u", names->host, names->port);
    }
    return finder != NULL ? finder->url.sentinel_count : 0;
}

/* link.c - the one connection to Redis: a state machine.
 *
 *   IDLE        --store_open-->                                      CONNECTING
 *   CONNECTING  --the socket stands, and TLS on it, if asked for-->  GREETING
 *   CONNECTING  --refused, or over the deadline-->                   WAITING
 *   GREETING    --every command of the greeting answered-->          READY
 *   GREETING    --an error, the link broken, over the deadline-->    WAITING
 *   READY       --the link broken, a call over its deadline-->       WAITING
 *   READY       --a script answered as by no master-->               LEAVING
 *   LEAVING     --the replies that are there taken, or it broken-->  WAITING
 *   WAITING     --the pause is over-->                               CONNECTING
 *   CONNECTING  --store_close-->                                     IDLE
 *   GREETING    --store_close-->                                     IDLE
 *   READY       --store_close-->                                     IDLE
 *   WAITING     --store_close-->                                     IDLE
 *
 * Only READY takes calls. The end of the link ends every call on it: UNKNOWN if the kernel has taken any of
 * its bytes, or of its batch's, else NOT_SENT. Redis answers in the order of asking, so the calls in flight
 * are a line, and an answer belongs to its head. LEAVING lasts no longer than one link_read(), and nothing
 * goes out in it: a Redis that says that it is no master may come back as one, its run_id the same and its
 * data another's, so everything begins anew with a greeting. */
#include <assert.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"
#include "shared/text/memory.h"

enum { READER_KEEPS = 256 * 1024, LOOK_MS = 10 * 1000, NETWORK_DOUBT_US = 1000 };

static void connect_begin(struct store *store);
static void link_timer_fired(struct loop_timer *timer);
static void store_look(struct loop_timer *timer);

static const bool arrows[LINK_STATES][LINK_STATES] = {
    [LINK_IDLE] = {[LINK_CONNECTING] = true},
    [LINK_CONNECTING] = {[LINK_GREETING] = true, [LINK_WAITING] = true, [LINK_IDLE] = true},
    [LINK_GREETING] = {[LINK_READY] = true, [LINK_WAITING] = true, [LINK_IDLE] = true},
    [LINK_READY] = {[LINK_LEAVING] = true, [LINK_WAITING] = true, [LINK_IDLE] = true},
    [LINK_LEAVING] = {[LINK_WAITING] = true},
    [LINK_WAITING] = {[LINK_CONNECTING] = true, [LINK_IDLE] = true},
};

bool link_allows(enum link_state from, enum link_state to)
{
    return arrows[from][to];
}

void link_arm(struct store_link *link, uint64_t delay_ms)
{
    loop_timer_arm(&link->timer, delay_ms, 0);
    link->timer_armed = true;
}

/* The only place where the state changes. */
static void link_enter(struct store *store, enum link_state next)
{
    struct store_link *link = &store->link;

    assert(link_allows(link->state, next));
    link->walked[link->state] |= (unsigned char)(1u << next);
    link->state = next;
    loop_timer_disarm(&link->timer);
    link->timer_armed = false;
    switch (next) {
    case LINK_CONNECTING:
        link_arm(link, store->timeout_ms);
        connect_begin(store);
        return;
    case LINK_GREETING:
        link_arm(link, store->timeout_ms);
        handshake_greet(store);
        return;
    case LINK_WAITING: link_arm(link, finder_pause_ms(&store->dial, dial_pause_ms(&link->attempts))); return;
    case LINK_READY: link->ready_us = loop_now_us(); return;
    case LINK_LEAVING:
    case LINK_IDLE:
    case LINK_STATES: return;
    }
}

static void connect_begin(struct store *store)
{
    char why[DIAL_WHY_MAX];

    if (!finder_leads(&store->dial, why)) {
        snprintf(store->link.detail, sizeof(store->link.detail), "%s.", why);
        link_enter(store, LINK_WAITING);
    } else if (!dial_begin(&store->dial, link_io, why)) {
        link_drop(store, "store-connecting", "%s", why);
    }
}

void link_connected(struct store *store)
{
    const char *why;
    enum dial_step step = dial_go_on(&store->dial, &why);

    if (step == DIAL_FAILED) {
        link_drop(store, "store-connecting", "%s", why);
    } else if (step == DIAL_STANDS) {
        store->dial.context->reader->maxbuf = READER_KEEPS;
        link_enter(store, LINK_GREETING);
    }
}

void link_ready(struct store *store)
{
    assert(store->link.run_id[0] != '\0' && !store->link.is_loading);
    store->link.check = NULL;
    store->counts.reconnects += store->link.number > 0;
    store->link.number++;
    store->safety.checked = store->safety.checked || store->allow_unsafe;
    link_enter(store, LINK_READY);
}

/* -- ends */

static uint64_t oldest_deadline_ms(const struct store_link *link)
{
    uint64_t oldest_ms = UINT64_MAX;

    for (const struct store_call *call = STAILQ_FIRST(&link->flight); call != NULL;
         call = STAILQ_NEXT(call, next))
        oldest_ms = call->deadline_ms < oldest_ms ? call->deadline_ms : oldest_ms;
    return oldest_ms;
}

/* One timer for all calls: it fires when the oldest one that was there when it was armed would be late, and
 * then looks who is the oldest now. A call that is sent whole keeps its deadline and has never left the
 * line's sight, so none that is in flight is due before the timer. */
static void link_look_at_deadlines(struct store *store)
{
    struct store_link *link = &store->link;
    uint64_t now_ms = loop_now_ms();

    link->timer_armed = false;
    if (oldest_deadline_ms(link) <= now_ms)
        link_read(store); /* a process that was held up finds answers that have come in time */
    if (link->state != LINK_READY || STAILQ_EMPTY(&link->flight))
        return;
    if (oldest_deadline_ms(link) <= now_ms)
        link_drop(store, "store-connecting", "no answer in %u ms", store->timeout_ms);
    else
        link_arm(link, oldest_deadline_ms(link) - now_ms);
}

static void link_timer_fired(struct loop_timer *timer)
{
    struct store *store = container_of(timer, struct store, link.timer);

    switch (store->link.state) {
    case LINK_WAITING: link_enter(store, LINK_CONNECTING); return;
    case LINK_CONNECTING:
    case LINK_GREETING:
        link_drop(store, "store-connecting", "%s in %u ms",
                  store->dial.is_naming ? "its name is not found" : "no answer", store->timeout_ms);
        return;
    case LINK_READY: link_look_at_deadlines(store); return;
    case LINK_LEAVING:
    case LINK_IDLE:
    case LINK_STATES: return;
    }
}

static void link_shut(struct store *store)
{
    struct store_link *link = &store->link;
    uint64_t taken = store->dial.wire.taken;

    dial_end(&store->dial);
    keep_lose(store);
    for (struct store_call *call; (call = call_list_take(&link->flight)) != NULL;)
        if (call->state == CALL_OFFSET)
            free(call);
        else if (call->state != CALL_HANDSHAKE)
            store_end_later(store, call, call->place < taken ? STORE_UNKNOWN : STORE_NOT_SENT);
    for (struct store_call *call; (call = call_list_take(&link->not_yet)) != NULL ||
                                  (call = call_list_take(&link->reads_not_yet)) != NULL;)
        store_end_later(store, call, STORE_NOT_SENT);
    handshake_forget(store);
    link->gathered = NULL;
    link->gathered_count = 0;
    link->gathered_bytes = 0;
    link->alone_ms = 0;
    link->unflushed = 0;
}

static void link_describe(struct store *store, const char *check, const char *why)
{
    struct store_link *link = &store->link;
    const struct store_url *url = &store->dial.url;

    link->check = store->dial.finder != NULL ? "store-electing" : check;
    if (url->path[0] != '\0')
        snprintf(link->detail, sizeof(link->detail), "Redis at %s: %s.", url->path, why);
    else
        snprintf(link->detail, sizeof(link->detail), "Redis at %s port %u: %s.", url->host, url->port, why);
}

void link_leave(struct store *store, struct bytes code)
{
    char why[80];

    if (store->link.state != LINK_READY)
        return; /* it has left before */
    snprintf(why, sizeof(why), "a script was answered with %.*s, so it is greeted anew", (int)code.len,
             code.at);
    link_describe(store, reply_refusal(code)->check, why);
    link_enter(store, LINK_LEAVING);
}

void link_end(struct store *store)
{
    struct store_link *link = &store->link;
    bool stood = link->state == LINK_READY || link->state == LINK_LEAVING;

    if (stood && dial_lasted(link->ready_us))
        link->attempts = 0;
    finder_doubt(&store->dial);
    link_shut(store);
    link_enter(store, LINK_WAITING);
}

void link_drop(struct store *store, const char *check, const char *why, ...)
{
    char text[240];
    va_list args;

    va_start(args, why);
    vsnprintf(text, sizeof(text), why, args);
    va_end(args);
    if (text[0] != '\0' && text[strlen(text) - 1] == '.')
        text[strlen(text) - 1] = '\0'; /* some have a full stop, and link_describe() adds one */
    link_describe(store, check, text);
    link_end(store);
}

void link_follow(struct store *store)
{
    if (dial_is_open(&store->dial) && finder_has_moved(&store->dial))
        link_drop(store, "store-connecting", "it is not the primary any more");
}

void store_reconnect(struct store *store)
{
    if (store_link_stands(store))
        link_drop(store, "store-connecting", "its address may lead to another one by now");
}

struct store_finder *store_finder(const struct store *store)
{
    return store->dial.finder;
}

/* -- open and close */

static struct store *store_begin(const struct store *as)
{
    struct store *store = must_have(calloc(1, sizeof(*store)));
    struct store_link *link = &store->link;
    struct loop *loop = as->loop;

    *store = *as;
    STAILQ_INIT(&store->ended);
    loop_hook_add(loop, &store->turn_end, store_turn_end);
    loop_timer_init(loop, &store->look_timer, store_look);
    store_look_every(store, LOOK_MS);
    STAILQ_INIT(&link->flight);
    STAILQ_INIT(&link->not_yet);
    STAILQ_INIT(&link->reads_not_yet);
    link->heavy_may = HEAVY_LEAST;
    loop_timer_init(loop, &link->timer, link_timer_fired);
    link->check = store->dial.finder != NULL ? "store-electing" : "store-connecting";
    snprintf(link->detail, sizeof(link->detail), "The connection to Redis is being made.");
    handshake_new(store);
    link_enter(store, LINK_CONNECTING);
    return store;
}

struct store *store_open(struct loop *loop, const struct store_options *options)
{
    struct store as = {.loop = loop,
                       .timeout_ms = options->timeout_ms,
                       .allow_unsafe = options->allow_unsafe,
                       .library = options->library,
                       .sends_whole = options->sends_whole,
                       .owner = options->owner,
                       .dial = {.loop = loop, .files = options->files, .finder = options->finder}};
    const char *bad = store_url_read(options->url, &as.dial.url);

    assert(bad == NULL);
    (void)bad;
    as.dial.password = dial_password(&as.dial.url, options->password);
    as.has_own_finder = options->finder == NULL && as.dial.url.sentinel_count > 0;
    if (as.has_own_finder)
        as.dial.finder = finder_open(loop, &as.dial.url, options, as.dial.password);
    return store_begin(&as);
}

/* Where the store goes, by a connection of its own. */
static struct dial dial_beside(const struct store *store)
{
    struct dial dial = {.loop = store->loop, .files = store->dial.files, .url = store->dial.url};

    dial.password = dial_password(&dial.url, store->dial.password);
    return dial;
}

struct store *store_open_beside(const struct store *store)
{
    struct store as = {.loop = store->loop,
                       .timeout_ms = store->timeout_ms,
                       .allow_unsafe = true,
                       .sends_whole = true,
                       .dial = dial_beside(store)};

    as.dial.finder = store->dial.finder;
    return store_begin(&as);
}

struct store *store_open_at(const struct store *store, const char *node)
{
    const char *colon = strrchr(node, ':');
    size_t len = colon != NULL ? (size_t)(colon - node) : 0;
    struct store as = {.loop = store->loop,
                       .timeout_ms = store->timeout_ms,
                       .allow_unsafe = store->allow_unsafe,
                       .sends_whole = true,
                       .is_probe = true,
                       .dial = dial_beside(store)};

    snprintf(as.dial.url.host, sizeof(as.dial.url.host), "%.*s", (int)len, node);
    as.dial.url.port = colon != NULL ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    as.dial.url.path[0] = '\0';
    as.dial.url.db = 0;
    as.dial.url.sentinel_count = 0;
    return store_begin(&as);
}

/* What could not stand in a list of names is another character. */
void store_node_name(const struct store *store, char name[STORE_NODE_MAX])
{
    const struct store_url *url = &store->dial.url;

    if (url->path[0] != '\0')
        snprintf(name, STORE_NODE_MAX, "%s", url->path);
    else
        snprintf(name, STORE_NODE_MAX, "%s:%u", url->host, url->port);
    for (char *at = name; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~' || *at == ',')
            *at = '_';
}

void store_close(struct store *store)
{
    assert(!store->in_turn_end);
    loop_hook_remove(store->loop, &store->turn_end);
    loop_timer_done(&store->look_timer);
    link_shut(store);
    link_enter(store, LINK_IDLE);
    keep_close(store);
    dial_close(&store->dial);
    loop_timer_done(&store->link.timer);
    while (!STAILQ_EMPTY(&store->ended))
        store_deliver(store);
    assert(store->counts.in_flight == 0);
    if (store->has_own_finder)
        finder_close(store->dial.finder);
    dial_forget_password(store->dial.password);
    free(store);
}

/* -- what others may know */

static void store_look(struct loop_timer *timer)
{
    struct store *store = container_of(timer, struct store, look_timer);

    if (store->link.state == LINK_READY && !store->allow_unsafe)
        handshake_look(store);
    if (store->link.state == LINK_READY && !store->link.by_name && !store->sends_whole)
        handshake_load(store); /* there may be room, or the right, by now */
}

bool store_unsafe_may_pass(const struct store *store)
{
    return store->safety.unsafe && store->safety.passing;
}

void store_look_every(struct store *store, unsigned period_ms)
{
    store->look_period_ms = period_ms;
    loop_timer_arm(&store->look_timer, period_ms, period_ms);
}

bool store_link_stands(const struct store *store)
{
    return store->link.state == LINK_READY;
}

uint64_t store_link_since_us(const struct store *store)
{
    return store->link.ready_us;
}

/* The least of five minutes (tcp_min_rtt_wlen; the looks at the settings are among them). A peer that is busy
 * may have acknowledged late all that time: the doubt is of that. */
uint64_t store_network_us(const struct store *store)
{
    struct tcp_info info = {.tcpi_min_rtt = 0};
    socklen_t len = sizeof(info);

    if (!store_link_stands(store) || store->dial.context == NULL || /* it is ending */
        getsockopt(store->dial.context->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        info.tcpi_min_rtt == UINT32_MAX || info.tcpi_min_rtt <= NETWORK_DOUBT_US)
        return 0;
    return info.tcpi_min_rtt - NETWORK_DOUBT_US;
}

void store_own_address(const struct store *store, char text[STORE_ADDRESS_SIZE])
{
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    struct sockaddr *address = (struct sockaddr *)(void *)&own;
    socklen_t len = sizeof(own);

    text[0] = '\0';
    if (store_link_stands(store) && getsockname(store->dial.context->fd, address, &len) == 0 &&
        own.ss_family != AF_UNIX)
        getnameinfo(address, len, text, STORE_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST);
}

uint64_t store_link_number(const struct store *store)
{
    return store->link.number;
}

const char *store_run_id(const struct store *store)
{
    return store_link_stands(store) ? store->link.run_id : "";
}

const char *store_not_ready(const struct store *store, const char **detail)
{
    if (store->link.state != LINK_READY) {
        *detail = store->link.detail;
        return store->link.check;
    }
    if (store_unsafe(store) != NULL) {
        *detail = store_unsafe(store);
        return "store-unsafe";
    }
    *detail = "Redis takes calls.";
    return NULL;
}

const char *store_unsafe(const struct store *store)
{
    return store->safety.unsafe ? store->safety.verdict : NULL;
}

const char *store_advice(const struct store *store)
{
    return store->safety.advice;
}

const char *store_not_loaded(const struct store *store)
{
    const struct store_link *link = &store->link;

    return link->state == LINK_READY && !link->by_name && !store->sends_whole ? link->not_loaded : NULL;
}

bool store_checked(const struct store *store)
{
    return store->safety.checked;
}

struct store_counts store_counts(const struct store *store)
{
    return store->counts;
}

/* probe.c - was what a queued write waits for applied? Asked of the upstream, where the route has a
 * probe.
 *
 *   forward_probe   the route's probe, with the other request's Pawl-Request-Id    PROBING
 *   probe_ended     shown to be applied: its intent is closed; then ask again
 *
 * Only a 2xx that repeats this very Pawl-Request-Id in Pawl-Applied proves anything: "not there" may become
 * "there" a moment later, when the request that is under way arrives. */
#include <stdio.h>

#include "gateway/forward/forward_internal.h"

enum { PROBE_EVERY_MS = 500, PROBE_TIMEOUT_MS = 5000, PROBE_AFTER_TRIES = 6 };

/* As write.c makes it. */
static size_t blocker_id(const struct forward *f, char id[FORWARD_REQUEST_ID_SIZE])
{
    struct bytes text = {f->blocker, f->blocker_len};
    struct bytes gateway = intent_part(text, INTENT_GATEWAY), number = intent_part(text, INTENT_ID);
    struct bytes incarnation = intent_part(text, INTENT_INCARNATION);
    int len = snprintf(id, FORWARD_REQUEST_ID_SIZE, "%.*s-%.*s-%.*s", (int)gateway.len, gateway.at,
                       (int)incarnation.len, incarnation.at, (int)number.len, number.at);

    return gateway.len > 0 && incarnation.len > 0 && number.len > 0 && len > 0 &&
                   len < FORWARD_REQUEST_ID_SIZE
               ? (size_t)len
               : 0;
}

/* One that is still under way at a living gateway is asked about only when it takes long. */
static bool is_worth_it(const struct forward *f, uint64_t now_ms)
{
    struct bytes text = {f->blocker, f->blocker_len};
    bool is_under_way = bytes_are(intent_part(text, INTENT_STATE), "s");

    if (is_under_way && f->tries <= PROBE_AFTER_TRIES) {
        return false;
    }
    return f->is_write && f->route->unknown == ROUTE_PROBE &&
           bytes_are(intent_part(text, INTENT_POLICY), "p") &&
           !bytes_are(intent_part(text, INTENT_STATE), "q") && now_ms < f->until_ms &&
           now_ms - f->probed_ms >= PROBE_EVERY_MS;
}

static void probe_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct forward *f = container_of(call, struct forward, call);
    struct bytes applied = upstream_field_find(head, "Pawl-Applied");
    char id[FORWARD_REQUEST_ID_SIZE];
    size_t id_len = blocker_id(f, id);

    f->is_shown = head->status >= 200 && head->status < 300 &&
                  bytes_equal(applied, (struct bytes){id, id_len});
}

static size_t probe_piece(struct upstream_call *call, struct bytes piece)
{
    (void)call;
    return piece.len;
}

static void probe_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct forward *f = container_of(call, struct forward, call);
    struct bytes text = {f->blocker, f->blocker_len};

    (void)why;
    if (end == UPSTREAM_WHOLE && f->is_shown) {
        struct intent *intent = intent_new(&f->own->gateway->intents, keys_stripe_of(f->fenced.lease), text);

        intent_end(&f->own->closer, intent, INTENT_CLOSE);
        intents_drop_unknown(&f->own->gateway->intents, keys_stripe_of(f->fenced.lease), text);
        f->until_ms = loop_now_ms() + f->route->timeout_ms;
    }
    forward_ask(f);
}

static bool probe_begin(struct forward *f)
{
    char path[ROUTE_PATH_MAX], target[FORWARD_HEAD_MAX], fields[FORWARD_HEAD_MAX],
        id[FORWARD_REQUEST_ID_SIZE];
    size_t path_len = route_probe_path(&f->match, path), id_len = blocker_id(f, id);
    int target_len = snprintf(target, sizeof(target), "%s%.*s", f->route->upstream->prefix, (int)path_len,
                              path);
    int fields_len = snprintf(fields, sizeof(fields), "Host: %s\r\nPawl-Request-Id: %s\r\n",
                              f->route->upstream->authority, id);
    struct upstream_request request = {.method = bytes_of(f->route->probe_method),
                                       .target = {target, (size_t)target_len},
                                       .fields = {fields, (size_t)fields_len},
                                       .body_is_whole = true};

    if (path_len == 0 || id_len == 0 || target_len >= (int)sizeof(target) ||
        fields_len >= (int)sizeof(fields)) {
        return false;
    }
    forward_enter(f, FORWARD_PROBING);
    f->call = (struct upstream_call){.head = probe_head, .piece = probe_piece, .ended = probe_ended};
    upstream_begin(f->use->pools[f->route->upstream->index], &f->call, &request);
    forward_alarm(f, PROBE_TIMEOUT_MS);
    return true;
}

bool forward_probe(struct forward *f)
{
    uint64_t now_ms = loop_now_ms();

    if (!is_worth_it(f, now_ms)) {
        return false;
    }
    f->probed_ms = now_ms;
    f->is_shown = false;
    return probe_begin(f);
}

/* look.c - what the upstream is asked before a write is sent: which version is there, and whether an older
 * write was applied.
 *
 *   forward_look    LOOKING: HEAD (or GET, where there is no HEAD) of the same URL    suspended
 *   look_head       the ETag, or that there is nothing
 *   look_ended      go on to the admission                                            403, 412, 502
 *
 *   forward_probe   PROBING: the route's probe, with the other request's Pawl-Request-Id
 *   probe_ended     shown to be applied: its intent is closed; then ask again
 *
 * For upstreams that honour If-Match: read, admit, write. The order is what keeps the promise: a version that
 * was read before the admission is that of a time when no newer token had been let through, or of a newer
 * one's write, and then its next write fails this one. A write that was admitted first and read its version
 * later could overwrite a newer holder's (docs/guarantees.md).
 *
 * Of a probe only a 2xx that repeats this very Pawl-Request-Id in Pawl-Applied proves anything: "not there"
 * may become "there" a moment later, when the request that is under way arrives. */
#include "gateway/forward/forward_internal.h"

#include <stdio.h>

#include "gateway/precondition.h"

static void look_ended(struct upstream_call *call, enum upstream_end end, const char *why);

static enum step look_begin(struct forward *f);

static enum step look_failed(struct forward *f, const char *detail)
{
    return forward_over(f, fenced_fail_detail(&f->fenced, PROBLEM_UPSTREAM_UNAVAILABLE, detail));
}

enum step forward_look(struct forward *f)
{
    forward_enter(f, FORWARD_LOOKING);
    f->look.count++;
    f->look.is_due = false;
    return look_begin(f);
}

static void look_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct forward *f = container_of(call, struct forward, up.call);
    const struct answer_field *etag = answer_field_find(head->fields, head->field_count, "ETag");

    f->up.status = head->status;
    if (head->status >= 200 && head->status < 300 && etag != NULL &&
        etag->value.len <= sizeof(f->look.etag)) {
        memcpy(f->look.etag, etag->value.at, etag->value.len);
        f->look.etag_len = etag->value.len;
    }
}

static enum step look_begin(struct forward *f)
{
    char fields[FORWARD_HEAD_MAX], target[FORWARD_HEAD_MAX];
    struct upstream_request request = {.method = f->look.with_get ? BYTES("GET") : BYTES("HEAD"),
                                       .fields = {fields, 0},
                                       .target = {target, 0},
                                       .body_is_whole = true};

    f->look.etag_len = 0;
    if (!forward_head_make(f, fields, &request.fields.len, target, &request.target.len))
        return look_failed(f, "With what a gateway adds the headers are too long to be forwarded.");
    request.is_last = f->up.is_last;
    f->up.call = (struct upstream_call){.head = look_head, .ended = look_ended};
    upstream_begin(f->use->pools[f->route->upstream->index], &f->up.call, &request);
    forward_alarm(f, f->route->timeout_ms);
    return SUSPENDED;
}

/* What the client itself expects is compared with what is there. */
static bool is_expected(const struct forward *f, struct bytes etag)
{
    struct precondition expected;

    (void)precondition_read_tags(&expected, f->fenced.req); /* what is wrong with them request.c has found */
    return precondition_holds(&expected, etag);
}

static void look_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct forward *f = container_of(call, struct forward, up.call);
    bool is_nothing = f->up.status == 404 || f->up.status == 410;
    struct bytes etag = {f->look.etag, f->look.etag_len};

    (void)why;
    if (f->is_barred) {
        forward_forbid(f);
    } else if (end == UPSTREAM_WHOLE && (f->up.status == 405 || f->up.status == 501) && !f->look.with_get) {
        f->look.with_get = true;
        look_begin(f);
    } else if (end != UPSTREAM_WHOLE) {
        look_failed(f, "Nothing was changed: the upstream did not say which version is there. Try again.");
    } else if (!is_nothing && !precondition_is_strong_tag(etag)) {
        look_failed(f,
                    "Nothing was changed: the upstream did not say which version is there (a strong ETag), "
                    "so that a write could not be bound to it. Tell the operator: this route says if_match.");
    } else if (!is_expected(f, etag)) {
        forward_over(f, fenced_refuse(&f->fenced, PROBLEM_ETAG_MISMATCH));
    } else {
        forward_ask(f);
    }
}

/* -- was what it waits for applied? */

enum { PROBE_EVERY_MS = 500, PROBE_TIMEOUT_MS = 5000, PROBE_AFTER_TRIES = 6 };

/* As request.c makes it. */
static size_t blocker_id(const struct forward *f, char id[FORWARD_REQUEST_ID_SIZE])
{
    struct bytes text = {f->turn.blocker, f->turn.blocker_len};
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
    struct bytes text = {f->turn.blocker, f->turn.blocker_len};
    bool is_under_way = bytes_are(intent_part(text, INTENT_STATE), "s");

    if (is_under_way && f->turn.tries <= PROBE_AFTER_TRIES)
        return false;
    return f->is_write && f->route->unknown == ROUTE_PROBE &&
           bytes_are(intent_part(text, INTENT_POLICY), "p") &&
           !bytes_are(intent_part(text, INTENT_STATE), "q") && now_ms < f->turn.until_ms &&
           now_ms - f->turn.probed_ms >= PROBE_EVERY_MS;
}

static void probe_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct forward *f = container_of(call, struct forward, up.call);
    const struct answer_field *applied = answer_field_find(head->fields, head->field_count, "Pawl-Applied");
    char id[FORWARD_REQUEST_ID_SIZE];
    size_t id_len = blocker_id(f, id);

    f->up.status = head->status;
    f->turn.is_shown = head->status >= 200 && head->status < 300 && applied != NULL &&
                       bytes_equal(applied->value, (struct bytes){id, id_len});
}

static void probe_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct forward *f = container_of(call, struct forward, up.call);
    struct bytes text = {f->turn.blocker, f->turn.blocker_len};
    char said[PROBE_SAID_SIZE];

    if (end != UPSTREAM_WHOLE)
        snprintf(said, sizeof(said), "no answer: %s", why != NULL ? why : "");
    else
        snprintf(said, sizeof(said), "%u, %s", f->up.status,
                 f->turn.is_shown ? "it was applied" : "without Pawl-Applied of this write");
    probes_note(&f->own->gateway->probes, text, epoch_now_ms(f->own->record.line.store_epoch), said);
    if (end == UPSTREAM_WHOLE && f->turn.is_shown) {
        struct intent *intent = intent_new(&f->own->gateway->intents, f->fenced.on, text, INTENT_OPEN);

        intent_end(&f->own->closer, intent, INTENT_CLOSE);
        intents_drop_unknown(&f->own->gateway->intents, f->fenced.on, text);
        f->turn.until_ms = loop_now_ms() + f->route->timeout_ms;
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
    const char *authorization = f->route->authorization;
    int fields_len = snprintf(
        fields, sizeof(fields), "Host: %s\r\nPawl-Request-Id: %s\r\n%s%s%s", f->route->upstream->authority,
        id, authorization != NULL ? "Authorization: " : "", authorization != NULL ? authorization : "",
        authorization != NULL ? "\r\n" : "");
    struct upstream_request request = {.method = bytes_of(f->route->probe_method),
                                       .target = {target, (size_t)target_len},
                                       .fields = {fields, (size_t)fields_len},
                                       .body_is_whole = true};

    if (path_len == 0 || id_len == 0 || target_len >= (int)sizeof(target) ||
        fields_len >= (int)sizeof(fields))
        return false;
    forward_enter(f, FORWARD_PROBING);
    f->up.call = (struct upstream_call){.head = probe_head, .ended = probe_ended};
    upstream_begin(f->use->pools[f->route->upstream->index], &f->up.call, &request);
    forward_alarm(f, PROBE_TIMEOUT_MS);
    return true;
}

bool forward_probe(struct forward *f)
{
    uint64_t now_ms = loop_now_ms();

    if (!is_worth_it(f, now_ms))
        return false;
    f->turn.probed_ms = now_ms;
    f->turn.is_shown = false;
    return probe_begin(f);
}

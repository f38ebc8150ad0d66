/* look.c - which version is there? For upstreams that honour If-Match: read, admit, write.
 *
 *   forward_look    HEAD (or GET, where there is no HEAD) of the same URL    suspended
 *   look_head       the ETag, or that there is nothing
 *   look_ended      go on to the admission                                   412 | 502, or go on
 *
 * The order is what keeps the promise: a version that was read before the admission is that of a time when no
 * newer token had been let through, or of a newer one's write, and then its next write fails this one. A
 * write that was admitted first and read its version later could overwrite a newer holder's
 * (docs/guarantees.md). */
#include "gateway/forward/forward_internal.h"
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
    f->looks++;
    f->looks_again = false;
    return look_begin(f);
}

static void look_head(struct upstream_call *call, const struct upstream_head *head)
{
    struct forward *f = container_of(call, struct forward, call);
    struct bytes etag = upstream_field_find(head, "ETag");

    f->status = head->status;
    if (head->status >= 200 && head->status < 300 && etag.len > 0 && etag.len <= sizeof(f->etag)) {
        memcpy(f->etag, etag.at, etag.len);
        f->etag_len = etag.len;
    }
}

static size_t look_piece(struct upstream_call *call, struct bytes piece)
{
    (void)call;
    return piece.len;
}

static enum step look_begin(struct forward *f)
{
    char fields[FORWARD_HEAD_MAX], target[FORWARD_HEAD_MAX];
    struct upstream_request request = {.method = f->looks_with_get ? BYTES("GET") : BYTES("HEAD"),
                                       .fields = {fields, 0},
                                       .target = {target, 0},
                                       .body_is_whole = true};

    f->etag_len = 0;
    if (!forward_head_make(f, fields, &request.fields.len, target, &request.target.len)) {
        return look_failed(f, "With what a gateway adds the headers are too long to be forwarded.");
    }
    f->call = (struct upstream_call){.head = look_head, .piece = look_piece, .ended = look_ended};
    upstream_begin(f->use->pools[f->route->upstream->index], &f->call, &request);
    forward_alarm(f, f->route->timeout_ms);
    return SUSPENDED;
}

/* What the client itself expects is compared with what is there. */
static bool is_expected(const struct forward *f)
{
    unsigned matches = 0, others = 0;
    struct bytes match = http_header(f->fenced.req, "If-Match", &matches);
    struct bytes none = http_header(f->fenced.req, "If-None-Match", &others);
    struct bytes etag = {f->etag, f->etag_len};
    bool is_there = f->etag_len > 0;

    if (matches > 0 && !(is_there && (bytes_are(match, "*") || precondition_lists(match, etag)))) {
        return false;
    }
    return others == 0 || !is_there || !(bytes_are(none, "*") || precondition_lists(none, etag));
}

static bool is_strong(const struct forward *f)
{
    return f->etag_len >= 2 && f->etag[0] == '"' &&
           precondition_is_tag_list((struct bytes){f->etag, f->etag_len});
}

static void look_ended(struct upstream_call *call, enum upstream_end end, const char *why)
{
    struct forward *f = container_of(call, struct forward, call);
    bool is_nothing = f->status == 404 || f->status == 410;

    (void)why;
    if (end == UPSTREAM_WHOLE && (f->status == 405 || f->status == 501) && !f->looks_with_get) {
        f->looks_with_get = true;
        look_begin(f);
    } else if (end != UPSTREAM_WHOLE) {
        look_failed(f, "Nothing was changed: the upstream did not say which version is there. Try again.");
    } else if (!is_nothing && !is_strong(f)) {
        look_failed(f,
                    "Nothing was changed: the upstream did not say which version is there (a strong ETag), "
                    "so that a write could not be bound to it. Tell the operator: this route says if_match.");
    } else if (!is_expected(f)) {
        forward_over(f, fenced_refuse(&f->fenced, PROBLEM_ETAG_MISMATCH));
    } else {
        forward_ask(f);
    }
}

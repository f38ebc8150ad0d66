/* write.c - PUT /v1/resources/{key}: write a stored resource, if the writer's hold is the live one.
 *
 *   write_start   the request itself, then the token     400 | 403 | 428, or go on
 *   write_ask     run write.lua                          suspended
 *   write_answer  tell                                   201 | 204 | 403 | 412 | 422 | 503 | 504 */
#include "gateway/gate.h"
#include "gateway/precondition.h"
#include "scripts.h"
#include "shared/token/random.h"

enum { ETAG_CHARS = 16, TYPE_MAX = 256 };

struct write {
    struct gate_call gate;
    struct condition condition;
    struct bytes type, encoding;
    char etag[ETAG_CHARS + 1];
};

static enum step write_ask(struct write *w);
static store_done_fn write_answer;

static const char *headers_read(struct write *w)
{
    unsigned types = 0, encodings = 0;

    w->type = http_header(w->gate.req, "Content-Type", &types);
    w->encoding = http_header(w->gate.req, "Content-Encoding", &encodings);
    if (types > 1 || encodings > 1) {
        return "The headers Content-Type and Content-Encoding may come once each.";
    }
    if (w->type.len == 0) {
        w->type = BYTES("application/octet-stream");
    }
    return condition_read(&w->condition, w->gate.req);
}

enum step write_start(struct http_request *req)
{
    struct write *w = HTTP_SCRATCH(req, struct write);
    const char *wrong = gate_init_resource(&w->gate, req, http_path_part(req, 0));
    enum problem bad;

    wrong = wrong != NULL ? wrong : headers_read(w);
    if (wrong != NULL) {
        return http_refuse_detail(req, PROBLEM_INVALID_REQUEST, wrong);
    }
    if (w->type.len > TYPE_MAX || w->encoding.len > TYPE_MAX) {
        return http_refuse_detail(req, PROBLEM_OUT_OF_RANGE,
                                  "The headers Content-Type and Content-Encoding may have 256 bytes each.");
    }
    bad = gate_read_token(&w->gate);
    return bad != PROBLEM_NONE ? gate_refuse(&w->gate, bad) : write_ask(w);
}

static enum step write_ask(struct write *w)
{
    struct gate_call *gate = &w->gate;
    struct bytes body = http_body(gate->req);

    condition_digest(&w->condition, BYTES("PUT"), w->type, w->encoding, body);
    random_text(w->etag, ETAG_CHARS);
    condition_add(&w->condition, gate);
    gate_add(gate, (struct bytes){w->etag, ETAG_CHARS});
    gate_add(gate, w->type);
    gate_add(gate, w->encoding);
    gate_add(gate, body);
    if (life_is_full(record_line_of(gate->req)->life)) {
        gate_add(gate, BYTES("full"));
    }
    return gate_run(gate, &script_write, write_answer);
}

/* {"written" | "repeated", seq, status, ETag, mark} */
static enum step write_done(struct write *w, const struct store_reply *reply)
{
    char etag[ETAG_CHARS + 2 + 1] = "\"";
    struct bytes text = store_reply_text(reply, 3);

    if (text.len != ETAG_CHARS) {
        return gate_fail(&w->gate, PROBLEM_INTERNAL);
    }
    memcpy(etag + 1, text.at, ETAG_CHARS);
    etag[ETAG_CHARS + 1] = '"';
    gate_accept(&w->gate, store_reply_integer(reply, 4), "committed");
    http_reply_header(w->gate.req, "ETag", (struct bytes){etag, ETAG_CHARS + 2});
    worker_count(worker_of(w->gate.req), store_reply_is(reply, "written") ? COUNT_WRITTEN : COUNT_REPEATED);
    return http_answer(w->gate.req, (unsigned)store_reply_integer(reply, 2));
}

static enum step write_answer(struct store_call *call, enum store_outcome outcome,
                              const struct store_reply *reply)
{
    struct write *w = container_of(call, struct write, gate.record.store);
    enum problem bad = record_problem(&w->gate.record, outcome, reply);

    if (bad != PROBLEM_NONE) {
        return gate_fail(&w->gate, bad);
    }
    if (store_reply_is(reply, "written") || store_reply_is(reply, "repeated")) {
        return write_done(w, reply);
    }
    return gate_refuse_stored(&w->gate, reply);
}

/* client_resource.c - pawl_put(), pawl_get(), pawl_delete(): resources, through the gateway, with the token.
 *
 * A write is sent once. With an Idempotency-Key the gateway knows a repeat by it and gives the first answer
 * again (docs/contract.md, section 5); If-Match alone would keep a repeat from being applied twice, but its
 * refusal would then hide that the first attempt was applied. */
#include <stdlib.h>

#include "api/client/client.h"

enum { KEY_MAX_BYTES = 512, BODY_MAX_BYTES = 256 << 20 };

#define WRITE_FIRST (offsetof(struct pawl_write, idempotency_key) + sizeof(const char *))
#define WRITTEN_FIRST (offsetof(struct pawl_written, etag) + PAWL_ETAG_SIZE)
#define RESOURCE_FIRST (offsetof(struct pawl_resource, content_type) + PAWL_TYPE_SIZE)

static bool is_key(const char *key)
{
    return key != NULL && *key != '\0' && strlen(key) <= KEY_MAX_BYTES;
}

/* -- writing */

struct write {
    const char *method, *key, *token;
    struct bytes body; /* at NULL: none */
    struct pawl_write with;
};

static const char foreign[] =
    "It was answered, but not as a gateway of Pawl's does: it may have happened. Look at the address.";

/* What the gateway always says of a write that was done: a proxy that says 200 has not done it. */
static bool is_written(const struct write *w, const struct http_client_answer *answer)
{
    bool put = strcmp(w->method, "PUT") == 0;

    return (answer->status == 204 || (put && answer->status == 201)) &&
           strncmp(answer->fencing_status, "pawl;", 5) == 0 && (!put || answer->etag[0] != '\0');
}

static enum pawl_outcome write_run(const struct pawl *pawl, const struct write *w,
                                   struct pawl_written *written, struct pawl_problem *problem)
{
    enum call_repeat repeat = w->with.idempotency_key != NULL ? CALL_KEYED : CALL_ONCE;
    enum pawl_outcome outcome;
    struct client_call call;

    call_init(&call, pawl, w->method, repeat);
    call_header(&call, "Fencing-Token", w->token);
    if (w->body.at != NULL) {
        call_header(&call, "Content-Type", w->with.content_type);
        call.request.body = w->body;
    }
    call_header(&call, "If-Match", w->with.if_match);
    call_header(&call, "If-None-Match", w->with.if_none_match);
    call_header(&call, "Idempotency-Key", w->with.idempotency_key);
    call_url(&call, pawl->gateway_url, "/v1/resources/", w->key, '/');
    outcome = call_run(&call, problem);
    if (outcome == PAWL_OK && !is_written(w, &call.answer)) {
        outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer", foreign);
        problem->status = (int)call.answer.status;
    } else if (outcome == PAWL_OK) {
        written->created = call.answer.status == 201;
        client_text(written->etag, sizeof(written->etag), bytes_of(call.answer.etag));
    }
    call_done(&call);
    return outcome;
}

static enum pawl_outcome write_call(struct pawl *pawl, struct write *w, const struct pawl_write *with,
                                    struct pawl_written *written, struct pawl_problem *problem)
{
    struct pawl_written own = {.size = sizeof(own)};
    struct pawl_problem why;
    enum pawl_outcome outcome;

    if (pawl == NULL || !is_key(w->key) || w->token == NULL || *w->token == '\0' ||
        w->body.len > BODY_MAX_BYTES || (w->body.at == NULL && w->body.len > 0) ||
        (with != NULL && !client_size_fits(with->size, WRITE_FIRST)) ||
        (written != NULL && !client_size_fits(written->size, WRITTEN_FIRST))) {
        return problem_give_wrong(
            problem, "The key, the token or the body is missing, or a struct has no right size.");
    }
    w->with = (struct pawl_write){.size = sizeof(w->with)};
    if (with != NULL)
        client_take(&w->with, with, sizeof(w->with));
    outcome = write_run(pawl, w, &own, &why);
    if (outcome == PAWL_OK && written != NULL)
        client_give(written, &own, sizeof(own));
    return problem_give(problem, &why, outcome);
}

enum pawl_outcome pawl_put(struct pawl *pawl, const char *key, const char *fencing_token, const void *body,
                           size_t len, const struct pawl_write *write, struct pawl_written *written,
                           struct pawl_problem *problem)
{
    struct write w = {
        .method = "PUT", .key = key, .token = fencing_token, .body = {len > 0 ? body : "", len}};

    return write_call(pawl, &w, write, written, problem);
}

enum pawl_outcome pawl_delete(struct pawl *pawl, const char *key, const char *fencing_token,
                              const struct pawl_write *write, struct pawl_written *written,
                              struct pawl_problem *problem)
{
    struct write w = {.method = "DELETE", .key = key, .token = fencing_token};

    return write_call(pawl, &w, write, written, problem);
}

/* -- reading */

static const char foreign_read[] =
    "It was answered, but not as a gateway of Pawl's does. Look at the address.";

static enum pawl_outcome read_run(const struct pawl *pawl, const char *key, const char *token,
                                  struct pawl_resource *resource, struct pawl_problem *problem)
{
    enum pawl_outcome outcome;
    struct client_call call;

    call_init(&call, pawl, "GET", CALL_READ);
    call_header(&call, "Fencing-Token", token);
    call_url(&call, pawl->gateway_url, "/v1/resources/", key, '/');
    outcome = call_run(&call, problem);
    if (outcome == PAWL_OK &&
        (call.answer.status != 200 || call.answer.etag[0] == '\0' || call.answer.fencing_mark[0] == '\0')) {
        outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer", foreign_read);
    } else if (outcome == PAWL_OK) {
        resource->body = call.answer.body;
        resource->len = call.answer.len;
        call.answer.body = NULL;
        client_text(resource->etag, sizeof(resource->etag), bytes_of(call.answer.etag));
        client_text(resource->content_type, sizeof(resource->content_type),
                    bytes_of(call.answer.content_type));
    }
    call_done(&call);
    return outcome;
}

enum pawl_outcome pawl_get(struct pawl *pawl, const char *key, const char *fencing_token,
                           struct pawl_resource *resource, struct pawl_problem *problem)
{
    struct pawl_resource own = {.size = sizeof(own)};
    struct pawl_problem why;
    enum pawl_outcome outcome;

    if (pawl == NULL || !is_key(key) || resource == NULL || !client_size_fits(resource->size, RESOURCE_FIRST))
        return problem_give_wrong(problem, "The key is missing, or a struct has no right size.");
    outcome = read_run(pawl, key, fencing_token, &own, &why);
    client_give(resource, &own, sizeof(own));
    return problem_give(problem, &why, outcome);
}

void pawl_resource_done(struct pawl_resource *resource)
{
    if (resource != NULL) {
        free(resource->body);
        resource->body = NULL;
        resource->len = 0;
    }
}

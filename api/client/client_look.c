/* client_look.c - pawl_look(): who holds a lease. */
#include "api/client/client.h"

#define VIEW_FIRST (offsetof(struct pawl_view, held_for_ms) + sizeof(int64_t))

static bool view_state(const struct json *json, enum pawl_state *state)
{
    struct bytes text = client_member(json, "state");

    *state = bytes_are(text, "held") ? PAWL_TAKEN : bytes_are(text, "delayed") ? PAWL_DELAYED : PAWL_FREE;
    return *state != PAWL_FREE || bytes_are(text, "free");
}

static void view_holder(const struct json *holder, struct pawl_view *view)
{
    struct bytes mode = client_member(holder, "mode");

    client_text(view->holder, sizeof(view->holder), client_member(holder, "holder"));
    view->mode = bytes_are(mode, "shared")    ? PAWL_SHARED
                 : bytes_are(mode, "permits") ? PAWL_PERMITS
                                              : PAWL_EXCLUSIVE;
    view->holder_token = client_number(holder, "token");
    view->expires_in_ms = client_number(holder, "expires_in_ms");
    view->held_for_ms = client_number(holder, "held_for_ms");
}

static bool view_take(const struct json *json, const char *name, struct pawl_view *view)
{
    const struct json *first;
    enum json_found found;

    if (json == NULL || !bytes_are(client_member(json, "lease"), name) || !view_state(json, &view->state)) {
        return false;
    }
    view->token = client_number(json, "token");
    view->epoch = client_number(json, "epoch");
    view->waiting = (unsigned)client_number(json, "waiting");
    view->holders = (unsigned)json_list_count(json, "holders", &found);
    first = view->holders > 0 ? json_list_object(json, "holders", 0) : NULL;
    if (first != NULL) {
        view_holder(first, view);
    }
    return true;
}

static enum pawl_outcome look(const struct pawl *pawl, const char *name, struct pawl_view *view,
                              struct pawl_problem *problem)
{
    enum pawl_outcome outcome;
    const char *why = NULL;
    struct call call;

    call_init(&call, pawl, "GET", CALL_READ);
    if (!call_url(&call, pawl->lease_url, "/v1/leases/", name, '\0')) {
        return problem_say(problem, PAWL_NOT_DONE, "out-of-memory", "There is no memory.");
    }
    outcome = call_run(&call, problem);
    if (outcome == PAWL_OK) {
        call.json = json_parse((struct bytes){call.answer.body, call.answer.len}, CLIENT_JSON_LEVELS, &why);
        if (call.answer.status != 200 || !view_take(call.json, name, view)) {
            outcome = problem_say(problem, PAWL_UNKNOWN, "bad-answer",
                                  "The answer cannot be read. Look at the address of the service.");
        }
    }
    call_done(&call);
    return outcome;
}

enum pawl_outcome pawl_look(struct pawl *pawl, const char *name, struct pawl_view *view,
                            struct pawl_problem *problem)
{
    struct pawl_view own = {.size = sizeof(own)};
    struct pawl_problem why;
    enum pawl_outcome outcome;

    problem_reset(&why);
    if (pawl == NULL || !client_is_name(name) || view == NULL || !client_size_fits(view->size, VIEW_FIRST)) {
        outcome = problem_say(&why, PAWL_NOT_DONE, "bad-argument",
                              "This is not the name of a lease, or a struct has no right size.");
        return problem_give(problem, &why, outcome);
    }
    outcome = look(pawl, name, &own, &why);
    if (outcome == PAWL_OK) {
        client_give(view, &own, sizeof(own));
    }
    return problem_give(problem, &why, outcome);
}

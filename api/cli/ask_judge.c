/* ask_judge.c - whether an answer is Pawl's. */
#include "api/cli/ask_judge.h"

#include "api/client/client.h"
#include "shared/problem.h"
#include "shared/record/name.h"

enum { JSON_LEVELS = 16, STATUS_LOST = 76, MEMBER_SIZE = 32 };

static bool has_all(const struct json *json, const char *needs)
{
    char name[MEMBER_SIZE];
    int64_t unused = 0;

    for (size_t len; *needs != '\0'; needs += len + (needs[len] == ' ')) {
        len = strcspn(needs, " ");
        snprintf(name, sizeof(name), "%.*s", (int)len, needs);
        if (json_get_int(json, name, &unused) == JSON_ABSENT) {
            return false;
        }
    }
    return true;
}

/* What is said of another lease is no answer. */
static bool is_of(const struct json *json, const char *name)
{
    struct bytes lease = {NULL, 0};

    return name == NULL || json_get_text(json, "lease", &lease) != JSON_FOUND || bytes_are(lease, name);
}

/* Each item that is of a lease has its name: what a shell completes, too. */
static bool items_are_of_leases(const struct json *json)
{
    enum json_found found;
    size_t count = json_list_count(json, "items", &found);

    for (size_t i = 0; i < count; i++) {
        const struct json *item = json_list_object(json, "items", i);
        struct bytes lease = {NULL, 0};

        if (item != NULL && json_get_text(item, "lease", &lease) == JSON_FOUND && !name_is_lease(lease)) {
            return false;
        }
    }
    return true;
}

static bool is_good_json(const struct ask *ask, const struct json *json)
{
    if (ask->wants == ASK_GRANT) {
        return bytes_are(ask_text(json, "lease"), ask->name) && ask_int(json, "token") > 0 &&
               ask_text(json, "fencing_token").len > 0 &&
               bytes_are(ask_text(json, "lease_id"), ask->lease_id);
    }
    if (ask->wants == ASK_RELEASED) {
        return ask_int(json, "holds") > 0;
    }
    return has_all(json, ask->needs) && is_of(json, ask->name) && items_are_of_leases(json);
}

static bool has_good_json(const struct ask *ask, const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    bool good = json != NULL && is_good_json(ask, json);

    json_free(json);
    return good;
}

static bool is_good(const struct ask *ask, const struct http_client_answer *answer)
{
    static const char accepted[] = "pawl; verdict=accepted;";
    bool checked = strncmp(answer->fencing_status, "pawl;", 5) == 0;

    switch (ask->wants) {
    case ASK_ANYTHING: return true;
    case ASK_JSON: return answer->status == 200 && has_good_json(ask, answer);
    case ASK_GRANT: return (answer->status == 200 || answer->status == 201) && has_good_json(ask, answer);
    case ASK_RELEASED: return answer->status == 204 || (answer->status == 200 && has_good_json(ask, answer));
    case ASK_WRITTEN:
        return (answer->status == 201 || answer->status == 204) && checked && answer->etag[0] != '\0';
    case ASK_DELETED: return answer->status == 204 && checked;
    case ASK_CONTENT:
        return answer->status == 200 && answer->etag[0] != '\0' && answer->fencing_mark[0] != '\0';
    case ASK_ACCEPTED:
        return answer->status == 200 && strncmp(answer->fencing_status, accepted, sizeof(accepted) - 1) == 0;
    case ASK_STREAM:
        return answer->status == 200 && strncmp(answer->content_type, "text/event-stream", 17) == 0;
    }
    return false;
}

bool ask_is_pawls(const struct ask *ask, const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json;
    bool is;

    if (ask->wants == ASK_ANYTHING || (answer->status >= 200 && answer->status < 300)) {
        return is_good(ask, answer);
    }
    json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    is = problem_is_pawls(answer, json);
    json_free(json);
    return is;
}

enum ask_doubt ask_doubt_of(const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json;
    enum problem problem;

    if (answer->status >= 200 && answer->status < 300) {
        return ASK_CERTAIN;
    }
    if (answer->status == 500 || answer->status == 504) {
        return ASK_IN_DOUBT;
    }
    json = json_parse((struct bytes){answer->body, answer->len}, JSON_LEVELS, &why);
    problem = json != NULL ? problem_find(ask_text(json, "code")) : PROBLEM_NONE;
    json_free(json);
    if (problem == PROBLEM_NONE && answer->status > 500 && answer->status != 503) {
        return ASK_IN_DOUBT; /* a later version's code: only 4xx and 503 are said of what was not done */
    }
    return problem != PROBLEM_NONE && problem_info(problem)->exit_status == STATUS_LOST ? ASK_CERTAIN
                                                                                        : ASK_REFUSED;
}

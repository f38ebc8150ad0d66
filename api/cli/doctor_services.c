/* doctor_services.c - both services, as their health pages tell it.
 *
 *   /version   reachable; the right program, of this version; Date: its clock
 *   /readyz    200, or which of its checks fails */
#include <time.h>

#include "api/cli/cli.h"
#include "api/cli/doctor.h"

enum { DATE_PRECISION_MS = 1000, MEMORY_WARN_PERCENT = 75 };

struct service {
    const char *label, *program; /* "lease", "pawl-lease" */
    const char *flag, *base;
    int (*address)(struct ask *ask, const char *base, const char *path);
};

static void checked(char buf[DOCTOR_CHECK_SIZE], const struct service *service, const char *what)
{
    snprintf(buf, DOCTOR_CHECK_SIZE, "%s %s", service->label, what);
}

static void found(struct doctor *doctor, const struct service *service, enum doctor_weight weight,
                  const char *check, struct doctor_finding **finding)
{
    char name[DOCTOR_CHECK_SIZE];

    checked(name, service, check);
    *finding = doctor_add(doctor, weight, name);
}

static void tell_unreachable(struct doctor *doctor, const struct service *service, const char *url,
                             const char *why)
{
    struct doctor_finding *finding;

    found(doctor, service, DOCTOR_PROBLEM, "service", &finding);
    doctor_say(finding->what, "%s cannot be reached: %s", url, why);
    doctor_say(finding->todo,
               "Start %s, or say where it is: %s URL. (pawl dev starts one to try things out.)",
               service->program, service->flag);
}

static void look_at_clock(struct doctor *doctor, const struct service *service, const char *date,
                          int64_t before_ms, int64_t after_ms)
{
    struct tm broken = {0};
    char name[DOCTOR_CHECK_SIZE];
    int64_t theirs_ms, ours_ms = before_ms + (after_ms - before_ms) / 2;

    if (strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &broken) == NULL) {
        return; /* RFC 9110 lets a server without a clock leave it out */
    }
    theirs_ms = (int64_t)timegm(&broken) * 1000 + DATE_PRECISION_MS / 2;
    checked(name, service, "clock");
    doctor_clock(doctor, name, service->program, theirs_ms - ours_ms,
                 DATE_PRECISION_MS + (after_ms - before_ms));
}

/* Whether it is what it should be. */
static bool look_at_version(struct doctor *doctor, const struct service *service, const char *url,
                            const struct http_client_answer *answer)
{
    const char *why = NULL;
    struct json *json = json_parse((struct bytes){answer->body, answer->len}, 4, &why);
    struct bytes name = json != NULL ? ask_text(json, "name") : BYTES("");
    struct bytes version = json != NULL ? ask_text(json, "version") : BYTES("");
    bool right = answer->status == 200 && bytes_are(name, service->program);
    bool same = right && bytes_are(version, PAWL_VERSION);
    struct doctor_finding *finding;

    found(doctor, service, same ? DOCTOR_OK : DOCTOR_PROBLEM, right ? "version" : "service", &finding);
    if (!right) {
        doctor_say(finding->what, "%s answered %u, and not as %s does", url, answer->status,
                   service->program);
        doctor_say(finding->todo, "Is %s right? Something else may have the port, or stand in between.",
                   service->flag);
    } else {
        doctor_say(finding->what, "%s is %.*s%s%s", service->program, (int)version.len, version.at,
                   same ? "" : ", and this pawl is ", same ? "" : PAWL_VERSION);
        doctor_say(finding->todo, "%s", same ? "" : "Install the same version everywhere.");
    }
    json_free(json);
    return right;
}

/* Before it is full: grants, sessions and writes end at 90 %. */
static void look_at_memory(struct doctor *doctor, const struct service *service, const struct json *memory)
{
    int64_t used = memory != NULL ? ask_int(memory, "used_bytes") : 0;
    int64_t allowed = memory != NULL ? ask_int(memory, "allowed_bytes") : 0;
    struct doctor_finding *finding;

    if (allowed <= 0 || used <= 0) {
        return;
    }
    found(doctor, service, used / MEMORY_WARN_PERCENT < allowed / 100 ? DOCTOR_OK : DOCTOR_PROBLEM, "memory",
          &finding);
    doctor_say(finding->what, "the store uses %lld of the %lld bytes that %s allows it", (long long)used,
               (long long)allowed, service->program);
    if (finding->weight == DOCTOR_PROBLEM) {
        doctor_say(finding->todo, "From 90 %% on nothing new is granted, opened or written (store-full): "
                                  "give Redis more (maxmemory; "
                                  "--store-memory-max of both services), or delete stored resources.");
    }
}

static void tell_ready(struct doctor *doctor, const struct service *service, const struct json *json)
{
    struct bytes lacking = ask_text(json, "detail");
    struct doctor_finding *finding;

    found(doctor, service, lacking.len == 0 ? DOCTOR_OK : DOCTOR_PROBLEM, "ready", &finding);
    if (lacking.len == 0) {
        doctor_say(finding->what, "%s is ready", service->program);
    } else {
        doctor_say(finding->what, "%s serves, but not all of it: %.*s", service->program, (int)lacking.len,
                   lacking.at);
        doctor_say(finding->todo, "pawl store status, run where Redis can be reached, says more.");
    }
    look_at_memory(doctor, service, json_get_object(json, "store_memory", &(enum json_found){JSON_ABSENT}));
}

/* A problem says in its detail what is wrong and what to do now. */
static void look_at_ready(struct doctor *doctor, const struct service *service,
                          enum http_client_outcome outcome, const struct http_client_answer *answer)
{
    bool answered = outcome == HTTP_CLIENT_ANSWERED;
    const char *why = NULL;
    struct json *json = answered ? json_parse((struct bytes){answer->body, answer->len}, 16, &why) : NULL;
    struct bytes detail = json != NULL ? ask_text(json, "detail") : BYTES("");
    struct doctor_finding *finding;

    if (json != NULL && answer->status == 200) {
        tell_ready(doctor, service, json);
        json_free(json);
        return;
    }
    found(doctor, service, DOCTOR_PROBLEM, "ready", &finding);
    if (answered) {
        doctor_say(finding->what, "%s is not ready (%u): %.*s", service->program, answer->status,
                   (int)detail.len, detail.at != NULL ? detail.at : "");
    } else {
        doctor_say(finding->what, "%s did not say whether it is ready: %s", service->program, answer->why);
    }
    doctor_say(finding->todo,
               "pawl store status, run where Redis can be reached, says what the store needs; the "
               "log of %s has the rest.",
               service->program);
    json_free(json);
}

static bool look(struct doctor *doctor, const struct service *service)
{
    struct ask version = {.what = "doctor", .trace = doctor->trace, .request.method = "GET"};
    struct ask ready = {.what = "doctor",
                        .wants = ASK_JSON,
                        .needs = "status checks",
                        .trace = doctor->trace,
                        .request.method = "GET"};
    struct http_client_answer answer = {0};
    int64_t before_ms = doctor_now_ms();
    bool right = false;

    if (service->address(&version, service->base, "/version") != CLI_GO_ON) {
        tell_unreachable(doctor, service, service->base, "this is not an address");
        return false;
    }
    if (ask_try(&version, &answer) != HTTP_CLIENT_ANSWERED) {
        tell_unreachable(doctor, service, version.url, answer.why);
    } else {
        right = look_at_version(doctor, service, version.url, &answer);
    }
    if (right) {
        look_at_clock(doctor, service, answer.date, before_ms, doctor_now_ms());
        http_client_answer_done(&answer);
        service->address(&ready, service->base, "/readyz");
        look_at_ready(doctor, service, ask_try(&ready, &answer), &answer);
    }
    http_client_answer_done(&answer);
    ask_done(&version);
    ask_done(&ready);
    return right;
}

void doctor_services(struct doctor *doctor)
{
    const struct service lease = {"lease", "pawl-lease", "--lease-url", doctor->lease_url, ask_lease_service};
    const struct service gateway = {"gateway", "pawl-gateway", "--gateway-url", doctor->gateway_url,
                                    ask_gateway};

    doctor->lease_answers = look(doctor, &lease);
    doctor->gateway_answers = look(doctor, &gateway);
}

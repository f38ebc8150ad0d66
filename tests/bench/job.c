/* job.c - what a connection does again and again, and what it must hear each time. */
#include "tests/bench/job.h"

#include <stdlib.h>

#include "shared/token/keys.h"
#include "tests/bench/wire.h"

#define HTTP_HOST "Host: 127.0.0.1\r\n"
#define KEY_STRIPE "pawl:{" RUN_STRIPE "}"
#define KEY_DUE KEY_STRIPE ":due"
#define KEY_LEASE KEY_STRIPE ":l:" RUN_NAME
#define REMEMBER_MS "600000" /* --remember, when it is not given */
#define HOLDER "anonymous"   /* docs/contract.md: if none was given */
#define TTL_PAIR_MS "30000"
#define TTL_HELD_MS "86400000"

enum { EPOCH_ARGS = 4, STRIPE_SIZE = 16, KEY_SIZE = 64 };

static const char *ttl_of(enum job_kind kind)
{
    return kind == JOB_LEASE ? TTL_PAIR_MS : TTL_HELD_MS;
}

void step_expect(struct job_step *step, const char *word, const char *other)
{
    step->words[0] = word;
    step->words[1] = other;
    request_done(&step->request);
}

static void body_of_put(char body[PUT_BYTES])
{
    for (unsigned i = 0; i < PUT_BYTES; i++)
        body[i] = (char)('a' + i % 26);
}

/* -- HTTP */

static void http_head(struct job_step *step, const char *method, const char *token)
{
    request_addf(&step->request, "%s /v1/leases/" RUN_NAME " HTTP/1.1\r\n" HTTP_HOST, method);
    if (token != NULL)
        request_addf(&step->request, "Authorization: Bearer %s\r\n", token);
}

static void http_acquire(struct job_step *step, const char *ttl, const char *token)
{
    char body[128];
    int len = snprintf(body, sizeof(body), "{\"ttl_ms\":%s,\"lease_id\":\"" RUN_LEASE_ID "\"}", ttl);

    http_head(step, "POST", token);
    request_addf(&step->request, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len, body);
    step_expect(step, "201", NULL);
}

static void http_release(struct job_step *step, const char *token)
{
    http_head(step, "DELETE", token);
    request_addf(&step->request, "Lease-Id: " RUN_LEASE_ID "\r\n\r\n");
    step_expect(step, "204", NULL);
}

bool job_has_holds(enum job_kind kind)
{
    return kind == JOB_PUT || kind == JOB_READ || kind == JOB_CHECK;
}

static void http_read(struct job_step *step, const char *path, const char *name)
{
    bool is_whole = path[strlen(path) - 1] != '/'; /* nobody's name follows it */

    request_addf(&step->request, "GET %s%s HTTP/1.1\r\n" HTTP_HOST "\r\n", path, is_whole ? "" : name);
    step_expect(step, "204", "200");
}

static void http_check(struct job_step *step, const char *path, const char *name, const char *token)
{
    request_addf(&step->request, "GET %s%s HTTP/1.1\r\n" HTTP_HOST "Fencing-Token: %s\r\n\r\n", path, name,
                 token);
    step_expect(step, "200", "204");
}

static void http_put(struct job_step *step, const char *path, const char *name, const char *token)
{
    char body[PUT_BYTES];

    body_of_put(body);
    request_addf(&step->request, "PUT %s%s HTTP/1.1\r\n" HTTP_HOST "Fencing-Token: %s\r\n", path, name,
                 token);
    request_addf(&step->request, "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n",
                 PUT_BYTES);
    request_add(&step->request, (struct bytes){body, sizeof(body)});
    step_expect(step, "204", "201");
}

void job_init_http(struct job *job, enum job_kind kind, const char *token)
{
    *job = (struct job){.kind = kind, .speech = SPEAK_HTTP, .measure = http_measure, .step_count = 1};
    if (job_has_holds(kind))
        return;
    http_acquire(&job->steps[0], ttl_of(kind), token);
    if (kind == JOB_LEASE)
        http_release(&job->steps[job->step_count++], token);
}

/* -- Redis */

static void resp_add(struct request *req, struct bytes text)
{
    request_addf(req, "$%zu\r\n", text.len);
    request_add(req, text);
    request_add(req, BYTES("\r\n"));
}

/* As every call ends (the member_run() of then), from somebody who has seen nothing yet. */
static void resp_add_epoch(struct request *req, const struct job_scripts *scripts)
{
    resp_add(req, bytes_of(scripts->identity));
    resp_add(req, bytes_of(scripts->epoch));
    resp_add(req, BYTES("0"));
    resp_add(req, BYTES("0"));
}

void resp_command(struct request *req, const char *const *words)
{
    unsigned count = 0;

    while (words[count])
        count++;
    request_addf(req, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++)
        resp_add(req, bytes_of(words[i]));
}

static void resp_evalsha(struct request *req, const struct job_scripts *scripts, const char *sha,
                         const char *const *keys, const char *const *args)
{
    unsigned key_count = 0, arg_count = 0;
    char number[16];

    while (keys[key_count])
        key_count++;
    while (args[arg_count])
        arg_count++;
    snprintf(number, sizeof(number), "%u", key_count);
    request_addf(req, "*%u\r\n", 3 + key_count + arg_count + EPOCH_ARGS);
    resp_add(req, BYTES("EVALSHA"));
    resp_add(req, bytes_of(sha));
    resp_add(req, bytes_of(number));
    for (unsigned i = 0; i < key_count; i++)
        resp_add(req, bytes_of(keys[i]));
    for (unsigned i = 0; i < arg_count; i++)
        resp_add(req, bytes_of(args[i]));
    resp_add_epoch(req, scripts);
}

static const char *const lease_keys[] = {KEY_STRIPE, KEY_DUE, KEY_LEASE, NULL};

static void resp_acquire(struct job_step *step, const struct job_scripts *scripts, const char *ttl)
{
    const char *const args[] = {RUN_NAME, REMEMBER_MS, RUN_LEASE_ID, RUN_HOLD, HOLDER,
                                ttl,      "",          "grant",      "",       NULL};

    resp_evalsha(&step->request, scripts, scripts->acquire, lease_keys, args);
    step_expect(step, "granted", NULL);
}

static void resp_release(struct job_step *step, const struct job_scripts *scripts)
{
    const char *const args[] = {RUN_NAME, REMEMBER_MS, RUN_LEASE_ID, "", "grant", "one", "", "", NULL};

    resp_evalsha(&step->request, scripts, scripts->release, lease_keys, args);
    step_expect(step, "released", NULL);
}

/* NUMBER;lease="NAME";mode=exclusive;epoch=NUMBER;hold="HOLD";..., as the baseline makes it. */
static void token_part(char part[24], const char *token, const char *before)
{
    const char *at = strstr(token, before);
    size_t len = at ? strcspn(at + strlen(before), ";\"") : 0;

    if (len == 0 || len >= 24)
        load_fail("not a fencing token of the baseline: %s", token);
    snprintf(part, 24, "%.*s", (int)len, at + strlen(before));
}

static void resp_put(struct job_step *step, const struct job_scripts *scripts, const char *name,
                     const char *token)
{
    char number[24], epoch[24], hold[24], body[PUT_BYTES + 1] = "";
    char stripe[STRIPE_SIZE], gone[KEY_SIZE], lease[KEY_SIZE], resource[KEY_SIZE];
    const char *const keys[] = {stripe, lease, resource, gone, NULL};
    const char *const args[] = {name, number, epoch, hold, "exclusive", name,
                                "",   "",     "",    "",   RUN_ETAG,    "application/octet-stream",
                                "",   body,   NULL};
    unsigned number_of_stripe = keys_stripe_of(bytes_of(name));

    token_part(number, token, "");
    token_part(epoch, token, ";epoch=");
    token_part(hold, token, ";hold=\"");
    body_of_put(body);
    snprintf(stripe, sizeof(stripe), "pawl:{%02x}", number_of_stripe % STRIPES);
    snprintf(gone, sizeof(gone), "%s:gone", stripe);
    snprintf(lease, sizeof(lease), "%s:l:%.16s", stripe, name);
    snprintf(resource, sizeof(resource), "%s:r:%.16s", stripe, name);
    resp_evalsha(&step->request, scripts, scripts->write, keys, args);
    step_expect(step, "written", NULL);
}

void job_init_resp(struct job *job, enum job_kind kind, const struct job_scripts *scripts)
{
    *job = (struct job){.kind = kind, .speech = SPEAK_RESP, .measure = resp_measure, .step_count = 1};
    if (job_has_holds(kind))
        return;
    resp_acquire(&job->steps[0], scripts, ttl_of(kind));
    if (kind == JOB_LEASE)
        resp_release(&job->steps[job->step_count++], scripts);
}

void job_read_holds(struct job *job, FILE *file, const struct job_scripts *scripts)
{
    char line[1024];

    while (fgets(line, sizeof(line), file)) {
        char *token = line + NAME_BYTES + 1;
        struct job_step *step;

        line[strcspn(line, "\n")] = '\0';
        if (strlen(line) <= NAME_BYTES || line[NAME_BYTES] != ' ')
            continue;
        line[NAME_BYTES] = '\0';
        job->puts = realloc(job->puts, (job->put_count + 1) * sizeof(*job->puts));
        if (!job->puts)
            abort();
        step = &job->puts[job->put_count++];
        *step = (struct job_step){0};
        if (scripts)
            resp_put(step, scripts, line, token);
        else if (job->kind == JOB_READ)
            http_read(step, job->path, line);
        else if (job->kind == JOB_CHECK)
            http_check(step, job->path, line, token);
        else
            http_put(step, job->path, line, token);
    }
}

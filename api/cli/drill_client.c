/* drill_client.c - one client of a drill: its requests, each of which goes into the history with its end. */
#include "api/cli/drill_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/client/http_client.h"
#include "shared/json.h"

enum {
    REQUEST_MS = 4000,
    BODY_SIZE = 256,
    PAGE_SIZE = DRILL_URL_SIZE + DRILL_LEASE_NAME_SIZE + 32,
    JSON_LEVELS = 8
};

/* One request, from its place in the history to its end there. */
struct exchange {
    struct drill_client *client;
    struct drill_event event;
    struct http_client_request request;
    struct http_client_answer answer;
    char page[PAGE_SIZE], body[BODY_SIZE];
};

void drill_lease_name(unsigned lease, char name[DRILL_LEASE_NAME_SIZE])
{
    /* The second three are in the stripes of the first three: they share a counter with them. */
    static const char *const names[DRILL_LEASES + DRILL_LEASES_SPARE] = {
        "drill:orders",   "drill:mail", "drill:stock",   "drill:orders-386", "drill:mail-62",
        "drill:stock-60", "drill:long", "drill:revived", "drill:probe",      "drill:spare"};

    snprintf(name, DRILL_LEASE_NAME_SIZE, "%s", names[lease]);
}

/* -- how a request begins and ends */

static void exchange_begin(struct exchange *exchange, struct drill_client *client, enum drill_event_kind kind,
                           const struct drill_hold *hold, unsigned lease)
{
    *exchange = (struct exchange){.client = client,
                                  .request = {.url = exchange->page, .timeout_ms = REQUEST_MS}};
    exchange->event = (struct drill_event){.kind = kind, .client = client->number, .lease = lease};
    if (hold != NULL) {
        exchange->event.hold = hold->number;
        exchange->event.token = hold->token;
        exchange->event.epoch = hold->epoch;
        exchange->event.ttl_ms = hold->ttl_ms;
    }
}

static const struct drill_service *service_of(struct drill_client *client, enum drill_event_kind kind)
{
    struct drill_world *world = client->world;

    if (kind == DRILL_WRITE || kind == DRILL_READ) {
        return &world->gateway;
    }
    return client->service != NULL
               ? client->service
               : &world->lease[drill_random_between(&client->random, 0, world->services - 1)];
}

static void page_write(struct exchange *exchange)
{
    char url[DRILL_URL_SIZE], name[DRILL_LEASE_NAME_SIZE];
    enum drill_event_kind kind = exchange->event.kind;

    drill_world_url(exchange->client->world, service_of(exchange->client, kind), url);
    drill_lease_name(exchange->event.lease, name);
    snprintf(exchange->page, sizeof(exchange->page), "%s/v1/%s/%s", url,
             kind == DRILL_WRITE || kind == DRILL_READ ? "resources" : "leases", name);
}

static void body_set(struct exchange *exchange, int len)
{
    exchange->request.body = (struct bytes){exchange->body, (size_t)len};
}

static void header_set(struct exchange *exchange, unsigned at, const char *name, const char *value)
{
    exchange->request.headers[at] = (struct http_client_header){name, bytes_of(value)};
}

/* The code of a problem, or what libcurl said. */
static void code_keep(struct exchange *exchange, const struct json *json)
{
    struct bytes code = {0};

    if (json != NULL && json_get_text(json, "code", &code) == JSON_FOUND) {
        snprintf(exchange->event.code, DRILL_CODE_SIZE, "%.*s", (int)code.len, code.at);
    }
    memcpy(exchange->client->code, exchange->event.code, DRILL_CODE_SIZE);
}

static enum drill_event_end end_of(const struct exchange *exchange, enum http_client_outcome outcome)
{
    unsigned status = exchange->answer.status;

    if (outcome != HTTP_CLIENT_ANSWERED) {
        return outcome == HTTP_CLIENT_NOT_SENT ? DRILL_NOT_DONE : DRILL_UNKNOWN;
    }
    if (status < 300 || (status == 404 && exchange->event.kind == DRILL_READ)) {
        return DRILL_OK;
    }
    switch (status) {
    case 409: return strcmp(exchange->event.code, "hold-over") == 0 ? DRILL_OVER : DRILL_HELD;
    case 410:
    case 412: return DRILL_OVER;
    case 503: return DRILL_NOT_DONE;
    case 504: return DRILL_UNKNOWN;
    default: return DRILL_ODD;
    }
}

/* Sends it; json is the answer's object (the caller frees), NULL when it is none. */
static enum drill_event_end exchange_send(struct exchange *exchange, struct json **json)
{
    enum http_client_outcome outcome;
    const char *why;

    page_write(exchange);
    if (exchange->event.begun == 0) {
        exchange->event.begun = drill_history_place(exchange->client->history);
        exchange->event.begun_ms = cli_now_ms();
    }
    outcome = http_client_send(&exchange->request, &exchange->answer);
    *json = exchange->event.kind != DRILL_READ || exchange->answer.status >= 300
                ? json_parse((struct bytes){exchange->answer.body, exchange->answer.len}, JSON_LEVELS, &why)
                : NULL;
    code_keep(exchange, exchange->answer.status >= 300 ? *json : NULL);
    exchange->event.end = end_of(exchange, outcome);
    return exchange->event.end;
}

static enum drill_event_end exchange_end(struct exchange *exchange, struct json *json)
{
    json_free(json);
    http_client_answer_done(&exchange->answer);
    drill_history_tell(exchange->client->history, &exchange->event);
    return exchange->event.end;
}

/* -- the requests */

void drill_hold_new(struct drill_client *client, struct drill_hold *hold, unsigned lease, uint64_t ttl_ms)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    *hold = (struct drill_hold){
        .lease = lease, .number = drill_history_new_hold(client->history), .ttl_ms = ttl_ms};
    for (unsigned i = 0; i < DRILL_LEASE_ID_SIZE - 1; i++) {
        hold->lease_id[i] = letters[drill_random_next(&client->random) % (sizeof(letters) - 1)];
    }
}

/* A 2xx without a token would be one that nobody can use: odd. */
static bool grant_take(struct drill_hold *hold, const struct json *json, struct drill_event *event)
{
    struct bytes header = {0};

    if (json == NULL || json_get_int(json, "token", &hold->token) != JSON_FOUND ||
        json_get_int(json, "epoch", &hold->epoch) != JSON_FOUND ||
        json_get_text(json, "fencing_token", &header) != JSON_FOUND ||
        header.len >= sizeof(hold->fencing_token)) {
        return false;
    }
    memcpy(hold->fencing_token, header.at, header.len);
    hold->fencing_token[header.len] = '\0';
    hold->until_ms = event->begun_ms + hold->ttl_ms;
    event->token = hold->token;
    event->epoch = hold->epoch;
    return true;
}

enum drill_event_end drill_client_acquire(struct drill_client *client, struct drill_hold *hold)
{
    struct exchange exchange;
    struct json *json;

    exchange_begin(&exchange, client, DRILL_ACQUIRE, hold, hold->lease);
    exchange.request.method = "POST";
    header_set(&exchange, 0, "Content-Type", "application/json");
    body_set(&exchange, snprintf(exchange.body, BODY_SIZE,
                                 "{\"holder\":\"drill-%u\",\"ttl_ms\":%" PRIu64 ",\"lease_id\":\"%s\"}",
                                 client->number, hold->ttl_ms, hold->lease_id));
    exchange.event.begun = hold->begun; /* of a repetition: where it was asked for first */
    exchange.event.begun_ms = hold->begun_ms;
    if (exchange_send(&exchange, &json) == DRILL_OK && !grant_take(hold, json, &exchange.event)) {
        exchange.event.end = DRILL_ODD;
    }
    hold->begun = exchange.event.begun;
    hold->begun_ms = exchange.event.begun_ms;
    return exchange_end(&exchange, json);
}

enum drill_event_end drill_client_renew(struct drill_client *client, struct drill_hold *hold, uint64_t ttl_ms)
{
    struct exchange exchange;
    struct json *json;
    int64_t token = 0;

    exchange_begin(&exchange, client, DRILL_RENEW, hold, hold->lease);
    exchange.event.ttl_ms = ttl_ms > 0 ? ttl_ms : hold->ttl_ms;
    exchange.request.method = "PUT";
    header_set(&exchange, 0, "Lease-Id", hold->lease_id);
    header_set(&exchange, 1, "Content-Type", "application/json");
    body_set(&exchange,
             snprintf(exchange.body, BODY_SIZE, "{\"ttl_ms\":%" PRIu64 "}", exchange.event.ttl_ms));
    if (exchange_send(&exchange, &json) == DRILL_OK) {
        hold->ttl_ms = exchange.event.ttl_ms;
        hold->until_ms = exchange.event.begun_ms + hold->ttl_ms;
        /* A renewal that came back with another token would be another hold. */
        if (json == NULL || json_get_int(json, "token", &token) != JSON_FOUND || token != hold->token) {
            exchange.event.end = DRILL_ODD;
        }
    }
    return exchange_end(&exchange, json);
}

enum drill_event_end drill_client_release(struct drill_client *client, struct drill_hold *hold)
{
    struct exchange exchange;
    struct json *json;

    exchange_begin(&exchange, client, DRILL_RELEASE, hold, hold->lease);
    exchange.request.method = "DELETE";
    header_set(&exchange, 0, "Lease-Id", hold->lease_id);
    exchange_send(&exchange, &json);
    return exchange_end(&exchange, json);
}

enum drill_event_end drill_client_write(struct drill_client *client, const struct drill_hold *hold)
{
    struct exchange exchange;
    struct json *json;

    exchange_begin(&exchange, client, DRILL_WRITE, hold, hold->lease);
    exchange.event.value = drill_history_new_value(client->history);
    exchange.request.method = "PUT";
    header_set(&exchange, 0, "Fencing-Token", hold->fencing_token);
    header_set(&exchange, 1, "Content-Type", "text/plain");
    body_set(&exchange,
             snprintf(exchange.body, BODY_SIZE, "%" PRIu64 " with token %" PRId64 " of epoch %" PRId64,
                      exchange.event.value, hold->token, hold->epoch));
    exchange_send(&exchange, &json);
    return exchange_end(&exchange, json);
}

enum drill_event_end drill_client_read(struct drill_client *client, unsigned lease)
{
    struct exchange exchange;
    struct json *json;

    exchange_begin(&exchange, client, DRILL_READ, NULL, lease);
    exchange.request.method = "GET";
    if (exchange_send(&exchange, &json) == DRILL_OK && exchange.answer.status == 200) {
        exchange.event.value = strtoull(exchange.answer.body, NULL, 10);
        exchange.event.end = exchange.event.value > 0 ? DRILL_OK : DRILL_ODD;
    }
    return exchange_end(&exchange, json);
}

const char *drill_client_code(const struct drill_client *client)
{
    return client->code;
}

/* history.c - GET /v1/leases/{name}/history: who held it, how each hold ended, what was refused; and one such
 * item, packed and as users see it.
 *
 *   history_start  run history.lua     400, or suspended
 *   history_found  send the items      200
 *
 * All others: 404 | 503 | 504. */
#include <stdio.h>

#include "lease/events/events.h"
#include "lease/operation.h"
#include "lease/queue/queue.h"
#include "lease/worker.h"
#include "scripts.h"
#include "shared/text/ascii.h"

enum { DIGITS_MAX = 16, PARTS = 6 };
#define BEHIND '\x1f'

static bool read_number(struct bytes text, uint64_t *number)
{
    int64_t read = bytes_number(text, DIGITS_MAX);

    *number = (uint64_t)read;
    return read >= 0 && (text.len == 1 || (text.at != NULL && text.at[0] != '0'));
}

bool history_id_read(struct bytes text, struct history_id *id)
{
    struct bytes epoch = bytes_cut(&text, '.'), seq = bytes_cut(&text, '.');

    return read_number(epoch, &id->epoch) && read_number(seq, &id->seq) && read_number(text, &id->n);
}

bool history_id_read_user(struct bytes text, unsigned *stripe, struct history_id *id)
{
    struct bytes digits = bytes_cut(&text, '.');

    *stripe = 0;
    for (size_t i = 0; i < digits.len; i++) {
        int value = ascii_hex_value(digits.at[i]);

        if (value < 0 || (digits.at[i] >= 'A' && digits.at[i] <= 'F'))
            return false;
        *stripe = *stripe * 16 + (unsigned)value;
    }
    return digits.len == 2 && history_id_read(text, id);
}

int history_id_compare(const struct history_id *a, const struct history_id *b)
{
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    return (a->n > b->n) - (a->n < b->n);
}

bool history_item_read(struct bytes packed, struct history_item *item)
{
    struct bytes part[PARTS];
    uint64_t token, at_ms;

    for (size_t i = 0; i + 1 < PARTS; i++)
        part[i] = bytes_cut(&packed, '\t');
    part[PARTS - 1] = packed;
    *item = (struct history_item){.id_text = part[0], .type = part[1]};
    item->holder = bytes_cut(&part[3], BEHIND);
    item->identity = part[3];
    item->reason = bytes_cut(&part[5], BEHIND);
    item->more = part[5];
    if (!history_id_read(part[0], &item->id) || !read_number(part[2], &token) ||
        !read_number(part[4], &at_ms))
        return false;
    item->token = (int64_t)token;
    item->at_ms = (int64_t)at_ms;
    return item->type.len > 0;
}

struct bytes history_id_write(char buf[HISTORY_ID_SIZE], struct bytes lease, struct bytes id_text)
{
    int len = snprintf(buf, HISTORY_ID_SIZE, "%02x.%.*s", keys_stripe_of(lease), (int)id_text.len,
                       id_text.at);

    return (struct bytes){buf, (size_t)len < HISTORY_ID_SIZE ? (size_t)len : HISTORY_ID_SIZE - 1};
}

/* What stands behind the reason, a letter and its value each; and what need not be said there. */
static void more_write(struct json_out *json, const struct history_item *item)
{
    static const struct {
        char letter;
        const char *number, *text; /* its name, as one or the other */
    } members[] = {{'t', "ttl_ms", NULL},        {'w', "waited_ms", NULL},     {'m', NULL, "mode"},
                   {'r', "renewed_at_ms", NULL}, {'d', "lock_delay_ms", NULL}, {'l', "lost_at_ms", NULL},
                   {'c', "current_token", NULL}, {'g', NULL, "gateway"},       {'i', NULL, "instance"},
                   {'p', NULL, "resource"}};
    bool is_exclusive = bytes_are(item->type, "granted"), has_waited = !is_exclusive;
    struct bytes rest = item->more;

    if (bytes_are(item->type, "refused"))
        json_text(json, "code", item->reason);
    while (rest.len > 0) {
        struct bytes one = bytes_cut(&rest, BEHIND);

        is_exclusive = is_exclusive && !(one.len > 0 && one.at[0] == 'm');
        has_waited = has_waited || (one.len > 0 && one.at[0] == 'w');
        for (size_t i = 0; one.len > 1 && i < sizeof(members) / sizeof(members[0]); i++) {
            struct bytes value = {one.at + 1, one.len - 1};
            char urn[HTTP_ID_SIZE];

            if (members[i].letter != one.at[0])
                continue;
            if (one.at[0] == 'i') { /* as the problem has it */
                snprintf(urn, sizeof(urn), "urn:uuid:%.*s", (int)value.len, value.at);
                value = bytes_of(urn);
            }
            if (members[i].number != NULL)
                json_int(json, members[i].number, bytes_number(value, DIGITS_MAX));
            else
                json_text(json, members[i].text, value);
        }
    }
    if (is_exclusive)
        json_text(json, "mode", BYTES("exclusive"));
    if (!has_waited)
        json_int(json, "waited_ms", 0);
}

void history_item_write(struct json_out *json, const struct worker *worker, struct bytes lease,
                        const struct history_item *item)
{
    char id[HISTORY_ID_SIZE];

    json_object(json, NULL);
    json_text(json, "id", history_id_write(id, lease, item->id_text));
    json_text(json, "type", item->type);
    json_text(json, "lease", lease);
    json_int(json, "token", item->token);
    json_text(json, "holder", item->holder);
    lease_identity_write(json, worker, item->identity);
    json_int(json, "at_ms", item->at_ms);
    json_text(json, "reason", item->reason);
    more_write(json, item);
    json_object_end(json);
}

/* -- the operation */

/* {"history", seq, more, {item, ...}, {id, ...}, store time} */
static enum step history_found(struct member_call *call, const struct store_reply *reply)
{
    struct lease_call *lease = container_of(call, struct lease_call, record);
    const struct store_reply *items = store_reply_list(reply, 3);
    struct json_out *json = http_json_begin(lease->req);
    struct history_item item;

    if (store_reply_text(reply, 2).len > 0)
        handoff_more(lease_worker_of(lease->req)->handoff, lease->name);
    json_int(json, "now_ms", store_reply_integer(reply, 5));
    json_list(json, "items");
    for (size_t i = 0; i < store_reply_count(items); i++)
        if (history_item_read(store_reply_text(items, i), &item))
            history_item_write(json, worker_of(lease->req), lease->name, &item);
    json_list_end(json);
    return http_json_end(lease->req, 200);
}

enum step history_start(struct http_request *req)
{
    static const struct script_answer answers[] = {
        {.word = "history", .ends = history_found},
        {.word = "off", .problem = PROBLEM_HISTORY_OFF},
        ANSWER_OTHER,
    };

    return lease_read(req, &script_history, answers);
}

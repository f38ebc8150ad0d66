/* reply.c - what a reply of Redis holds, and what is certain after an error.
 *
 * A struct store_reply is a redisReply by another name: it is never defined, only cast. */
#include <hiredis/hiredis.h>

#include "shared/store/store_internal.h"

static const redisReply *element(const struct store_reply *list, size_t i)
{
    const redisReply *reply = (const redisReply *)(const void *)list;

    if (i >= store_reply_count(list))
        return NULL;
    return reply->type == REDIS_REPLY_ARRAY ? reply->element[i] : reply;
}

const struct store_reply *reply_of(const struct redisReply *reply)
{
    return (const struct store_reply *)(const void *)reply;
}

size_t store_reply_count(const struct store_reply *list)
{
    const redisReply *reply = (const redisReply *)(const void *)list;

    if (reply == NULL)
        return 0;
    return reply->type == REDIS_REPLY_ARRAY ? reply->elements : 1;
}

struct bytes store_reply_text(const struct store_reply *list, size_t i)
{
    const redisReply *at = element(list, i);

    if (at == NULL || (at->type != REDIS_REPLY_STRING && at->type != REDIS_REPLY_STATUS))
        return (struct bytes){NULL, 0};
    return (struct bytes){at->str, at->len};
}

/* No zero in front but alone. */
static int64_t read_canonical(struct bytes text)
{
    if (text.len == 0)
        return INT64_MIN;
    bool is_negative = text.at[0] == '-';
    struct bytes digits = {text.at + is_negative, text.len - is_negative};
    int64_t magnitude = bytes_number(digits, 18);
    if (magnitude < 0 || (digits.at[0] == '0' && (digits.len > 1 || is_negative)))
        return INT64_MIN;
    return is_negative ? -magnitude : magnitude;
}

int64_t store_reply_integer(const struct store_reply *list, size_t i)
{
    const redisReply *at = element(list, i);

    if (at != NULL && at->type == REDIS_REPLY_INTEGER)
        return at->integer;
    return read_canonical(store_reply_text(list, i));
}

const struct store_reply *store_reply_list(const struct store_reply *list, size_t i)
{
    const redisReply *at = element(list, i);

    /* The one element of a reply that is one value is that value, never a list. */
    return at != NULL && at->type == REDIS_REPLY_ARRAY ? reply_of(at) : NULL;
}

bool store_reply_is(const struct store_reply *reply, const char *word)
{
    struct bytes first = store_reply_text(reply, 0);

    return first.at != NULL && bytes_are(first, word);
}

struct bytes reply_info_field(struct bytes info, const char *name)
{
    size_t name_len = strlen(name);

    while (info.len > 0) {
        const char *end = memchr(info.at, '\n', info.len);
        size_t len = end != NULL ? (size_t)(end - info.at) : info.len;
        size_t next = end != NULL ? len + 1 : len;

        if (len > name_len && memcmp(info.at, name, name_len) == 0 && info.at[name_len] == ':') {
            struct bytes value = {info.at + name_len + 1, len - name_len - 1};
            value.len -= value.len > 0 && value.at[value.len - 1] == '\r';
            return value;
        }
        info = (struct bytes){info.at + next, info.len - next};
    }
    return (struct bytes){NULL, 0};
}

/* -- errors. Read in Redis 7.0.15:
 * - Before a script begins, processCommand() (server.c), fcallCommandGeneric() (functions.c: "ERR Function
 * not found") and scriptPrepareForRun() (script.c) refuse with LOADING, BUSY, MASTERDOWN, NOAUTH, NOPERM,
 * and, if the script has flags (every function; a first line "#!lua"), with the four below.
 * - Inside a script, scriptVerifyWriteCommandAllow() and scriptVerifyOOM() refuse its first write with
 * READONLY, MISCONF, NOREPLICAS or OOM ("OOM command not allowed ... script: <sha>, on @user_script:1."), and
 * look no more once SCRIPT_WRITE_DIRTY is set. So these four mean that nothing was written, provided that
 * scripts neither catch an error of redis.call() nor make such an error themselves; the others, when they
 * come from inside a script (a later Redis says NOPERM there, at any command), mean nothing of the kind.
 * - Redis 6 puts "ERR Error running script" in front of an error from inside a script: UNKNOWN, which is
 * safe.
 * - WRONGPASS answers only AUTH, NOGOODSLAVE only Sentinel's commands: neither can answer a script. */

static const struct store_refusal refusals[] = {
    {"OOM", STORE_FULL, "Redis is full: it uses all of its maxmemory",
     "Give it more (CONFIG SET maxmemory, and in its configuration file), or delete stored resources: what "
     "gives "
     "back runs on a full Redis, too.",
     STORE_REFUSED_FIRST_WRITE},
    {"NOREPLICAS", "store-refuses-writes",
     "Redis lives and takes no writes: fewer replicas are connected than its min-replicas-to-write",
     "Bring the replicas back, or lower min-replicas-to-write. Nothing is lost: no hold needs to be ended.",
     STORE_REFUSED_FIRST_WRITE},
    {"MISCONF", "store-refuses-writes",
     "Redis lives and takes no writes: it could not save to its disk, and goes on when it can again",
     "Look at its log and its disk: full, or read-only? Nothing is lost: no hold needs to be ended.",
     STORE_REFUSED_FIRST_WRITE},
    {"READONLY", "store-refused", "Redis is a replica, which takes no writes",
     "Name the primary with --redis.", STORE_REFUSED_FIRST_WRITE},
    {"MASTERDOWN", "store-refused", "Redis is a replica, and has lost its primary",
     "Name the primary with --redis.", STORE_REFUSED_BEFORE_START},
    {"LOADING", "store-loading", "Redis is still loading its data", "Wait until it has.",
     STORE_REFUSED_BEFORE_START},
    {"BUSY", "store-busy", "Redis is busy with somebody's script",
     "Wait until that ends, or end it: SCRIPT KILL. Give Pawl a Redis of its own.",
     STORE_REFUSED_BEFORE_START},
    {"NOPERM", "store-refused", "Redis does not let this user do what Pawl needs",
     "Give the user the rights that deploy/redis.acl lists.", STORE_REFUSED_BEFORE_START},
    {"NOAUTH", "store-auth", "Redis wants a password", "Name it with --redis-password-file.",
     STORE_REFUSED_BEFORE_START},
};

struct bytes reply_error_code(struct bytes error)
{
    size_t len = 0;

    while (len < error.len && error.at[len] != ' ')
        len++;
    return (struct bytes){error.at, len};
}

/* A master says none of these: it became another's copy (REPLICAOF, also while its link to that one is down),
 * or it loads what it had saved (DEBUG RELOAD) or what its master sends. */
bool reply_code_is_of_no_master(struct bytes code)
{
    return bytes_are(code, "READONLY") || bytes_are(code, "MASTERDOWN") || bytes_are(code, "LOADING");
}

bool reply_error_is_not_found(struct bytes error)
{
    return bytes_are(error, "ERR Function not found");
}

/* Added by luaCallFunction() (script_lua.c) to every error that ended a script. */
bool reply_error_is_from_inside(struct bytes error)
{
    static const char mark[] = " script: ";

    return error.len > 0 && memmem(error.at, error.len, mark, sizeof(mark) - 1) != NULL;
}

const struct store_refusal *reply_refusal(struct bytes code)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (bytes_are(code, refusals[i].code))
            return &refusals[i];
    return NULL;
}

bool reply_error_is_of_writes(struct bytes error)
{
    const struct store_refusal *refusal = reply_refusal(reply_error_code(error));

    return refusal != NULL && refusal->when == STORE_REFUSED_FIRST_WRITE &&
           !reply_error_is_from_inside(error) && !reply_code_is_of_no_master(reply_error_code(error));
}

enum store_outcome reply_error_outcome(struct bytes error)
{
    const struct store_refusal *refusal = reply_refusal(reply_error_code(error));

    if (reply_error_is_not_found(error))
        return STORE_NOT_SENT;
    if (refusal == NULL || (refusal->when == STORE_REFUSED_BEFORE_START && reply_error_is_from_inside(error)))
        return STORE_UNKNOWN;
    return STORE_NOT_SENT;
}

bool store_call_was_too_much(const struct store_call *call)
{
    return call->refusal != NULL && strcmp(call->refusal->check, STORE_FULL) == 0;
}

/* store_redis_wire.c - commands as RESP, gathered here until the kernel takes them. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "shared/store_redis_internal.h"

enum {
    WIRE_SIZE_FIRST = 64 * 1024,
    WIRE_SIZE_KEPT = 1024 * 1024, /* a burst of large values must not keep its memory for ever */
    BULK_HEAD_MAX = 32            /* "$", 20 digits, and three line ends */
};

/* Makes room for so many bytes more behind what waits. */
static char *wire_room(struct store_wire *wire, size_t more)
{
    size_t waiting = wire_waiting(wire);

    if (wire->size - wire->to >= more) {
        return wire->at + wire->to;
    }
    if (wire->from >= waiting && wire->size - waiting >= more) {
        memcpy(wire->at, wire->at + wire->from, waiting);
    } else {
        size_t size = wire->size == 0 ? WIRE_SIZE_FIRST : wire->size;
        while (size - waiting < more) {
            assert(size <= SIZE_MAX / 2);
            size *= 2;
        }
        char *at = malloc(size);
        if (at == NULL) {
            fprintf(stderr, "pawl: out of memory\n");
            abort();
        }
        if (waiting > 0) {
            memcpy(at, wire->at + wire->from, waiting);
        }
        free(wire->at);
        wire->at = at;
        wire->size = size;
    }
    wire->from = 0;
    wire->to = waiting;
    return wire->at + waiting;
}

static char *put_bytes(char *to, const char *from, size_t len)
{
    if (len > 0) {
        memcpy(to, from, len);
    }
    return to + len;
}

/* The sign of RESP, the number, the line's end. */
static char *put_count(char *to, char sign, size_t count)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + count % 10);
        count /= 10;
    } while (count > 0);
    *to++ = sign;
    to = put_bytes(to, digits + at, sizeof(digits) - at);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static char *put_bulk(char *to, struct bytes value)
{
    to = put_count(to, '$', value.len);
    to = put_bytes(to, value.at, value.len);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static size_t bulks_size_max(const struct bytes *argv, unsigned argc)
{
    size_t size = BULK_HEAD_MAX; /* the array's own head */

    for (unsigned i = 0; i < argc; i++) {
        size += argv[i].len + BULK_HEAD_MAX;
    }
    return size;
}

void wire_script_set(struct wire_script *script, const char *sha)
{
    int len = snprintf(script->head, sizeof(script->head), "$7\r\nEVALSHA\r\n$40\r\n%.40s\r\n", sha);

    assert(len > 0 && (size_t)len < sizeof(script->head));
    script->len = (size_t)len;
}

void wire_put_command(struct store_wire *wire, const struct bytes *argv, unsigned argc)
{
    char *to = wire_room(wire, bulks_size_max(argv, argc));

    to = put_count(to, '*', argc);
    for (unsigned i = 0; i < argc; i++) {
        to = put_bulk(to, argv[i]);
    }
    wire->to = (size_t)(to - wire->at);
}

/* Behind the script: how many keys, the keys, the arguments. */
static char *put_arguments(char *to, const struct store_call *call)
{
    char count[2] = {(char)('0' + call->key_count / 10), (char)('0' + call->key_count % 10)};

    to = put_bulk(to, call->key_count < 10 ? (struct bytes){count + 1, 1} : (struct bytes){count, 2});
    for (unsigned i = 0; i < call->arg_count; i++) {
        to = put_bulk(to, call->argv[i]);
    }
    return to;
}

void wire_put_evalsha(struct store_wire *wire, const struct store_call *call,
                      const struct wire_script *script)
{
    size_t size = bulks_size_max(call->argv, call->arg_count) + script->len + BULK_HEAD_MAX;
    char *to = wire_room(wire, size);

    to = put_count(to, '*', 3 + (size_t)call->arg_count);
    to = put_bytes(to, script->head, script->len);
    to = put_arguments(to, call);
    wire->to = (size_t)(to - wire->at);
}

void wire_put_eval(struct store_wire *wire, const struct store_call *call)
{
    struct bytes source = {call->script->source, call->script->len};
    size_t size = bulks_size_max(call->argv, call->arg_count) + source.len + 3 * BULK_HEAD_MAX;
    char *to = wire_room(wire, size);

    to = put_count(to, '*', 3 + (size_t)call->arg_count);
    to = put_bulk(to, BYTES("EVAL"));
    to = put_bulk(to, source);
    to = put_arguments(to, call);
    wire->to = (size_t)(to - wire->at);
}

uint64_t wire_position(const struct store_wire *wire)
{
    return wire->taken + wire_waiting(wire);
}

size_t wire_waiting(const struct store_wire *wire)
{
    return wire->to - wire->from;
}

/* hiredis' redisBufferWrite() is not used: it calls write(2), which raises SIGPIPE on a broken link, and
 * moves all that is left after every partial write (hiredis.c of 0.14.1 and 1.2.0). */
enum wire_end wire_flush(struct store_wire *wire, int fd)
{
    while (wire_waiting(wire) > 0) {
        ssize_t n = send(fd, wire->at + wire->from, wire_waiting(wire), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK ? WIRE_BLOCKED : WIRE_BROKEN;
        }
        wire->from += (size_t)n;
        wire->taken += (uint64_t)n;
    }
    wire->from = wire->to = 0;
    if (wire->size > WIRE_SIZE_KEPT) {
        free(wire->at);
        *wire = (struct store_wire){.taken = wire->taken};
    }
    return WIRE_EMPTY;
}

void wire_reset(struct store_wire *wire)
{
    free(wire->at);
    *wire = (struct store_wire){0};
}

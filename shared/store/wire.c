/* wire.c - commands as RESP, gathered here until the kernel takes them. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "shared/store/wire.h"
#include "shared/text/memory.h"
#include "shared/tls/tls.h"

enum {
    WIRE_SIZE_FIRST = 64 * 1024,
    WIRE_SIZE_KEPT = 1024 * 1024, /* a burst of large values must not keep its memory for ever */
    BULK_HEAD_MAX = 32,           /* "$", 20 digits, and three line ends */
    WORDS_SIZE = 256,
    WORDS_MAX = 8
};

/* Makes room for so many bytes more behind what waits. */
static char *wire_room(struct store_wire *wire, size_t more)
{
    size_t waiting = wire_waiting(wire);

    if (wire->size - wire->to >= more)
        return wire->at + wire->to;
    if (wire->from >= waiting && wire->size - waiting >= more) {
        memcpy(wire->at, wire->at + wire->from, waiting);
    } else {
        size_t size = wire->size == 0 ? WIRE_SIZE_FIRST : wire->size;
        while (size - waiting < more) {
            assert(size <= SIZE_MAX / 2);
            size *= 2;
        }
        char *at = must_have(malloc(size));
        if (waiting > 0)
            memcpy(at, wire->at + wire->from, waiting);
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
    if (len > 0)
        memcpy(to, from, len);
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

    for (unsigned i = 0; i < argc; i++)
        size += argv[i].len + BULK_HEAD_MAX;
    return size;
}

void wire_put_command(struct store_wire *wire, const struct bytes *argv, unsigned argc)
{
    char *to = wire_room(wire, bulks_size_max(argv, argc));

    to = put_count(to, '*', argc);
    for (unsigned i = 0; i < argc; i++)
        to = put_bulk(to, argv[i]);
    wire->to = (size_t)(to - wire->at);
}

void wire_put_words(struct store_wire *wire, const char *format, ...)
{
    char text[WORDS_SIZE];
    struct bytes left = {text, 0}, words[WORDS_MAX];
    unsigned count = 0;
    va_list args;

    va_start(args, format);
    left.len = (size_t)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(left.len < sizeof(text));
    while (left.at != NULL && count < WORDS_MAX)
        words[count++] = bytes_cut(&left, ' ');
    wire_put_command(wire, words, count);
}

/* -- a call that may be batched is one argument, also alone: name of the script, how many keys, keys,
 * arguments, in MessagePack, which Lua takes apart at a fraction of what arguments of their own cost */

static size_t pack_text_size(struct bytes text)
{
    return text.len + (text.len < 32 ? 1 : text.len <= UINT16_MAX ? 3 : 5);
}

/* A sign, and behind it a number, big end first. */
static char *pack_head(char *to, unsigned sign, size_t number, unsigned bytes)
{
    *to++ = (char)sign;
    for (unsigned i = bytes; i > 0; i--)
        *to++ = (char)(number >> 8 * (i - 1));
    return to;
}

static char *pack_text(char *to, struct bytes text)
{
    if (text.len < 32)
        to = pack_head(to, 0xa0 | (unsigned)text.len, 0, 0);
    else if (text.len <= UINT16_MAX)
        to = pack_head(to, 0xda, text.len, 2);
    else
        to = pack_head(to, 0xdb, text.len, 4);
    return put_bytes(to, text.at, text.len);
}

static size_t pack_size(const struct store_call *call)
{
    unsigned texts = call->arg_count - call->numbers;
    size_t size = pack_text_size(bytes_of(call->script->name)) + 1 + 9 * (size_t)call->numbers;

    for (unsigned i = 0; i < texts; i++)
        size += pack_text_size(call->argv[i]);
    return size;
}

static char *put_packed(char *to, const struct store_call *call)
{
    unsigned texts = call->arg_count - call->numbers;

    assert(call->key_count <= INT8_MAX);
    to = put_count(to, '$', pack_size(call));
    to = pack_text(to, bytes_of(call->script->name));
    to = pack_head(to, call->key_count, 0, 0);
    for (unsigned i = 0; i < texts; i++)
        to = pack_text(to, call->argv[i]);
    for (unsigned i = texts; i < call->arg_count; i++) /* Lua would read a text at several times the cost */
        to = pack_head(to, 0xcf, (size_t)bytes_number(call->argv[i], 18), 8);
    return put_bytes(to, "\r\n", 2);
}

static size_t arguments_count(const struct store_call *call)
{
    return call->script->batch ? 1 : call->arg_count;
}

static size_t arguments_size_max(const struct store_call *call)
{
    return call->script->batch ? wire_batch_size(call) : bulks_size_max(call->argv, call->arg_count);
}

/* Behind the script: how many keys, the keys, the arguments. */
static char *put_arguments(char *to, const struct store_call *call)
{
    char count[2] = {(char)('0' + call->key_count / 10), (char)('0' + call->key_count % 10)};

    if (call->script->batch)
        return put_packed(put_bulk(to, BYTES("0")), call);
    to = put_bulk(to, call->key_count < 10 ? (struct bytes){count + 1, 1} : (struct bytes){count, 2});
    for (unsigned i = 0; i < call->arg_count; i++)
        to = put_bulk(to, call->argv[i]);
    return to;
}

/* One bulk of several parts. */
static char *put_parts(char *to, const struct bytes *parts, unsigned count)
{
    size_t len = 0;

    for (unsigned i = 0; i < count; i++)
        len += parts[i].len;
    to = put_count(to, '$', len);
    for (unsigned i = 0; i < count; i++)
        to = put_bytes(to, parts[i].at, parts[i].len);
    return put_bytes(to, "\r\n", 2);
}

void wire_put_fcall(struct store_wire *wire, const struct store_call *call)
{
    struct bytes name[] = {bytes_of(call->script->function),
                           call->state == CALL_READ_ONLY ? BYTES("_ro") : BYTES("")};
    size_t size = arguments_size_max(call) + bulks_size_max(name, 2) + 2 * BULK_HEAD_MAX;
    char *to = wire_room(wire, size);

    to = put_count(to, '*', 3 + arguments_count(call));
    to = put_bulk(to, BYTES("FCALL"));
    to = put_parts(to, name, 2);
    to = put_arguments(to, call);
    wire->to = (size_t)(to - wire->at);
}

size_t wire_batch_size(const struct store_call *call)
{
    return pack_size(call) + BULK_HEAD_MAX;
}

void wire_put_batch(struct store_wire *wire, const struct store_call *first, unsigned count)
{
    struct bytes head[] = {BYTES("FCALL"), bytes_of(first->script->library->batch), BYTES("0")};
    size_t size = bulks_size_max(head, 3);
    const struct store_call *call = first;
    char *to;

    for (unsigned i = 0; i < count; i++, call = STAILQ_NEXT(call, next))
        size += wire_batch_size(call);
    to = wire_room(wire, size);
    to = put_count(to, '*', 3 + (size_t)count);
    for (unsigned i = 0; i < 3; i++)
        to = put_bulk(to, head[i]);
    call = first;
    for (unsigned i = 0; i < count; i++, call = STAILQ_NEXT(call, next))
        to = put_packed(to, call);
    wire->to = (size_t)(to - wire->at);
}

/* The library's text as a script that makes the functions and calls one, whose name is its last argument: so
 * that Redis, which keeps what it has run, keeps no more than one text for each kind of flags. */
void wire_put_eval(struct store_wire *wire, const struct store_call *call)
{
    const struct store_library *library = call->script->library;
    const char *body = strchr(strchr(library->text, '\n') + 1, '\n') + 1;
    struct bytes function = bytes_of(call->script->function);
    struct bytes text[] = {
        bytes_of(call->script->head),
        BYTES("local keys, argv, functions, name = KEYS, ARGV, {}, table.remove(ARGV)\n"
              "local function register(one) functions[one.function_name] = one.callback end\n"),
        {body, library->len - (size_t)(body - library->text)},
        BYTES("return functions[name](keys, argv)\n"),
    };
    unsigned parts = sizeof(text) / sizeof(text[0]);
    size_t size = arguments_size_max(call) + bulks_size_max(text, parts) + function.len + 3 * BULK_HEAD_MAX;
    char *to = wire_room(wire, size);

    to = put_count(to, '*', 4 + arguments_count(call));
    to = put_bulk(to, BYTES("EVAL"));
    to = put_parts(to, text, parts);
    to = put_arguments(to, call);
    to = put_bulk(to, function);
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
        struct bytes waiting = {wire->at + wire->from, wire_waiting(wire)};
        ssize_t n = wire->tls != NULL ? tls_write(wire->tls, waiting)
                                      : send(fd, waiting.at, waiting.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? WIRE_BLOCKED : WIRE_BROKEN;
        wire->from += (size_t)n;
        wire->taken += (uint64_t)n;
    }
    wire->from = wire->to = 0;
    if (wire->size > WIRE_SIZE_KEPT) {
        free(wire->at);
        *wire = (struct store_wire){.taken = wire->taken, .tls = wire->tls};
    }
    return WIRE_EMPTY;
}

void wire_reset(struct store_wire *wire)
{
    free(wire->at);
    tls_close(wire->tls);
    *wire = (struct store_wire){0};
}

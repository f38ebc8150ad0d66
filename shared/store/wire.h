/* wire.h - commands as bytes, on their way to the kernel. */
#ifndef PAWL_SHARED_STORE_WIRE_H
#define PAWL_SHARED_STORE_WIRE_H

#include "shared/store/store.h"

/* What store_call.state says of a call on the link. Once ended it is the outcome. */
enum call_state {
    CALL_NOT_YET,   /* not for the wire: it waits until less is in flight */
    CALL_BY_NAME,   /* FCALL, or part of one */
    CALL_BATCHED,   /* beside others: its answer is one of a list, or is that of all */
    CALL_ALONE,     /* FCALL of one that was batched, and did not run */
    CALL_AGAIN,     /* the same, behind the library, which Redis did not have */
    CALL_READ_ONLY, /* FCALL of what may not write, since Redis takes no write */
    CALL_WHOLE,     /* EVAL */
    CALL_COMMAND,   /* a command that changes nothing, without a script */
    CALL_OFFSET,    /* ROLE, which names the offset of the calls before it */
    CALL_HANDSHAKE
};

/* Positions count the bytes of one link, from 0. */
struct store_wire {
    char *at;
    size_t from, to, size; /* what waits lies in [from, to) */
    uint64_t taken;        /* by the kernel; in TLS, of whole records */
    struct tls *tls;       /* NULL: plain */
};

enum wire_end { WIRE_EMPTY, WIRE_BLOCKED, WIRE_BROKEN };

void wire_put_command(struct store_wire *wire, const struct bytes *argv, unsigned argc);
void wire_put_fcall(struct store_wire *wire, const struct store_call *call);
void wire_put_eval(struct store_wire *wire, const struct store_call *call);
/* A command of words without spaces in them, with spaces between them; of the printf family, 255 bytes. */
void wire_put_words(struct store_wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* So many calls, linked by next, as one. */
void wire_put_batch(struct store_wire *wire, const struct store_call *first, unsigned count);
/* How many bytes a call takes in it. */
size_t wire_batch_size(const struct store_call *call);
/* Where the next command will begin. */
uint64_t wire_position(const struct store_wire *wire);
size_t wire_waiting(const struct store_wire *wire);
/* One write (more only when the kernel takes a part). WIRE_BROKEN: errno says why. */
enum wire_end wire_flush(struct store_wire *wire, int fd);
/* Forgets what waits, ends TLS, and begins to count anew. */
void wire_reset(struct store_wire *wire);

#endif

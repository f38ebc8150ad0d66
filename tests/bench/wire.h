/* wire.h - sockets: connecting, and one question with its answer where nothing is measured. */
#ifndef PAWL_TESTS_BENCH_WIRE_H
#define PAWL_TESTS_BENCH_WIRE_H

#include <stdint.h>

#include "shared/tls/tls.h"
#include "tests/bench/protocol.h"

/* Prints "load: " and the sentence on stderr and ends the process with 1: what goes wrong is no result. */
_Noreturn void load_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t clock_ns(void);
/* A connected socket. to: "127.0.0.1:PORT" or "unix:/PATH". */
int wire_connect(const char *to);
/* Over it, with the handshake done. */
struct tls *wire_tls(struct tls_trust *trust, int fd);
void wire_send(int fd, struct bytes text);
/* Waits for one whole answer in buf; its length. */
size_t wire_answer(int fd, protocol_measure *measure, char *buf, size_t size, struct bytes *word);

#endif

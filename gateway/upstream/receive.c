/* receive.c - an answer on its way from the kernel to the owner of the call. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/upstream/upstream_internal.h"
#include "shared/text/memory.h"

enum { READS_MAX = 4 }; /* of one event: others want their turn too */

static bool takes(const struct upstream_link *link)
{
    return uplink_is_open(link) && link->taking == UPLINK_TAKES;
}

static void tell_head(struct upstream_link *link)
{
    struct answer_field fields[ANSWER_FIELDS_MAX];
    struct upstream_head head = {.status = link->answer.status,
                                 .fields = fields,
                                 .field_count = answer_fields(&link->answer, fields),
                                 .length = link->answer.length};

    link->call->head(link->call, &head);
}

/* Within piece() the owner may say that it takes more again, or break off. */
static void tell_piece(struct upstream_link *link, struct bytes *in)
{
    struct bytes piece = link->answer.piece;
    size_t taken;

    link->taking = UPLINK_PAUSED;
    taken = link->call->piece(link->call, piece);
    assert(taken <= piece.len);
    answer_take(&link->answer, in, taken);
    if (taken == piece.len) {
        link->taking = UPLINK_TAKES;
    }
}

/* Gives on what has come; in is what the owner, or the end, has left of it. */
static void uplink_feed(struct upstream_link *link, struct bytes *in)
{
    while (takes(link)) {
        switch (answer_next(&link->answer, in)) {
        case ANSWER_MORE: return;
        case ANSWER_HEAD: tell_head(link); break;
        case ANSWER_PIECE: tell_piece(link, in); break;
        case ANSWER_WHOLE: uplink_whole(link, in->len); return;
        case ANSWER_MALFORMED: uplink_broken(link, link->answer.why); return;
        }
    }
}

static void rest_keep(struct upstream_link *link, struct bytes in)
{
    link->kept = must_have(malloc(in.len));
    memcpy(link->kept, in.at, in.len);
    link->rest = (struct bytes){link->kept, in.len};
}

/* The end completes an answer without a length: a FIN, with TLS a close_notify. */
void uplink_fin(struct upstream_link *link, const char *broken)
{
    if (answer_fin(&link->answer) == ANSWER_WHOLE && broken == NULL) {
        uplink_whole(link, 0);
    } else {
        uplink_broken(link, broken != NULL ? broken : link->answer.why);
    }
}

static ssize_t socket_read(struct upstream_link *link, char *to)
{
    return link->tls != NULL ? tls_read(link->tls, to, UPLINK_IN_SIZE)
                             : recv(link->fd, to, UPLINK_IN_SIZE, MSG_DONTWAIT);
}

static const char broke_off[] = "it broke the connection off";

void uplink_read(struct upstream_link *link)
{
    char *buffer = link->pool->in;

    for (unsigned i = 0; i < READS_MAX && takes(link); i++) {
        ssize_t n = socket_read(link, buffer);
        struct bytes in = {buffer, n > 0 ? (size_t)n : 0};

        if (n == 0) {
            uplink_fin(link, link->state == UPLINK_LISTENING ? broke_off : NULL);
        } else if (n > 0) {
            uplink_feed(link, &in);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            uplink_broken(link, link->state == UPLINK_LISTENING ? broke_off : uplink_why(link));
        }
        if (uplink_is_open(link) && in.len > 0) {
            rest_keep(link, in);
        }
        if (n > 0 && n < UPLINK_IN_SIZE) {
            return; /* that was all there is; the loop tells what comes next */
        }
    }
}

void uplink_resume(struct upstream_link *link)
{
    link->taking = UPLINK_TAKES;
    uplink_feed(link, &link->rest);
    if (link->rest.len == 0 || !uplink_is_open(link)) {
        free(link->kept);
        link->kept = NULL;
        link->rest = (struct bytes){NULL, 0};
    }
}

/* subscriber.h - what the tests of the subscriber look at. */
#ifndef PAWL_SHARED_STORE_SUBSCRIBER_H
#define PAWL_SHARED_STORE_SUBSCRIBER_H

#include "shared/store/dial.h"

enum subscriber_state {
    SUBSCRIBER_IDLE,
    SUBSCRIBER_CONNECTING,
    SUBSCRIBER_GREETING,
    SUBSCRIBER_STANDING,
    SUBSCRIBER_WAITING,
    SUBSCRIBER_STATES
};

/* What is subscribed to, or was until just now. */
struct subscriber_channel {
    struct bytes name;               /* its bytes lie behind the struct */
    unsigned wanted;                 /* subscribes without unsubscribe */
    unsigned asked;                  /* SUBSCRIBEs on this link that Redis has not confirmed yet */
    bool listens;                    /* Redis has confirmed the last of them */
    struct subscriber_channel *next; /* channels_end_link()'s own */
};

struct subscriber_channels {
    void *tree; /* of tsearch(3) */
};

struct store_subscriber {
    struct loop *loop;
    struct store_subscriber_owner *owner;
    struct loop_hook turn_end;
    struct loop_timer
        timer; /* WAITING: the pause; CONNECTING, GREETING: the step's deadline; STANDING: signs of life */
    struct dial dial;
    struct subscriber_channels channels;
    enum subscriber_state state;
    bool confirmed; /* listens() was called on this link */
    bool in_callback;
    bool leaves;                       /* at the end of the turn */
    char run_id[STORE_RUN_ID_LEN + 1]; /* of its Redis; "": it does not say */
    unsigned timeout_ms, greeting_left;
    unsigned attempts; /* in a row, without a link that lasted */
    uint64_t number;   /* of times that it came to stand */
    uint64_t since_us, heard_ms, ask_at_ms;
    char why[DIAL_WHY_MAX];                  /* of store_subscriber_why() */
    unsigned char walked[SUBSCRIBER_STATES]; /* as in struct store_link */
};

bool subscriber_allows(enum subscriber_state from, enum subscriber_state to);

/* NULL: there is none. */
struct subscriber_channel *channel_find(const struct subscriber_channels *channels, struct bytes name);

#endif

/* dial.h - where Redis is, how a connection is made, and when again. */
#ifndef PAWL_SHARED_STORE_DIAL_H
#define PAWL_SHARED_STORE_DIAL_H

#include "shared/store/wire.h"

struct redisContext;

/* Where it is. Texts end with NUL; an empty one is not given. */
enum { STORE_HOST_MAX = 255, STORE_PATH_MAX = 107, STORE_USER_MAX = 255, STORE_PASSWORD_MAX = 1023 };
enum { SENTINELS_MAX = 9, SENTINEL_NAME_MAX = 127 };

struct store_place {
    char host[STORE_HOST_MAX + 1];
    unsigned port;
};

/* Of sentinel:// host and port are the finder's to fill in (finder_where()); "" and 6379 before. */
struct store_url {
    char host[STORE_HOST_MAX + 1];
    char path[STORE_PATH_MAX + 1]; /* a unix socket's; then there is no host */
    char user[STORE_USER_MAX + 1];
    char password[STORE_PASSWORD_MAX + 1];
    unsigned port, db;
    bool is_tls;
    struct store_place sentinels[SENTINELS_MAX];
    unsigned sentinel_count;          /* 0: it names the Redis itself */
    char name[SENTINEL_NAME_MAX + 1]; /* of the primary, as the sentinels call it */
};

/* NULL, or what is wrong with it (a static sentence): then url is unusable. */
const char *store_url_read(const char *text, struct store_url *url);
/* Whether it can be the host of a url, without brackets; then into the place. */
bool store_place_read(struct bytes host, struct bytes port, struct store_place *place);

enum { DIAL_WHY_MAX = 448 };

enum { DIAL_ADDRESSES_MAX = 8, DIAL_ADDRESS_SIZE = 64 };

struct store_finder;

/* A connection of a link, of a subscriber, or for one question: where it goes, and its bytes. */
struct dial {
    struct loop *loop;
    struct store_url url;
    struct store_files files;
    char *password;               /* NULL: none */
    struct store_finder *finder;  /* NULL: the url is that of the Redis */
    unsigned found;               /* the version of what it goes to */
    struct redisContext *context; /* NULL: there is none, or not yet */
    struct loop_lookup lookup;    /* of named; goes on when an attempt ends: a resolver may be slower */
    char named[STORE_HOST_MAX + 1];
    bool is_naming;          /* an attempt waits for it */
    uint64_t named_until_ms; /* it was found when none did: so long the addresses are for the next; 0: no */
    char addresses[DIAL_ADDRESSES_MAX][DIAL_ADDRESS_SIZE];
    unsigned address_count, address_next; /* those that have not been tried begin here */
    unsigned address_first;               /* of the next attempt: one may hang until its time is over */
    bool stands;
    char why[DIAL_WHY_MAX]; /* there is no context */
    void (*ready)(struct loop_watch *watch, int events);
    struct loop_watch watch;
    struct store_wire wire;
    bool blocked; /* the kernel takes no more for now, or never again */
};

/* The password in use, a copy, or NULL; the one in the url is wiped. */
char *dial_password(struct store_url *url, const char *password);
/* Wiped and freed; NULL is none. */
void dial_forget_password(char *password);
/* A connection begins, with the password of now: ready, and then dial_go_on(), when there is something to do
 * for it. false: it could not be begun, and why. */
bool dial_begin(struct dial *dial, void (*ready)(struct loop_watch *watch, int events),
                char why[DIAL_WHY_MAX]);
/* The next step, when the socket is ready: wire.tls is set on the way. DIAL_WAITS: for what is watched for.
 * DIAL_FAILED: *why, good until the next call. */
enum dial_step { DIAL_STANDS, DIAL_WAITS, DIAL_FAILED };
enum dial_step dial_go_on(struct dial *dial, const char **why);
/* As redisBufferRead(): at least DIAL_READ_SIZE bytes mean that there may be more. */
enum { DIAL_READ_SIZE = 16 * 1024 /* of redisBufferRead() (hiredis.c of 0.14.1 and 1.2.0) */ };
int dial_read(struct dial *dial);
/* As wire_flush(), and watches for what is to come then. */
enum wire_end dial_write(struct dial *dial);
/* Whether there is a connection, or one has begun. */
bool dial_is_open(const struct dial *dial);
/* Nothing when there is none. */
void dial_end(struct dial *dial);
/* For good: the struct may be freed. */
void dial_close(struct dial *dial);
/* Whether AUTH is to be said, and AUTH. */
bool dial_names_itself(const struct dial *dial);
void dial_put_auth(struct dial *dial);
/* How long to wait before the next attempt; counts it. attempts is 0 again when a connection has lasted. */
uint64_t dial_pause_ms(unsigned *attempts);
bool dial_lasted(uint64_t since_us);

#endif

/* access.h - who asks, and what it may do: the access file, its identities, its rules (docs/access.md).
 *
 * An access file is read whole or not at all, and never changed after: several threads may use a struct
 * access. An identity is the text of its name, NUL-terminated, and lives as long as the process, so it may be
 * kept beyond the file it came from (SIGHUP); equal names are the same pointer. NULL is nobody: a caller who
 * showed no credential.
 *
 *   access_load()         --access FILE
 *   access_of_token()     whose access token is this?     also _uid; certificates and JWT come behind it
 *   access_allows()       may this identity do this to this lease?
 *
 * Rules only add: no order, no deny. A credential that is bad is refused by the caller of this room (401); it
 * never falls back to another, or to nobody. */
#ifndef PAWL_SHARED_ACCESS_H
#define PAWL_SHARED_ACCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "shared/text/bytes.h"

enum access_verb {
    ACCESS_ACQUIRE,
    ACCESS_LOOK,
    ACCESS_FORCE_RELEASE,
    ACCESS_READ,
    ACCESS_WRITE_OWN,
    ACCESS_WRITE,
    ACCESS_CHECK,
    ACCESS_RESOLVE,
    /* Not about names: */
    ACCESS_SESSION,
    ACCESS_OBSERVE,
    ACCESS_OPERATE,
    ACCESS_VERBS
};

/* What a request needs, for the row of a route (struct http_route, needs); 0 is none of these. */
enum access_need {
    ACCESS_OPEN = 1, /* open to all */
    ACCESS_KNOWN,    /* no verb: any caller who is known */
    ACCESS_HANDLER,  /* the handler asks: the names are in the body, or known only by the table of routes */
    ACCESS_HOLD, /* with a verb: none for who is known, as giving back is never refused; else on the name */
    ACCESS_SOME, /* with a verb: on some name, and the handler filters; of a verb without names: that */
    ACCESS_NAME, /* with a verb: on the lease that is the first part of the path */
    ACCESS_KEY,  /* with a verb: on the lease by which the resource key in the path begins */
    ACCESS_FIRST /* with a verb: on the lease in front of the first slash of the path's part */
};
enum { ACCESS_VERB_SHIFT = 8 };
#define ACCESS_NEEDS(place, verb) ((unsigned)(place) | (unsigned)(verb) << ACCESS_VERB_SHIFT)

enum {
    ACCESS_IDENTITY_MAX = 64, /* bytes of an identity's name */
    ACCESS_TOKEN_SIZE = 56,   /* "pawl_", 43 characters, "_", 6, and a NUL */
    ACCESS_HASH_SIZE = 65,    /* SHA-256 in hexadecimal digits, and a NUL */
    ACCESS_FILE_MAX = 1 << 20,
    ACCESS_WHY_SIZE = 256
};

struct access;

/* "acquire", "write-own", ... */
const char *access_verb_name(enum access_verb verb);
/* ACCESS_VERBS: there is none. */
enum access_verb access_verb_of(struct bytes name);

/* NULL with a sentence in why, which begins with the place: "rules[2].on[0]: ..."; of what is no JSON, with
 * the line. It quotes no value, and no access token. */
struct access *access_parse(struct bytes text, char *why, size_t why_size);
/* The same of a file, which others than its owner must not be able to write. why does not name the file. */
struct access *access_load(const char *path, char *why, size_t why_size);
void access_free(struct access *access); /* NULL is fine */
/* SHA-256 of the file's text, in hexadecimal. */
const char *access_hash(const struct access *access);
/* Warnings about a file that is good, a sentence each (rules that name nobody, "*" with force-release or
 * operate); i from 0; NULL: no more. */
const char *access_warning(const struct access *access, unsigned i, char text[ACCESS_WHY_SIZE]);

/* -- credentials */

/* Why a credential is refused: problem member "why". */
enum access_why {
    ACCESS_GOOD,
    ACCESS_NONE,
    ACCESS_UNKNOWN,
    ACCESS_MALFORMED,
    ACCESS_EXPIRED,
    ACCESS_NOT_YET,
    ACCESS_ISSUER,
    ACCESS_AUDIENCE,
    ACCESS_SIGNATURE,
    ACCESS_CERTIFICATE,
    ACCESS_WHYS
};
const char *access_why_name(enum access_why why); /* "none", "not-yet", ... */

/* The identity of an access token; NULL: *why is ACCESS_MALFORMED (its form or its check characters) or
 * ACCESS_UNKNOWN. Constant time in the secret. What was good by this file the thread remembers, whole, and
 * compares in constant time: two SHA-256 cost a fifth of a request. */
struct access_memo;
struct access_memo *access_memo_new(void);
void access_memo_free(struct access_memo *memo); /* wipes; NULL is fine */
const char *access_of_token(struct access_memo *memo, const struct access *access, struct bytes token,
                            enum access_why *why);
/* How often each access token was used since this file was read, by the first digits of its hash; *at: 0 at
 * first. false: no more. */
enum { ACCESS_DIGITS_SIZE = 9 };
bool access_token_use(const struct access *access, size_t *at, char digits[ACCESS_DIGITS_SIZE],
                      uint64_t *count);
/* NULL: that uid is nobody's. */
const char *access_of_uid(const struct access *access, uid_t uid);
/* The name as a certificate shows it: "uri:spiffe://...", "dns:...", "cn:...". NULL: nobody's. */
const char *access_of_certificate(const struct access *access, struct bytes name);
/* What an identity, a group or an issuer can be called: [A-Za-z0-9][A-Za-z0-9._-]{0,63}. */
bool access_is_name(struct bytes text);
/* An identity of this file by its name. NULL: it has none, which is not to be taken for nobody. */
const char *access_identity(const struct access *access, struct bytes name);

/* Reads the keys of the issuers; before the file is used. false: why. */
bool access_load_keys(struct access *access, char *why, size_t why_size);
/* Whether it has the form of a JWT, of at most 2,048 bytes. */
bool access_is_jwt(struct bytes text);
/* When and how a credential with dates is shown. */
struct access_moment {
    int64_t now_s;                    /* since 1970, of the machine's clock */
    uint64_t steady_ms;               /* of one that neither jumps nor stands still */
    bool keeps;                       /* it keeps or gives back what its identity holds */
    bool has_begun;                   /* it was good when it was shown: its dates do not count any more */
    bool known_only;                  /* one that was never good here is not looked at: ACCESS_NONE */
    const unsigned char *certificate; /* SHA-256 of the one that was shown and passes; NULL: none */
};
/* The identity of a JWT; NULL: why not. What was good in this process before goes on keeping for ten minutes
 * after its dates have become wrong. */
const char *access_of_jwt(const struct access *access, struct bytes text, const struct access_moment *moment,
                          enum access_why *why);

/* The same of another credential with dates, by its SHA-256; dates: ACCESS_GOOD, or what is wrong with them;
 * ends_s: after which they are.
 */
enum { ACCESS_DIGEST = 32 };
bool access_dates_pass(const unsigned char digest[ACCESS_DIGEST], enum access_why dates, int64_t ends_s,
                       const struct access_moment *moment);

/* A fresh access token. The caller wipes it. */
void access_token_new(char token[ACCESS_TOKEN_SIZE]);
bool access_token_is_formed(struct bytes token);
/* What the file has of it: SHA-256 in hexadecimal. */
void access_token_hash(struct bytes token, char hash[ACCESS_HASH_SIZE]);

/* -- what may be done. identity NULL: nobody. An identity that this file does not have may do nothing. */

/* lease: a whole name; {NULL, 0} for a verb that is not about names. */
bool access_allows(const struct access *access, const char *identity, enum access_verb verb,
                   struct bytes lease);
/* On some name, whatever exists. */
bool access_allows_some(const struct access *access, const char *identity, enum access_verb verb);
/* On some name that begins so; on every one ("": on every name): by the rules alone. */
bool access_reaches(const struct access *access, const char *identity, enum access_verb verb,
                    struct bytes prefix);
bool access_covers(const struct access *access, const char *identity, enum access_verb verb,
                   struct bytes prefix);
/* Whether any rule names nobody. */
bool access_has_nobody(const struct access *access);
/* The first rule that allows it, as its place in the file ("rules[0]"); false: none. */
bool access_explain(const struct access *access, const char *identity, enum access_verb verb,
                    struct bytes lease, char place[ACCESS_WHY_SIZE]);

/* -- limits of an identity: the lowest of its groups; 0: none */
struct access_limits {
    int64_t requests_per_s, held, waiting, sessions, streams, stored_bytes;
};
struct access_limits access_limits(const struct access *access, const char *identity);

/* Those that count what there is, in the order of struct access_limits. */
enum access_quota {
    ACCESS_HELD,
    ACCESS_WAITING,
    ACCESS_SESSIONS,
    ACCESS_STREAMS,
    ACCESS_STORED_BYTES,
    ACCESS_QUOTAS
};
const char *access_quota_name(enum access_quota quota); /* "held", ... */
/* Whether any identity of this file has a limit on what is counted in the store. */
bool access_counts_store(const struct access *access);

/* What an identity uses: of the whole process, for as long as it lives; any thread. */
struct access_use {
    _Atomic uint64_t bucket_ns; /* when the bucket of its requests is full again; access_bucket_take() */
    _Atomic int64_t used[ACCESS_QUOTAS];
    int64_t counting[ACCESS_QUOTAS]; /* of one thread: what the count has found */
    LIST_HEAD(, kept_place) kept;    /* shared/service/limits.c, with its lock */
    char name[];                     /* the identity */
};
struct access_use *access_use(const char *identity); /* of one that is not NULL */
/* The count is over: what it has found is in force, and the next one begins. By that thread. */
void access_count_ends(void);
/* Takes one request out of a bucket that has room for per_s of them and gets as many a second; false: it is
 * empty. */
bool access_bucket_take(_Atomic uint64_t *bucket_ns, uint64_t now_us, int64_t per_s);

#endif

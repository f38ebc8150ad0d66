/* jwt.c - JWTs of the issuers that an access file names (RFC 7519): the keys are in files, never on the net.
 *
 *   access_load_keys   the jwks of each issuer
 *   access_of_jwt      was it seen before?                              then only its dates are judged, else
 *   jwt_read             its form: alg, kid, iss, sub, aud, exp, iat    malformed, issuer
 *   jwt_verify           the signature, the audience, the subject       signature, audience, unknown
 *   dates_judge          the clock of this machine, with LEEWAY_S       expired, not-yet
 *
 * Expiry ends beginnings: one that was good here before, and whose dates are wrong now, may go on keeping
 * and giving back for GRACE_MS by a clock that does not jump; and what it has begun (a wait, a stream) goes
 * on. Revocation (the file, the jwks) ends everything: what was verified under another file is verified
 * again. */
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shared/access/access_internal.h"
#include "shared/text/json.h"
#include "shared/text/memory.h"
#include "shared/text/read_all.h"
#include "shared/tls/signature.h"

enum {
    JWT_MAX = 2048,
    JWT_LEVELS = 8,
    JWKS_MAX = 65536,
    KID_MAX = 256,
    NUMBER_MAX = 1024, /* bytes of a number of a key */
    LEEWAY_S = 60,
    VALID_MAX_S = 24 * 3600,
    GRACE_MS = 10 * 60 * 1000
};

struct access_key {
    struct tls_public_key *key;
    char kid[KID_MAX + 1];
};

/* -- keys */

static bool decode(struct bytes text, unsigned char *to, size_t size, struct bytes *out)
{
    size_t len = 0;

    if (sodium_base642bin(to, size, text.at, text.len, NULL, &len, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
        return false;
    *out = (struct bytes){(const char *)to, len};
    return true;
}

static bool number_of(const struct json *json, const char *name, unsigned char *to, struct bytes *out)
{
    struct bytes text;

    return json_get_text(json, name, &text) == JSON_FOUND && decode(text, to, NUMBER_MAX, out);
}

static bool text_is(const struct json *json, const char *name, const char *text)
{
    struct bytes value;

    return json_get_text(json, name, &value) == JSON_FOUND && bytes_are(value, text);
}

/* NULL: one of a kind that is not known here, or not for signatures. */
static struct tls_public_key *key_read(const struct json *json)
{
    unsigned char first[NUMBER_MAX], second[NUMBER_MAX];
    struct bytes a, b = {NULL, 0};

    if (json_member(json, "use") != NULL && !text_is(json, "use", "sig"))
        return NULL;
    if (text_is(json, "kty", "RSA") && number_of(json, "n", first, &a) && number_of(json, "e", second, &b))
        return tls_public_key_new(TLS_RS256, a, b);
    if (text_is(json, "kty", "EC") && text_is(json, "crv", "P-256") && number_of(json, "x", first, &a) &&
        number_of(json, "y", second, &b))
        return tls_public_key_new(TLS_ES256, a, b);
    if (text_is(json, "kty", "OKP") && text_is(json, "crv", "Ed25519") && number_of(json, "x", first, &a))
        return tls_public_key_new(TLS_EDDSA, a, b);
    return NULL;
}

static void keys_read(struct access_issuer *issuer, const struct json *json)
{
    enum json_found found;
    size_t count = json_list_count(json, "keys", &found);

    issuer->keys = must_have(calloc(count + 1, sizeof(*issuer->keys)));
    for (size_t i = 0; i < count; i++) {
        const struct json *one = json_list_object(json, "keys", i);
        struct tls_public_key *key = one != NULL ? key_read(one) : NULL;
        struct bytes kid = {NULL, 0};

        if (key == NULL)
            continue;
        (void)json_get_text(one, "kid", &kid);
        if (kid.len > KID_MAX) {
            tls_public_key_free(key);
            continue;
        }
        issuer->keys[issuer->key_count].key = key;
        snprintf(issuer->keys[issuer->key_count++].kid, KID_MAX + 1, "%.*s", (int)kid.len,
                 kid.len > 0 ? kid.at : "");
    }
}

static bool jwks_load(struct access_issuer *issuer, char *why, size_t why_size)
{
    char *text = must_have(malloc(JWKS_MAX + 1));
    mode_t mode;
    ssize_t len = read_all_of(issuer->jwks.at, text, JWKS_MAX + 1, &mode);
    struct json *json = NULL;

    if (len < 0)
        snprintf(why, why_size, "issuers.%.*s.jwks: %s cannot be read: %s", (int)issuer->name.len,
                 issuer->name.at, issuer->jwks.at, strerrordesc_np(errno));
    else if ((mode & (S_IWGRP | S_IWOTH)) != 0)
        snprintf(why, why_size, "issuers.%.*s.jwks: others than its owner can change %s; chmod go-w",
                 (int)issuer->name.len, issuer->name.at, issuer->jwks.at);
    else if (len <= JWKS_MAX)
        json = json_parse((struct bytes){text, (size_t)len}, JWT_LEVELS, NULL);
    if (json != NULL)
        keys_read(issuer, json);
    if (issuer->key_count == 0 && len >= 0 && (mode & (S_IWGRP | S_IWOTH)) == 0)
        snprintf(
            why, why_size,
            "issuers.%.*s.jwks: %s has no key that is known here: RSA of 2,048 bits or more, P-256, Ed25519",
            (int)issuer->name.len, issuer->name.at, issuer->jwks.at);
    json_free(json);
    free(text);
    return issuer->key_count > 0;
}

bool access_load_keys(struct access *access, char *why, size_t why_size)
{
    for (unsigned i = 0; i < access->issuer_count; i++)
        if (!jwks_load(&access->issuers[i], why, why_size))
            return false;
    return true;
}

void access_issuer_free(struct access_issuer *issuer)
{
    for (unsigned i = 0; i < issuer->key_count; i++)
        tls_public_key_free(issuer->keys[i].key);
    free(issuer->keys);
}

/* -- one JWT */

struct jwt {
    struct bytes signed_part, signature;
    struct json *head, *body;
    const struct access_issuer *issuer;
    const struct access_key *key;
    int64_t exp, iat, nbf;
    bool has_cnf;
    unsigned char cnf[ACCESS_DIGEST];
    unsigned char head_text[JWT_MAX], body_text[JWT_MAX], signature_bytes[JWT_MAX];
};

bool access_is_jwt(struct bytes text)
{
    unsigned dots = 0;

    if (text.len > JWT_MAX || bytes_take(&text, BYTES("pawl_")))
        return false;
    for (size_t i = 0; i < text.len; i++)
        dots += text.at[i] == '.';
    return dots == 2;
}

static enum access_why key_find(struct jwt *jwt)
{
    static const char *const names[TLS_ALGORITHMS] = {"RS256", "ES256", "EdDSA"};
    struct bytes kid = {NULL, 0};
    bool has_kid = json_get_text(jwt->head, "kid", &kid) == JSON_FOUND;

    if (json_member(jwt->head, "kid") != NULL && !has_kid)
        return ACCESS_MALFORMED;
    for (unsigned i = 0; i < jwt->issuer->key_count && jwt->key == NULL; i++) {
        const struct access_key *key = &jwt->issuer->keys[i];
        enum tls_algorithm algorithm = tls_public_key_algorithm(key->key);

        if (has_kid ? bytes_are(kid, key->kid) : jwt->issuer->key_count == 1)
            jwt->key = text_is(jwt->head, "alg", names[algorithm]) &&
                               jwt->issuer->algorithms & 1U << algorithm
                           ? key
                           : NULL;
    }
    return jwt->key != NULL ? ACCESS_GOOD : ACCESS_MALFORMED;
}

static bool cnf_read(struct jwt *jwt)
{
    enum json_found found;
    const struct json *cnf = json_get_object(jwt->body, "cnf", &found);
    struct bytes text, digest;

    jwt->has_cnf = found != JSON_ABSENT;
    return found == JSON_ABSENT ||
           (found == JSON_FOUND && json_get_text(cnf, "x5t#S256", &text) == JSON_FOUND &&
            decode(text, jwt->cnf, sizeof(jwt->cnf), &digest) && digest.len == sizeof(jwt->cnf));
}

static enum access_why jwt_read(const struct access *access, struct bytes text, struct jwt *jwt)
{
    struct bytes left = text, head = bytes_cut(&left, '.'), body = bytes_cut(&left, '.'), iss;
    const struct access_entry *issuer;
    enum json_found nbf;

    jwt->signed_part = (struct bytes){text.at, head.len + 1 + body.len};
    if (!decode(head, jwt->head_text, JWT_MAX, &head) || !decode(body, jwt->body_text, JWT_MAX, &body) ||
        !decode(left, jwt->signature_bytes, JWT_MAX, &jwt->signature))
        return ACCESS_MALFORMED;
    jwt->head = json_parse(head, JWT_LEVELS, NULL);
    jwt->body = json_parse(body, JWT_LEVELS, NULL);
    if (jwt->head == NULL || jwt->body == NULL || json_member(jwt->head, "crit") != NULL ||
        json_get_text(jwt->body, "iss", &iss) != JSON_FOUND)
        return ACCESS_MALFORMED;
    issuer = access_table_find(&access->table, ACCESS_OF_ISS, iss);
    if (issuer == NULL)
        return ACCESS_ISSUER;
    jwt->issuer = &access->issuers[issuer->value];
    nbf = json_get_int(jwt->body, "nbf", &jwt->nbf);
    if (nbf == JSON_MISTYPED || json_get_int(jwt->body, "exp", &jwt->exp) != JSON_FOUND ||
        json_get_int(jwt->body, "iat", &jwt->iat) != JSON_FOUND || jwt->iat < 0 || jwt->exp < jwt->iat ||
        jwt->exp > INT64_MAX - LEEWAY_S || jwt->exp - jwt->iat > VALID_MAX_S || !cnf_read(jwt))
        return ACCESS_MALFORMED;
    if (nbf == JSON_ABSENT || jwt->nbf < jwt->iat)
        jwt->nbf = jwt->iat;
    return key_find(jwt);
}

static bool audience_is(const struct jwt *jwt)
{
    struct bytes aud;
    enum json_found found = json_get_text(jwt->body, "aud", &aud);

    if (found == JSON_FOUND)
        return bytes_equal(aud, jwt->issuer->aud);
    for (size_t i = 0, count = json_list_count(jwt->body, "aud", &found); i < count; i++)
        if (json_list_text(jwt->body, "aud", i, &aud) && bytes_equal(aud, jwt->issuer->aud))
            return true;
    return false;
}

static const char *jwt_verify(const struct access *access, const struct jwt *jwt, enum access_why *why)
{
    const struct access_entry *entry;
    struct bytes sub;

    *why = ACCESS_SIGNATURE;
    if (!tls_public_key_verifies(jwt->key->key, jwt->signed_part, jwt->signature))
        return NULL;
    *why = ACCESS_AUDIENCE;
    if (!audience_is(jwt))
        return NULL;
    *why = ACCESS_MALFORMED;
    if (json_get_text(jwt->body, "sub", &sub) != JSON_FOUND)
        return NULL;
    *why = ACCESS_UNKNOWN;
    entry = access_table_find(&access->table, ACCESS_OF_SUBJECT + (unsigned)(jwt->issuer - access->issuers),
                              sub);
    return entry != NULL ? access->who[entry->value].identity : NULL;
}

/* -- those that were verified: a process has one such table, which its threads share */

enum { SETS = 1024, WAYS = 4 };

struct known_jwt {
    unsigned char digest[ACCESS_DIGEST], cnf[ACCESS_DIGEST];
    const char *identity;
    int64_t exp, nbf;
    uint64_t serial;        /* of the file that it was verified by; 0: the place is empty */
    uint64_t used_ms;       /* when it was last asked for */
    uint64_t wrong_ms;      /* since when its dates are wrong, after they were right; 0: they are not */
    uint64_t ends_ms;       /* when they will be, as it was when they were right last */
    bool was_good, has_cnf; /* was_good: its dates were right here once */
};

static struct {
    pthread_mutex_t lock;
    struct known_jwt (*sets)[WAYS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Its place, or the one of that which was not used for the longest time. With the lock. */
static struct known_jwt *known_place(const unsigned char digest[ACCESS_DIGEST], bool *is_there)
{
    struct known_jwt *set, *oldest;

    if (known.sets == NULL)
        known.sets = must_have(calloc(SETS, sizeof(*known.sets)));
    set = oldest = known.sets[(digest[0] << 8 | digest[1]) % SETS];
    *is_there = true;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].serial != 0 && memcmp(set[i].digest, digest, ACCESS_DIGEST) == 0)
            return &set[i];
        oldest = set[i].used_ms < oldest->used_ms ? &set[i] : oldest;
    }
    *is_there = false;
    return oldest;
}

/* dates: ACCESS_GOOD, or what is wrong with them. ends_s: after which they are. One that nobody has shown as
 * it ended was wrong from then on; that of a clock that has jumped, from when it was shown. */
static bool dates_pass(struct known_jwt *one, enum access_why dates, int64_t ends_s,
                       const struct access_moment *moment)
{
    if (dates == ACCESS_GOOD) {
        one->was_good = true;
        one->wrong_ms = 0;
        one->ends_ms = ends_s < moment->now_s ? UINT64_MAX
                                              : moment->steady_ms + (uint64_t)(ends_s - moment->now_s) * 1000;
        return true;
    }
    if (!one->was_good)
        return false;
    if (one->wrong_ms == 0)
        one->wrong_ms = one->ends_ms < moment->steady_ms ? one->ends_ms : moment->steady_ms;
    return moment->keeps && moment->steady_ms - one->wrong_ms <= GRACE_MS;
}

static enum access_why dates_judge(struct known_jwt *jwt, const struct access_moment *moment)
{
    enum access_why wrong = moment->now_s > jwt->exp + LEEWAY_S   ? ACCESS_EXPIRED
                            : moment->now_s < jwt->nbf - LEEWAY_S ? ACCESS_NOT_YET
                                                                  : ACCESS_GOOD;

    return moment->has_begun || dates_pass(jwt, wrong, jwt->exp + LEEWAY_S, moment) ? ACCESS_GOOD : wrong;
}

bool access_dates_pass(const unsigned char digest[ACCESS_DIGEST], enum access_why dates, int64_t ends_s,
                       const struct access_moment *moment)
{
    struct known_jwt *entry;
    bool is_there, passes;

    pthread_mutex_lock(&known.lock);
    entry = known_place(digest, &is_there);
    if (!is_there && dates == ACCESS_GOOD) {
        *entry = (struct known_jwt){.serial = UINT64_MAX};
        memcpy(entry->digest, digest, ACCESS_DIGEST);
        is_there = true;
    }
    if (is_there)
        entry->used_ms = moment->steady_ms;
    passes = moment->has_begun || (is_there && dates_pass(entry, dates, ends_s, moment));
    pthread_mutex_unlock(&known.lock);
    return passes;
}

/* -- the whole */

/* A JWT that was not verified by this file: before, what is known of its dates stays. */
static bool jwt_take(const struct access *access, struct bytes text, struct known_jwt *entry,
                     enum access_why *why)
{
    struct jwt *jwt = must_have(calloc(1, sizeof(*jwt)));
    const char *identity = NULL;

    *why = jwt_read(access, text, jwt);
    if (*why == ACCESS_GOOD)
        identity = jwt_verify(access, jwt, why);
    if (identity != NULL) {
        entry->identity = identity;
        entry->exp = jwt->exp;
        entry->nbf = jwt->nbf;
        entry->has_cnf = jwt->has_cnf;
        memcpy(entry->cnf, jwt->cnf, sizeof(entry->cnf));
        entry->serial = access->serial;
    }
    json_free(jwt->head);
    json_free(jwt->body);
    free(jwt);
    return identity != NULL;
}

const char *access_of_jwt(const struct access *access, struct bytes text, const struct access_moment *moment,
                          enum access_why *why)
{
    struct known_jwt fresh = {.used_ms = moment->steady_ms}, *entry;
    const char *identity = NULL;
    bool is_there, is_verified;

    crypto_hash_sha256(fresh.digest, (const unsigned char *)text.at, text.len);
    pthread_mutex_lock(&known.lock);
    entry = known_place(fresh.digest, &is_there);
    if (is_there)
        fresh = *entry;
    pthread_mutex_unlock(&known.lock);
    is_verified = is_there && fresh.serial == access->serial;
    *why = ACCESS_NONE;
    if (!is_there && moment->known_only)
        return NULL;
    if (!is_verified && !jwt_take(access, text, &fresh, why)) /* without the lock: it takes its time */
        return NULL;
    pthread_mutex_lock(&known.lock);
    entry = known_place(fresh.digest, &is_there);
    if (is_there && !is_verified) {
        fresh.was_good = entry->was_good;
        fresh.wrong_ms = entry->wrong_ms;
        fresh.ends_ms = entry->ends_ms;
    }
    if (!is_there || !is_verified)
        *entry = fresh;
    entry->used_ms = moment->steady_ms;
    if (entry->serial != access->serial)
        entry = &fresh; /* another thread has verified it by another file meanwhile */
    *why = entry->has_cnf && (moment->certificate == NULL ||
                              sodium_memcmp(moment->certificate, entry->cnf, ACCESS_DIGEST) != 0)
               ? ACCESS_CERTIFICATE
               : dates_judge(entry, moment);
    if (*why == ACCESS_GOOD)
        identity = entry->identity;
    pthread_mutex_unlock(&known.lock);
    return identity;
}

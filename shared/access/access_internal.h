/* access_internal.h - what the files of the room share: names that stay, the table, what a file says. */
#ifndef PAWL_SHARED_ACCESS_INTERNAL_H
#define PAWL_SHARED_ACCESS_INTERNAL_H

#include <stdatomic.h>

#include "shared/access/access.h"

/* -- identity.c: texts of several kinds, each with a number */

struct access_entry {
    struct bytes key; /* at NULL: nothing is here */
    unsigned kind, value;
};

struct access_table {
    struct access_entry *entries;
    size_t count, size; /* size: a power of two, at least twice count */
};

/* NULL: it has none. Constant time in a digest, given where it would stand. The entry is good until
 * the next access_table_add(). */
const struct access_entry *access_table_find(const struct access_table *table, unsigned kind,
                                             struct bytes key);
/* key lives as long as the table, and is not in it yet. */
void access_table_add(struct access_table *table, unsigned kind, struct bytes key, unsigned value);
void access_table_free(struct access_table *table);

/* The identity of this name: the same pointer each time. */
const char *access_identity_keep(struct bytes name);

/* -- credential.c */

enum {
    ACCESS_CREDENTIAL_MAX = 1024, /* bytes of a certificate's name, and of a subject */
    ACCESS_UID_OF_OTHERS = 65534  /* /proc/sys/kernel/overflowuid, where nobody has changed it */
};

/* "sha256:" and its digits; false: it is something else. */
bool access_digest_read(struct bytes text, unsigned char digest[ACCESS_DIGEST]);
/* A certificate's name as the table has it, in buf: names of hosts know no case. false: it cannot be one. */
bool access_certificate_read(struct bytes text, char buf[ACCESS_CREDENTIAL_MAX], struct bytes *name);

/* -- what a file says */

/* What the table of a file has. The value of a credential is the number of its identity in who[]. */
enum access_kind {
    ACCESS_OF_NAME,        /* of an identity, a group, nobody, known: its number in who[] */
    ACCESS_OF_TOKEN,       /* ACCESS_DIGEST bytes */
    ACCESS_OF_CERTIFICATE, /* access_certificate_read() */
    ACCESS_OF_UID,         /* in decimal */
    ACCESS_OF_ISSUER,      /* its name in this file: its number in issuers[] */
    ACCESS_OF_ISS,         /* the iss of an issuer: the same */
    ACCESS_OF_SUBJECT      /* plus the number of its issuer */
};

/* Whom a rule can name. */
struct access_who {
    enum { ACCESS_IS_NOBODY, ACCESS_IS_KNOWN, ACCESS_IS_IDENTITY, ACCESS_IS_GROUP } is;
    const char *identity; /* NULL: it is none */
    uint64_t *rules;      /* a bit for each rule that names it; of an identity by whatever word */
    struct access_limits limits;
};

struct access_pattern {
    struct bytes text; /* without {me} and * */
    bool me, open;     /* {me} stands in front of it; * behind it */
};

struct access_rule {
    unsigned verbs;                  /* a bit for each */
    struct access_pattern *patterns; /* those of on, and then those of except */
    unsigned on, except;
};

enum access_algorithm { ACCESS_RS256 = 1, ACCESS_ES256 = 2, ACCESS_EDDSA = 4 };

struct access_issuer {
    struct bytes name, iss, aud, jwks; /* jwks: a path, a NUL behind it */
    unsigned algorithms;               /* a bit for each enum tls_algorithm */
    struct access_key *keys;
    unsigned key_count;
};

/* jwt.c */
void access_issuer_free(struct access_issuer *issuer);

enum { ACCESS_WHO_NOBODY, ACCESS_WHO_KNOWN, ACCESS_WHO_FIRST };

struct access {
    char hash[ACCESS_HASH_SIZE];
    uint64_t serial; /* no other file that this process has read has it; not 0 */
    char *texts;     /* all that is not a name of an identity */
    struct access_table table;
    atomic_uint_fast64_t *uses; /* of what stands in the same place of the table */
    struct access_who *who;
    unsigned who_count;
    struct access_rule *rules;
    unsigned rule_count, words; /* words: of 64 bits, for a bit for each rule */
    uint64_t *bits;             /* words for each verb, and then for each of who[] */
    struct access_issuer *issuers;
    unsigned issuer_count;
    bool counts_store; /* access_counts_store() */
};

static inline uint64_t *access_with_verb(const struct access *access, enum access_verb verb)
{
    return access->bits + (size_t)verb * access->words;
}

#endif

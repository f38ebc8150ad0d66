/* file.c - reads an access file: everything that it may say, and the place of what it may not.
 *
 *   access_load     open, size, mode
 *   access_parse    JSON, and its parts in the order of the table file_parts; what holds for a group or for
 *                   known is handed down to identities at the end */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shared/access/access_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/json.h"
#include "shared/text/memory.h"
#include "shared/text/read_all.h"
#include "shared/token/name.h"

enum { LEVELS_MAX = 8, IDENTITIES_MAX = 10000, RULES_MAX = 1000, PLACE_SIZE = 160, NAME_SHOWN = 64 };

struct reading {
    struct access *access;
    char *why;
    size_t why_size;
    char place[PLACE_SIZE];
    size_t place_len;
    char *text;           /* where the next one goes */
    unsigned who, issuer; /* what is being read: their numbers */
    struct access_rule *rule;
};

typedef bool (*read_function)(struct reading *reading, const struct json *value);

/* A member of an object: what it must be, and who reads it, or of a list or an object each that is in it. */
struct part {
    const char *name; /* NULL behind the last */
    enum json_kind kind;
    read_function read;
    enum { OPTIONAL, NEEDED } needed; /* NEEDED: it is there, and not empty */
};

static const char bad_name[] =
    "is no name: 1 to 64 characters of A-Z a-z 0-9 . _ -, the first a letter or digit";
static const char unknown_member[] = "no member of this name is known here";

/* -- the place, and what is wrong there */

static bool refuse(struct reading *reading, const char *sentence)
{
    snprintf(reading->why, reading->why_size, reading->place_len > 0 ? "%s: %s" : "%s%s", reading->place,
             sentence);
    return false;
}

/* What came may go to a terminal. */
static void place_add(struct reading *reading, struct bytes text)
{
    for (size_t i = 0; i < text.len && i < NAME_SHOWN && reading->place_len < PLACE_SIZE - 1; i++)
        reading->place[reading->place_len++] = (char)(text.at[i] > ' ' && text.at[i] <= '~' ? text.at[i]
                                                                                            : '?');
    reading->place[reading->place_len] = '\0';
}

/* A name may be an access token in the wrong place. */
static void place_in(struct reading *reading, struct bytes name)
{
    place_add(reading, reading->place_len > 0 ? BYTES(".") : BYTES(""));
    place_add(reading, access_token_is_formed(name) ? BYTES("pawl_...") : name);
}

static void place_out(struct reading *reading, size_t len)
{
    reading->place_len = len;
    reading->place[len] = '\0';
}

static bool refuse_at(struct reading *reading, const char *member, const char *sentence)
{
    place_in(reading, bytes_of(member));
    return refuse(reading, sentence);
}

/* -- every value */

static bool read_each(struct reading *reading, const struct json *value, enum json_kind kind,
                      read_function read)
{
    const struct json *one = NULL;
    char number[BYTES_NUMBER_SIZE];
    size_t len = reading->place_len;

    if (json_kind(value) != kind)
        return refuse(reading, kind == JSON_LIST ? "must be a list" : "must be an object");
    for (unsigned i = 0; (one = json_next(value, one)) != NULL; i++) {
        if (kind == JSON_LIST) {
            place_add(reading, BYTES("["));
            place_add(reading, bytes_of_number(number, i));
            place_add(reading, BYTES("]"));
        } else {
            place_in(reading, json_name(one));
        }
        if (!read(reading, one))
            return false;
        place_out(reading, len);
    }
    return true;
}

static bool read_part(struct reading *reading, const struct json *value, const struct part *part)
{
    size_t len = reading->place_len;
    bool nested = part->kind == JSON_LIST || part->kind == JSON_OBJECT;

    place_in(reading, bytes_of(part->name));
    if (value != NULL &&
        !(nested ? read_each(reading, value, part->kind, part->read) : part->read(reading, value)))
        return false;
    if (part->needed == NEEDED && (value == NULL || (nested && json_next(value, NULL) == NULL)))
        return refuse(reading, "is missing, or there is nothing in it");
    place_out(reading, len);
    return true;
}

/* All members of an object, in the order of parts. */
static bool read_parts(struct reading *reading, const struct json *value, const struct part *parts)
{
    const struct json *one = NULL;

    if (json_kind(value) != JSON_OBJECT)
        return refuse(reading, "must be an object");
    while ((one = json_next(value, one)) != NULL) {
        const struct part *part = parts;

        while (part->name != NULL && !bytes_are(json_name(one), part->name))
            part++;
        if (part->name == NULL)
            return refuse_at(reading, json_name(one).at, unknown_member);
    }
    for (const struct part *part = parts; part->name != NULL; part++)
        if (!read_part(reading, json_member(value, part->name), part))
            return false;
    return true;
}

static size_t count_of(const struct json *object, const char *member)
{
    const struct json *value = json_member(object, member), *one = NULL;
    size_t count = 0;

    while (value != NULL && (one = json_next(value, one)) != NULL)
        count++;
    return count;
}

/* Printable, and not empty. */
static bool take_text(struct reading *reading, const struct json *value, struct bytes *text)
{
    bool plain = json_is_text(value, text) && text->len > 0 && text->len <= ACCESS_CREDENTIAL_MAX;

    for (size_t i = 0; plain && i < text->len; i++)
        plain = (unsigned char)text->at[i] >= ' ' && text->at[i] != 0x7f;
    return plain || refuse(reading, "must be a text of 1 to 1,024 bytes without control characters");
}

/* A copy that lives as long as access. There is room: in the file each has two quotes, or a comma. */
static struct bytes keep(struct reading *reading, struct bytes text)
{
    char *at = reading->text;

    memcpy(at, text.at, text.len);
    at[text.len] = '\0';
    reading->text += text.len + 1;
    return (struct bytes){at, text.len};
}

/* -- issuers */

static bool read_algorithm(struct reading *reading, const struct json *value)
{
    static const struct {
        const char *name;
        enum access_algorithm algorithm;
    } known[] = {{"RS256", ACCESS_RS256}, {"ES256", ACCESS_ES256}, {"EdDSA", ACCESS_EDDSA}};
    struct bytes text;

    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]) && json_is_text(value, &text); i++) {
        if (bytes_are(text, known[i].name)) {
            reading->access->issuers[reading->issuer].algorithms |= known[i].algorithm;
            return true;
        }
    }
    return refuse(reading, "must be RS256, ES256 or EdDSA");
}

/* iss, aud, jwks */
static bool read_issuer_text(struct reading *reading, const struct json *value)
{
    struct access_issuer *issuer = &reading->access->issuers[reading->issuer];
    struct access_table *table = &reading->access->table;
    char which = json_name(value).at[0];
    struct bytes text;

    if (!take_text(reading, value, &text))
        return false;
    if (which == 'i' && access_table_find(table, ACCESS_OF_ISS, text) != NULL)
        return refuse(reading, "is that of another issuer, too");
    if (which == 'j' && text.at[0] != '/')
        return refuse(reading, "must be the whole path of a file, from / on");
    text = keep(reading, text);
    *(which == 'i' ? &issuer->iss : which == 'a' ? &issuer->aud : &issuer->jwks) = text;
    if (which == 'i')
        access_table_add(table, ACCESS_OF_ISS, text, reading->issuer);
    return true;
}

static bool read_issuer(struct reading *reading, const struct json *value)
{
    static const struct part parts[] = {{"iss", JSON_TEXT, read_issuer_text, NEEDED},
                                        {"aud", JSON_TEXT, read_issuer_text, NEEDED},
                                        {"jwks", JSON_TEXT, read_issuer_text, NEEDED},
                                        {"algs", JSON_LIST, read_algorithm, NEEDED},
                                        {0}};
    struct access *access = reading->access;
    struct access_issuer *issuer = &access->issuers[access->issuer_count];

    if (!access_is_name(json_name(value)))
        return refuse(reading, bad_name);
    issuer->name = keep(reading, json_name(value));
    reading->issuer = access->issuer_count++;
    access_table_add(&access->table, ACCESS_OF_ISSUER, issuer->name, reading->issuer);
    return read_parts(reading, value, parts);
}

/* -- names */

/* What value is called. */
static bool add_name(struct reading *reading, const struct json *value)
{
    struct access *access = reading->access;
    struct bytes name = json_name(value);
    const struct access_entry *entry = access_table_find(&access->table, ACCESS_OF_NAME, name);

    if (!access_is_name(name))
        return refuse(reading, bad_name);
    if (entry != NULL)
        return refuse(reading,
                      entry->value < ACCESS_WHO_FIRST
                          ? "has a meaning of its own: nobody shows no credential, known is every identity"
                          : "is the name of an identity already");
    reading->who = access->who_count++;
    access->who[reading->who].is = ACCESS_IS_GROUP;
    access_table_add(&access->table, ACCESS_OF_NAME, keep(reading, name), reading->who);
    return true;
}

static struct access_who *find_who(struct reading *reading, struct bytes name)
{
    const struct access_entry *entry = access_table_find(&reading->access->table, ACCESS_OF_NAME, name);

    if (entry == NULL)
        refuse(reading, "is no identity and no group of this file");
    return entry != NULL ? &reading->access->who[entry->value] : NULL;
}

/* NULL: it is no text, or names nobody. */
static struct access_who *take_who(struct reading *reading, const struct json *value)
{
    struct bytes text;

    return take_text(reading, value, &text) ? find_who(reading, text) : NULL;
}

/* -- identities */

static bool add_credential(struct reading *reading, unsigned kind, struct bytes key)
{
    struct access_table *table = &reading->access->table;
    const struct access_entry *entry = access_table_find(table, kind, key);

    if (entry != NULL)
        return refuse(reading, entry->value == reading->who ? "stands there twice"
                                                            : "is a credential of another identity, too");
    access_table_add(table, kind, keep(reading, key), reading->who);
    return true;
}

static bool read_access_token(struct reading *reading, const struct json *value)
{
    unsigned char digest[ACCESS_DIGEST];
    struct bytes text = {NULL, 0};

    if (json_is_text(value, &text) && access_token_is_formed(text))
        return refuse(reading,
                      "is an access token, not its hash: who can read this file has it; make a new one");
    if (!access_digest_read(text, digest))
        return refuse(reading, "must be sha256: and 64 digits of 0-9 a-f; pawl access hash makes it");
    return add_credential(reading, ACCESS_OF_TOKEN, (struct bytes){(const char *)digest, sizeof(digest)});
}

static bool read_certificate(struct reading *reading, const struct json *value)
{
    char buf[ACCESS_CREDENTIAL_MAX];
    struct bytes text;

    if (!take_text(reading, value, &text))
        return false;
    if (!access_certificate_read(text, buf, &text))
        return refuse(reading, "must be uri:, dns: or cn:, and the name as the certificate has it");
    if (text.at[0] == 'd' && memchr(text.at, '*', text.len) != NULL)
        return refuse(reading, "is a name and no pattern: * has no meaning here");
    return add_credential(reading, ACCESS_OF_CERTIFICATE, text);
}

static bool read_uid(struct reading *reading, const struct json *value)
{
    char text[BYTES_NUMBER_SIZE];
    int64_t uid;

    if (!json_is_int(value, &uid) || uid < 0 || uid >= UINT32_MAX)
        return refuse(reading, "must be a user id, from 0 to 4294967294");
    if (uid == ACCESS_UID_OF_OTHERS)
        return refuse(reading, "is what the kernel says of users that have no number here (user namespaces)");
    return add_credential(reading, ACCESS_OF_UID, bytes_of_number(text, uid));
}

static bool read_subject(struct reading *reading, const struct json *value)
{
    struct bytes text;

    return take_text(reading, value, &text) &&
           add_credential(reading, ACCESS_OF_SUBJECT + reading->issuer, text);
}

static bool read_subjects(struct reading *reading, const struct json *value)
{
    const struct access_entry *entry = access_table_find(&reading->access->table, ACCESS_OF_ISSUER,
                                                         json_name(value));

    if (entry == NULL)
        return refuse(reading, "is no issuer of this file");
    reading->issuer = entry->value;
    return read_each(reading, value, JSON_LIST, read_subject);
}

static bool read_identity(struct reading *reading, const struct json *value)
{
    static const struct part parts[] = {{"access_tokens", JSON_LIST, read_access_token, OPTIONAL},
                                        {"certs", JSON_LIST, read_certificate, OPTIONAL},
                                        {"uids", JSON_LIST, read_uid, OPTIONAL},
                                        {"subjects", JSON_OBJECT, read_subjects, OPTIONAL},
                                        {0}};
    struct access_who *who = &reading->access->who[reading->access->who_count];

    if (!add_name(reading, value))
        return false;
    who->is = ACCESS_IS_IDENTITY;
    who->identity = access_identity_keep(json_name(value));
    return read_parts(reading, value, parts);
}

/* -- rules */

static void set_bit(const struct reading *reading, uint64_t *bits)
{
    size_t rule = (size_t)(reading->rule - reading->access->rules);

    bits[rule / 64] |= UINT64_C(1) << rule % 64;
}

static bool read_who(struct reading *reading, const struct json *value)
{
    const struct access_who *who = take_who(reading, value);

    if (who != NULL)
        set_bit(reading, who->rules);
    return who != NULL;
}

static bool read_verb(struct reading *reading, const struct json *value)
{
    struct bytes text = {NULL, 0};
    enum access_verb verb = json_is_text(value, &text) ? access_verb_of(text) : ACCESS_VERBS;

    if (verb == ACCESS_VERBS)
        return refuse(reading,
                      "must be acquire, look, force-release, read, write-own, write, check, resolve, "
                      "session, observe or operate");
    reading->rule->verbs |= 1U << verb;
    set_bit(reading, access_with_verb(reading->access, verb));
    return true;
}

static bool take_pattern(struct reading *reading, const struct json *value, struct access_pattern *pattern)
{
    struct bytes text, me = BYTES("{me}");

    if (!take_text(reading, value, &text))
        return false;
    pattern->me = bytes_take(&text, me);
    if (memmem(text.at, text.len, me.at, me.len) != NULL)
        return refuse(reading, "{me} stands at the beginning, or not at all");
    pattern->open = text.len > 0 && text.at[text.len - 1] == '*';
    text.len -= pattern->open;
    if (pattern->open && (text.len > 0 || pattern->me) &&
        (text.len == 0 || memchr(":.-_", text.at[text.len - 1], 4) == NULL))
        return refuse(reading, "in front of * stands nothing, or one of : . - _ (a* would be ab, too)");
    if (pattern->me ? text.len >= NAME_MAX_BYTES || !ascii_is_word(text, BYTES("._:-"))
                    : !(pattern->open ? name_is_prefix(text) : name_is_lease(text)))
        return refuse(reading, "must be the name of a lease, or its beginning and a * at the end");
    pattern->text = keep(reading, text);
    return true;
}

static bool read_on(struct reading *reading, const struct json *value)
{
    return take_pattern(reading, value, &reading->rule->patterns[reading->rule->on++]);
}

static bool read_except(struct reading *reading, const struct json *value)
{
    return take_pattern(reading, value,
                        &reading->rule->patterns[reading->rule->on + reading->rule->except++]);
}

static bool read_rule(struct reading *reading, const struct json *value)
{
    static const struct part parts[] = {{"who", JSON_LIST, read_who, NEEDED},
                                        {"may", JSON_LIST, read_verb, NEEDED},
                                        {"on", JSON_LIST, read_on, OPTIONAL},
                                        {"except", JSON_LIST, read_except, OPTIONAL},
                                        {0}};
    struct access_rule *rule = &reading->access->rules[reading->access->rule_count++];
    bool object = json_kind(value) == JSON_OBJECT;

    reading->rule = rule;
    rule->patterns = must_have(
        calloc(object ? count_of(value, "on") + count_of(value, "except") + 1 : 1, sizeof(*rule->patterns)));
    if (!read_parts(reading, value, parts))
        return false;
    if (rule->on == 0 && (rule->verbs & ((1U << ACCESS_SESSION) - 1)) != 0)
        return refuse_at(reading, "on", "is missing: a verb of this rule is about names");
    return rule->on > 0 || json_member(value, "except") == NULL ||
           refuse_at(reading, "except", "stands there without on");
}

/* -- limits */

static const char *const limit_names[] = {"requests_per_s", "held",    "waiting",
                                          "sessions",       "streams", "stored_bytes"};

enum { LIMITS = sizeof(limit_names) / sizeof(limit_names[0]), REQUESTS_PER_S_MIN = 10 };

_Static_assert(sizeof(struct access_limits) == LIMITS * sizeof(int64_t), "they are in the same order");

static bool read_limit(struct reading *reading, const struct json *value)
{
    int64_t *limits = &reading->access->who[reading->who].limits.requests_per_s, number = 0;
    unsigned i = 0;

    while (i < LIMITS && !bytes_are(json_name(value), limit_names[i]))
        i++;
    if (i == LIMITS)
        return refuse(reading, unknown_member);
    if (!json_is_int(value, &number) || number < (i == 0 ? REQUESTS_PER_S_MIN : 1))
        return refuse(reading,
                      i == 0 ? "must be a whole number from 10 on" : "must be a whole number from 1 on");
    limits[i] = number;
    reading->access->counts_store = reading->access->counts_store || bytes_are(json_name(value), "held") ||
                                    bytes_are(json_name(value), "sessions") ||
                                    bytes_are(json_name(value), "stored_bytes");
    return true;
}

const char *access_quota_name(enum access_quota quota)
{
    return limit_names[1 + quota];
}

bool access_counts_store(const struct access *access)
{
    return access->counts_store;
}

static bool read_limits(struct reading *reading, const struct json *value)
{
    const struct access_who *who = find_who(reading, json_name(value));

    if (who == NULL)
        return false;
    if (who->is == ACCESS_IS_NOBODY)
        return refuse(reading, "is no identity: limits are for each identity");
    reading->who = (unsigned)(who - reading->access->who);
    return read_each(reading, value, JSON_OBJECT, read_limit);
}

/* -- groups */

/* What holds for of holds for who. */
static void hand_down(const struct access *access, struct access_who *of, struct access_who *who)
{
    for (unsigned word = 0; word < access->words; word++)
        who->rules[word] |= of->rules[word];
    for (unsigned i = 0; i < LIMITS; i++) {
        int64_t *lowest = &who->limits.requests_per_s + i, limit = (&of->limits.requests_per_s)[i];

        *lowest = limit > 0 && (*lowest == 0 || limit < *lowest) ? limit : *lowest;
    }
}

static bool read_group_member(struct reading *reading, const struct json *value)
{
    struct access_who *who = take_who(reading, value);

    if (who == NULL)
        return false;
    if (who->is != ACCESS_IS_IDENTITY)
        return refuse(reading, "is no identity: a group has identities in it, and nothing else");
    hand_down(reading->access, &reading->access->who[reading->who], who);
    return true;
}

static bool read_group(struct reading *reading, const struct json *value)
{
    reading->who = (unsigned)(find_who(reading, json_name(value)) - reading->access->who);
    return read_each(reading, value, JSON_LIST, read_group_member);
}

/* -- the whole */

static const struct part file_parts[] = {{"issuers", JSON_OBJECT, read_issuer, OPTIONAL},
                                         {"identities", JSON_OBJECT, read_identity, OPTIONAL},
                                         {"groups", JSON_OBJECT, add_name, OPTIONAL},
                                         {"rules", JSON_LIST, read_rule, OPTIONAL},
                                         {"limits", JSON_OBJECT, read_limits, OPTIONAL},
                                         {"groups", JSON_OBJECT, read_group, OPTIONAL},
                                         {0}};

static void make_room(struct access *access, const struct json *json, size_t text_len)
{
    size_t whos = ACCESS_WHO_FIRST + count_of(json, "identities") + count_of(json, "groups");
    size_t rules = count_of(json, "rules");

    access->words = (unsigned)(rules + 63) / 64;
    access->texts = must_have(malloc(text_len));
    access->who = must_have(calloc(whos, sizeof(*access->who)));
    access->rules = must_have(calloc(rules + 1, sizeof(*access->rules)));
    access->issuers = must_have(calloc(count_of(json, "issuers") + 1, sizeof(*access->issuers)));
    access->bits = must_have(calloc((ACCESS_VERBS + whos) * access->words + 1, sizeof(*access->bits)));
    for (size_t i = 0; i < whos; i++)
        access->who[i].rules = access->bits + (ACCESS_VERBS + i) * access->words;
    access->who[ACCESS_WHO_KNOWN].is = ACCESS_IS_KNOWN;
    access_table_add(&access->table, ACCESS_OF_NAME, BYTES("nobody"), ACCESS_WHO_NOBODY);
    access_table_add(&access->table, ACCESS_OF_NAME, BYTES("known"), ACCESS_WHO_KNOWN);
    access->who_count = ACCESS_WHO_FIRST;
}

/* The counts come first: what there must be room for grows with their product. */
static bool read_file(struct reading *reading, const struct json *json, struct bytes text)
{
    struct access *access = reading->access;

    if (count_of(json, "identities") > IDENTITIES_MAX)
        return refuse_at(reading, "identities", "may be 10,000 at most");
    if (count_of(json, "rules") > RULES_MAX)
        return refuse_at(reading, "rules", "may be 1,000 at most");
    make_room(access, json, text.len);
    access_token_hash(text, access->hash);
    reading->text = access->texts;
    if (!read_parts(reading, json, file_parts))
        return false;
    for (unsigned i = ACCESS_WHO_FIRST; i < access->who_count; i++)
        if (access->who[i].is == ACCESS_IS_IDENTITY)
            hand_down(access, &access->who[ACCESS_WHO_KNOWN], &access->who[i]);
    return true;
}

/* NULL, and with the line where that is known. */
static struct json *read_json(struct bytes text, char *why, size_t why_size)
{
    struct json_fault fault;
    struct json *json = json_parse(text, LEVELS_MAX, &fault);
    unsigned line = 1;

    for (size_t i = 0; json == NULL && i < fault.at; i++)
        line += text.at[i] == '\n';
    if (json == NULL && fault.at > 0)
        snprintf(why, why_size, "line %u: %s", line, fault.why);
    else if (json == NULL)
        snprintf(why, why_size, "%s", fault.why);
    return json;
}

static atomic_uint_fast64_t serial = 1;

struct access *access_parse(struct bytes text, char *why, size_t why_size)
{
    struct reading reading = {.why = why, .why_size = why_size};
    struct json *json = NULL;

    if (text.len > ACCESS_FILE_MAX)
        snprintf(why, why_size, "it has more than 1 MiB");
    else
        json = read_json(text, why, why_size);
    if (json == NULL)
        return NULL;
    reading.access = must_have(calloc(1, sizeof(*reading.access)));
    reading.access->serial = atomic_fetch_add(&serial, 1);
    if (!read_file(&reading, json, text)) {
        access_free(reading.access);
        reading.access = NULL;
    }
    if (reading.access != NULL)
        reading.access->uses = must_have(
            calloc(reading.access->table.size + 1, sizeof(*reading.access->uses)));
    json_free(json);
    return reading.access;
}

void access_free(struct access *access)
{
    if (access == NULL)
        return;
    for (unsigned i = 0; i < access->rule_count; i++)
        free(access->rules[i].patterns);
    access_table_free(&access->table);
    free(access->texts);
    free(access->who);
    free(access->uses);
    free(access->rules);
    for (unsigned i = 0; i < access->issuer_count; i++)
        access_issuer_free(&access->issuers[i]);
    free(access->issuers);
    free(access->bits);
    free(access);
}

const char *access_hash(const struct access *access)
{
    return access->hash;
}

struct access *access_load(const char *path, char *why, size_t why_size)
{
    char *text = must_have(malloc(ACCESS_FILE_MAX + 1)); /* one more, to see that it is too long */
    mode_t mode;
    ssize_t len = read_all_of(path, text, ACCESS_FILE_MAX + 1, &mode);
    struct access *access = NULL;

    if (len < 0)
        snprintf(why, why_size, "it cannot be read: %s", strerrordesc_np(errno));
    else if ((mode & (S_IWGRP | S_IWOTH)) != 0)
        snprintf(why, why_size,
                 "others than its owner can change it, and give themselves every right; chmod go-w");
    else
        access = access_parse((struct bytes){text, (size_t)len}, why, why_size);
    free(text);
    return access;
}

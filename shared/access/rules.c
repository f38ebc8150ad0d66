/* rules.c - the judge: which rules name this identity and have this verb (a bit for each rule), and the first
 * of them whose names have this one in them. */
#include <stdio.h>

#include "shared/access/access_internal.h"
#include "shared/token/name.h"

static const char *const verb_names[ACCESS_VERBS] = {
    [ACCESS_ACQUIRE] = "acquire", [ACCESS_LOOK] = "look",           [ACCESS_FORCE_RELEASE] = "force-release",
    [ACCESS_READ] = "read",       [ACCESS_WRITE_OWN] = "write-own", [ACCESS_WRITE] = "write",
    [ACCESS_CHECK] = "check",     [ACCESS_RESOLVE] = "resolve",     [ACCESS_SESSION] = "session",
    [ACCESS_OBSERVE] = "observe", [ACCESS_OPERATE] = "operate",
};

const char *access_verb_name(enum access_verb verb)
{
    return verb_names[verb];
}

enum access_verb access_verb_of(struct bytes name)
{
    unsigned verb = 0;

    while (verb < ACCESS_VERBS && !bytes_are(name, verb_names[verb]))
        verb++;
    return (enum access_verb)verb;
}

/* -- whom the rules know */

/* NULL: this file does not have it; it may have a group that is called so. */
static const struct access_who *who_of(const struct access *access, const char *identity)
{
    const struct access_entry *entry;

    if (identity == NULL)
        return &access->who[ACCESS_WHO_NOBODY];
    entry = access_table_find(&access->table, ACCESS_OF_NAME, bytes_of(identity));
    return entry != NULL && access->who[entry->value].identity != NULL ? &access->who[entry->value] : NULL;
}

/* Of 64 rules those that name who and have the verb, a bit for each. */
static uint64_t rules_of(const struct access *access, const struct access_who *who, enum access_verb verb,
                         unsigned word)
{
    return who->rules[word] & access_with_verb(access, verb)[word];
}

/* -- which names */

/* A name, as a whole, and what is left behind {me}: at NULL, when it does not begin so. */
struct asked {
    struct bytes whole, behind_me;
};

/* From the end on, where most differ. */
static inline bool pattern_has(const struct access_pattern *pattern, const struct asked *asked)
{
    struct bytes rest = pattern->me ? asked->behind_me : asked->whole;
    size_t len = pattern->text.len;

    if (rest.at == NULL || (pattern->open ? rest.len < len : rest.len != len))
        return false;
    while (len > 0 && rest.at[len - 1] == pattern->text.at[len - 1])
        len--;
    return len == 0;
}

static inline bool rule_has(const struct access_rule *rule, const struct asked *asked)
{
    unsigned i = 0;

    while (i < rule->on && !pattern_has(&rule->patterns[i], asked))
        i++;
    if (i == rule->on)
        return false;
    for (i = 0; i < rule->except; i++)
        if (pattern_has(&rule->patterns[rule->on + i], asked))
            return false;
    return true;
}

/* {me}; empty: nobody, who is never that. */
static struct bytes me_of(const struct access_who *who)
{
    return who->identity != NULL ? bytes_of(who->identity) : BYTES("");
}

/* rule_count: none allows it. */
static unsigned rule_that_allows(const struct access *access, const struct access_who *who,
                                 enum access_verb verb, struct bytes name)
{
    struct bytes me = me_of(who);
    struct asked asked = {name, name};
    bool named = verb < ACCESS_SESSION; /* the others are not about names */

    if (named && name.len == 0)
        return access->rule_count;
    if (me.len == 0 || !named || !bytes_take(&asked.behind_me, me))
        asked.behind_me.at = NULL;
    for (unsigned word = 0; word < access->words; word++) {
        for (uint64_t bits = rules_of(access, who, verb, word); bits != 0; bits &= bits - 1) {
            unsigned rule = word * 64 + (unsigned)__builtin_ctzll(bits);

            if (!named || rule_has(&access->rules[rule], &asked))
                return rule;
        }
    }
    return access->rule_count;
}

bool access_allows(const struct access *access, const char *identity, enum access_verb verb,
                   struct bytes lease)
{
    const struct access_who *who = who_of(access, identity);

    return who != NULL && rule_that_allows(access, who, verb, lease) < access->rule_count;
}

bool access_explain(const struct access *access, const char *identity, enum access_verb verb,
                    struct bytes lease, char place[ACCESS_WHY_SIZE])
{
    const struct access_who *who = who_of(access, identity);
    unsigned rule = who != NULL ? rule_that_allows(access, who, verb, lease) : access->rule_count;

    snprintf(place, ACCESS_WHY_SIZE, "rules[%u]", rule);
    return rule < access->rule_count;
}

bool access_has_nobody(const struct access *access)
{
    uint64_t any = 0;

    for (unsigned word = 0; word < access->words; word++)
        any |= access->who[ACCESS_WHO_NOBODY].rules[word];
    return any != 0;
}

/* -- many names at once
 *
 * Two names are judged alike when the same patterns have them. So the texts of the patterns, and for each a
 * name that goes on behind it as no pattern does, stand for all names that there are. */

enum access_sample { SAMPLE_ALLOWED, SAMPLE_REFUSED };
enum { SAMPLE_SIZE = ACCESS_IDENTITY_MAX + NAME_MAX_BYTES + 1 };

/* Whether the name of this text, or one behind it, is allowed, or else refused. */
static bool sample_is(const struct access *access, const struct access_who *who, enum access_verb verb,
                      struct bytes text, enum access_sample wanted)
{
    char behind[SAMPLE_SIZE];

    for (size_t more = text.len > 0 ? 0 : 1; more <= 1; more++) {
        if (text.len > 0)
            memcpy(behind, text.at, text.len);
        behind[text.len] = '\1';
        if ((rule_that_allows(access, who, verb, (struct bytes){behind, text.len + more}) <
             access->rule_count) == (wanted == SAMPLE_ALLOWED))
            return true;
    }
    return false;
}

/* A name that is refused is in the same exceptions as a sample of prefix or of one of them, which is in no
 * more rules: only those need be looked at. */
static bool any_sample_is(const struct access *access, const struct access_who *who, enum access_verb verb,
                          struct bytes prefix, enum access_sample wanted)
{
    struct bytes me = me_of(who);
    char text[SAMPLE_SIZE];

    if (prefix.len > NAME_MAX_BYTES || sample_is(access, who, verb, prefix, wanted))
        return true;
    for (unsigned rule = 0; rule < access->rule_count; rule++) {
        const struct access_rule *one = &access->rules[rule];
        unsigned i = wanted == SAMPLE_ALLOWED ? 0 : one->on;

        if ((rules_of(access, who, verb, rule / 64) >> rule % 64 & 1) == 0)
            continue;
        for (; i < one->on + one->except; i++) {
            const struct access_pattern *pattern = &one->patterns[i];
            struct bytes rest = {text, (pattern->me ? me.len : 0) + pattern->text.len};

            if (pattern->me)
                memcpy(text, me.at, me.len);
            memcpy(text + rest.len - pattern->text.len, pattern->text.at, pattern->text.len);
            if (bytes_take(&rest, prefix) &&
                sample_is(access, who, verb, (struct bytes){text, prefix.len + rest.len}, wanted))
                return true;
        }
    }
    return false;
}

bool access_reaches(const struct access *access, const char *identity, enum access_verb verb,
                    struct bytes prefix)
{
    const struct access_who *who = who_of(access, identity);

    return who != NULL && any_sample_is(access, who, verb, prefix, SAMPLE_ALLOWED);
}

bool access_allows_some(const struct access *access, const char *identity, enum access_verb verb)
{
    return access_reaches(access, identity, verb, BYTES(""));
}

bool access_covers(const struct access *access, const char *identity, enum access_verb verb,
                   struct bytes prefix)
{
    const struct access_who *who = who_of(access, identity);

    return who != NULL && !any_sample_is(access, who, verb, prefix, SAMPLE_REFUSED);
}

/* -- limits, warnings */

struct access_limits access_limits(const struct access *access, const char *identity)
{
    const struct access_who *who = who_of(access, identity);

    return who != NULL ? who->limits : (struct access_limits){0};
}

static bool rule_has_all_names(const struct access_rule *rule)
{
    unsigned i = 0;

    while (i < rule->on &&
           (rule->patterns[i].me || !rule->patterns[i].open || rule->patterns[i].text.len > 0))
        i++;
    return i < rule->on;
}

/* Whether one of this rule's identities has a name with which, and with this character behind it, another's
 * begins: it may then have the other's names. */
static bool me_is_two(const struct access *access, unsigned rule, char mark, struct bytes *shorter,
                      struct bytes *longer)
{
    for (unsigned other = ACCESS_WHO_FIRST; other < access->who_count; other++) {
        *longer = access->who[other].identity != NULL ? bytes_of(access->who[other].identity) : BYTES("");
        for (shorter->at = longer->at, shorter->len = 0; shorter->len < longer->len; shorter->len++) {
            const struct access_entry *one = longer->at[shorter->len] == mark
                                                 ? access_table_find(&access->table, ACCESS_OF_NAME, *shorter)
                                                 : NULL;

            if (one != NULL && access->who[one->value].identity != NULL &&
                (access->who[one->value].rules[rule / 64] >> rule % 64 & 1) != 0)
                return true;
        }
    }
    return false;
}

/* The character; 0: nothing is to be said. */
static char me_warning(const struct access *access, unsigned rule, struct bytes *shorter,
                       struct bytes *longer)
{
    for (unsigned i = 0; i < access->rules[rule].on; i++) {
        const struct access_pattern *pattern = &access->rules[rule].patterns[i];

        if (pattern->me && pattern->text.len > 0 && pattern->text.at[0] != ':' &&
            me_is_two(access, rule, pattern->text.at[0], shorter, longer))
            return pattern->text.at[0];
    }
    return '\0';
}

const char *access_warning(const struct access *access, unsigned i, char text[ACCESS_WHY_SIZE])
{
    struct bytes shorter, longer;
    char mark;

    const unsigned large = 1U << ACCESS_FORCE_RELEASE | 1U << ACCESS_OPERATE;
    const uint64_t *nobody = access->who[ACCESS_WHO_NOBODY].rules;

    for (unsigned rule = 0; rule < access->rule_count; rule++) {
        if ((nobody[rule / 64] >> rule % 64 & 1) != 0 && i-- == 0) {
            snprintf(text, ACCESS_WHY_SIZE,
                     "rules[%u]: names nobody: everybody who reaches the service may do this", rule);
            return text;
        }
        if ((access->rules[rule].verbs & large) != 0 && rule_has_all_names(&access->rules[rule]) &&
            i-- == 0) {
            snprintf(text, ACCESS_WHY_SIZE, "rules[%u]: gives %s on *, on every lease there is", rule,
                     access_verb_name((access->rules[rule].verbs >> ACCESS_FORCE_RELEASE & 1) != 0
                                          ? ACCESS_FORCE_RELEASE
                                          : ACCESS_OPERATE));
            return text;
        }
        if ((mark = me_warning(access, rule, &shorter, &longer)) != '\0' && i-- == 0) {
            snprintf(text, ACCESS_WHY_SIZE,
                     "rules[%u]: {me}%c of %.*s is also how the names of %.*s begin: take {me}:", rule, mark,
                     (int)shorter.len, shorter.at, (int)longer.len, longer.at);
            return text;
        }
    }
    return NULL;
}

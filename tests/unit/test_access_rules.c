/* test_access_rules.c - the judge: by a table, and against a reference on random files, which works on the
 * words of the file (fnmatch(3), {me} put in as text, groups looked through) and knows nothing of bits.
 *
 *   build/tests/test_access_rules [SEED] */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/access_sample.h"

enum { FILES = 400 };

static bool allows(const struct access *access, const char *who, const char *verb, const char *name)
{
    return access_allows(access, identity(access, who), access_verb_of(bytes_of(verb)), bytes_of(name));
}

/* -- by a table */

static const char contract[] =
    "{'identities':{'billing':{},'nightly':{},'worker':{},'ops':{}},'groups':{'apps':['billing','nightly']},"
    "'rules':["
    "{'who':['apps'],'may':['acquire','look','read','write-own','session'],'on':['{me}:*','orders:*','daily']"
    "},"
    "{'who':['ops'],'may':['look','force-release','operate'],'on':['*'],'except':['payroll:*','{me}-*']},"
    "{'who':['worker'],'may':['acquire'],'on':['{me}','{me}.x']},"
    "{'who':['known'],'may':['look'],'on':['payroll:open']},"
    "{'who':['nobody'],'may':['observe','read'],'on':['{me}:*','free:*']}]}";

/* One row for each kind; the rest is the reference's, below. */
TEST(rules_give_what_they_say_and_nothing_else)
{
    static const struct {
        const char *who, *verb, *name;
        int rule; /* -1: none */
    } rows[] = {
        {"billing", "acquire", "billing:1", 0},
        {"billing", "acquire", "billing:", 0},
        {"billing", "acquire", "billing", -1},
        {"billing", "acquire", "nightly:1", -1},
        {"billing", "read", "orders:42", 0},
        {"billing", "read", "daily", 0},
        {"billing", "write", "orders:42", -1},
        {"billing", "session", "", 0},
        {"worker", "read", "orders:42", -1},
        {"worker", "acquire", "worker", 2},
        {"worker", "look", "payroll:open", 3},
        {"ops", "look", "payroll:open", 3}, /* except is of its own rule only */
        {"ops", "look", "payroll:1", -1},
        {"ops", "force-release", "ops-1", -1},
        {"ops", "force-release", "ops", 1},
        {"ops", "look", "", -1}, /* no name is none of all names */
        {"ops", "operate", "", 1},
        {"nobody", "observe", "", 4},
        {"nobody", "read", "free:1", 4},
        {"nobody", "look", "payroll:open", -1}, /* known is not nobody */
        {"billing", "read", "free:1", -1},      /* nor the other way round */
    };
    struct access *access = must_parse(contract);
    char place[ACCESS_WHY_SIZE];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool found = access_explain(access, identity(access, rows[i].who),
                                    access_verb_of(bytes_of(rows[i].verb)), bytes_of(rows[i].name), place);

        if (!CHECK_INT(found, rows[i].rule >= 0) ||
            (found && !CHECK_TEXT(bytes_of(place), bytes_of(textf("rules[%d]", rows[i].rule)))))
            printf("# row %zu: %s %s %s\n", i, rows[i].who, rows[i].verb, rows[i].name);
        CHECK_INT(allows(access, rows[i].who, rows[i].verb, rows[i].name), found);
    }
    CHECK(access_has_nobody(access));
    access_free(access);
}

TEST(an_identity_of_another_file_may_do_nothing)
{
    struct access *access = must_parse(
        "{'rules':[{'who':['known','nobody','group'],'may':['look'],'on':['*']}],"
        "'identities':{'a':{}},'groups':{'group':['a']}}");
    struct access *other = must_parse("{'identities':{'before':{},'a':{},'group':{}},"
                                      "'rules':[{'who':['known'],'may':['look'],'on':['a']}]}");
    static const char *const foreign[] = {"before", "group"};

    CHECK(allows(access, "a", "look", "x"));
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        const char *who = identity(other, foreign[i]);

        CHECK(who != NULL && !access_allows(access, who, ACCESS_LOOK, BYTES("x")));
        CHECK(!access_covers(access, who, ACCESS_LOOK, BYTES("")));
        CHECK(!access_allows_some(access, who, ACCESS_LOOK));
    }
    CHECK(access_allows(access, identity(other, "a"), ACCESS_LOOK, BYTES("x")));
    CHECK(access_has_nobody(access) && !access_has_nobody(other));
    access_free(access);
    access_free(other);
}

TEST(the_longest_names_are_judged_as_others)
{
    char file[TEXT_SIZE], me[ACCESS_IDENTITY_MAX + 1], name[256];
    struct access *access;

    memset(me, 'm', sizeof(me));
    me[ACCESS_IDENTITY_MAX] = '\0';
    memset(name, 'x', sizeof(name));
    snprintf(
        file, sizeof(file),
        "{'identities':{'%s':{}},'rules':[{'who':['%s'],'may':['look'],'on':['%.127s.*','{me}%.127s','*'],"
        "'except':['%.128s','{me}.*','{me}%.127s']}]}",
        me, me, name, name, name, name);
    access = must_parse(file);
    CHECK(!access_allows(access, identity(access, me), ACCESS_LOOK, (struct bytes){name, 128}));
    CHECK(access_allows(access, identity(access, me), ACCESS_LOOK, (struct bytes){name, 127}));
    CHECK(access_covers(access, identity(access, me), ACCESS_LOOK, BYTES("a:")));
    CHECK(!access_covers(access, identity(access, me), ACCESS_LOOK, (struct bytes){name, 128}));
    CHECK(!access_covers(access, identity(access, me), ACCESS_LOOK, BYTES("mm")));
    CHECK(access_allows_some(access, identity(access, me), ACCESS_LOOK));
    access_free(access);
}

TEST(verbs_and_reasons_have_their_names)
{
    for (unsigned verb = 0; verb < ACCESS_VERBS; verb++)
        CHECK_INT(access_verb_of(bytes_of(access_verb_name((enum access_verb)verb))), verb);
    CHECK_INT(access_verb_of(BYTES("")), ACCESS_VERBS);
    CHECK_INT(access_verb_of(BYTES("acquire ")), ACCESS_VERBS);
    for (unsigned why = 0; why < ACCESS_WHYS; why++)
        CHECK(strlen(access_why_name((enum access_why)why)) > 3);
    CHECK_TEXT(bytes_of(access_why_name(ACCESS_NOT_YET)), BYTES("not-yet"));
}

/* -- against a reference */

enum { NAMES = 1023, NAME_LEN = 5, WORDS = 4, RULES = 6, GROUPS = 2, IDENTITIES = 3 };

struct words {
    unsigned count;
    char word[WORDS][16];
};

struct model {
    struct words groups[GROUPS];
    unsigned rules;
    struct model_rule {
        struct words who, may, on, except;
    } rule[RULES];
};

static const char *const identity_names[IDENTITIES] = {"a", "b", "ab"};
static const char *const group_names[GROUPS] = {"g", "h"};
static unsigned long seed;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static void draw_text(char *to, const char *alphabet, unsigned len)
{
    for (unsigned i = 0; i < len; i++)
        to[i] = alphabet[draw((unsigned)strlen(alphabet))];
    to[len] = '\0';
}

static void draw_pattern(char to[16])
{
    char text[8];

    switch (draw(5)) {
    case 0: snprintf(to, 16, "*"); return;
    case 1:
        draw_text(text, "ab", 1), draw_text(text + 1, "ab:", draw(3)), snprintf(to, 16, "%s", text);
        return;
    case 2:
        draw_text(text, "ab", 1), draw_text(text + 1, "ab:", draw(2)), snprintf(to, 16, "%s:*", text);
        return;
    case 3: draw_text(text, "ab:", draw(3)), snprintf(to, 16, "{me}%s", text); return;
    default: draw_text(text, "ab", draw(2)), snprintf(to, 16, "{me}%s:*", text); return;
    }
}

static void draw_words(struct words *words, unsigned least, unsigned most, const char *const *of,
                       unsigned count)
{
    words->count = least + draw(most - least + 1);
    for (unsigned i = 0; i < words->count; i++)
        if (of != NULL)
            snprintf(words->word[i], sizeof(words->word[i]), "%s", of[draw(count)]);
        else
            draw_pattern(words->word[i]);
}

static void draw_model(struct model *model)
{
    static const char *const whom[] = {"a", "b", "ab", "g", "h", "known", "nobody"};
    static const char *const verbs[] = {"look", "look", "read", "observe"};

    for (unsigned i = 0; i < GROUPS; i++)
        draw_words(&model->groups[i], 0, 2, identity_names, IDENTITIES);
    model->rules = draw(RULES + 1);
    for (unsigned i = 0; i < model->rules; i++) {
        draw_words(&model->rule[i].who, 1, 2, whom, sizeof(whom) / sizeof(whom[0]));
        draw_words(&model->rule[i].may, 1, 2, verbs, sizeof(verbs) / sizeof(verbs[0]));
        draw_words(&model->rule[i].on, 1, 3, NULL, 0);
        draw_words(&model->rule[i].except, 0, 2, NULL, 0);
    }
}

static size_t put(char *to, size_t len, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    len += (size_t)vsnprintf(to + len, TEXT_SIZE - len, format, arguments);
    va_end(arguments);
    return len;
}

static size_t put_words(char *to, size_t len, const char *name, const struct words *words)
{
    len = put(to, len, "'%s':[", name);
    for (unsigned i = 0; i < words->count; i++)
        len = put(to, len, "%s'%s'", i > 0 ? "," : "", words->word[i]);
    return put(to, len, "]");
}

static void model_write(const struct model *model, char to[TEXT_SIZE])
{
    size_t len = put(to, 0, "{'groups':{");

    for (unsigned i = 0; i < GROUPS; i++)
        len = put(to, put_words(to, len, group_names[i], &model->groups[i]), i + 1 < GROUPS ? "," : "}");
    len = put(to, len, ",'identities':{'a':{},'b':{},'ab':{}},'rules':[");
    for (unsigned i = 0; i < model->rules; i++) {
        const struct model_rule *rule = &model->rule[i];

        len = put_words(to, put(to, len, i > 0 ? ",{" : "{"), "who", &rule->who);
        len = put_words(to, put(to, len, ","), "may", &rule->may);
        len = put_words(to, put(to, len, ","), "on", &rule->on);
        len = put_words(to, put(to, len, ","), "except", &rule->except);
        len = put(to, len, "}");
    }
    put(to, len, "]}");
}

static bool has_word(const struct words *words, const char *word)
{
    for (unsigned i = 0; i < words->count; i++)
        if (strcmp(words->word[i], word) == 0)
            return true;
    return false;
}

static bool model_names(const struct model *model, const struct words *who, const char *caller)
{
    bool named = has_word(who, caller) || (strcmp(caller, "nobody") != 0 && has_word(who, "known"));

    for (unsigned i = 0; i < GROUPS; i++)
        named |= has_word(who, group_names[i]) && has_word(&model->groups[i], caller);
    return named;
}

static bool any_matches(const struct words *patterns, const char *caller, const char *name)
{
    for (unsigned i = 0; i < patterns->count; i++) {
        const char *pattern = patterns->word[i];
        bool me = strncmp(pattern, "{me}", 4) == 0;

        if (!(me && strcmp(caller, "nobody") == 0) &&
            fnmatch(textf("%s%s", me ? caller : "", me ? pattern + 4 : pattern), name, 0) == 0)
            return true;
    }
    return false;
}

/* The first rule that allows it; -1: none. */
static int model_rule(const struct model *model, const char *caller, const char *verb, const char *name)
{
    for (unsigned i = 0; i < model->rules; i++) {
        const struct model_rule *rule = &model->rule[i];

        if (model_names(model, &rule->who, caller) && has_word(&rule->may, verb) &&
            (strcmp(verb, "observe") == 0 ||
             (any_matches(&rule->on, caller, name) && !any_matches(&rule->except, caller, name))))
            return (int)i;
    }
    return -1;
}

/* All of 1 to 5 characters of a, b, z and (not first) a colon: z stands for what no pattern has. */
static void names_make(char names[NAMES][NAME_LEN + 1])
{
    unsigned count = 0, from = 0;

    for (const char *c = "abz"; *c != '\0'; c++)
        snprintf(names[count++], NAME_LEN + 1, "%c", *c);
    for (unsigned len = 1; len < NAME_LEN; len++) {
        unsigned to = count;

        for (; from < to; from++)
            for (const char *c = "abz:"; *c != '\0'; c++)
                snprintf(names[count++], NAME_LEN + 1, "%.4s%c", names[from], *c);
    }
    if (count != NAMES)
        abort();
}

static unsigned disagreements(const struct model *model, const struct access *access, const char *caller,
                              const char *verb, char names[NAMES][NAME_LEN + 1])
{
    static const char *const prefixes[] = {"", "a", "b", "a:", "ab:", "ab", "z", "a:b"};
    const char *who = identity(access, caller);
    enum access_verb number = access_verb_of(bytes_of(verb));
    char place[ACCESS_WHY_SIZE], wanted[32];
    bool allowed[NAMES], some = false;
    unsigned wrong = 0;

    for (unsigned i = 0; i < NAMES; i++) {
        int rule = model_rule(model, caller, verb, names[i]);
        bool found = access_explain(access, who, number, bytes_of(names[i]), place);

        snprintf(wanted, sizeof(wanted), "rules[%d]", rule);
        allowed[i] = rule >= 0;
        some |= allowed[i];
        wrong += access_allows(access, who, number, bytes_of(names[i])) != allowed[i];
        wrong += found != allowed[i] || (found && strcmp(place, wanted) != 0);
    }
    wrong += access_allows_some(access, who, number) != some;
    for (unsigned p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
        bool all = true, any = false;

        for (unsigned i = 0; i < NAMES; i++) {
            bool is_so = strncmp(names[i], prefixes[p], strlen(prefixes[p])) == 0;

            all = all && (allowed[i] || !is_so);
            any = any || (allowed[i] && is_so);
        }
        wrong += access_covers(access, who, number, bytes_of(prefixes[p])) != all;
        wrong += access_reaches(access, who, number, bytes_of(prefixes[p])) != any;
    }
    return wrong;
}

TEST(a_reference_judges_400_000_random_requests_alike)
{
    static char names[NAMES][NAME_LEN + 1];
    static const char *const callers[] = {"a", "b", "ab", "nobody"}, *const verbs[] = {"look", "read",
                                                                                       "observe"};
    unsigned long began = seed;
    unsigned covered = 0, some = 0;

    names_make(names);
    for (unsigned i = 0; i < FILES; i++) {
        const char *caller = callers[draw(4)], *verb = verbs[draw(3)];
        struct model model;
        char text[TEXT_SIZE];
        struct access *access;

        draw_model(&model);
        model_write(&model, text);
        access = must_parse(text);
        if (!CHECK_INT(disagreements(&model, access, caller, verb, names), 0))
            printf("# %s %s\n# %s\n", caller, verb, text);
        some += access_allows_some(access, identity(access, caller), access_verb_of(bytes_of(verb)));
        covered += access_covers(access, identity(access, caller), access_verb_of(bytes_of(verb)),
                                 BYTES("a:"));
        access_free(access);
    }
    printf("# seed %lu: %u of %u may something, %u all of a:*\n", began, some, FILES, covered);
    CHECK(some > FILES / 8 && some < FILES && covered > FILES / 40 && covered < some);
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoul(argv[1], NULL, 10) : (unsigned long)time(NULL);
    return check_all();
}

/* test_access_file.c - the access file: what it may say, and the place of what it may not; access tokens;
 * whose a credential is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/access/access_internal.h"
#include "tests/unit/access_sample.h"

/* Of "abc" and of "abd". */
#define HASH_A "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define HASH_B "sha256:a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9"
#define K8S "'k':{'iss':'https://k','aud':'pawl','jwks':'/k.json','algs':['RS256']}"
#define ONE "'identities':{'a':{}},"

static void check_refused(const char *file, const char *wanted)
{
    char why[ACCESS_WHY_SIZE] = "nothing";
    struct access *access = parse(file, why);

    if (!CHECK(access == NULL && strncmp(why, wanted, strlen(wanted)) == 0))
        printf("# %s\n# %s: %s\n# wanted: %s\n", file, access != NULL ? "taken" : "refused", why, wanted);
    access_free(access);
}

static const struct {
    const char *file, *why;
} refusals[] = {
    /* the text */
    {"", "The JSON text is not an object."},
    {"[]", "The JSON text is not an object."},
    {"{\n'rules':[]\n,}", "line 3: A member has no name in quotes"},
    {"{'rules':[],'rules':[]}", "The member rules stands there twice."},
    {"{'identities':{'a':{},'a':{}}}", "The member identities.a stands there twice."},
    {"{'rules':[{},{'on':[],'on':[]}]}", "The member rules[1].on stands there twice."},
    {"{'rule':[]}", "rule: no member of this name is known here"},
    {"{'ru\\u001ble':[]}", "ru?le: no member"},
    {"{'identities':[]}", "identities: must be an object"},
    {"{'groups':null}", "groups: must be an object"},
    {"{'rules':{}}", "rules: must be a list"},
    /* identities */
    {"{'identities':{'a':[]}}", "identities.a: must be an object"},
    {"{'identities':{'':{}}}", "identities.: is no name: 1 to 64"},
    {"{'identities':{'a:b':{}}}", "identities.a:b: is no name"},
    {"{'identities':{'-a':{}}}", "identities.-a: is no name"},
    {"{'identities':{'12345678901234567890123456789012345678901234567890123456789012345':{}}}",
     "identities.1234567890123456789012345678901234567890123456789012345678901234: is no name"},
    {"{'identities':{'nobody':{}}}", "identities.nobody: has a meaning of its own"},
    {"{'identities':{'known':{}}}", "identities.known: has a meaning of its own"},
    {"{'identities':{'a':{'tokens':[]}}}", "identities.a.tokens: no member of this name"},
    {"{'identities':{'a':{'access_tokens':{}}}}", "identities.a.access_tokens: must be a list"},
    {"{'identities':{'a':{'access_tokens':[1]}}}", "identities.a.access_tokens[0]: must be sha256:"},
    {"{'identities':{'a':{'access_tokens':['ba7816']}}}", "identities.a.access_tokens[0]: must be sha256:"},
    {"{'identities':{'a':{'access_tokens':['" HASH_A "','" HASH_B "0']}}}",
     "identities.a.access_tokens[1]: must be sha256:"},
    {"{'identities':{'a':{'access_tokens':['sha256:"
     "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD']}}}",
     "identities.a.access_tokens[0]: must be sha256:"},
    {"{'identities':{'a':{'access_tokens':['" HASH_A "','" HASH_A "']}}}",
     "identities.a.access_tokens[1]: stands there twice"},
    {"{'identities':{'a':{'access_tokens':['" HASH_A "']},'b':{'access_tokens':['" HASH_A "']}}}",
     "identities.b.access_tokens[0]: is a credential of another identity, too"},
    {"{'identities':{'a':{'certs':['ops']}}}", "identities.a.certs[0]: must be uri:, dns: or cn:"},
    {"{'identities':{'a':{'certs':['uri:']}}}", "identities.a.certs[0]: must be uri:, dns: or cn:"},
    {"{'identities':{'a':{'certs':['dns:']}}}", "identities.a.certs[0]: must be uri:, dns: or cn:"},
    {"{'identities':{'a':{'certs':['cn:a\\n']}}}", "identities.a.certs[0]: must be a text of 1 to 1,024"},
    {"{'identities':{'a':{'certs':['dns:*.b']}}}", "identities.a.certs[0]: is a name and no pattern"},
    {"{'identities':{'a':{'certs':['dns:b','dns:B']}}}", "identities.a.certs[1]: stands there twice"},
    {"{'identities':{'a':{'certs':['cn:b']},'b':{'certs':['cn:b']}}}",
     "identities.b.certs[0]: is a credential of another"},
    {"{'identities':{'a':{'uids':['1']}}}", "identities.a.uids[0]: must be a user id"},
    {"{'identities':{'a':{'uids':[1,-1]}}}", "identities.a.uids[1]: must be a user id"},
    {"{'identities':{'a':{'uids':[4294967295]}}}", "identities.a.uids[0]: must be a user id"},
    {"{'identities':{'a':{'uids':[65534]}}}",
     "identities.a.uids[0]: is what the kernel says of users that have no"},
    {"{'identities':{'a':{'uids':[1.0]}}}", "identities.a.uids[0]: must be a user id"},
    {"{'identities':{'a':{'uids':[7]},'b':{'uids':[7]}}}",
     "identities.b.uids[0]: is a credential of another"},
    {"{'identities':{'a':{'subjects':['s']}}}", "identities.a.subjects: must be an object"},
    {"{'identities':{'a':{'subjects':{'k':['s']}}}}", "identities.a.subjects.k: is no issuer of this file"},
    {"{'issuers':{" K8S "},'identities':{'a':{'subjects':{'k':'s'}}}}",
     "identities.a.subjects.k: must be a list"},
    {"{'issuers':{" K8S "},'identities':{'a':{'subjects':{'k':['']}}}}",
     "identities.a.subjects.k[0]: must be a text"},
    {"{'identities':{'a':{'subjects':{'k':['s']}},'b':{'subjects':{'k':['s']}}},'issuers':{" K8S "}}",
     "identities.b.subjects.k[0]: is a credential of another"},
    /* groups */
    {"{" ONE "'groups':{'g':{}}}", "groups.g: must be a list"},
    {"{" ONE "'groups':{'a':[]}}", "groups.a: is the name of an identity already"},
    {"{'groups':{'known':[]}}", "groups.known: has a meaning of its own"},
    {"{'groups':{'g h':[]}}", "groups.g?h: is no name"},
    {"{" ONE "'groups':{'g':['a','b']}}", "groups.g[1]: is no identity and no group"},
    {"{" ONE "'groups':{'g':['a'],'h':['g']}}", "groups.h[0]: is no identity: a group has identities"},
    {"{" ONE "'groups':{'g':['known']}}", "groups.g[0]: is no identity: a group has identities"},
    /* issuers */
    {"{'issuers':{'k:':{}}}", "issuers.k:: is no name"},
    {"{'issuers':{'k':1}}", "issuers.k: must be an object"},
    {"{'issuers':{'k':{'iss':'i','aud':'a','jwks':'/j'}}}", "issuers.k.algs: is missing"},
    {"{'issuers':{'k':{'iss':'i','aud':'a','jwks':'/j','algs':[]}}}", "issuers.k.algs: is missing"},
    {"{'issuers':{'k':{'iss':'i','aud':'a','jwks':'/j','algs':['none']}}}",
     "issuers.k.algs[0]: must be RS256, ES256 or EdDSA"},
    {"{'issuers':{'k':{'iss':'i','aud':'a','jwks':'/j','algs':['RS256','HS256']}}}",
     "issuers.k.algs[1]: must be RS256, ES256 or EdDSA"},
    {"{'issuers':{'k':{'iss':'i','aud':'a','jwks':'j','algs':['RS256']}}}",
     "issuers.k.jwks: must be the whole path"},
    {"{'issuers':{'k':{'iss':'i','aud':'','jwks':'/j','algs':['RS256']}}}", "issuers.k.aud: must be a text"},
    {"{'issuers':{'k':{'aud':'a','jwks':'/j','algs':['RS256']}}}", "issuers.k.iss: is missing"},
    {"{'issuers':{'k':{'iss':'i','jwks':'/j','algs':['RS256']}}}", "issuers.k.aud: is missing"},
    {"{'issuers':{'k':{'iss':'i','aud':'a','algs':['RS256']}}}", "issuers.k.jwks: is missing"},
    {"{'issuers':{" K8S ",'l':{'iss':'https://k','aud':'b','jwks':'/j','algs':['ES256']}}}",
     "issuers.l.iss: is that of another issuer"},
    {"{'issuers':{'k':{'leeway':1}}}", "issuers.k.leeway: no member"},
    /* rules */
    {"{'rules':[1]}", "rules[0]: must be an object"},
    {"{'rules':[{'may':['look'],'on':['*']}]}", "rules[0].who: is missing"},
    {"{'rules':[{'who':[],'may':['look'],'on':['*']}]}", "rules[0].who: is missing"},
    {"{'rules':[{'who':'known','may':['look'],'on':['*']}]}", "rules[0].who: must be a list"},
    {"{'rules':[{'who':['b'],'may':['look'],'on':['*']}]}", "rules[0].who[0]: is no identity and no group"},
    {"{'rules':[{'who':['known'],'on':['*']}]}", "rules[0].may: is missing"},
    {"{'rules':[{'who':['known'],'may':['write','acquire '],'on':['*']}]}",
     "rules[0].may[1]: must be acquire, look"},
    {"{'rules':[{'who':['known'],'may':['observe']},{'who':['known'],'may':['session','look']}]}",
     "rules[1].on: is missing: a verb of this rule is about names"},
    {"{'rules':[{'who':['known'],'may':['resolve'],'on':[]}]}", "rules[0].on: is missing"},
    {"{'rules':[{'who':['known'],'may':['observe'],'except':['a']}]}",
     "rules[0].except: stands there without on"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['*'],'execpt':[]}]}", "rules[0].execpt: no member"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['orders*']}]}",
     "rules[0].on[0]: in front of * stands nothing, or one of"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['*'],'except':['a','b*']}]}",
     "rules[0].except[1]: in front of *"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['{me}*']}]}", "rules[0].on[0]: in front of *"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['a:{me}']}]}",
     "rules[0].on[0]: {me} stands at the beginning"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['{me}:{me}']}]}",
     "rules[0].on[0]: {me} stands at the beginning"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['{you}']}]}",
     "rules[0].on[0]: must be the name of a lease"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['a/*']}]}", "rules[0].on[0]: in front of *"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['a*b']}]}",
     "rules[0].on[0]: must be the name of a lease"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['a**']}]}", "rules[0].on[0]: in front of *"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['-a:*']}]}",
     "rules[0].on[0]: must be the name of a lease"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['']}]}", "rules[0].on[0]: must be a text"},
    {"{'rules':[{'who':['known'],'may':['look'],'on':['a','{me}/x']}]}",
     "rules[0].on[1]: must be the name of a lease"},
    /* limits */
    {"{'limits':{'g':{}}}", "limits.g: is no identity and no group"},
    {"{'limits':{'nobody':{}}}", "limits.nobody: is no identity"},
    {"{" ONE "'limits':{'a':{'hold':1}}}", "limits.a.hold: no member"},
    {"{" ONE "'limits':{'a':{'requests_per_s':9}}}",
     "limits.a.requests_per_s: must be a whole number from 10"},
    {"{" ONE "'limits':{'a':{'held':0}}}", "limits.a.held: must be a whole number from 1"},
    {"{" ONE "'limits':{'a':{'stored_bytes':1e9}}}", "limits.a.stored_bytes: must be a whole number"},
    {"{" ONE "'limits':{'a':5}}", "limits.a: must be an object"},
};

TEST(what_is_wrong_is_refused_with_its_place)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        check_refused(refusals[i].file, refusals[i].why);
}

TEST(what_is_right_is_taken)
{
    static const char *const files[] = {
        "{}",
        "{'identities':{'a':{}},'groups':{'g':[]},'issuers':{},'rules':[],'limits':{}}",
        "{'identities':{'A.b_c-9':{'access_tokens':[],'certs':[],'uids':[],'subjects':{}}}}",
        "{'rules':[{'who':['nobody'],'may':['observe','operate','session']}]}",
        "{'rules':[{'who':['known','known'],'may':['look','look'],'on':['*','a:*','a','{me}','{me}.*'],"
        "'except':['a-*','{me}_*']}]}",
        "{'issuers':{" K8S
        "},'identities':{'a':{'subjects':{'k':['system:serviceaccount:prod:worker','b']}}}}",
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        access_free(must_parse(files[i]));
}

/* {"PART": OPEN ROW, ROW, ... CLOSE}, with a number in each row. */
static struct access *parse_many(const char *open, const char *row, unsigned count, const char *close,
                                 char why[ACCESS_WHY_SIZE])
{
    char *text = malloc(ACCESS_FILE_MAX * 2);
    size_t len = (size_t)snprintf(text, 100, "%s", open);
    struct access *access;

    for (unsigned i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, 100, "%s", i > 0 ? "," : "");
        len += (size_t)snprintf(text + len, 100, row, i);
    }
    len += (size_t)snprintf(text + len, 100, "%s", close);
    access = access_parse((struct bytes){text, len}, why, ACCESS_WHY_SIZE);
    free(text);
    return access;
}

TEST(a_file_has_its_limits)
{
    static const char rule[] = "{\"who\":[\"known\"],\"may\":[\"observe\"]}";
    static const struct {
        const char *open, *row;
        unsigned most;
        const char *close, *why;
    } rows[] = {
        {"{\"identities\":{", "\"a%u\":{}", 10000, "}}", "identities: may be 10,000 at most"},
        {"{\"rules\":[", rule, 1000, "]}", "rules: may be 1,000 at most"},
    };
    char why[ACCESS_WHY_SIZE], *text = malloc(ACCESS_FILE_MAX + 1);
    struct access *access;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        access = parse_many(rows[i].open, rows[i].row, rows[i].most, rows[i].close, why);
        CHECK(access != NULL);
        access_free(access);
        CHECK(parse_many(rows[i].open, rows[i].row, rows[i].most + 1, rows[i].close, why) == NULL);
        CHECK_TEXT(bytes_of(why), bytes_of(rows[i].why));
    }
    memset(text, ' ', ACCESS_FILE_MAX + 1);
    memcpy(text, "{}", 2);
    access = access_parse((struct bytes){text, ACCESS_FILE_MAX}, why, sizeof(why));
    CHECK(access != NULL);
    access_free(access);
    CHECK(access_parse((struct bytes){text, ACCESS_FILE_MAX + 1}, why, sizeof(why)) == NULL);
    CHECK_TEXT(bytes_of(why), BYTES("it has more than 1 MiB"));
    free(text);
}

TEST(a_file_that_others_can_write_is_refused)
{
    static const struct {
        mode_t mode;
        bool taken;
    } modes[] = {{0400, true}, {0600, true}, {0644, true}, {0660, false}, {0602, false}};
    const char *path = check_file(BYTES("{}"));
    char why[ACCESS_WHY_SIZE];

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct access *access;

        chmod(path, modes[i].mode);
        access = access_load(path, why, sizeof(why));
        CHECK_INT(access != NULL, modes[i].taken);
        CHECK(access != NULL || strstr(why, "others than its owner can change it") != NULL);
        access_free(access);
    }
    unlink(path);
    CHECK(access_load(path, why, sizeof(why)) == NULL);
    CHECK_TEXT(bytes_of(why), BYTES("it cannot be read: No such file or directory"));
    CHECK(access_load("/", why, sizeof(why)) == NULL);
    CHECK_TEXT(bytes_of(why), BYTES("it cannot be read: Is a directory"));
}

/* -- access tokens */

/* Of 32 zero bytes; the check is what sha256sum says of the 48 characters in front of it. */
static const char zeros[] = "pawl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_b35e2b";

TEST(an_access_token_has_its_form_and_its_check)
{
    char token[ACCESS_TOKEN_SIZE], before[ACCESS_TOKEN_SIZE] = "";

    CHECK(access_token_is_formed(bytes_of(zeros)));
    for (size_t i = 0; i < sizeof(zeros) - 1; i++) {
        memcpy(token, zeros, sizeof(token));
        token[i] = (char)(token[i] == 'e' ? 'f' : 'e');
        CHECK(!access_token_is_formed(bytes_of(token)));
    }
    CHECK(!access_token_is_formed((struct bytes){zeros, 54}));
    CHECK(!access_token_is_formed((struct bytes){zeros, 56}));
    CHECK(!access_token_is_formed((struct bytes){NULL, 0}));
    for (int round = 0; round < 20; round++) {
        access_token_new(token);
        CHECK_INT(strlen(token), 55);
        CHECK(access_token_is_formed(bytes_of(token)));
        CHECK(strcmp(token, before) != 0);
        memcpy(before, token, sizeof(before));
    }
}

/* -- whose it is */

TEST(a_credential_leads_to_its_identity_and_no_other_does)
{
    char token[ACCESS_TOKEN_SIZE], foreign[ACCESS_TOKEN_SIZE], hash[ACCESS_HASH_SIZE], file[TEXT_SIZE];
    enum access_why why;
    struct access_memo *memo = access_memo_new();
    struct access *access;

    access_token_new(token);
    access_token_new(foreign);
    access_token_hash(bytes_of(token), hash);
    snprintf(file, sizeof(file),
             "{'identities':{'a':{'access_tokens':['" HASH_A "'],'uids':[0,4294967294]},"
             "'b':{'access_tokens':['" HASH_B
             "','sha256:%s'],'certs':['uri:spiffe://x/B','dns:Ops.Example','cn:C d']}}}",
             hash);
    access = must_parse(file);
    CHECK(access_of_token(memo, access, bytes_of(token), &why) == identity(access, "b"));
    CHECK_INT(why, ACCESS_GOOD);
    CHECK(access_of_token(memo, access, bytes_of(foreign), &why) == NULL);
    CHECK_INT(why, ACCESS_UNKNOWN);
    foreign[54] = (char)(foreign[54] == '0' ? '1' : '0');
    CHECK(access_of_token(memo, access, bytes_of(foreign), &why) == NULL);
    CHECK_INT(why, ACCESS_MALFORMED);
    CHECK(access_of_token(memo, access, BYTES("abc"), &why) == NULL); /* though its hash is in the file */
    CHECK_INT(why, ACCESS_MALFORMED);
    CHECK(access_of_uid(access, 0) == identity(access, "a"));
    CHECK(access_of_uid(access, 4294967294) == identity(access, "a"));
    CHECK(access_of_uid(access, 1) == NULL);
    CHECK(access_of_certificate(access, BYTES("uri:spiffe://x/B")) == identity(access, "b"));
    CHECK(access_of_certificate(access, BYTES("uri:spiffe://x/b")) == NULL);
    CHECK(access_of_certificate(access, BYTES("dns:oPS.example")) == identity(access, "b"));
    CHECK(access_of_certificate(access, BYTES("cn:C d")) == identity(access, "b"));
    CHECK(access_of_certificate(access, BYTES("cn:Ops.Example")) == NULL);
    CHECK(access_of_certificate(access, BYTES("0")) == NULL);
    access_memo_free(memo);
    access_free(access);
}

TEST(what_was_good_keeps_for_ten_minutes_of_a_clock_that_does_not_jump)
{
    static const unsigned char digest[ACCESS_DIGEST] = {1};
    static const struct {
        uint64_t at_s;
        int64_t left_s;
        enum access_why dates;
        bool keeps, passes;
    } rows[] = {
        {1, -1, ACCESS_CERTIFICATE, true, false}, /* never good here */
        {2, 99999, ACCESS_GOOD, false, true},
        {10, -9, ACCESS_CERTIFICATE, false, false}, /* the clock has jumped */
        {11, -9, ACCESS_CERTIFICATE, true, true},
        {610, -9, ACCESS_CERTIFICATE, true, true},
        {611, -9, ACCESS_CERTIFICATE, true, false},
        {9999, -9, ACCESS_CERTIFICATE, true, false},
        {10000, 100, ACCESS_GOOD, false, true},
        {10001, -9, ACCESS_CERTIFICATE, true, true},
        {20000, 100, ACCESS_GOOD, false, true}, /* over at 20,100, and not shown then */
        {20700, -600, ACCESS_CERTIFICATE, true, true},
        {20701, -601, ACCESS_CERTIFICATE, true, false},
        {30000, 100, ACCESS_GOOD, false, true},
        {30701, -601, ACCESS_CERTIFICATE, true, false},
        {40000, 100, ACCESS_GOOD, false, true},
        {40050, 200, ACCESS_GOOD, false, true}, /* it was set back: what it says now counts */
        {40850, -600, ACCESS_CERTIFICATE, true, true},
        {40851, -601, ACCESS_CERTIFICATE, true, false},
        {50000, INT64_MIN, ACCESS_GOOD, false, true}, /* none is said */
        {50600, INT64_MIN, ACCESS_CERTIFICATE, true, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct access_moment moment = {
            .now_s = 1000000, .steady_ms = rows[i].at_s * 1000, .keeps = rows[i].keeps};
        int64_t ends_s = rows[i].left_s == INT64_MIN ? -1 : moment.now_s + rows[i].left_s;

        CHECK_INT(access_dates_pass(digest, rows[i].dates, ends_s, &moment), rows[i].passes);
    }
}

TEST(an_identity_is_the_same_text_in_every_file_and_stays)
{
    struct access *one = must_parse("{'identities':{'x1':{},'x2':{}},'groups':{'g':[]}}");
    struct access *other = must_parse("{'identities':{'x2':{},'x3':{}}}");
    const char *kept = identity(one, "x2");

    CHECK_TEXT(bytes_of(kept), BYTES("x2"));
    CHECK(identity(other, "x2") == kept);
    CHECK(identity(other, "x1") == NULL);
    CHECK(identity(one, "g") == NULL && identity(one, "known") == NULL && identity(one, "nobody") == NULL);
    access_free(one);
    access_free(other);
    CHECK_TEXT(bytes_of(kept), BYTES("x2"));
}

TEST(of_the_limits_of_its_groups_an_identity_has_the_lowest)
{
    struct access *access = must_parse(
        "{'identities':{'a':{},'b':{},'c':{}},'groups':{'g':['a','b'],'h':['b']},"
        "'limits':{'h':{'held':5,'sessions':3},'g':{'held':7,'requests_per_s':10},'b':{'sessions':4},"
        "'known':{'streams':1,'waiting':2,'stored_bytes':268435456}}}");
    struct access_limits a = access_limits(access, identity(access, "a"));
    struct access_limits b = access_limits(access, identity(access, "b"));
    struct access_limits c = access_limits(access, identity(access, "c")), n = access_limits(access, NULL);

    CHECK(a.held == 7 && a.requests_per_s == 10 && a.sessions == 0 && a.streams == 1 && a.waiting == 2);
    CHECK(b.held == 5 && b.requests_per_s == 10 && b.sessions == 3 && b.stored_bytes == 268435456);
    CHECK(c.held == 0 && c.requests_per_s == 0 && c.streams == 1);
    CHECK(n.held == 0 && n.streams == 0);
    access_free(access);
}

TEST(a_refusal_quotes_no_secret)
{
    char token[ACCESS_TOKEN_SIZE], why[ACCESS_WHY_SIZE];
    static const char *const files[] = {
        "{'%s':{}}",
        "{'identities':{'a':{'access_tokens':['%s']}}}",
        "{'identities':{'a':{'%s':[]}}}",
        "{'rules':[{'who':['%s'],'may':['look'],'on':['*']}]}",
        "{'identities':{'a':{'certs':['%s']}}}",
        "{'limits':{'%s':{}}}",
    };

    access_token_new(token);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        CHECK(parse(textf(files[i], token), why) == NULL);
        CHECK(strstr(why, token + 5) == NULL);
    }
    check_refused(textf(files[1], token), "identities.a.access_tokens[0]: is an access token, not its hash");
}

TEST(the_hash_is_of_the_whole_text)
{
    struct access *access = must_parse("{}");

    CHECK_TEXT(bytes_of(access_hash(access)),
               BYTES("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"));
    access_free(access);
}

TEST(a_good_file_is_warned_of)
{
    struct access *access = must_parse("{'rules':[{'who':['nobody'],'may':['observe']},"
                                       "{'who':['known'],'may':['look'],'on':['*']},"
                                       "{'who':['known'],'may':['look','force-release'],'on':['a:*','*']},"
                                       "{'who':['known'],'may':['force-release'],'on':['a:*','{me}.*']},"
                                       "{'who':['nobody'],'may':['operate','look'],'on':['*']}]}");
    static const char *const wanted[] = {"rules[0]: names nobody", "rules[2]: gives force-release on *",
                                         "rules[4]: names nobody", "rules[4]: gives operate on *"};
    char text[ACCESS_WHY_SIZE];
    unsigned i = 0;

    for (; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        CHECK(access_warning(access, i, text) == text && strncmp(text, wanted[i], strlen(wanted[i])) == 0);
    CHECK(access_warning(access, i, text) == NULL);
    access_free(access);
}

/* -- what an identity uses: the bucket of its requests, and what is counted in the store */

enum { SECOND_US = 1000000 };

static unsigned taken(_Atomic uint64_t *bucket, uint64_t now_us, int64_t per_s)
{
    unsigned count = 0;

    while (access_bucket_take(bucket, now_us, per_s))
        count++;
    return count;
}

TEST(a_full_bucket_has_a_second)
{
    static const int64_t rates[] = {10, 11, 333, 500, 1000, 65537};

    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        _Atomic uint64_t bucket = 0;
        uint64_t now_us = 5 * SECOND_US;
        int64_t first = taken(&bucket, now_us, rates[i]);

        CHECK(first >= rates[i] && first <= rates[i] + rates[i] / 1000);
        CHECK_INT(taken(&bucket, now_us + SECOND_US / (unsigned)rates[i] + 1, rates[i]), 1);
        CHECK(taken(&bucket, now_us + SECOND_US / 2, rates[i]) <= rates[i] / 2 + 1);
        CHECK_INT(taken(&bucket, now_us + 100 * (uint64_t)SECOND_US, rates[i]), first);
    }
}

TEST(the_same_name_has_the_same_use)
{
    const char *one = access_identity_keep(BYTES("one")), *other = access_identity_keep(BYTES("other"));

    CHECK(access_use(one) == access_use(access_identity_keep(BYTES("one"))));
    CHECK(access_use(one) != access_use(other));
    CHECK_TEXT(bytes_of(access_use(one)->name), BYTES("one"));
}

TEST(a_count_is_in_force_when_it_is_over)
{
    struct access_use *use = access_use(access_identity_keep(BYTES("counted")));

    use->used[ACCESS_WAITING] = 3;
    use->counting[ACCESS_HELD] = 7;
    CHECK_INT(use->used[ACCESS_HELD], 0);
    access_count_ends();
    CHECK_INT(use->used[ACCESS_HELD], 7);
    CHECK_INT(use->used[ACCESS_WAITING], 3);
    use->counting[ACCESS_STORED_BYTES] = 9;
    access_count_ends();
    CHECK_INT(use->used[ACCESS_HELD], 0);
    CHECK_INT(use->used[ACCESS_STORED_BYTES], 9);
}

TEST(a_quota_has_the_name_of_its_limit)
{
    CHECK_TEXT(bytes_of(access_quota_name(ACCESS_HELD)), BYTES("held"));
    CHECK_TEXT(bytes_of(access_quota_name(ACCESS_STORED_BYTES)), BYTES("stored_bytes"));
}

CHECK_MAIN

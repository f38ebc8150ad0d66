/* test_token_keys.c - the key file of the fencing token: its lines, its limits, and what is computed with a
 * key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/token/token.h"
#include "tests/unit/check.h"

#define KEY_16 "AAECAwQFBgcICQoLDA0ODw=="
#define KEY_15 "AAECAwQFBgcICQoLDA0O"
#define KIDS_32 "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_abc"

/* The sentence with which the file is refused; NULL when it is accepted. */
static const char *refusal_of(struct bytes file)
{
    static char why[256];
    struct token_keys *keys = token_keys_parse(file, why, sizeof(why));

    token_keys_free(keys);
    return keys != NULL ? NULL : why;
}

static size_t count_of(const struct token_keys *keys)
{
    size_t count = 0;

    while (token_keys_at(keys, count) != NULL)
        count++;
    return count;
}

struct file_case {
    const char *file;
    const char *refusal; /* a part of the sentence; NULL: accepted */
};

static void files_try(const struct file_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *why = refusal_of(bytes_of(cases[i].file));
        bool as_wanted = cases[i].refusal == NULL ? why == NULL
                                                  : why != NULL && strstr(why, cases[i].refusal) != NULL;

        if (!as_wanted)
            printf("# file %zu: %s\n", i, why != NULL ? why : "accepted");
        CHECK(as_wanted);
    }
}

#define TRY_FILES(cases) files_try((cases), sizeof(cases) / sizeof((cases)[0]))

TEST(a_file_has_a_key_on_each_line_and_may_have_comments_and_blank_lines)
{
    static const struct file_case cases[] = {
        {"k1:" KEY_16, NULL},
        {"k1:" KEY_16 "\n", NULL},
        {"# first\n \t\nk1:" KEY_16 "\n\n#k9:nothing\n#\n\nk2:" KEY_16 "\n  \n", NULL},
        {KIDS_32 ":" KEY_16 "\n", NULL},
        {"k:" KEY_16 "\nK:" KEY_16 "\n", NULL},
        {"", "no key in it"},
        {"\n \n# nothing\n", "no key in it"},
    };

    TRY_FILES(cases);
}

TEST(a_bad_line_is_told_by_its_number)
{
    static const struct file_case cases[] = {
        {"k1:" KEY_16 "\n# x\n\nnonsense\n", "line 4: has no colon"},
        {"k1:" KEY_16 "\r\n", "line 1: ends with a carriage return"},
        {"k1:" KEY_16 "\n\r\n", "line 2: ends with a carriage return"},
        {":" KEY_16, "line 1: what stands in front"},
        {" k1:" KEY_16, "line 1: what stands in front"},
        {"k1 :" KEY_16, "line 1: what stands in front"},
        {"k/1:" KEY_16, "line 1: what stands in front"},
        {"\xef\xbb\xbfk1:" KEY_16, "line 1: what stands in front"},
        {KIDS_32 "d:" KEY_16, "line 1: what stands in front"},
        {"k1:" KEY_16 "\nk2:" KEY_16 "\nk1:" KEY_16 "\n", "line 3: this kid was given before"},
        {"k1:" KEY_15, "line 1: the key is not 16 to 1,024 bytes"},
        {"k1:", "line 1: the key is not 16 to 1,024 bytes"},
    };

    TRY_FILES(cases);
}

TEST(a_key_is_strict_base64)
{
    static const char not_base64[] = "line 1: what stands behind the colon is not base64";
    const struct file_case cases[] = {
        {"k1:AAECAwQFBgcICQoLDA0ODxA=", NULL},
        {"k1:++++////++++////++++////", NULL},
        {"k1:AAECAwQFBgcICQoLDA0ODw=", not_base64},   /* a pad too few */
        {"k1:AAECAwQFBgcICQoLDA0ODw===", not_base64}, /* one too many */
        {"k1:AAECAwQFBgcICQoLDA0ODx==", not_base64},  /* spare bits: x is w and a bit */
        {"k1:AAECAwQFBgcICQoLDA0ODxA", not_base64},
        {"k1:----____----____----____", not_base64}, /* base64url */
        {"k1:AAECAwQFBgcICQoLDA0ODw== ", not_base64},
        {"k1:AAECAwQF\tBgcICQoLDA0ODw==", not_base64},
        {"k1:AAEC=AwQFBgcICQoLDA0ODw==", not_base64},
        {"k1:AAECAwQFBgcICQoLDA0ODw==AAAA", not_base64},
        {"k1::" KEY_16, not_base64},
    };

    TRY_FILES(cases);
    CHECK(refusal_of(BYTES("k1:" KEY_16 "\0")) != NULL);
    CHECK(refusal_of(BYTES("k1\0:" KEY_16)) != NULL);
}

TEST(of_the_last_character_only_those_without_spare_bits_are_taken)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char one_pad[] = "k1:AAECAwQFBgcICQoLDA0ODxA=", two_pads[] = "k1:" KEY_16;

    for (int i = 0; i < 64; i++) {
        one_pad[sizeof(one_pad) - 3] = alphabet[i];
        two_pads[sizeof(two_pads) - 4] = alphabet[i];
        CHECK_INT(refusal_of(bytes_of(one_pad)) == NULL, i % 4 == 0);
        CHECK_INT(refusal_of(bytes_of(two_pads)) == NULL, i % 16 == 0);
    }
}

/* A file with one key of so many zero bytes. */
static struct bytes file_of_zeros(size_t key_bytes, char *buf)
{
    size_t pads = (3 - key_bytes % 3) % 3, chars = (key_bytes + 2) / 3 * 4;

    buf[0] = 'k';
    buf[1] = ':';
    memset(buf + 2, 'A', chars);
    memset(buf + 2 + chars - pads, '=', pads);
    return (struct bytes){buf, 2 + chars};
}

TEST(a_key_has_16_to_1024_bytes)
{
    static const struct {
        size_t bytes;
        bool ok;
    } cases[] = {{0, false},    {1, false},    {15, false},  {16, true},   {17, true},
                 {64, true},    {65, true},    {1023, true}, {1024, true}, {1025, false},
                 {1026, false}, {1027, false}, {4096, false}};
    char buf[8192];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = refusal_of(file_of_zeros(cases[i].bytes, buf));

        CHECK_INT(why == NULL, cases[i].ok);
        CHECK(why == NULL || strstr(why, "16 to 1,024") != NULL);
    }
}

TEST(a_file_full_of_the_shortest_keys_is_read_to_its_end)
{
    char *file = malloc(TOKEN_FILE_MAX_BYTES);
    char why[256];
    struct token_keys *keys;
    size_t len = 0;
    int count = 0;

    for (; len + 32 < TOKEN_FILE_MAX_BYTES; count++)
        len += (size_t)snprintf(file + len, 33, "k%04d:%s\n", count, KEY_16);
    keys = token_keys_parse((struct bytes){file, len}, why, sizeof(why));
    CHECK(keys != NULL);
    CHECK_INT(count_of(keys), count);
    CHECK_TEXT(token_key_kid(token_keys_at(keys, 0)), BYTES("k0000"));
    CHECK(token_keys_find(keys, BYTES("k0999")) != NULL);
    CHECK(token_keys_find(keys, BYTES("k")) == NULL);
    token_keys_free(keys);
    free(file);
}

TEST(a_refusal_never_quotes_the_file)
{
    static const char *const files[] = {
        "SECRETSECRET",
        "SECRET SECRET:" KEY_16,
        "k1:SECRET!",
        "k1:SECRETSECRET",
        "SECRET:" KEY_16 "\nSECRET:" KEY_16,
        "SECRET:" KEY_16 "\r\n",
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const char *why = refusal_of(bytes_of(files[i]));

        CHECK(why != NULL && strstr(why, "SECRET") == NULL && strstr(why, "AAEC") == NULL);
    }
}

/* -- files */

/* A file with this in it, which is gone behind it. */
static struct token_keys *loaded(struct bytes content, char why[256])
{
    const char *path = check_file(content);
    struct token_keys *keys = token_keys_load(path, why, 256);

    CHECK(keys != NULL || strstr(why, path) != NULL);
    unlink(path);
    return keys;
}

TEST(a_file_that_cannot_be_used_is_named_with_the_reason)
{
    char why[256];

    CHECK(token_keys_load("/nowhere/keys", why, sizeof(why)) == NULL);
    CHECK_TEXT(bytes_of(why), BYTES("the key file /nowhere/keys cannot be read: No such file or directory"));
    CHECK(token_keys_load("/", why, sizeof(why)) == NULL);
    CHECK_TEXT(bytes_of(why), BYTES("the key file / cannot be read: Is a directory"));
    CHECK(loaded(BYTES("a\nb"), why) == NULL && strstr(why, "line 1: has no colon") != NULL);
}

TEST(a_file_that_others_can_read_or_its_group_can_change_is_refused)
{
    static const struct {
        mode_t mode;
        bool taken;
    } modes[] = {{0400, true},  {0600, true},  {0640, true},  {0644, false},
                 {0604, false}, {0620, false}, {0660, false}, {0602, false}};
    const char *path = check_file(BYTES("k1:" KEY_16 "\n"));
    char why[256];

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct token_keys *keys;

        chmod(path, modes[i].mode);
        keys = token_keys_load(path, why, sizeof(why));
        CHECK_INT(keys != NULL, modes[i].taken);
        CHECK(keys != NULL || strstr(why, "others can read or change it") != NULL);
        token_keys_free(keys);
    }
    unlink(path);
}

TEST(a_file_over_64_kib_is_not_read_as_its_first_part)
{
    char *file = malloc(TOKEN_FILE_MAX_BYTES + 2), why[256];

    memset(file, '\n', TOKEN_FILE_MAX_BYTES + 2);
    memcpy(file, "k1:" KEY_16, sizeof("k1:" KEY_16) - 1);
    for (size_t over = 0; over <= 2; over++) {
        struct token_keys *keys = loaded((struct bytes){file, TOKEN_FILE_MAX_BYTES + over}, why);

        CHECK_INT(keys != NULL, over == 0);
        CHECK(keys != NULL || strstr(why, "64 KiB") != NULL);
        token_keys_free(keys);
    }
    free(file);
}

/* -- making keys */

TEST(a_made_key_is_a_line_that_can_be_read)
{
    static const char *const kids[] = {"k", "k20261121", KIDS_32};
    char line[TOKEN_KEY_LINE_SIZE], again[TOKEN_KEY_LINE_SIZE], why[256];

    for (size_t i = 0; i < sizeof(kids) / sizeof(kids[0]); i++) {
        size_t len = token_keygen(kids[i], line, sizeof(line));
        struct token_keys *keys = token_keys_parse((struct bytes){line, len}, why, sizeof(why));

        CHECK_INT(len, strlen(kids[i]) + 1 + 44 + 1);
        CHECK_INT(strlen(line), len);
        CHECK_INT(line[len - 1], '\n');
        CHECK(keys != NULL && count_of(keys) == 1);
        CHECK_TEXT(token_key_kid(token_keys_at(keys, 0)), bytes_of(kids[i]));
        token_keygen(kids[i], again, sizeof(again));
        CHECK(strcmp(line, again) != 0);
        token_keys_free(keys);
    }
}

TEST(no_key_is_made_under_a_name_that_is_none)
{
    static const char *const kids[] = {"", "a b", "a:b", "a\n", (KIDS_32 "d"), "\xc3\xa9"};
    char line[TOKEN_KEY_LINE_SIZE];

    for (size_t i = 0; i < sizeof(kids) / sizeof(kids[0]); i++)
        CHECK_INT(token_keygen(kids[i], line, sizeof(line)), 0);
}

CHECK_MAIN

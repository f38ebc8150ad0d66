/* fuzz_access_file.c - the access file: what is accepted judges in one voice, what is refused says where. */
#include <assert.h>
#include <string.h>

#include "shared/access/access.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Every way of asking says the same. */
static void check_judge(const struct access *access, const char *identity)
{
    static const char *const names[] = {"a", "a:b", "b.c", "orders:42", "x", "shop:cart-7"};
    static const char *const prefixes[] = {"", "a", "a:", "shop:"};
    char place[ACCESS_WHY_SIZE];

    for (unsigned verb = 0; verb < ACCESS_VERBS; verb++) {
        bool some = access_allows_some(access, identity, (enum access_verb)verb);

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            struct bytes name = bytes_of(names[i]), rest;
            bool allowed = access_allows(access, identity, (enum access_verb)verb, name);

            assert(access_explain(access, identity, (enum access_verb)verb, name, place) == allowed);
            assert(some || !allowed);
            for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++) {
                rest = name;
                assert(allowed || !bytes_take(&rest, bytes_of(prefixes[p])) ||
                       !access_covers(access, identity, (enum access_verb)verb, bytes_of(prefixes[p])));
            }
        }
    }
}

static void check_limits(const struct access_limits *limits)
{
    assert(limits->requests_per_s == 0 || limits->requests_per_s >= 10);
    assert(limits->held >= 0 && limits->waiting >= 0 && limits->sessions >= 0 && limits->streams >= 0);
    assert(limits->stored_bytes >= 0);
}

static void check_accepted(const struct access *access)
{
    static const char *const names[] = {"a", "b", "b.c", "shop", "ops", "nobody", "known", "g"};
    char text[ACCESS_WHY_SIZE];

    assert(strlen(access_hash(access)) == ACCESS_HASH_SIZE - 1);
    for (unsigned i = 0; access_warning(access, i, text) != NULL; i++)
        assert(strncmp(text, "rules[", 6) == 0);
    check_judge(access, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *identity = access_identity(access, bytes_of(names[i]));
        struct access_limits limits = access_limits(access, identity);

        assert(identity == NULL || strcmp(identity, names[i]) == 0);
        assert(identity == NULL || i < 5 || i == 7);
        check_limits(&limits);
        if (identity != NULL)
            check_judge(access, identity);
    }
    for (uid_t uid = 0; uid < 10; uid++)
        access_of_uid(access, uid);
    access_of_certificate(access, BYTES("dns:X"));
}

static void check_sentence(const char *why)
{
    size_t len = strlen(why);

    assert(len > 10);
    for (size_t i = 0; i < len; i++)
        assert(why[i] >= ' ' && why[i] <= '~');
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char why[ACCESS_WHY_SIZE] = "";
    struct access *access = access_parse((struct bytes){(const char *)data, size}, why, sizeof(why));

    if (access != NULL)
        check_accepted(access);
    else
        check_sentence(why);
    access_free(access);
    return 0;
}

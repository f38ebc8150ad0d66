/* test_access_use.c - what an identity uses: the bucket of its requests, and what is counted in the store. */
#include "shared/access/access_internal.h"
#include "tests/unit/check.h"

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

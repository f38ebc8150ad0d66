/* test_fenced_call.c - what a gateway tells its scripts of who asks: whose the hold must be, and which
 * request a key came with. */
#include "gateway/fenced_call.h"

#include "gateway/precondition.h"
#include "tests/unit/check.h"

static struct bytes mode_of(struct bytes own, enum token_mode mode)
{
    static struct fenced_call fenced;

    fenced = (struct fenced_call){.lease = BYTES("orders:42"), .own = own, .claim = {.mode = mode}};
    fenced_begin_lease(&fenced);
    fenced_add_fence(&fenced);
    CHECK_INT(fenced.args, FENCED_FENCE_ARGS);
    return fenced.argv[fenced.keys + FENCED_FENCE_ARGS - 1];
}

TEST(whose_the_hold_must_be_stands_behind_its_mode_and_nothing_where_it_is_not_asked)
{
    char longest[64 + 1], wanted[80];

    memset(longest, 'a', 64);
    longest[64] = '\0';
    snprintf(wanted, sizeof(wanted), "exclusive %s", longest);
    CHECK_TEXT(mode_of(BYTES(""), TOKEN_EXCLUSIVE), BYTES("exclusive"));
    CHECK_TEXT(mode_of(BYTES("billing"), TOKEN_EXCLUSIVE), BYTES("exclusive billing"));
    CHECK_TEXT(mode_of(BYTES("billing"), TOKEN_PERMITS), BYTES("permits billing"));
    CHECK_TEXT(mode_of(bytes_of(longest), TOKEN_EXCLUSIVE), bytes_of(wanted));
}

static struct bytes digest_of(const char *identity, struct bytes body)
{
    static struct precondition one[4];
    static unsigned next;
    struct precondition *precondition = &one[next++ % 4];

    precondition->idempotency_key = BYTES("k");
    precondition_digest(precondition, identity, BYTES("PUT"), BYTES("text/plain"), BYTES(""), body);
    return precondition->digest;
}

TEST(who_asks_is_part_of_the_request_that_an_idempotency_key_came_with)
{
    CHECK(bytes_equal(digest_of("ada", BYTES("x")), digest_of("ada", BYTES("x"))));
    CHECK(!bytes_equal(digest_of("ada", BYTES("x")), digest_of("bob", BYTES("x"))));
    CHECK(!bytes_equal(digest_of("ada", BYTES("x")), digest_of(NULL, BYTES("x"))));
    CHECK(!bytes_equal(digest_of("ada", BYTES("x")), digest_of("ada", BYTES("y"))));
    /* As without --access: BLAKE2b over the four alone. */
    CHECK_TEXT(digest_of(NULL, BYTES("x")), BYTES("uasBvh2Lzfx5EUssjeSM2psDNjsQCYWCYmHl6yGalPc"));
}

int main(void)
{
    return check_all();
}

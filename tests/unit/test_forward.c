/* test_forward.c - what a gateway keeps and tells of a request: the file of a long body has no name, whose
 * the hold must be, and which request a key came with; and its drawings are its tables. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gateway/fenced_call.h"
#include "gateway/forward/forward.h"
#include "gateway/forward/forward_internal.h"
#include "gateway/intent/intent_internal.h"
#include "gateway/precondition.h"
#include "tests/unit/check.h"
#include "tests/unit/drawing.h"

/* The program's own openat(): of a file system that may have no files without a name. */
static struct {
    int no_tmpfile; /* errno; 0: it has them */
    unsigned named;
} opens;

int openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE && opens.no_tmpfile != 0) {
        errno = opens.no_tmpfile;
        return -1;
    }
    opens.named += (flags & O_CREAT) != 0;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

TEST(the_file_of_a_body_has_no_name)
{
    static const struct {
        int no_tmpfile;
        unsigned named;
        bool opens;
    } cases[] = {{0, 0, true}, {EOPNOTSUPP, 1, true}, {EISDIR, 1, true}, {ENOSPC, 0, false}};
    const char *tmp = getenv("TMPDIR");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[1024];
        int folder, fd;

        snprintf(path, sizeof(path), "%s/pawl-body-XXXXXX", tmp != NULL ? tmp : "/tmp");
        folder = open(mkdtemp(path), O_RDONLY | O_DIRECTORY);
        opens.no_tmpfile = cases[i].no_tmpfile;
        opens.named = 0;
        fd = forward_body_file(folder, "w0.1");
        CHECK_INT(opens.named, cases[i].named);
        CHECK_INT(rmdir(path), 0); /* nothing is in it */
        CHECK(fd >= 0 ? cases[i].opens && pwrite(fd, "x", 1, 0) == 1 && close(fd) == 0 : !cases[i].opens);
        close(folder);
    }
}

/* -- what the headers draw is what the code allows */

enum { FORWARD_ARROWS = 26, RECOVERY_ARROWS = 10 };

TEST(the_drawing_of_a_forwarded_request_is_its_table)
{
    static const char *const names[FORWARD_STATES] = {"NEW",     "TAKING",  "LOOKING", "ASKING", "QUEUED",
                                                      "PROBING", "SENDING", "TELLING", "LATE",   "DONE"};

    CHECK_INT(drawing_check("gateway/forward/forward.h", names, FORWARD_STATES, forward_allows, NULL),
              FORWARD_ARROWS);
}

TEST(the_drawing_of_the_recovery_is_its_table)
{
    static const char *const names[RECOVERY_STATES] = {"IDLE", "AGAIN", "LEAVING", "TAKING", "CLOSING"};

    CHECK_INT(drawing_check("gateway/intent/recovery.c", names, RECOVERY_STATES, recovery_allows, NULL),
              RECOVERY_ARROWS);
}

/* -- what a gateway tells its scripts of who asks */

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

CHECK_MAIN

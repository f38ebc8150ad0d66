/* fuzz_high_water.c - the high-water file: one text for each content, whatever is sealed with a checksum.
 *
 * A checksum is not guessed, so that the input is taken as a whole file, and as what stands in front of the
 * checksum. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "shared/member/state_file.h"
#include "shared/token/random.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { CHECKSUM_LINE = 9 + DIGEST_TEXT + 1 };

/* What is taken is sound, and is printed as the very bytes that were read. */
static bool check_text(const char *text, size_t len)
{
    char again[STATE_TEXT_MAX];
    struct state_record record;

    if (!state_record_parse(text, len, &record))
        return false;
    assert(state_record_is_sound(&record));
    assert(state_record_print(&record, again) == len && memcmp(text, again, len) == 0);
    return true;
}

static void check_sealed(const unsigned char *data, size_t size)
{
    char text[STATE_TEXT_MAX + CHECKSUM_LINE + 1], sum[DIGEST_TEXT + 1];
    struct bytes body = {(const char *)data, size};

    if (size > STATE_TEXT_MAX)
        return;
    memcpy(text, data, size);
    digest_text(&body, 1, sum);
    snprintf(text + size, CHECKSUM_LINE + 1, "checksum %s\n", sum);
    if (!check_text(text, size + CHECKSUM_LINE))
        return;
    text[size * 7 / 11] ^= 4; /* and now it is damaged */
    assert(!check_text(text, size + CHECKSUM_LINE));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    check_text((const char *)data, size);
    check_sealed(data, size);
    return 0;
}

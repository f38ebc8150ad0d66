/* fuzz_high_water.c - the high-water file: one text for each content, whatever is sealed with a checksum.
 *
 * A checksum is not guessed, so that the input is taken as a whole file, as what stands in front of the
 * checksum, and as the bytes of which a content is made. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shared/member/state_file.h"
#include "shared/token/random.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { CHECKSUM_LINE = 9 + DIGEST_TEXT + 1 };

/* -- the input as text */

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

/* The lines of a sealed text that was taken, told again by their number and their beginning. */
static void check_lines(const char *text, size_t len)
{
    static const char *const begin[] = {"pawl high-water ", "id ", "store ", "floor ", "epoch ", "roll "};
    size_t line = 0;

    for (size_t at = 0; at < len; line++) {
        const char *key = line < 6 ? begin[line] : "";
        const char *end = memchr(text + at, '\n', len - at);

        assert(end != NULL && strncmp(text + at, key, strlen(key)) == 0);
        at = (size_t)(end - text) + 1;
    }
    assert(line >= 6 && line <= 8 + STATE_MEMBERS_MAX + STATE_REGISTRARS_MAX + STATE_DOUBTS_MAX);
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
    check_lines(text, size);
    text[size * 7 / 11] ^= 4; /* and now it is damaged */
    assert(!check_text(text, size + CHECKSUM_LINE));
}

/* -- the input as a content */

struct source {
    const unsigned char *at;
    size_t len;
};

static unsigned take_byte(struct source *source)
{
    if (source->len == 0)
        return 0;
    source->len--;
    return *source->at++;
}

static int64_t take_number(struct source *source)
{
    uint64_t number = 0;

    for (unsigned bytes = take_byte(source) % 8; bytes > 0; bytes--)
        number = number << 8 | take_byte(source);
    return (int64_t)(number % (STATE_NUMBER_MAX + UINT64_C(1)));
}

static void take_id(struct source *source, char *id, size_t chars)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

    for (size_t i = 0; i < chars; i++)
        id[i] = allowed[take_byte(source) % 64];
}

static void check_content(const unsigned char *data, size_t size)
{
    struct source source = {data, size};
    char text[STATE_TEXT_MAX], id[MEMBER_ID_CHARS + 1] = "", incarnation[MEMBER_ID_CHARS + 1] = "",
                                                    line[STATE_LINE_MAX];
    struct state_record record, again;
    size_t len;

    memset(&record, 0, sizeof(record));
    take_id(&source, record.member, MEMBER_ID_CHARS);
    if (take_byte(&source) % 2 == 0)
        take_id(&source, record.store, STORE_ID_CHARS);
    record.floor = take_number(&source);
    record.epoch = take_number(&source);
    record.members_version = take_number(&source);
    for (unsigned i = take_byte(&source) % 12; i > 0; i--) { /* few are as good, and many are slow */
        const char *role = take_byte(&source) % 2 ? "gateway" : "lease";

        take_id(&source, id, MEMBER_ID_CHARS);
        take_id(&source, incarnation, MEMBER_ID_CHARS);
        snprintf(line, sizeof(line), "%s %04u%s %s", role, i, id + 4, incarnation); /* no id twice */
        state_list_add(record.list, bytes_of(line));
    }
    for (unsigned i = take_byte(&source) % 12; i > 0; i--) {
        take_id(&source, id, MEMBER_ID_CHARS);
        take_id(&source, incarnation, MEMBER_ID_CHARS);
        snprintf(line, sizeof(line), "doubt %s %04u%s %" PRId64, id, i, incarnation + 4,
                 take_number(&source));
        state_list_add(record.list, bytes_of(line));
    }
    len = state_record_print(&record, text);
    assert(len > 0 && state_record_parse(text, len, &again) && state_record_equal(&record, &again));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    check_text((const char *)data, size);
    check_sealed(data, size);
    check_content(data, size);
    return 0;
}

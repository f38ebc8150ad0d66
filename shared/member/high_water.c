/* high_water.c - the text of the high-water file: one text for each content, and no other. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "shared/member/state_dir.h"
#include "shared/text/ascii.h"
#include "shared/token/random.h"

/* BLAKE2b-256 as digest_text() of random.h writes it, over everything in front of this line. */
enum { CHECKSUM_LINE = sizeof("checksum \n") - 1 + DIGEST_TEXT, DIGITS_MAX = 15 };

_Static_assert(HIGH_WATER_MAX == 999999999999999, "DIGITS_MAX digits are the limit");
_Static_assert(sizeof("member gateway  \n") - 1 + 2 * MEMBER_ID_CHARS <= 64, "every member line fits");
_Static_assert(sizeof("doubt   \n") - 1 + 2 * MEMBER_ID_CHARS + DIGITS_MAX <= 64, "every doubt fits");

static const char first_line[] = "pawl high-water ";
static const char no_store[] = "none"; /* too short for an id */

static const struct bytes role_names[] = {
    [MEMBER_LEASE] = {"lease", sizeof("lease") - 1},
    [MEMBER_GATEWAY] = {"gateway", sizeof("gateway") - 1},
};

enum { ROLES = sizeof(role_names) / sizeof(role_names[0]) };

/* -- what is sound */

static bool is_number(int64_t value)
{
    return value >= 0 && value <= HIGH_WATER_MAX;
}

/* Exactly so many characters and a NUL; at has room for them. */
static bool is_id(const char *at, size_t chars)
{
    return strnlen(at, chars + 1) == chars && ascii_is_word((struct bytes){at, chars}, BYTES("_-"));
}

static bool is_sound_one(const struct state_member *one, bool is_doubt)
{
    return (is_doubt ? one->role == MEMBER_DOUBT && is_number(one->store_epoch)
                     : (unsigned)one->role < ROLES && one->store_epoch == 0) &&
           is_id(one->id, MEMBER_ID_CHARS) && is_id(one->incarnation, MEMBER_ID_CHARS);
}

/* A member is there once, whatever its incarnation; so is an incarnation that is in doubt. */
static bool is_listed_before(const struct state_member *list, unsigned i)
{
    for (unsigned k = 0; k < i; k++) {
        if (memcmp(list[k].id, list[i].id, MEMBER_ID_CHARS) == 0 &&
            (list[i].role != MEMBER_DOUBT ||
             memcmp(list[k].incarnation, list[i].incarnation, MEMBER_ID_CHARS) == 0))
            return true;
    }
    return false;
}

bool high_water_is_sound(const struct high_water *water)
{
    if (!is_id(water->member, MEMBER_ID_CHARS) ||
        !(water->store[0] == '\0' || is_id(water->store, STORE_ID_CHARS)) || !is_number(water->floor) ||
        !is_number(water->epoch) || !is_number(water->roll) || water->member_count > STATE_MEMBERS_MAX ||
        water->doubt_count > STATE_DOUBTS_MAX)
        return false;
    for (unsigned i = 0; i < water->member_count; i++) {
        if (!is_sound_one(&water->members[i], false) || is_listed_before(water->members, i))
            return false;
    }
    for (unsigned i = 0; i < water->doubt_count; i++) {
        if (!is_sound_one(&water->doubts[i], true) || is_listed_before(water->doubts, i))
            return false;
    }
    return true;
}

/* -- comparing */

static bool is_same_member(const struct state_member *a, const struct state_member *b)
{
    return a->role == b->role && strcmp(a->id, b->id) == 0 && strcmp(a->incarnation, b->incarnation) == 0 &&
           a->store_epoch == b->store_epoch;
}

bool high_water_equal(const struct high_water *a, const struct high_water *b)
{
    if (strcmp(a->member, b->member) != 0 || strcmp(a->store, b->store) != 0 || a->floor != b->floor ||
        a->epoch != b->epoch || a->roll != b->roll || a->member_count != b->member_count ||
        a->doubt_count != b->doubt_count)
        return false;
    for (unsigned i = 0; i < a->member_count; i++) {
        if (!is_same_member(&a->members[i], &b->members[i]))
            return false;
    }
    for (unsigned i = 0; i < a->doubt_count; i++) {
        if (!is_same_member(&a->doubts[i], &b->doubts[i]))
            return false;
    }
    return true;
}

/* -- reading: each takes its part off rest, or returns false */

static bool take_number(struct bytes *rest, int64_t *value)
{
    size_t digits = 0;

    *value = 0;
    while (digits < rest->len && digits < DIGITS_MAX && ascii_is_digit(rest->at[digits]))
        *value = *value * 10 + (rest->at[digits++] - '0');
    return digits > 0 && (rest->at[0] != '0' || digits == 1) &&
           bytes_take(rest, (struct bytes){rest->at, digits});
}

/* A NUL is none of its characters: at the beginning of a store's id it would mean "none yet". */
static bool take_id(struct bytes *rest, char *id, size_t chars)
{
    if (rest->len < chars)
        return false;
    memcpy(id, rest->at, chars);
    id[chars] = '\0';
    return is_id(id, chars) && bytes_take(rest, (struct bytes){rest->at, chars});
}

static bool take_store(struct bytes *rest, char store[STORE_ID_CHARS + 1])
{
    bool is_long = rest->len > sizeof(no_store) - 1 && rest->at[sizeof(no_store) - 1] != '\n';

    store[0] = '\0';
    return is_long ? take_id(rest, store, STORE_ID_CHARS) : bytes_take(rest, bytes_of(no_store));
}

static bool take_number_line(struct bytes *rest, struct bytes key, int64_t *value)
{
    return bytes_take(rest, key) && take_number(rest, value) && bytes_take(rest, BYTES("\n"));
}

static bool take_role(struct bytes *rest, enum member_role *role)
{
    for (unsigned i = 0; i < ROLES; i++) {
        if (bytes_take(rest, role_names[i])) {
            *role = (enum member_role)i;
            return true;
        }
    }
    return false;
}

static bool take_member_line(struct bytes *rest, struct state_member *member)
{
    return bytes_take(rest, BYTES("member ")) && take_role(rest, &member->role) &&
           bytes_take(rest, BYTES(" ")) && take_id(rest, member->id, MEMBER_ID_CHARS) &&
           bytes_take(rest, BYTES(" ")) && take_id(rest, member->incarnation, MEMBER_ID_CHARS) &&
           bytes_take(rest, BYTES("\n"));
}

static bool take_doubt_line(struct bytes *rest, struct state_member *doubt)
{
    doubt->role = MEMBER_DOUBT;
    return bytes_take(rest, BYTES("doubt ")) && take_id(rest, doubt->id, MEMBER_ID_CHARS) &&
           bytes_take(rest, BYTES(" ")) && take_id(rest, doubt->incarnation, MEMBER_ID_CHARS) &&
           take_number_line(rest, BYTES(" "), &doubt->store_epoch);
}

static bool take_members(struct bytes *rest, struct high_water *water)
{
    while (rest->len > 0 && rest->at[0] == 'm') {
        if (water->member_count == STATE_MEMBERS_MAX ||
            !take_member_line(rest, &water->members[water->member_count]))
            return false;
        water->member_count++;
    }
    while (rest->len > 0) {
        if (water->doubt_count == STATE_DOUBTS_MAX ||
            !take_doubt_line(rest, &water->doubts[water->doubt_count]))
            return false;
        water->doubt_count++;
    }
    return true;
}

static int version_of(const struct high_water *water)
{
    return water->doubt_count > 0 ? HIGH_WATER_VERSION : 1;
}

/* Writes the line that belongs to what stands in front of it, and a NUL. */
static void checksum_line(struct bytes body, char line[CHECKSUM_LINE + 1])
{
    char sum[DIGEST_TEXT + 1];

    digest_text(&body, 1, sum);
    snprintf(line, CHECKSUM_LINE + 1, "checksum %s\n", sum);
}

static bool checksum_take(struct bytes *text)
{
    char line[CHECKSUM_LINE + 1];

    if (text->len < CHECKSUM_LINE)
        return false;
    text->len -= CHECKSUM_LINE;
    checksum_line(*text, line);
    return memcmp(text->at + text->len, line, CHECKSUM_LINE) == 0;
}

bool high_water_parse(const char *text, size_t len, struct high_water *water)
{
    struct bytes rest = {text, len};
    struct high_water read;
    int64_t version;

    memset(&read, 0, sizeof(read)); /* nothing of the stack in what is copied around */
    if (len > HIGH_WATER_TEXT_MAX || !checksum_take(&rest))
        return false;
    if (!take_number_line(&rest, bytes_of(first_line), &version) || !bytes_take(&rest, BYTES("id ")) ||
        !take_id(&rest, read.member, MEMBER_ID_CHARS) || !bytes_take(&rest, BYTES("\nstore ")) ||
        !take_store(&rest, read.store) || !take_number_line(&rest, BYTES("\nfloor "), &read.floor) ||
        !take_number_line(&rest, BYTES("epoch "), &read.epoch) ||
        !take_number_line(&rest, BYTES("roll "), &read.roll) || !take_members(&rest, &read) ||
        version != version_of(&read) || !high_water_is_sound(&read))
        return false;
    memcpy(water, &read, sizeof(read));
    return true;
}

int64_t high_water_version(const char *text, size_t len)
{
    struct bytes rest = {text, len};
    int64_t version;

    return take_number_line(&rest, bytes_of(first_line), &version) ? version : 0;
}

/* -- writing */

size_t high_water_print(const struct high_water *water, char *text, size_t size)
{
    char line[CHECKSUM_LINE + 1];
    size_t len;

    assert(size >= HIGH_WATER_TEXT_MAX);
    if (!high_water_is_sound(water))
        return 0;
    len = (size_t)snprintf(
        text, size, "%s%d\nid %s\nstore %s\nfloor %" PRId64 "\nepoch %" PRId64 "\nroll %" PRId64 "\n",
        first_line, version_of(water), water->member, water->store[0] != '\0' ? water->store : no_store,
        water->floor, water->epoch, water->roll);
    for (unsigned i = 0; i < water->member_count; i++) {
        const struct state_member *member = &water->members[i];

        len += (size_t)snprintf(text + len, size - len, "member %s %s %s\n", role_names[member->role].at,
                                member->id, member->incarnation);
    }
    for (unsigned i = 0; i < water->doubt_count; i++) {
        const struct state_member *doubt = &water->doubts[i];

        len += (size_t)snprintf(text + len, size - len, "doubt %s %s %" PRId64 "\n", doubt->id,
                                doubt->incarnation, doubt->store_epoch);
    }
    checksum_line((struct bytes){text, len}, line);
    memcpy(text + len, line, CHECKSUM_LINE);
    return len + CHECKSUM_LINE;
}

void member_id_make(char id[MEMBER_ID_CHARS + 1])
{
    do {
        random_text(id, MEMBER_ID_CHARS);
    } while (id[0] == '-');
}

/* list.c - the list of members and doubts, as the store tells it and as it is told: "lease ID
 * INCARNATION,gateway ...,doubt GATEWAY INCARNATION EPOCH,...". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/member/member.h"

struct bytes member_list_print(const struct state_record *record, char text[MEMBER_LIST_SIZE])
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < record->member_count; i++) {
        const struct state_member *one = &record->members[i];

        len += (size_t)snprintf(text + len, MEMBER_LIST_SIZE - len, "%s%s %s %s", len == 0 ? "" : ",",
                                one->role == MEMBER_LEASE ? "lease" : "gateway", one->id, one->incarnation);
    }
    for (unsigned i = 0; i < record->doubt_count; i++) {
        const struct state_member *one = &record->doubts[i];

        len += (size_t)snprintf(text + len, MEMBER_LIST_SIZE - len, "%sdoubt %s %s %" PRId64,
                                len == 0 ? "" : ",", one->id, one->incarnation, one->store_epoch);
    }
    return (struct bytes){text, len};
}

static bool word_take(struct bytes *rest, char *word, size_t size)
{
    const char *end = memchr(rest->at, ' ', rest->len);
    size_t len = end != NULL ? (size_t)(end - rest->at) : rest->len;

    if (len == 0 || len >= size) {
        return false;
    }
    memcpy(word, rest->at, len);
    word[len] = '\0';
    len += end != NULL && len + 1 < rest->len; /* a blank at the end is left over */
    *rest = (struct bytes){rest->at + len, rest->len - len};
    return true;
}

/* At most 15 digits. */
static bool epoch_take(struct bytes *rest, int64_t *store_epoch)
{
    char word[16];

    if (!word_take(rest, word, sizeof(word)) || strspn(word, "0123456789") != strlen(word)) {
        return false;
    }
    *store_epoch = strtoll(word, NULL, 10);
    return true;
}

static bool member_read(struct bytes text, struct state_member *one)
{
    static const char *const roles[] = {
        [MEMBER_LEASE] = "lease", [MEMBER_GATEWAY] = "gateway", [MEMBER_DOUBT] = "doubt"};
    char role[8];

    memset(one, 0, sizeof(*one));
    if (text.at == NULL || !word_take(&text, role, sizeof(role)) ||
        !word_take(&text, one->id, sizeof(one->id)) ||
        !word_take(&text, one->incarnation, sizeof(one->incarnation)) || strlen(one->id) != MEMBER_ID_CHARS ||
        strlen(one->incarnation) != MEMBER_ID_CHARS) {
        return false;
    }
    while (one->role < MEMBER_DOUBT && strcmp(role, roles[one->role]) != 0) {
        one->role++;
    }
    return strcmp(role, roles[one->role]) == 0 &&
           (one->role != MEMBER_DOUBT || epoch_take(&text, &one->store_epoch)) && text.len == 0;
}

bool member_list_read(const struct store_reply *list, struct state_record *record)
{
    size_t count = list != NULL ? store_reply_count(list) : 0;

    memset(record->members, 0, sizeof(record->members));
    memset(record->doubts, 0, sizeof(record->doubts));
    record->member_count = record->doubt_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct state_member one;

        if (!member_read(store_reply_text(list, i), &one)) {
            return false;
        }
        if (one.role == MEMBER_DOUBT && record->doubt_count < STATE_DOUBTS_MAX) {
            record->doubts[record->doubt_count++] = one;
        } else if (one.role != MEMBER_DOUBT && record->member_count < STATE_MEMBERS_MAX) {
            record->members[record->member_count++] = one;
        } else {
            return false;
        }
    }
    return list != NULL && state_record_is_sound(record);
}

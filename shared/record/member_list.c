/* member_list.c - the list of members, as the store tells it and as it is told: "lease ID INCARNATION,gateway
 * ...". */
#include <stdio.h>
#include <string.h>

#include "shared/record/member.h"

struct bytes member_list_print(const struct high_water *water, char text[MEMBER_LIST_SIZE])
{
    size_t len = 0;

    for (unsigned i = 0; i < water->member_count; i++) {
        const struct state_member *one = &water->members[i];

        len += (size_t)snprintf(text + len, MEMBER_LIST_SIZE - len, "%s%s %s %s", i == 0 ? "" : ",",
                                one->role == MEMBER_LEASE ? "lease" : "gateway", one->id, one->incarnation);
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

static bool member_read(struct bytes text, struct state_member *one)
{
    char role[8];

    memset(one, 0, sizeof(*one));
    if (text.at == NULL || !word_take(&text, role, sizeof(role)) ||
        !word_take(&text, one->id, sizeof(one->id)) ||
        !word_take(&text, one->incarnation, sizeof(one->incarnation)) || text.len > 0) {
        return false;
    }
    one->role = strcmp(role, "lease") == 0 ? MEMBER_LEASE : MEMBER_GATEWAY;
    return strcmp(role, "lease") == 0 || strcmp(role, "gateway") == 0;
}

bool member_list_read(const struct store_reply *list, struct high_water *water)
{
    size_t count = list != NULL ? store_reply_count(list) : STATE_MEMBERS_MAX + 1;

    if (count > STATE_MEMBERS_MAX) {
        return false;
    }
    memset(water->members, 0, sizeof(water->members));
    water->member_count = (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        if (!member_read(store_reply_text(list, i), &water->members[i])) {
            return false;
        }
    }
    return high_water_is_sound(water);
}

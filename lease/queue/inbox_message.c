/* inbox_message.c - what is told to a desk: "WORD WID" (lease/scripts/lib/line.lua). */
#include <string.h>

#include "lease/queue/inbox.h"

uint64_t desk_wid_read(struct bytes text)
{
    uint64_t wid = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || wid > (UINT64_MAX - 9) / 10) {
            return 0;
        }
        wid = wid * 10 + (uint64_t)(text.at[i] - '0');
    }
    return wid;
}

enum desk_news desk_message_read(struct bytes message, uint64_t *wid)
{
    static const char *const words[] = {
        [DESK_GRANTED] = "granted", [DESK_SUPERSEDED] = "superseded", [DESK_SESSION_LOST] = "session-lost"};
    const char *space = message.len > 0 ? memchr(message.at, ' ', message.len) : NULL;
    size_t len = space != NULL ? (size_t)(space - message.at) : 0;

    if (space == NULL) {
        return DESK_NO_NEWS;
    }
    *wid = desk_wid_read((struct bytes){space + 1, message.len - len - 1});
    for (enum desk_news news = DESK_GRANTED; *wid != 0 && news <= DESK_SESSION_LOST; news++) {
        if (bytes_are((struct bytes){message.at, len}, words[news])) {
            return news;
        }
    }
    return DESK_NO_NEWS;
}

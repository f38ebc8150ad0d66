/* inbox_message.c - what is told to an inbox: "WORD WID" (lease/scripts/lib/line.lua). */
#include <string.h>

#include "lease/queue/inbox.h"

uint64_t inbox_wid_read(struct bytes text)
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

enum inbox_news inbox_message_read(struct bytes message, uint64_t *wid)
{
    static const char *const words[] = {[INBOX_GRANTED] = "granted",
                                        [INBOX_SUPERSEDED] = "superseded",
                                        [INBOX_SESSION_LOST] = "session-lost"};
    const char *space = message.len > 0 ? memchr(message.at, ' ', message.len) : NULL;
    size_t len = space != NULL ? (size_t)(space - message.at) : 0;

    if (space == NULL) {
        return INBOX_NO_NEWS;
    }
    *wid = inbox_wid_read((struct bytes){space + 1, message.len - len - 1});
    for (enum inbox_news news = INBOX_GRANTED; *wid != 0 && news <= INBOX_SESSION_LOST; news++) {
        if (bytes_are((struct bytes){message.at, len}, words[news])) {
            return news;
        }
    }
    return INBOX_NO_NEWS;
}

/* doubt.h - how a request is told that was not done, or of which nobody knows (exit status 69): what scripts
 * look for is the same in every command (docs/man/pawl.1.md, "EXIT STATUS"). */
#ifndef PAWL_CLI_DOUBT_H
#define PAWL_CLI_DOUBT_H

#include "api/cli/flags.h"
#include "shared/bytes.h"

enum doubt {
    DOUBT_NOT_DONE, /* it certainly was not done, or it changes nothing */
    DOUBT_UNKNOWN   /* it may have been done */
};

/* "pawl: certainly not done: " or "pawl: may have been done: " on stderr, without a line feed: the caller's
 * sentence follows. */
void doubt_say(enum doubt doubt);
/* With OUTPUT_JSON an object with "outcome" ("not-done" or "unknown"), "code" (of the problem; "": nobody of
 * Pawl's answered) and "why" on stdout; else nothing. */
void doubt_show(enum doubt doubt, enum output output, struct bytes code, struct bytes why);
/* Both, with the sentence, when nobody of Pawl's answered; CLI_UNREACHABLE. */
int doubt_tell(enum doubt doubt, enum output output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

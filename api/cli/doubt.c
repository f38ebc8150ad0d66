/* doubt.c - how a request is told that was not done, or of which nobody knows. */
#include "api/cli/doubt.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "shared/json_write.h"

enum { SENTENCE_BYTES = 2048 };

void doubt_say(enum doubt doubt)
{
    fprintf(stderr, "pawl: %s: ", doubt == DOUBT_NOT_DONE ? "certainly not done" : "may have been done");
}

void doubt_show(enum doubt doubt, enum output output, struct bytes code, struct bytes why)
{
    struct json_out out;
    struct bytes text;

    if (output != OUTPUT_JSON) {
        return;
    }
    json_out_init(&out);
    json_object(&out, NULL);
    json_text(&out, "outcome", bytes_of(doubt == DOUBT_NOT_DONE ? "not-done" : "unknown"));
    json_text(&out, "code", code);
    json_text(&out, "why", why);
    json_object_end(&out);
    text = json_out_bytes(&out);
    printf("%.*s\n", (int)text.len, text.at);
    json_out_done(&out);
}

int doubt_tell(enum doubt doubt, enum output output, const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    doubt_say(doubt);
    print_safe(stderr, bytes_of(sentence));
    fputc('\n', stderr);
    doubt_show(doubt, output, BYTES(""), bytes_of(sentence));
    return CLI_UNREACHABLE;
}

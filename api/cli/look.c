/* look.c - who holds a lease. */
#include "api/cli/look.h"

#include <inttypes.h>

#include "api/cli/ask.h"
#include "api/cli/print.h"

enum { NUMBER_SIZE = 24 };

static void print_holder(FILE *out, const struct json *holder)
{
    char left[PRINT_DURATION_SIZE], since[PRINT_DURATION_SIZE], meta[2048];
    size_t len = 0;

    print_duration(left, ask_int(holder, "expires_in_ms"));
    print_duration(since, ask_int(holder, "held_for_ms"));
    fprintf(out, "  ");
    print_safe(out, ask_text(holder, "holder"));
    fprintf(out, ", token %" PRId64 ", ", ask_int(holder, "token"));
    print_safe(out, ask_text(holder, "mode"));
    fprintf(out, ": for %s, %s left", since, left);
    if (json_get_object_raw(holder, "meta", meta, sizeof(meta), &len) == JSON_FOUND && len > 2 &&
        len <= sizeof(meta)) {
        fprintf(out, ", ");
        print_safe(out, (struct bytes){meta, len});
    }
    fputc('\n', out);
}

void look_print_text(FILE *out, const struct json *look)
{
    enum json_found found;
    size_t count = json_list_count(look, "holders", &found);

    print_safe(out, ask_text(look, "lease"));
    fprintf(out, " is ");
    print_safe(out, ask_text(look, "state"));
    if (ask_int(look, "token") > 0) {
        fprintf(out, ", last token %" PRId64, ask_int(look, "token"));
    }
    if (ask_int(look, "waiting") > 0) {
        fprintf(out, ", %" PRId64 " waiting", ask_int(look, "waiting"));
    }
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) {
        const struct json *holder = json_list_object(look, "holders", i);

        if (holder != NULL) {
            print_holder(out, holder);
        }
    }
}

static void env_number(const char *key, int64_t number)
{
    char text[NUMBER_SIZE];
    int len = snprintf(text, sizeof(text), "%" PRId64, number);

    print_env(key, (struct bytes){text, (size_t)len});
}

/* Not PAWL_...: that would speak to the next command. Of several holders the first. */
void look_print_env(const struct json *look)
{
    enum json_found found;
    const struct json *first = json_list_count(look, "holders", &found) > 0
                                   ? json_list_object(look, "holders", 0)
                                   : NULL;

    print_env("LEASE", ask_text(look, "lease"));
    print_env("LEASE_STATE", ask_text(look, "state"));
    env_number("LEASE_TOKEN", ask_int(look, "token"));
    env_number("LEASE_WAITING", ask_int(look, "waiting"));
    print_env("LEASE_HOLDER", first != NULL ? ask_text(first, "holder") : BYTES(""));
    env_number("LEASE_EXPIRES_IN_MS", first != NULL ? ask_int(first, "expires_in_ms") : 0);
}

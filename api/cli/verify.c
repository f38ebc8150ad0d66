/* verify.c - pawl verify: read a fencing token and check its signature. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "shared/json_write.h"
#include "shared/problem.h"
#include "shared/token.h"

enum signature { SIGNATURE_GOOD, SIGNATURE_BAD, SIGNATURE_UNCHECKED };

struct verify {
    const char *keys_path;
    enum output output;
    char line[TOKEN_HEADER_MAX + 3]; /* "\r\n" behind it, and one more to see that it is too long */
    struct bytes header;
    struct token_claim claim;
    struct bytes kid;
    enum signature signature;
};

/* The line's end is not the value's. */
static int verify_from_stdin(struct verify *v)
{
    size_t len = fread(v->line, 1, sizeof(v->line), stdin);

    if (ferror(stdin))
        return cli_fail(CLI_REFUSED, "standard input cannot be read: %s", strerrordesc_np(errno));
    if (len > 0 && v->line[len - 1] == '\n')
        len--;
    if (len > 0 && v->line[len - 1] == '\r')
        len--;
    v->header = (struct bytes){v->line, len};
    return CLI_GO_ON;
}

static int verify_malformed(void)
{
    return cli_fail(CLI_REFUSED,
                    "this is no fencing token; give the value of the Fencing-Token header exactly as "
                    "the grant has it: 34;lease=\"orders:42\";mode=exclusive;...");
}

/* Fills claim, kid and signature. */
static int verify_check(struct verify *v)
{
    char why[512];
    struct token_keys *keys = NULL;
    int status = CLI_GO_ON;

    if (v->keys_path != NULL) {
        keys = token_keys_load(v->keys_path, why, sizeof(why));
        if (keys == NULL)
            return cli_fail(CLI_CONFIG, "%s", why);
    }
    if (!token_read(v->header, &v->claim, &v->kid))
        status = verify_malformed();
    else if (keys == NULL)
        v->signature = SIGNATURE_UNCHECKED;
    else
        v->signature = token_verify(keys, v->header, &v->claim) == TOKEN_GOOD ? SIGNATURE_GOOD
                                                                              : SIGNATURE_BAD;
    token_keys_free(keys);
    return status;
}

static const char *signature_name(enum signature signature)
{
    switch (signature) {
    case SIGNATURE_GOOD: return "good";
    case SIGNATURE_BAD: return "bad";
    case SIGNATURE_UNCHECKED: break;
    }
    return "unchecked";
}

static void verify_print_text(const struct verify *v)
{
    printf("lease      %.*s\n", (int)v->claim.lease.len, v->claim.lease.at);
    printf("store      %.*s\n", (int)v->claim.store.len, v->claim.store.at);
    printf("token      %" PRId64 "\n", v->claim.token.number);
    printf("epoch      %" PRId64 "\n", v->claim.token.epoch);
    printf("mode       %s\n", token_mode_name(v->claim.mode));
    printf("hold       %.*s\n", (int)v->claim.hold.len, v->claim.hold.at);
    printf("kid        %.*s\n", (int)v->kid.len, v->kid.at);
    printf("signature  %s\n", signature_name(v->signature));
}

static void verify_print_json(const struct verify *v)
{
    struct json_out out;
    struct bytes text;

    json_out_init(&out);
    json_object(&out, NULL);
    json_text(&out, "lease", v->claim.lease);
    json_text(&out, "store", v->claim.store);
    json_int(&out, "token", v->claim.token.number);
    json_int(&out, "epoch", v->claim.token.epoch);
    json_text(&out, "mode", bytes_of(token_mode_name(v->claim.mode)));
    json_text(&out, "hold", v->claim.hold);
    json_text(&out, "kid", v->kid);
    json_text(&out, "signature", bytes_of(signature_name(v->signature)));
    json_object_end(&out);
    text = json_out_bytes(&out);
    printf("%.*s\n", (int)text.len, text.at);
    json_out_done(&out);
}

static int verify_end(const struct verify *v)
{
    if (v->output == OUTPUT_JSON)
        verify_print_json(v);
    else
        verify_print_text(v);
    if (v->signature == SIGNATURE_BAD)
        return cli_fail(
            problem_info(PROBLEM_BAD_SIGNATURE)->exit_status,
            "THE SIGNATURE IS WRONG: the token was altered, or signed with a key that is not in %s; "
            "do not believe what it says",
            v->keys_path);
    if (v->signature == SIGNATURE_UNCHECKED)
        return cli_fail(CLI_OK,
                        "THE SIGNATURE WAS NOT CHECKED: anyone can have written this; give --keys FILE to "
                        "check it");
    return CLI_OK;
}

int cli_verify(int argc, char **argv)
{
    struct verify v = {.output = OUTPUT_TEXT};
    const struct flag flags[] = {
        {.name = "keys",
         .value = "FILE",
         .help = "the key file of the services; without it only the form is checked",
         .text = &v.keys_path},
        {.name = "output",
         .letter = 'o',
         .value = "text|json",
         .help = "json: one object, for programs",
         .output = &v.output},
        {0},
    };
    const struct usage usage = {
        "verify",
        "TOKEN",
        "  pawl verify \"$PAWL_FENCING_TOKEN\" --keys /etc/pawl/keys\n"
        "  pawl verify - --keys /etc/pawl/keys < token.txt\n"
        "  pawl verify \"$PAWL_FENCING_TOKEN\" -o json          # what it says, unchecked\n",
        "Reads the value of a Fencing-Token header (-: from standard input) and checks its signature.\n"
        "Exit status: 0 good, 1 no fencing token, 77 a bad signature, 78 the key file cannot be used.",
        flags,
        1,
        1,
        FLAGS_MIXED};
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON)
        return status;
    v.header = bytes_of(arguments[0]);
    status = bytes_are(v.header, "-") ? verify_from_stdin(&v) : CLI_GO_ON;
    if (status == CLI_GO_ON)
        status = verify_check(&v);
    return status == CLI_GO_ON ? verify_end(&v) : status;
}

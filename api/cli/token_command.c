/* token_command.c - pawl keygen, which makes a key that signs fencing tokens; pawl verify, which reads a
 * token and checks its signature. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "shared/text/problem.h"
#include "shared/text/read_all.h"
#include "shared/token/random.h"
#include "shared/token/token.h"

enum { DATE_SIZE = sizeof("k20261121-"), RANDOM_CHARS = 4 };

int cli_keygen(int argc, char **argv)
{
    const char *kid = NULL, *out = NULL;
    const struct option flags[] = {
        FLAG_TEXT("kid", "NAME", "the key's name (default: k, the date, and 4 random characters)", &kid),
        FLAG_TEXT("out", "FILE", "a new file instead of standard output", &out),
        {0},
    };
    char line[TOKEN_KEY_LINE_SIZE], usual[DATE_SIZE + RANDOM_CHARS];
    int status = flags_read("keygen", flags, argc, argv, NULL);
    time_t now = time(NULL);
    struct tm utc;
    size_t len;

    if (status != CLI_GO_ON)
        return status;
    /* In UTC, so that it is the same wherever the key is made; it only has to tell one key from the next, of
     * the same day, too: a file with a kid twice is refused. */
    random_text(usual + strftime(usual, DATE_SIZE, "k%Y%m%d-", gmtime_r(&now, &utc)), RANDOM_CHARS);
    kid = kid != NULL ? kid : usual;
    len = token_keygen(kid, line, sizeof(line));
    if (len == 0)
        return cli_fail(CLI_USAGE, "--kid takes 1 to 32 characters of A-Z a-z 0-9 . _ -");
    status = cli_write_secret(out, "key", (struct bytes){line, len},
                              "to rotate, append a line with pawl keygen >> FILE, and move it to the top "
                              "when every service has read it");
    explicit_bzero(line, sizeof(line));
    if (status != CLI_GO_ON)
        return status;
    if (out != NULL)
        printf("%s holds the key %s; only you can read it\n", out, kid);
    return CLI_OK;
}

/* -- pawl verify */

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
        status = cli_fail(CLI_REFUSED,
                          "this is no fencing token; give the value of the Fencing-Token header exactly as "
                          "the grant has it: 34;lease=\"orders:42\";mode=exclusive;...");
    else if (keys == NULL)
        v->signature = SIGNATURE_UNCHECKED;
    else
        v->signature = token_verify(keys, v->header, &v->claim) == TOKEN_GOOD ? SIGNATURE_GOOD
                                                                              : SIGNATURE_BAD;
    token_keys_free(keys);
    return status;
}

static const char *const signature_names[] = {
    [SIGNATURE_GOOD] = "good", [SIGNATURE_BAD] = "bad", [SIGNATURE_UNCHECKED] = "unchecked"};

static void verify_print(const struct verify *v)
{
    const struct token_claim *claim = &v->claim;
    const struct {
        const char *name;
        struct bytes text;
        int64_t number; /* when text is NULL */
    } fields[] = {
        {"lease", claim->lease, 0},
        {"store", claim->store, 0},
        {"token", {NULL, 0}, claim->token.number},
        {"epoch", {NULL, 0}, claim->token.epoch},
        {"mode", bytes_of(token_mode_name(claim->mode)), 0},
        {"hold", claim->hold, 0},
        {"kid", v->kid, 0},
        {"signature", bytes_of(signature_names[v->signature]), 0},
    };
    struct json_out out;

    if (v->output == OUTPUT_JSON)
        print_json_begin(&out);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        char digits[PRINT_NUMBER_SIZE];
        struct bytes text = fields[i].text.at != NULL ? fields[i].text
                                                      : print_number(digits, fields[i].number);

        if (v->output != OUTPUT_JSON)
            printf("%-9s  %.*s\n", fields[i].name, (int)text.len, text.at);
        else if (fields[i].text.at != NULL)
            json_text(&out, fields[i].name, text);
        else
            json_int(&out, fields[i].name, fields[i].number);
    }
    if (v->output == OUTPUT_JSON)
        print_json_end(&out);
}

static int verify_end(const struct verify *v)
{
    verify_print(v);
    if (v->signature == SIGNATURE_BAD)
        return cli_fail(problem_info(PROBLEM_BAD_SIGNATURE)->exit_status,
                        "THE SIGNATURE IS WRONG: the token was altered, or signed with a key that is not in "
                        "%s; do not believe what it says",
                        v->keys_path);
    if (v->signature == SIGNATURE_UNCHECKED)
        return cli_fail(
            CLI_OK,
            "THE SIGNATURE WAS NOT CHECKED: anyone can have written this; give --keys FILE to check it");
    return CLI_OK;
}

int cli_verify(int argc, char **argv)
{
    struct verify v = {.output = OUTPUT_TEXT};
    const struct option flags[] = {
        FLAG_ENV("keys", "FILE", "the key file of the services; without it only the form is checked",
                 &v.keys_path),
        FLAG_OUTPUT_OBJECT(&v.output),
        {0},
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read("verify", flags, argc, argv, arguments);

    if (status != CLI_GO_ON)
        return status;
    v.header = bytes_of(arguments[0]);
    status = bytes_are(v.header, "-") ? verify_from_stdin(&v) : CLI_GO_ON;
    if (status == CLI_GO_ON)
        status = verify_check(&v);
    return status == CLI_GO_ON ? verify_end(&v) : status;
}

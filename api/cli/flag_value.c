/* flag_value.c - the value of a flag, from wherever it comes, and the flags that several commands have.
 *
 * Apart from flags.c because <getopt.h> and shared/options.h both have a struct option. */
#include "api/cli/flag_value.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/environment.h"
#include "shared/options.h"

enum { NAME_SIZE = 64 };

/* -- values */

static bool output_read(const char *text, enum output *output)
{
    static const char *const names[] = {[OUTPUT_TEXT] = "text", [OUTPUT_JSON] = "json", [OUTPUT_ENV] = "env"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *output = (enum output)i;
            return true;
        }
    }
    return false;
}

static bool number_read(const char *text, unsigned *number)
{
    char *end = NULL;
    unsigned long value;

    if (!isdigit((unsigned char)*text) || strlen(text) > 9) {
        return false;
    }
    value = strtoul(text, &end, 10);
    *number = (unsigned)value;
    return *end == '\0' && value > 0;
}

/* 300 alone: who writes it thinks of seconds as often as of milliseconds. */
static bool is_bare(const char *text)
{
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

static bool value_fits(const struct flag *flag, const char *text)
{
    unsigned long long ms = 0;

    if (flag->text != NULL) {
        *flag->text = text;
        return true;
    }
    if (flag->number != NULL) {
        return number_read(text, flag->number);
    }
    if (flag->output != NULL) {
        bool known = output_read(text, flag->output);

        return known && strstr(flag->value, text) != NULL; /* not every command knows every output */
    }
    if (is_bare(text) || !options_duration_ms(text, &ms) || ms == 0) {
        return false;
    }
    *flag->ms = ms;
    return true;
}

int flag_value_set(const struct flag *flag, const char *source, const char *text)
{
    if (value_fits(flag, text)) {
        return CLI_GO_ON;
    }
    return cli_fail(CLI_USAGE, "%s was given \"%s\"; it takes %s", source, text,
                    flag->ms != NULL ? "a duration with its unit (ms, s, m, h, d): 500ms, 30s, 10m, 2h, 1d"
                    : flag->number != NULL ? "a whole number from 1"
                                           : flag->value);
}

/* -- the environment */

int flag_values_from_environment(const struct flag *flags)
{
    char name[NAME_SIZE];

    for (const struct flag *flag = flags; flag->name != NULL; flag++) {
        const char *value;
        int status;

        if (flag->where == FLAG_COMMAND_LINE || flag->on != NULL) {
            continue;
        }
        environment_name(flag->name, name, sizeof(name));
        assert(environment_knows(name));
        value = getenv(name);
        status = value != NULL && *value != '\0' ? flag_value_set(flag, name, value) : CLI_GO_ON;
        if (status != CLI_GO_ON) {
            return status;
        }
    }
    return CLI_GO_ON;
}

int flags_check_line(const char *flag, const char *value)
{
    for (const char *at = value != NULL ? value : ""; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            return cli_fail(CLI_USAGE, "%s must be one line of plain text", flag);
        }
    }
    return CLI_GO_ON;
}

/* -- rows that several commands have */

struct flag flag_lease_url(const char **place)
{
    return (struct flag){.name = "lease-url",
                         .value = "URL",
                         .help = "the lease service (default http://127.0.0.1:8700)",
                         .text = place};
}

struct flag flag_gateway_url(const char **place)
{
    return (struct flag){.name = "gateway-url",
                         .value = "URL",
                         .help = "the gateway (default http://127.0.0.1:8701)",
                         .text = place};
}

struct flag flag_lease_id_file(const char **place)
{
    return (struct flag){.name = "lease-id-file",
                         .value = "FILE",
                         .help = "where the lease_id is (else PAWL_LEASE_ID)",
                         .text = place};
}

struct flag flag_token_file(const char **place)
{
    return (struct flag){.name = "token-file",
                         .value = "FILE",
                         .help = "where the fencing token is (else PAWL_FENCING_TOKEN)",
                         .text = place};
}

struct flag flag_output(enum output *place, const char *value)
{
    return (struct flag){.name = "output",
                         .letter = 'o',
                         .value = value,
                         .help = "json: the service's answer as it is; env: for eval in a shell",
                         .output = place};
}

struct flag flag_ttl(uint64_t *place)
{
    return (struct flag){
        .name = "ttl", .value = "DUR", .help = "how long the hold lasts: 500ms, 30s, 10m", .ms = place};
}

struct flag flag_idempotency_key(const char **place)
{
    return (struct flag){.name = "idempotency-key",
                         .value = "KEY",
                         .help = "makes it safe to send the same again",
                         .text = place,
                         .where = FLAG_COMMAND_LINE};
}

struct flag flag_if_match(const char **place)
{
    return (struct flag){.name = "if-match",
                         .value = "ETAG",
                         .help = "only if the resource is still at this version",
                         .text = place,
                         .where = FLAG_COMMAND_LINE};
}

struct flag flag_trace(bool *place)
{
    return (struct flag){.name = "trace",
                         .help = "say on standard error what curl would send, without the secrets",
                         .on = place};
}

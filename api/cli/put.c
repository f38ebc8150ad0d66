/* put.c - pawl put: write a resource, fenced.
 *
 *   put_read     flags and the token          64, or go on
 *   put_load     the file, or stdin           1 | 64, or go on
 *   cli_put      PUT, once                    0 | 1 | 76 | 77 */
#include <errno.h>
#include <stdlib.h>

#include "api/cli/ask.h"
#include "api/cli/cli.h"
#include "api/cli/flags.h"
#include "api/cli/print.h"
#include "api/cli/secret.h"
#include "shared/json_write.h"
#include "shared/record/name.h"

enum { BODY_MAX = 256 << 20, READ_AT_ONCE = 65536 };

struct put {
    const char *gateway_url, *token_file, *type, *if_match, *if_none_match, *idempotency_key, *key, *file;
    enum output output;
    bool trace;
    char token[SECRET_SIZE];
    char *body;
    size_t len;
    struct ask ask;
};

static int put_flags(struct put *p, int argc, char **argv)
{
    const struct flag flags[] = {
        {.name = "type",
         .value = "TYPE",
         .help = "its content type",
         .text = &p->type,
         .where = FLAG_COMMAND_LINE},
        flag_if_match(&p->if_match),
        {.name = "if-none-match",
         .value = "ETAG",
         .help = "only if it is not at this version; \"*\": only if there is none",
         .text = &p->if_none_match,
         .where = FLAG_COMMAND_LINE},
        flag_idempotency_key(&p->idempotency_key),
        flag_token_file(&p->token_file),
        {.name = "output",
         .letter = 'o',
         .value = "text|json|env",
         .help = "what is told of it: json: one object; env: for eval in a shell",
         .output = &p->output},
        flag_trace(&p->trace),
        flag_gateway_url(&p->gateway_url),
        {0},
    };
    const struct usage usage = {
        .name = "put",
        .arguments = "KEY [FILE]",
        .examples = "  echo packed | pawl put orders:42        # PAWL_FENCING_TOKEN proves the hold of lease "
                    "orders:42\n"
                    "  pawl put orders:42/invoice.pdf invoice.pdf --type application/pdf\n"
                    "  pawl put orders:42 new.json --if-match '\"Zk3v9a1BQ2x8Lm0p\"'\n",
        .summary = "Writes the resource KEY from FILE or from standard input. The lease whose name the key "
                   "begins with\n"
                   "guards it: only its present holder gets through. Exit status 76: you are not, any more.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 2,
    };
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read(&usage, argc, argv, arguments, NULL);

    if (status != CLI_GO_ON) {
        return status;
    }
    p->key = arguments[0];
    p->file = arguments[1];
    return CLI_GO_ON;
}

static int put_check(const struct put *p)
{
    if (p->idempotency_key != NULL && !name_is_idempotency_key(bytes_of(p->idempotency_key))) {
        return cli_fail(CLI_USAGE, "--idempotency-key takes 1 to 128 visible ASCII characters");
    }
    if (flags_check_line("--type", p->type) != CLI_GO_ON ||
        flags_check_line("--if-match", p->if_match) != CLI_GO_ON) {
        return CLI_USAGE;
    }
    return flags_check_line("--if-none-match", p->if_none_match);
}

static int put_read(struct put *p, int argc, char **argv)
{
    int status = put_flags(p, argc, argv);

    if (status == CLI_GO_ON) {
        p->ask = (struct ask){.what = "put",
                              .wants = ASK_WRITTEN,
                              .output = p->output,
                              .trace = p->trace,
                              .body_from = p->file != NULL ? p->file : "-",
                              .request.method = "PUT"};
        status = ask_resource(&p->ask, p->gateway_url, p->key);
    }
    if (status == CLI_GO_ON) {
        status = put_check(p);
    }
    return status == CLI_GO_ON ? secret_token(p->token_file, p->token) : status;
}

/* -- the body */

static int load_all(struct put *p, FILE *in, const char *name)
{
    size_t size = READ_AT_ONCE, got;

    p->body = cli_alloc(size);
    while ((got = fread(p->body + p->len, 1, size - p->len, in)) > 0) {
        p->len += got;
        if (p->len > BODY_MAX) {
            return cli_fail(CLI_USAGE, "%s is longer than 256 MiB, which no gateway takes", name);
        }
        if (p->len == size) {
            size *= 2;
            p->body = cli_realloc(p->body, size);
        }
    }
    return ferror(in) ? cli_fail(CLI_REFUSED, "%s cannot be read: %s", name, strerror(errno)) : CLI_GO_ON;
}

static int put_load(struct put *p)
{
    bool standard = p->file == NULL || strcmp(p->file, "-") == 0;
    FILE *in = standard ? stdin : fopen(p->file, "rbe");
    int status;

    if (in == NULL) {
        return cli_fail(CLI_REFUSED, "%s cannot be read: %s", p->file, strerror(errno));
    }
    status = load_all(p, in, standard ? "standard input" : p->file);
    if (!standard) {
        fclose(in);
    }
    return status;
}

static void put_show(const struct put *p, const struct http_client_answer *answer)
{
    bool created = answer->status == 201;
    struct json_out out;
    struct bytes text;

    if (p->output == OUTPUT_TEXT) {
        print_safe(stdout, bytes_of(p->key));
        printf(" %s, ETag ", created ? "created" : "written");
        print_safe(stdout, bytes_of(answer->etag));
        putchar('\n');
        return;
    }
    if (p->output == OUTPUT_ENV) {
        print_env("RESOURCE_KEY", bytes_of(p->key));
        print_env("RESOURCE_ETAG", bytes_of(answer->etag));
        return;
    }
    json_out_init(&out);
    json_object(&out, NULL);
    json_text(&out, "key", bytes_of(p->key));
    json_bool(&out, "created", created);
    json_text(&out, "etag", bytes_of(answer->etag));
    json_object_end(&out);
    text = json_out_bytes(&out);
    printf("%.*s\n", (int)text.len, text.at);
    json_out_done(&out);
}

static int put_send(struct put *p)
{
    struct http_client_answer answer;
    int status;

    p->ask.request.body = (struct bytes){p->body, p->len};
    ask_header(&p->ask, "Fencing-Token", bytes_of(p->token));
    ask_header(&p->ask, "Content-Type", bytes_of(p->type));
    ask_header(&p->ask, "If-Match", bytes_of(p->if_match));
    ask_header(&p->ask, "If-None-Match", bytes_of(p->if_none_match));
    ask_header(&p->ask, "Idempotency-Key", bytes_of(p->idempotency_key));
    status = ask_send(&p->ask, &answer);
    if (status == CLI_GO_ON) {
        put_show(p, &answer);
        status = CLI_OK;
    }
    http_client_answer_done(&answer);
    return status;
}

int cli_put(int argc, char **argv)
{
    struct put p = {0};
    int status = put_read(&p, argc, argv);

    if (status == CLI_GO_ON) {
        status = put_load(&p);
    }
    if (status == CLI_GO_ON) {
        status = put_send(&p);
    }
    free(p.body);
    ask_done(&p.ask);
    return status;
}

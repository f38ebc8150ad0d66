/* access_command.c - pawl access: makes access tokens and the lines for them in an access file, checks it,
 * and says which of its rules allows something. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/cli/request.h"
#include "shared/access/access.h"
#include "shared/text/read_all.h"
#include "shared/token/name.h"

enum { TOKEN_LINE = ACCESS_TOKEN_SIZE /* with a line feed for the NUL */, INPUT_SIZE = TOKEN_LINE + 2 };

/* -- new */

static int new_run(int argc, char **argv)
{
    const char *out = NULL, *arguments[ARGUMENTS_MAX + 1];
    const struct option flags[] = {
        FLAG_TEXT("out", "FILE", "a new file for the access token instead of standard output", &out), {0}};
    char line[TOKEN_LINE], hash[ACCESS_HASH_SIZE];
    int status = flags_read("access new", flags, argc, argv, arguments);

    if (status != CLI_GO_ON)
        return status;
    if (!access_is_name(bytes_of(arguments[0])) || strcmp(arguments[0], "nobody") == 0 ||
        strcmp(arguments[0], "known") == 0)
        return cli_fail(CLI_USAGE,
                        "an identity is 1 to 64 characters of A-Z a-z 0-9 . _ -, the first a letter or "
                        "digit; nobody and known are none");
    access_token_new(line);
    access_token_hash(bytes_of(line), hash);
    line[TOKEN_LINE - 1] = '\n';
    status = cli_write_secret(out, "access token", (struct bytes){line, sizeof(line)}, "name another file");
    explicit_bzero(line, sizeof(line));
    if (status != CLI_GO_ON)
        return status;
    printf("\"%s\": {\"access_tokens\": [\"sha256:%s\"]}\n", arguments[0], hash);
    return CLI_OK;
}

/* -- hash */

static int hash_run(int argc, char **argv)
{
    char input[INPUT_SIZE], hash[ACCESS_HASH_SIZE];
    int status = flags_read("access hash", NULL, argc, argv, NULL);
    ssize_t len = status == CLI_GO_ON ? read_all(STDIN_FILENO, input, sizeof(input)) : 0;
    struct bytes token = {input, len > 0 ? (size_t)len : 0};

    if (status != CLI_GO_ON)
        return status;
    if (token.len > 0 && token.at[token.len - 1] == '\n')
        token.len--;
    if (token.len > 0 && token.at[token.len - 1] == '\r')
        token.len--;
    if (access_token_is_formed(token)) {
        access_token_hash(token, hash);
        printf("\"sha256:%s\"\n", hash);
        status = CLI_OK;
    } else {
        status = cli_fail(CLI_REFUSED,
                          "this is no access token, or a character of it is wrong: it is pawl_, 43 "
                          "characters, _ and 6 more");
    }
    explicit_bzero(input, sizeof(input));
    return status;
}

/* -- check */

static struct access *load(const char *path)
{
    char why[ACCESS_WHY_SIZE];
    struct access *access = access_load(path, why, sizeof(why));

    if (access == NULL)
        cli_fail(CLI_CONFIG, "the access file %s is refused: %s", path, why);
    return access;
}

static int check_run(int argc, char **argv)
{
    const char *arguments[ARGUMENTS_MAX + 1];
    char text[ACCESS_WHY_SIZE];
    int status = flags_read("access check", NULL, argc, argv, arguments);
    struct access *access = status == CLI_GO_ON ? load(arguments[0]) : NULL;

    if (access == NULL)
        return status == CLI_GO_ON ? CLI_CONFIG : status;
    if (!access_load_keys(access, text, sizeof(text))) {
        access_free(access);
        return cli_fail(CLI_CONFIG, "the access file %s is refused: %s", arguments[0], text);
    }
    for (unsigned i = 0; access_warning(access, i, text) != NULL; i++)
        cli_fail(CLI_OK, "warning: %s", text);
    printf("good: sha256 %s\n", access_hash(access));
    access_free(access);
    return CLI_OK;
}

/* -- explain */

/* CLI_OK, or what is missing. */
static int explain_say(const struct access *access, const char *who, enum access_verb verb, const char *name)
{
    const char *identity = access_identity(access, bytes_of(who)), *said = access_verb_name(verb);
    char place[ACCESS_WHY_SIZE];

    if (identity == NULL && strcmp(who, "nobody") != 0)
        return cli_fail(CLI_NOT_ALLOWED, "there is no identity %s in this file", who);
    if (access_explain(access, identity, verb, bytes_of(name), place)) {
        printf("%s: %s may %s%s%s\n", place, who, said, name != NULL ? " " : "", name != NULL ? name : "");
        return CLI_OK;
    }
    if (!access_allows_some(access, identity, verb))
        return cli_fail(CLI_NOT_ALLOWED, "no rule gives %s the verb %s", who, said);
    return cli_fail(CLI_NOT_ALLOWED, "the rules give %s the verb %s on other names, not on %s", who, said,
                    name);
}

static int explain_check(const char *file, const char *verb, const char *name)
{
    enum access_verb number = access_verb_of(bytes_of(verb));

    if (file == NULL)
        return cli_fail(CLI_USAGE, "--access FILE is needed");
    if (number == ACCESS_VERBS)
        return cli_fail(CLI_USAGE,
                        "there is no verb %s: it is acquire, look, force-release, read, write-own, write, "
                        "check, resolve, session, observe or operate",
                        verb);
    if ((number < ACCESS_SESSION) != (name != NULL))
        return cli_fail(
            CLI_USAGE,
            name != NULL ? "%s is not about leases: leave NAME out" : "%s is about leases: name one", verb);
    if (name != NULL && !name_is_lease(bytes_of(name)))
        return cli_fail(CLI_USAGE, "%s is not the name of a lease", name);
    return CLI_GO_ON;
}

static int explain_run(int argc, char **argv)
{
    const char *file = NULL, *arguments[ARGUMENTS_MAX + 1];
    const struct option flags[] = {FLAG_TEXT("access", "FILE", "the access file", &file), {0}};
    int status = flags_read("access explain", flags, argc, argv, arguments);
    struct access *access = NULL;

    status = status == CLI_GO_ON ? explain_check(file, arguments[1], arguments[2]) : status;
    if (status != CLI_GO_ON)
        return status;
    access = load(file);
    if (access == NULL)
        return CLI_CONFIG;
    status = explain_say(access, arguments[0], access_verb_of(bytes_of(arguments[1])), arguments[2]);
    access_free(access);
    return status;
}

/* -- whoami */

static void whoami_print(const char *service, const struct json *json)
{
    struct bytes verb;

    printf("%s: ", service);
    print_safe(stdout, request_text(json, "identity"));
    fputs(", by ", stdout);
    print_safe(stdout, request_text(json, "by"));
    fputs("; may", stdout);
    for (size_t i = 0; json_list_text(json, "may", i, &verb); i++) {
        putchar(' ');
        print_safe(stdout, verb);
    }
    puts(json_list_text(json, "may", 0, &verb) ? "" : " nothing");
}

/* One service; hash: of the file that it judges by. */
static int whoami_ask(enum request_service to, const char *base, const char *lease,
                      char hash[ACCESS_HASH_SIZE])
{
    const char *service = to == REQUEST_LEASE_SERVICE ? "lease service" : "gateway";
    struct request request = {.what = "access whoami",
                              .wants = REQUEST_JSON,
                              .needs = "identity by hash may",
                              .http.method = "GET"};
    int status = request_service(&request, to, base, "/v1/access");
    struct bytes told;

    if (status == CLI_GO_ON) {
        request_query(&request, "lease", bytes_of(lease));
        status = request_send(&request);
    }
    if (status == CLI_GO_ON) {
        told = request_text(request.json, "hash");
        snprintf(hash, ACCESS_HASH_SIZE, "%.*s", (int)told.len, told.at);
        whoami_print(service, request.json);
        status = CLI_OK;
    }
    request_done(&request);
    return status;
}

static int whoami_run(int argc, char **argv)
{
    const char *lease_url = NULL, *gateway_url = NULL, *arguments[ARGUMENTS_MAX + 1];
    const struct option flags[] = {FLAG_LEASE_URL(&lease_url), FLAG_GATEWAY_URL(&gateway_url), {0}};
    int status = flags_read("access whoami", flags, argc, argv, arguments), second;
    char hash[2][ACCESS_HASH_SIZE] = {"", ""};

    if (status == CLI_GO_ON && arguments[0] != NULL && !name_is_lease(bytes_of(arguments[0])))
        return cli_fail(CLI_USAGE, "%s is not the name of a lease", arguments[0]);
    if (status != CLI_GO_ON)
        return status;
    status = whoami_ask(REQUEST_LEASE_SERVICE, lease_url, arguments[0], hash[0]);
    second = whoami_ask(REQUEST_GATEWAY, gateway_url, arguments[0], hash[1]);
    status = status != CLI_OK ? status : second;
    if (status == CLI_OK && strcmp(hash[0], hash[1]) != 0)
        return cli_fail(CLI_REFUSED,
                        "the two judge by different access files: give both the same, and SIGHUP");
    return status;
}

/* -- which of them */

int cli_access(int argc, char **argv)
{
    static const struct command commands[] = {
        {"new", new_run, "make an access token, and the line for it in the access file"},
        {"hash", hash_run, "the same line for an access token that there is"},
        {"check", check_run, "is an access file good?"},
        {"explain", explain_run, "which rule allows this?"},
        {"whoami", whoami_run, "what do the services say of me?"},
        {0},
    };

    return command_group(commands, "access ", argc, argv);
}

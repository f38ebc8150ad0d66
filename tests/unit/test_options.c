/* test_options.c - flags, environment and file: what each takes, which wins, and what a refusal says. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/service/options.h"
#include "tests/unit/check.h"

enum { WHY_BYTES = 512, ARGUMENTS_MAX = 12 };

static struct {
    const char *listen, *redis, *password, *password_file, *config;
    bool check, anonymous;
    unsigned threads;
    uint64_t timeout_ms, grace_ms;
    size_t body_bytes;
    int format;
} got;

#define ROW(flag, of_kind, field, takes, about, ...)                                                         \
    {                                                                                                        \
        .name = (flag), .kind = (of_kind), .place = &got.field, .value = (takes), .help = (about),           \
        __VA_ARGS__                                                                                          \
    }

static const struct option table[] = {
    ROW("listen", OPTION_TEXT, listen, "ADDR:PORT", "where to listen", .min = 0),
    ROW("redis", OPTION_TEXT, redis, "URL", "the store", .min = 0),
    ROW("redis-password", OPTION_TEXT, password, "TEXT", "its password", .min = 0),
    ROW("redis-password-file", OPTION_TEXT, password_file, "FILE", "a file with its password", .min = 0),
    ROW("config", OPTION_TEXT, config, "FILE", "a configuration file", .min = 0),
    ROW("check-config", OPTION_FLAG, check, "", "look at the configuration and end",
        .command_line_only = true),
    ROW("allow-anonymous", OPTION_FLAG, anonymous, "", "let everyone in", .min = 0),
    ROW("threads", OPTION_UNSIGNED, threads, "N", "loops", .min = 1, .max = 64),
    ROW("store-timeout", OPTION_DURATION_MS, timeout_ms, "DUR", "for one call", .min = 100, .max = 60000),
    ROW("grace", OPTION_DURATION_MS, grace_ms, "DUR", "without bounds", .min = 0),
    ROW("max-body", OPTION_BYTES, body_bytes, "SIZE", "of a request", .min = 1024, .max = 1073741824),
    ROW("log-format", OPTION_CHOICE, format, "text|json|both", "how to log", .min = 0),
    {0},
};

static const char *const ignored[] = {"PAWL_LEASE_URL", "PAWL_GATEWAY_URL", NULL};
static struct options_text *texts;
static const struct options_program program = {"pawl-test", "tests options", "  pawl-test --threads 2",
                                               table,       ignored,         &texts};

static void texts_done(void)
{
    options_texts_free(texts);
    texts = NULL;
}

static char why[WHY_BYTES];

static void reset(void)
{
    got.listen = "127.0.0.1:8700";
    got.redis = got.password = got.password_file = got.config = NULL;
    got.check = got.anonymous = false;
    got.threads = 1;
    got.timeout_ms = 2000;
    got.grace_ms = 0;
    got.body_bytes = 1048576;
    got.format = 0;
    why[0] = '\0';
}

/* Reads arguments and environment, each NULL-terminated. */
static enum options_result read_both(char **arguments, char **environment)
{
    char *argv[ARGUMENTS_MAX] = {"pawl-test"};
    int argc = 1;

    for (; *arguments; arguments++)
        argv[argc++] = *arguments;
    return options_read(&program, argc, argv, environment, why, sizeof(why));
}

static enum options_result read_arguments(char **arguments)
{
    char *environment[] = {"HOME=/root", NULL};

    return read_both(arguments, environment);
}

static enum options_result read_variable(char *variable)
{
    char *arguments[] = {NULL}, *environment[] = {"HOME=/root", variable, NULL};

    return read_both(arguments, environment);
}

#define READ(...) read_arguments((char *[]){__VA_ARGS__, NULL})

/* Puts "FILE" where path stands. */
static void put_word_for(const char *path, char *at)
{
    memmove(at + 4, at + strlen(path), strlen(at + strlen(path)) + 1);
    memcpy(at, "FILE", 4);
}

static enum options_result read_file_and(const char *text, char *argument, char *variable)
{
    char *path = check_file(bytes_of(text)), *environment[] = {variable, NULL};
    char *arguments[] = {"--config", path, argument, NULL};
    enum options_result result = read_both(arguments, environment);
    const char *at = strstr(why, path); /* so that a sentence is the same each time */

    if (at)
        put_word_for(path, why + (at - why));
    unlink(path);
    return result;
}

static enum options_result read_file(const char *text)
{
    return read_file_and(text, NULL, NULL);
}

/* -- flags */

TEST(a_value_stands_behind_an_equals_sign_or_in_the_next_argument)
{
    reset();
    CHECK_INT(READ("--listen=[::1]:0", "--threads", "64", "--redis=a=b"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.listen), BYTES("[::1]:0"));
    CHECK_TEXT(bytes_of(got.redis), BYTES("a=b"));
    CHECK_INT(got.threads, 64);
    CHECK_INT(got.timeout_ms, 2000); /* what is not named stays */
    CHECK_INT(READ("--check-config", "--allow-anonymous", "--store-timeout", "30s", "--max-body=16KiB",
                   "--log-format", "json"),
              OPTIONS_OK);
    CHECK(got.check && got.anonymous);
    CHECK_INT(got.timeout_ms, 30000);
    CHECK_INT(got.body_bytes, 16384);
    CHECK_INT(got.format, 1);
}

static const struct {
    char *arguments[3];
    const char *why;
} refusals[] = {
    {{"--lisen=x"}, "--lisen is not a flag of pawl-test; did you mean --listen?"},
    {{"--"}, "-- is not a flag of pawl-test; see pawl-test --help."},
    {{"-l"}, "-l is not a flag of pawl-test; see pawl-test --help."},
    {{"--Listen", "x"}, "--Listen is not a flag of pawl-test; did you mean --listen?"},
    {{"--frobnicate"}, "--frobnicate is not a flag of pawl-test; see pawl-test --help."},
    {{"start"}, "pawl-test takes flags only, not \"start\"; see pawl-test --help."},
    {{""}, "pawl-test takes flags only, not \"\"; see pawl-test --help."},
    {{"--listen"}, "--listen needs a value: ADDR:PORT."},
    {{"--listen", "--check-config"}, "--listen needs a value: ADDR:PORT."},
    {{"--listen="}, "--listen was given \"\"; it takes ADDR:PORT."},
    {{"--threads=1", "--threads=1"}, "--threads is given twice."},
    {{"--check-config", "--check-config"}, "--check-config is given twice."},
    {{"--check-config=true"}, "--check-config takes no value."},
    {{"--threads=0"}, "--threads was given \"0\"; it takes a whole number, from 1 to 64."},
    {{"--threads=65"}, "--threads was given \"65\"; it takes a whole number, from 1 to 64."},
    {{"--threads=-1"}, "--threads was given \"-1\"; it takes a whole number, from 1 to 64."},
    {{"--threads= 1"}, "--threads was given \" 1\"; it takes a whole number, from 1 to 64."},
    {{"--threads=1x"}, "--threads was given \"1x\"; it takes a whole number, from 1 to 64."},
    {{"--threads=4294967297"}, "--threads was given \"4294967297\"; it takes a whole number, from 1 to 64."},
    {{"--store-timeout=99"},
     "--store-timeout was given \"99\"; it takes a duration like 250ms, 30s or 10m, from 100ms to 1m."},
    {{"--store-timeout=61s"},
     "--store-timeout was given \"61s\"; it takes a duration like 250ms, 30s or 10m, from 100ms to 1m."},
    {{"--max-body=1023"},
     "--max-body was given \"1023\"; it takes a size like 16KiB or 256MiB, from 1KiB to 1GiB."},
    {{"--max-body=1025MiB"},
     "--max-body was given \"1025MiB\"; it takes a size like 16KiB or 256MiB, from 1KiB to 1GiB."},
    {{"--log-format=tex"}, "--log-format was given \"tex\"; it takes text, json or both."},
    {{"--log-format=text|json"}, "--log-format was given \"text|json\"; it takes text, json or both."},
    {{"--log-format=a\x1b[31m\n"}, "--log-format was given \"a?[31m?\"; it takes text, json or both."},
};

static void check_read(enum options_result result, const char *wanted)
{
    CHECK_INT(result, wanted ? OPTIONS_BAD : OPTIONS_OK);
    CHECK_TEXT(bytes_of(why), bytes_of(wanted ? wanted : ""));
    reset();
}

TEST(a_wrong_command_line_is_refused_with_what_is_right)
{
    reset();
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        check_read(READ(refusals[i].arguments[0], refusals[i].arguments[1]), refusals[i].why);
}

TEST(a_word_is_suggested_when_it_is_near_and_none_when_it_is_not)
{
    static const char *const names[] = {"acquire", "release", "renew", "ls", "rm", NULL};

    CHECK_TEXT(bytes_of(options_suggest("acquier", names)), BYTES("acquire"));
    CHECK_TEXT(bytes_of(options_suggest("relese", names)), BYTES("release"));
    CHECK_TEXT(bytes_of(options_suggest("sl", names)), BYTES("ls"));
    CHECK_TEXT(bytes_of(options_suggest("renwe", names)), BYTES("renew"));
    CHECK(options_suggest("xyzzy", names) == NULL);
    CHECK(options_suggest("", names) == NULL);
    CHECK(options_suggest("ab", names) == NULL);
    CHECK(options_suggest("a-word-that-is-longer-than-every-name-of-a-command", names) == NULL);
}

TEST(bounds_belong_to_what_is_allowed)
{
    reset();
    CHECK_INT(READ("--threads=64", "--store-timeout=100", "--max-body=1GiB"), OPTIONS_OK);
    CHECK_INT(READ("--threads=1", "--store-timeout=60s", "--max-body=1KiB"), OPTIONS_OK);
    CHECK_INT(READ("--grace=0"), OPTIONS_OK);
    CHECK_INT(READ("--grace=9223372036854775807"), OPTIONS_OK);
    CHECK_INT(got.grace_ms, LLONG_MAX);
    CHECK_INT(READ("--grace=9223372036854775808"), OPTIONS_BAD);
    CHECK_INT(READ("--grace=99999999999999999999"), OPTIONS_BAD);
}

/* -- secrets */

static const struct {
    const char *url;
    bool has_password;
} urls[] = {
    {"redis://127.0.0.1:6379", false}, {"redis://127.0.0.1:6379/1", false},
    {"redis://[::1]:6379", false},     {"unix:///run/redis.sock", false},
    {"redis://user@h:6379", false},    {"redis://user:hush@h:6379", true},
    {"redis://:hush@h", true},         {"redis://user:@h", true},
    {"redis://u:hu/sh@h:1", true},     {"redis://u:hu@sh@h:1", true},
    {"127.0.0.1:8700", false},         {"a:b@c", false},
    {"unix:///a:b@c", false},          {"unix:///a,redis://u:hush@h", true},
};

TEST(a_url_with_a_password_is_refused_on_the_command_line_and_never_shown)
{
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        reset();
        CHECK_INT(READ("--redis", (char *)urls[i].url), urls[i].has_password ? OPTIONS_BAD : OPTIONS_OK);
        CHECK(strstr(why, "hu") == NULL);
        CHECK((strncmp(why, "--redis has a password in it", 28) == 0) == urls[i].has_password);
    }
}

TEST(a_url_with_a_password_is_taken_from_the_environment_and_the_file)
{
    reset();
    CHECK_INT(read_variable("PAWL_REDIS=redis://u:hush@h:1"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.redis), BYTES("redis://u:hush@h:1"));
    reset();
    CHECK_INT(read_file("{\"redis\":\"redis://u:hush@h:2\"}"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.redis), BYTES("redis://u:hush@h:2"));
    texts_done();
}

TEST(a_password_is_not_a_flag_but_the_name_of_its_file_is)
{
    reset();
    CHECK_INT(READ("--redis-password", "hush"), OPTIONS_BAD);
    CHECK(strncmp(why, "--redis-password has a password in it", 37) == 0 && strstr(why, "hush") == NULL);
    CHECK_INT(READ("--redis-password-file", "/x"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.password_file), BYTES("/x"));
    CHECK_INT(read_variable("PAWL_REDIS_PASSWORD=hush"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.password), BYTES("hush"));
}

TEST(a_secret_is_not_repeated_in_a_sentence)
{
    reset();
    CHECK_INT(read_file("{\"redis-password\":5432167}"), OPTIONS_BAD);
    CHECK_TEXT(bytes_of(why),
               BYTES("Member \"redis-password\" of FILE has a value that does not fit; it takes TEXT."));
    CHECK_INT(READ("--reddis=redis://u:hush@h"), OPTIONS_BAD);
    CHECK_TEXT(bytes_of(why), BYTES("--reddis is not a flag of pawl-test; did you mean --redis?"));
    CHECK_INT(READ("--log-format=redis://u:hush@h"), OPTIONS_BAD);
    CHECK(strstr(why, "hush") == NULL);
}

/* -- environment */

struct variable_case {
    char *variable;
    const char *why; /* NULL: taken */
};

static const struct variable_case variable_cases[] = {
    {"PAWL_LISTEN=[::1]:1", NULL},
    {"PAWL_STORE_TIMEOUT=250ms", NULL},
    {"PAWL_ALLOW_ANONYMOUS=1", NULL},
    {"PAWL_ALLOW_ANONYMOUS=true", NULL},
    {"PAWL_ALLOW_ANONYMOUS=0", NULL},
    {"PAWL_ALLOW_ANONYMOUS=false", NULL},
    {"PAWL_ALLOW_ANONYMOUS=yes", "PAWL_ALLOW_ANONYMOUS was given \"yes\"; it takes true or false."},
    {"PAWL_ALLOW_ANONYMOUS=", "PAWL_ALLOW_ANONYMOUS was given \"\"; it takes true or false."},
    {"PAWL_LISTEN=", "PAWL_LISTEN was given \"\"; it takes ADDR:PORT."},
    {"PAWL_THREADS=65", "PAWL_THREADS was given \"65\"; it takes a whole number, from 1 to 64."},
    {"PAWL_LISTENN=x", "PAWL_LISTENN is not a variable of pawl-test; unset it, or see pawl-test --help."},
    {"PAWL_listen=x", "PAWL_listen is not a variable of pawl-test; unset it, or see pawl-test --help."},
    {"PAWL_STORE-TIMEOUT=1s",
     "PAWL_STORE-TIMEOUT is not a variable of pawl-test; unset it, or see pawl-test --help."},
    {"PAWL_=x", "PAWL_ is not a variable of pawl-test; unset it, or see pawl-test --help."},
    {"PAWL_CHECK_CONFIG=1", "PAWL_CHECK_CONFIG is not taken from the environment; use --check-config."},
    {"PAWL_LEASE_URL=x", NULL},
    {"PAWL_GATEWAY_URL=", NULL},
    {"PAWL_LEASE_URLS=x",
     "PAWL_LEASE_URLS is not a variable of pawl-test; unset it, or see pawl-test --help."},
    {"PAWLISTEN=x", NULL},
    {"LISTEN=x", NULL},
    {"PAWL_NO_EQUALS_SIGN", NULL},
};

TEST(variables_are_known_ignored_by_name_or_refused)
{
    reset();
    for (size_t i = 0; i < sizeof(variable_cases) / sizeof(variable_cases[0]); i++)
        check_read(read_variable(variable_cases[i].variable), variable_cases[i].why);
    read_variable("PAWL_ALLOW_ANONYMOUS=1");
    CHECK(got.anonymous);
    read_variable("PAWL_ALLOW_ANONYMOUS=false");
    CHECK(!got.anonymous);
}

/* -- the file */

TEST(the_file_fills_every_kind_of_place)
{
    reset();
    CHECK_INT(
        read_file("{\"listen\":\"[::1]:2\",\"allow-anonymous\":true,\"threads\":3,\"store-timeout\":\"3s\","
                  "\"grace\":1500,\"max-body\":\"2MiB\",\"log-format\":\"both\"}"),
        OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.listen), BYTES("[::1]:2"));
    texts_done();
    CHECK(got.anonymous);
    CHECK_INT(got.threads, 3);
    CHECK_INT(got.timeout_ms, 3000);
    CHECK_INT(got.grace_ms, 1500);
    CHECK_INT(got.body_bytes, 2 * 1024 * 1024);
    CHECK_INT(got.format, 2);
}

static const struct variable_case file_cases[] = {
    {"{}", NULL},
    {"{\"max-body\":2048}", NULL},
    {"{\"lisen\":1}",
     "FILE has a member \"lisen\", which pawl-test does not take there; see pawl-test --help."},
    {"{\"check-config\":true}",
     "FILE has a member \"check-config\", which pawl-test does not take there; see pawl-test --help."},
    {"{\"config\":\"x\"}",
     "FILE has a member \"config\", which pawl-test does not take there; see pawl-test --help."},
    {"{\"threads\":1,\"threads\":1}", "FILE: The member threads stands there twice."},
    {"{\"threads\":01}", "FILE: A number is not written as JSON wants, at the member threads."},
    {"[]", "FILE: The JSON text is not an object."},
    {"", "FILE: The JSON text is not an object."},
    {"{\"threads\":\"2\"}",
     "Member \"threads\" of FILE was given \"2\"; it takes a whole number, from 1 to 64."},
    {"{\"threads\":0}", "Member \"threads\" of FILE was given \"0\"; it takes a whole number, from 1 to 64."},
    {"{\"threads\":1.0}",
     "Member \"threads\" of FILE has a value that does not fit; it takes a whole number, from 1 to 64."},
    {"{\"listen\":[\"a\"]}", "Member \"listen\" of FILE has a value that does not fit; it takes ADDR:PORT."},
    {"{\"listen\":1}", "Member \"listen\" of FILE was given \"1\"; it takes ADDR:PORT."},
    {"{\"listen\":\"\"}", "Member \"listen\" of FILE was given \"\"; it takes ADDR:PORT."},
    {"{\"allow-anonymous\":\"true\"}",
     "Member \"allow-anonymous\" of FILE was given \"true\"; it takes true or false."},
    {"{\"allow-anonymous\":1}",
     "Member \"allow-anonymous\" of FILE was given \"1\"; it takes true or false."},
    {"{\"log-format\":\"xml\"}",
     "Member \"log-format\" of FILE was given \"xml\"; it takes text, json or both."},
    {"{\"store-timeout\":\"2 s\"}", "Member \"store-timeout\" of FILE was given \"2 s\"; it takes a duration "
                                    "like 250ms, 30s or 10m, from 100ms to 1m."},
};

TEST(the_file_is_strict)
{
    reset();
    for (size_t i = 0; i < sizeof(file_cases) / sizeof(file_cases[0]); i++)
        check_read(read_file(file_cases[i].variable), file_cases[i].why);
}

TEST(a_file_that_is_not_there_is_an_error_that_names_it)
{
    reset();
    CHECK_INT(READ("--config", "/nonexistent/pawl.json"), OPTIONS_BAD);
    CHECK_TEXT(bytes_of(why), BYTES("/nonexistent/pawl.json cannot be opened: No such file or directory."));
    CHECK_INT(read_variable("PAWL_CONFIG=/"), OPTIONS_BAD);
    CHECK_TEXT(bytes_of(why), BYTES("/ cannot be read: Is a directory."));
}

/* -- who wins */

TEST(flags_beat_the_environment_and_the_environment_beats_the_file)
{
    reset();
    CHECK_INT(read_file_and("{\"threads\":2}", NULL, NULL), OPTIONS_OK);
    CHECK_INT(got.threads, 2);
    CHECK_INT(read_file_and("{\"threads\":2}", NULL, "PAWL_THREADS=3"), OPTIONS_OK);
    CHECK_INT(got.threads, 3);
    CHECK_INT(read_file_and("{\"threads\":2}", "--threads=4", "PAWL_THREADS=3"), OPTIONS_OK);
    CHECK_INT(got.threads, 4);
    CHECK_INT(read_file_and("{\"listen\":\"c\"}", "--listen=a", "PAWL_LISTEN=b"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.listen), BYTES("a"));
    CHECK_INT(read_file_and("{\"listen\":\"c\"}", NULL, "PAWL_LISTEN=b"), OPTIONS_OK);
    CHECK_TEXT(bytes_of(got.listen), BYTES("b"));
}

TEST(a_wrong_value_is_an_error_also_where_a_stronger_one_wins)
{
    reset();
    CHECK_INT(read_file_and("{\"threads\":99}", "--threads=4", NULL), OPTIONS_BAD);
    CHECK_INT(read_file_and("{}", "--threads=4", "PAWL_THREADS=99"), OPTIONS_BAD);
    CHECK_INT(read_file_and("{\"threads\":2}", NULL, "PAWL_CONFIG=/nonexistent"),
              OPTIONS_OK); /* of a file: not */
    CHECK_INT(got.threads, 2);
}

/* -- asked for */

TEST(help_and_version_win_over_everything_that_is_wrong)
{
    reset();
    CHECK_INT(READ("--nonsense", "--help"), OPTIONS_HELP);
    CHECK_INT(READ("-h"), OPTIONS_HELP);
    CHECK_INT(READ("--version", "--threads=0"), OPTIONS_VERSION);
    CHECK_INT(READ("--threads=7", "--help"), OPTIONS_HELP);
    CHECK_INT(got.threads, 1);
}

/* What options_print_help writes to stdout. */
static struct bytes help_text(char *buf, size_t size)
{
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    size_t len;

    if (file == NULL || saved < 0)
        abort();
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    options_print_help(&program);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    len = fread(buf, 1, size, file);
    fclose(file);
    return (struct bytes){buf, len};
}

TEST(help_begins_with_examples_and_lists_the_flags_in_columns_with_their_defaults)
{
    static char buf[8192];
    struct bytes text;

    reset();
    got.redis = "redis://u:hush@h";
    text = help_text(buf, sizeof(buf) - 1);
    CHECK(strncmp(text.at, "Examples:\n  pawl-test --threads 2\n\npawl-test - tests options\n", 61) == 0);
    CHECK(strstr(buf, "\n  --listen ADDR:PORT           where to listen (default 127.0.0.1:8700)\n") != NULL);
    CHECK(strstr(buf, "\n  --redis URL                  the store\n") !=
          NULL); /* a password is no default to show */
    CHECK(strstr(buf, "\n  --redis-password-file FILE   a file with its password\n") != NULL);
    CHECK(strstr(buf, "\n  --check-config               look at the configuration and end\n") != NULL);
    CHECK(strstr(buf, "\n  --threads N                  loops (default 1)\n") != NULL);
    CHECK(strstr(buf, "\n  --store-timeout DUR          for one call (default 2s)\n") != NULL);
    CHECK(strstr(buf, "\n  --max-body SIZE              of a request (default 1MiB)\n") != NULL);
    CHECK(strstr(buf, "\n  --log-format text|json|both  how to log (default text)\n") != NULL);
    CHECK(strstr(buf, "\n  --version                    ") != NULL);
}

/* -- helpers */

struct duration_case {
    const char *text;
    uint64_t ms, with_unit_ms; /* with_unit_ms: of a duration that needs its unit; NONE: it is none */
};

enum { NONE = 42 };

static const struct duration_case duration_cases[] = {
    {"0", 0, NONE},           {"1", 1, NONE},
    {"300", 300, NONE},       {"250ms", 250, 250},
    {"30s", 30000, 30000},    {"10m", 600000, 600000},
    {"2h", 7200000, 7200000}, {"1d", 86400000, 86400000},
    {"0s", 0, NONE},          {"9223372036854775807ms", LLONG_MAX, LLONG_MAX},
    {"", NONE, NONE},         {"1 s", NONE, NONE},
    {"1s ", NONE, NONE},
};

static void check_duration(struct duration_case wanted)
{
    uint64_t ms = NONE, with_unit_ms = NONE;
    const struct option plain = {.name = "p", .kind = OPTION_DURATION_MS, .place = &ms},
                        with_unit = {.name = "u", .kind = OPTION_DURATION, .place = &with_unit_ms};

    CHECK(options_set(&plain, wanted.text) == (wanted.ms != NONE));
    CHECK(options_set(&with_unit, wanted.text) == (wanted.with_unit_ms != NONE));
    if (!CHECK(ms == wanted.ms && with_unit_ms == wanted.with_unit_ms))
        printf("# %s\n", wanted.text);
}

TEST(durations_are_a_number_and_a_unit)
{
    const char *none =
        "9223372036854775808ms 18446744073709551616 213503982335d s -1s +1s 1.5s 1S 1sec 1m30s 1w 0x10";

    for (size_t i = 0; i < sizeof(duration_cases) / sizeof(duration_cases[0]); i++)
        check_duration(duration_cases[i]);
    for (const char *text; (text = check_word(&none)) != NULL;)
        check_duration((struct duration_case){text, NONE, NONE});
}

/* -- the words of a command line */

static const struct {
    const char *argv[8];
    const char *read; /* each word as read_line() writes it */
} line_cases[] = {
    {{NULL}, ""},
    {{"a", "-", "b"}, "a;-;b;"},
    {{"--wait", "5s", "--wait=", "--wait=a=b"}, "wait5s;wait;waita=b;"},
    {{"--now", "x", "--now=1"}, "now;x;now has a value;"},
    {{"-n", "-w5s", "-w", "5s", "-nw5s", "-nw", "-n"}, "now;wait5s;wait5s;now;wait5s;now;wait-n;"},
    {{"-w"}, "wait has none;"},
    {{"--wait"}, "wait has none;"},
    {{"--wait", "--now"}, "wait--now;"},
    {{"a", "--", "-n", "--now", "--"}, "a;-n;--now;--;"},
    {{"--wai", "1", "--waits=x", "--WAIT"}, "?--wai;1;?--waits;?--WAIT;"},
    {{"-x", "-nx5", "-W"}, "?-x;now;?-x;?-W;"},
    {{"--help", "-h", "-nh", "--help=x"}, "help;help;now;help;?--help;"},
};

static void read_line(const char *const *argv, char *buf, size_t size)
{
    static const char *const says[] = {[WORD_NO_VALUE] = " has none", [WORD_HAS_VALUE] = " has a value",
                                       [WORD_ARGUMENT] = "",          [WORD_FLAG] = "",
                                       [WORD_HELP] = "help",          [WORD_UNKNOWN] = "?"};
    const struct option line_table[] = {{.name = "wait", .letter = 'w', .kind = OPTION_TEXT},
                                        {.name = "now", .letter = 'n', .kind = OPTION_FLAG},
                                        {0}};
    struct options_line line = {.table = line_table, .argv = (char **)(uintptr_t)argv};
    enum options_word found;

    while (argv[line.argc] != NULL)
        line.argc++;
    for (size_t len = 0; (found = options_word(&line)) != WORD_END && len < size;) {
        bool has_option = found != WORD_ARGUMENT && found != WORD_HELP && found != WORD_UNKNOWN;

        len += (size_t)snprintf(buf + len, size - len, "%s%s%s%s%s;", has_option ? line.option->name : "",
                                says[found], found == WORD_ARGUMENT ? line.word : "",
                                found == WORD_UNKNOWN ? line.shown : "",
                                found == WORD_FLAG && line.value != NULL ? line.value : "");
    }
}

TEST(a_command_line_is_read_word_by_word)
{
    for (size_t i = 0; i < sizeof(line_cases) / sizeof(line_cases[0]); i++) {
        char read[256] = "";

        read_line(line_cases[i].argv, read, sizeof(read));
        CHECK_TEXT(bytes_of(read), bytes_of(line_cases[i].read));
    }
}

TEST(a_file_is_read_to_its_bound_and_not_beyond)
{
    size_t len = 0;
    char *path = check_file(BYTES("12345678")), *text = options_read_file(path, 8, &len, why, sizeof(why));

    CHECK_TEXT(((struct bytes){text, len}), BYTES("12345678"));
    CHECK(text != NULL && text[8] == '\0');
    free(text);
    text = options_read_file(path, 9, &len, why, sizeof(why));
    CHECK_INT(len, 8);
    free(text);
    CHECK(options_read_file(path, 7, &len, why, sizeof(why)) == NULL);
    CHECK(strstr(why, " has more than 7 bytes.") != NULL);
    unlink(path);
    CHECK(options_read_file(path, 7, &len, why, sizeof(why)) == NULL);
    text = options_read_file("/dev/null", 0, &len, why, sizeof(why));
    CHECK(text != NULL && len == 0 && text[0] == '\0');
    free(text);
}

CHECK_MAIN

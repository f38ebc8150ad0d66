/* test_cli_keys.c - pawl keygen and pawl verify, each run in a process of its own. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "shared/token/token.h"
#include "tests/unit/check.h"

#define KEY_1 "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
#define SIGNED_1                                                                                             \
    "34;lease=\"orders:42\";store=\"Q2x8Zk3v9a1BQ2x8Zk3v9a1B\";mode=exclusive;epoch=1;hold="                 \
    "\"Zk3v9a1BQ2x8\";kid=\"k1\""
#define HEADER_1 SIGNED_1 ";sig=:SAr4sVvd9+8DMPXMA+P2/FVCA3d7DKH/u9zXKHlZE/I=:"
#define HEADER_SPARE_BIT SIGNED_1 ";sig=:SAr4sVvd9+8DMPXMA+P2/FVCA3d7DKH/u9zXKHlZE/J=:"
#define FORGED SIGNED_1 ";sig=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"

static const char header_1[] = HEADER_1, forged_1[] = FORGED;

enum { OUTPUT_SIZE = 4096, PATH_SIZE = 64, ARGUMENTS = 8 };

/* One run of a command: what it was given, what came of it. */
struct run {
    int (*command)(int argc, char **argv);
    const char *arguments[ARGUMENTS];
    const char *input;
    enum { DISK_HAS_ROOM, DISK_FULL } disk;
    int status;
    char out[OUTPUT_SIZE], err[OUTPUT_SIZE];
};

static FILE *file_with(const char *content)
{
    FILE *file = tmpfile();

    if (file == NULL || fputs(content, file) < 0 || fflush(file) != 0)
        abort();
    rewind(file);
    return file;
}

static void slurp(FILE *file, char buf[OUTPUT_SIZE])
{
    rewind(file);
    buf[fread(buf, 1, OUTPUT_SIZE - 1, file)] = '\0';
    fclose(file);
}

/* From here on no file of this process grows: write(2) says EFBIG once the signal is ignored (setrlimit(2)).
 */
static void fill_disk(void)
{
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0}) != 0)
        abort();
}

static void run_in_child(struct run *run, FILE *in, FILE *out, FILE *err)
{
    char *argv[ARGUMENTS + 2] = {"pawl"};
    int argc = 1;

    for (; argc <= ARGUMENTS && run->arguments[argc - 1] != NULL; argc++)
        argv[argc] = strdup(run->arguments[argc - 1]);
    if (dup2(fileno(in), 0) < 0 || dup2(fileno(out), 1) < 0 || dup2(fileno(err), 2) < 0)
        abort();
    if (run->disk == DISK_FULL)
        fill_disk();
    run->status = run->command(argc, argv);
    for (int i = 1; i < argc; i++)
        free(argv[i]);
    fflush(NULL);
    _exit(run->status);
}

static void run_it(struct run *run)
{
    FILE *in = file_with(run->input != NULL ? run->input : ""), *out = file_with(""), *err = file_with("");
    pid_t child;
    int status = 0;

    fflush(stdout);
    child = fork();
    if (child == 0)
        run_in_child(run, in, out, err);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        abort();
    run->status = WEXITSTATUS(status);
    fclose(in);
    slurp(out, run->out);
    slurp(err, run->err);
}

/* A directory that ends with the test, and paths in it. */
struct place {
    char directory[PATH_SIZE], keys[PATH_SIZE + 8];
};

static struct place place_new(const char *keys)
{
    struct place place = {.directory = "/tmp/pawl-test-XXXXXX"};
    FILE *file;

    if (mkdtemp(place.directory) == NULL)
        abort();
    snprintf(place.keys, sizeof(place.keys), "%s/keys", place.directory);
    if (keys != NULL && ((file = fopen(place.keys, "w")) == NULL || fchmod(fileno(file), 0600) != 0 ||
                         fputs(keys, file) < 0 || fclose(file) != 0))
        abort();
    return place;
}

static void place_free(const struct place *place)
{
    unlink(place->keys);
    rmdir(place->directory);
}

static bool can_sign(const char *file)
{
    char why[256];
    struct token_keys *keys = token_keys_parse(bytes_of(file), why, sizeof(why));

    token_keys_free(keys);
    return keys != NULL;
}

/* -- keygen */

TEST(keygen_prints_one_line_of_a_key_file_named_after_the_day)
{
    struct run first = {.command = cli_keygen}, second = {.command = cli_keygen};

    run_it(&first);
    run_it(&second);
    CHECK_INT(first.status, 0);
    CHECK_TEXT(bytes_of(first.err), BYTES(""));
    CHECK_INT(strlen(first.out), strlen("k20261121:") + 44 + 1);
    CHECK(strncmp(first.out, "k20", 3) == 0 && first.out[9] == ':' && strchr(first.out, '\n')[1] == '\0');
    CHECK(can_sign(first.out));
    CHECK(strcmp(first.out, second.out) != 0);
}

TEST(keygen_takes_a_name_and_refuses_one_that_is_none)
{
    struct run good = {.command = cli_keygen, .arguments = {"--kid", "eu-1"}};
    struct run bad = {.command = cli_keygen, .arguments = {"--kid", "eu 1"}};
    struct run empty = {.command = cli_keygen, .arguments = {"--kid="}};

    run_it(&good);
    run_it(&bad);
    run_it(&empty);
    CHECK_INT(good.status, 0);
    CHECK(strncmp(good.out, "eu-1:", 5) == 0 && can_sign(good.out));
    CHECK_INT(bad.status, 64);
    CHECK_TEXT(bytes_of(bad.out), BYTES(""));
    CHECK(strstr(bad.err, "1 to 32 characters") != NULL);
    CHECK_INT(empty.status, 64);
}

TEST(keygen_makes_a_file_that_only_its_owner_reads_and_shows_no_key)
{
    struct place place = place_new(NULL);
    struct run run = {.command = cli_keygen, .arguments = {"--out", place.keys, "--kid", "new"}};
    char why[256];
    struct stat stat_of;
    struct token_keys *keys;

    run_it(&run);
    CHECK_INT(run.status, 0);
    CHECK(strstr(run.out, "new:") == NULL && strstr(run.err, "new:") == NULL);
    CHECK(stat(place.keys, &stat_of) == 0 && (stat_of.st_mode & 07777) == 0600);
    keys = token_keys_load(place.keys, why, sizeof(why));
    CHECK(keys != NULL);
    token_keys_free(keys);
    place_free(&place);
}

TEST(keygen_never_overwrites_a_file)
{
    struct place place = place_new(KEY_1);
    struct run run = {.command = cli_keygen, .arguments = {"--out", place.keys}};
    struct run verify = {.command = cli_verify, .arguments = {header_1, "--keys", place.keys}};

    run_it(&run);
    CHECK_INT(run.status, 1);
    CHECK(strstr(run.err, "not overwritten") != NULL);
    CHECK_TEXT(bytes_of(run.out), BYTES(""));
    run_it(&verify);
    CHECK_INT(verify.status, 0); /* the old key is still in it */
    place_free(&place);
}

TEST(keygen_into_a_directory_that_is_not_there_says_so)
{
    struct run run = {.command = cli_keygen, .arguments = {"--out", "/nowhere/keys"}};

    run_it(&run);
    CHECK_INT(run.status, 1);
    CHECK(strstr(run.err, "/nowhere/keys could not be made: No such file") != NULL);
}

TEST(a_key_that_cannot_be_written_is_a_failure_and_leaves_no_file)
{
    struct place place = place_new(NULL);
    struct run to_file = {.command = cli_keygen, .arguments = {"--out", place.keys}, .disk = DISK_FULL};
    struct run to_stdout = {.command = cli_keygen, .disk = DISK_FULL};

    run_it(&to_file);
    run_it(&to_stdout);
    CHECK_INT(to_file.status, 1);
    CHECK(access(place.keys, F_OK) != 0);
    CHECK_INT(to_stdout.status, 1);
    CHECK_TEXT(bytes_of(to_stdout.out), BYTES(""));
    place_free(&place);
}

TEST(help_begins_with_examples)
{
    struct run keygen = {.command = cli_keygen, .arguments = {"--help"}};
    struct run verify = {.command = cli_verify, .arguments = {"--help"}};

    run_it(&keygen);
    run_it(&verify);
    CHECK_INT(keygen.status, 0);
    CHECK(strncmp(keygen.out, "Examples:\n  pawl keygen", 23) == 0);
    CHECK_INT(verify.status, 0);
    CHECK(strncmp(verify.out, "Examples:\n  pawl verify", 23) == 0);
}

/* -- verify */

TEST(verify_tells_what_a_good_token_says)
{
    struct place place = place_new(KEY_1);
    struct run run = {.command = cli_verify, .arguments = {header_1, "--keys", place.keys}};

    run_it(&run);
    CHECK_INT(run.status, 0);
    CHECK_TEXT(bytes_of(run.err), BYTES(""));
    CHECK_TEXT(bytes_of(run.out), BYTES("lease      orders:42\n"
                                        "store      Q2x8Zk3v9a1BQ2x8Zk3v9a1B\n"
                                        "token      34\n"
                                        "epoch      1\n"
                                        "mode       exclusive\n"
                                        "hold       Zk3v9a1BQ2x8\n"
                                        "kid        k1\n"
                                        "signature  good\n"));
    place_free(&place);
}

TEST(verify_prints_json_for_programs)
{
    struct place place = place_new(KEY_1);
    struct run run = {.command = cli_verify, .arguments = {header_1, "--keys", place.keys, "-o", "json"}};

    run_it(&run);
    CHECK_INT(run.status, 0);
    CHECK_TEXT(bytes_of(run.out),
               BYTES("{\"lease\":\"orders:42\",\"store\":\"Q2x8Zk3v9a1BQ2x8Zk3v9a1B\",\"token\":34,\"epoch\":"
                     "1,\"mode\":\"exclusive\","
                     "\"hold\":\"Zk3v9a1BQ2x8\",\"kid\":\"k1\",\"signature\":\"good\"}\n"));
    place_free(&place);
}

TEST(verify_says_77_of_a_bad_signature_and_of_an_unknown_key)
{
    struct place place = place_new(KEY_1), other = place_new("k2:MDEyMzQ1Njc4OWFiY2RlZg==\n");
    struct run forged = {.command = cli_verify, .arguments = {forged_1, "--keys", place.keys, "-o", "json"}};
    struct run unknown = {.command = cli_verify, .arguments = {header_1, "--keys", other.keys}};

    run_it(&forged);
    run_it(&unknown);
    CHECK_INT(forged.status, 77);
    CHECK(strstr(forged.out, "\"signature\":\"bad\"") != NULL);
    CHECK(strstr(forged.err, "THE SIGNATURE IS WRONG") != NULL);
    CHECK_INT(unknown.status, 77);
    CHECK(strstr(unknown.out, "signature  bad\n") != NULL);
    place_free(&place);
    place_free(&other);
}

TEST(verify_without_keys_says_loudly_that_nothing_was_checked)
{
    struct run run = {.command = cli_verify, .arguments = {forged_1}};

    run_it(&run);
    CHECK_INT(run.status, 0);
    CHECK(strstr(run.out, "signature  unchecked\n") != NULL);
    CHECK(strstr(run.err, "THE SIGNATURE WAS NOT CHECKED") != NULL);
}

TEST(verify_reads_the_token_from_standard_input_without_its_line_end)
{
    static const struct {
        const char *input;
        int status;
    } cases[] = {
        {HEADER_1, 0}, {HEADER_1 "\n", 0}, {HEADER_1 "\r\n", 0}, {HEADER_1 "\n\n", 1}, {HEADER_1 " ", 1},
        {"", 1},       {"\n", 1},
    };
    struct place place = place_new(KEY_1);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = {
            .command = cli_verify, .arguments = {"-", "--keys", place.keys}, .input = cases[i].input};

        run_it(&run);
        CHECK_INT(run.status, cases[i].status);
    }
    place_free(&place);
}

TEST(verify_says_1_of_what_is_no_token)
{
    static const char *const tokens[] = {"", "34", "0" HEADER_1, HEADER_SPARE_BIT,
                                         "Fencing-Token: " HEADER_1};
    struct place place = place_new(KEY_1);

    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        struct run run = {.command = cli_verify, .arguments = {tokens[i], "--keys", place.keys}};

        run_it(&run);
        CHECK_INT(run.status, 1);
        CHECK_TEXT(bytes_of(run.out), BYTES(""));
        CHECK(strstr(run.err, "this is no fencing token") != NULL);
    }
    place_free(&place);
}

TEST(verify_says_78_of_keys_that_cannot_be_used)
{
    struct place place = place_new("nonsense\n");
    struct run missing = {.command = cli_verify, .arguments = {header_1, "--keys", "/nowhere/keys"}};
    struct run bad = {.command = cli_verify, .arguments = {header_1, "--keys", place.keys}};

    run_it(&missing);
    run_it(&bad);
    CHECK_INT(missing.status, 78);
    CHECK(strstr(missing.err, "/nowhere/keys cannot be read") != NULL);
    CHECK_INT(bad.status, 78);
    CHECK(strstr(bad.err, "line 1: has no colon") != NULL);
    place_free(&place);
}

TEST(what_a_command_does_not_understand_is_64)
{
    struct run runs[] = {
        {.command = cli_verify},
        {.command = cli_verify, .arguments = {header_1, header_1}},
        {.command = cli_verify, .arguments = {header_1, "-o", "yaml"}},
        {.command = cli_verify, .arguments = {header_1, "--key", "x", "--nonsense"}},
        {.command = cli_keygen, .arguments = {"extra"}},
        {.command = cli_keygen, .arguments = {"--nonsense"}},
    };

    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        run_it(&runs[i]);
        CHECK_INT(runs[i].status, 64);
        CHECK_TEXT(bytes_of(runs[i].out), BYTES(""));
        CHECK(strncmp(runs[i].err, "pawl: ", 6) == 0);
    }
}

CHECK_MAIN

/* flags.c - the flags of one command: read from the environment and the command line, shown by --help, and
 * completed in a shell. */
#include "api/cli/flags.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cli/cli.h"

enum { NAME_SIZE = 64, WORD_SIZE = 128, WIDTH = 26, COMMANDS_MAX = 40, STATUS_LOST = 76, SIGNALLED = 128 };

#define PREFIX "PAWL_"

enum { PREFIX_LEN = sizeof(PREFIX) - 1 };

static const char *const known_variables[] = {
#define VARIABLE(name) name,
#include "api/variables.def"
#undef VARIABLE
    NULL};

static bool is_known_variable(const char *name)
{
    for (const char *const *at = known_variables; *at != NULL; at++)
        if (strcmp(*at, name) == 0)
            return true;
    return false;
}

/* -- who asks: of every command that asks a service */

struct access_given {
    const char *token_file, *ca_file, *cert_file, *key_file;
    bool plaintext;
};

/* flags, and those, which begin behind so many; whole is all zero. */
static unsigned flags_whole(struct option whole[FLAGS_MAX + 1], const struct option *flags,
                            struct access_given *given)
{
    const struct option access[] = {
        FLAG_ENV("access-token-file", "FILE", "where the access token is (else PAWL_ACCESS_TOKEN)",
                 &given->token_file),
        FLAG_ENV("cacert", "FILE", "whom to trust with https:// (default: the system)", &given->ca_file),
        FLAG_ENV("cert", "FILE", "the certificate to show with https://", &given->cert_file),
        FLAG_ENV("cert-key", "FILE", "and its key", &given->key_file),
        FLAG_ON("allow-plaintext", "send the access token over http:// to other machines, too",
                &given->plaintext),
    };
    unsigned count = 0;
    bool asks = false;

    for (; flags != NULL && flags->name != NULL; flags++) {
        asks = asks || strcmp(flags->name, "lease-url") == 0 || strcmp(flags->name, "gateway-url") == 0;
        whole[count++] = *flags;
    }
    if (asks)
        memcpy(whole + count, access, sizeof(access));
    return count;
}

/* Those that were given become the environment's. */
static void access_set(const struct option *flag)
{
    char name[NAME_SIZE];

    for (; flag->name != NULL; flag++) {
        const char *value = flag->kind != OPTION_FLAG    ? *(const char **)flag->place
                            : *(const bool *)flag->place ? "true"
                                                         : NULL;

        options_variable(flag->name, name, sizeof(name));
        if (value != NULL)
            setenv(name, value, 1);
    }
}

int flags_split(const struct option *flags, int argc, char **argv)
{
    struct access_given unused;
    struct option whole[FLAGS_MAX + 1] = {{0}};
    struct options_line line = {.table = whole, .argv = argv, .argc = argc, .at = 1};
    unsigned arguments = 0;
    enum options_word found;

    flags_whole(whole, flags, &unused);
    while ((found = options_word(&line)) != WORD_END) {
        arguments += found == WORD_ARGUMENT;
        if (arguments == 2)
            return line.at - 1;
    }
    return argc;
}

static void print_flag(const struct option *flag)
{
    char before[] = {'-', flag->letter, ',', ' ', '\0'};

    options_print_row(flag, flag->letter != '\0' ? before : "    ", WIDTH, "");
}

static const struct usage *usage_find(const char *name)
{
    const struct usage *usage = usages;

    while (strcmp(usage->name, name) != 0)
        usage++; /* each command stands in help.txt */
    return usage;
}

void usage_print(const char *name)
{
    const struct usage *usage = usage_find(name);

    printf("Examples:\n%s\nUsage: pawl%s%s%s%s%s\n\n%s\n\n", usage->examples, *name != '\0' ? " " : "", name,
           *usage->arguments != '\0' ? " " : "", usage->arguments,
           strstr(usage->arguments, "[flags]") != NULL ? "" : " [flags]", usage->summary);
}

static int print_help(const struct usage *usage)
{
    usage_print(usage->name);
    puts("Flags:");
    for (const struct option *flag = usage->flags; flag->name != NULL; flag++)
        print_flag(flag);
    print_flag(&(struct option){.name = "help", .letter = 'h', .help = "this text"});
    return CLI_OK;
}

/* source: how the sentence calls it. */
static int value_set(const struct option *flag, const char *source, const char *text)
{
    char wanted[WORD_SIZE];

    options_wanted(flag, wanted, sizeof(wanted));
    return options_set(flag, text)
               ? CLI_GO_ON
               : cli_fail(CLI_USAGE, "%s was given \"%s\"; it takes %s", source, text, wanted);
}

static int values_from_environment(const struct option *flag)
{
    char name[NAME_SIZE];
    int status = CLI_GO_ON;

    for (; flag->name != NULL && status == CLI_GO_ON; flag++) {
        const char *value;

        options_variable(flag->name, name, sizeof(name));
        value = flag->command_line_only || flag->kind == OPTION_FLAG ? NULL : getenv(name);
        assert(flag->command_line_only || flag->kind == OPTION_FLAG || is_known_variable(name));
        status = value != NULL && *value != '\0' ? value_set(flag, name, value) : CLI_GO_ON;
    }
    return status;
}

int flags_check_line(const char *flag, const char *value)
{
    for (const char *at = value != NULL ? value : ""; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return cli_fail(CLI_USAGE, "%s must be one line of plain text", flag);
    return CLI_GO_ON;
}

/* -- the command line */

static int fail_unknown(const struct usage *usage, const char *shown)
{
    const char *names[FLAGS_MAX + 1] = {NULL};
    const char *near;

    for (unsigned i = 0; usage->flags[i].name != NULL; i++)
        names[i] = usage->flags[i].name;
    near = strncmp(shown, "--", 2) == 0 ? options_suggest(shown + 2, names) : NULL;
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown flag %s; did you mean --%s?", shown, near);
    return cli_fail(CLI_USAGE, "unknown flag %s; see pawl %s%s--help", shown, usage->name,
                    *usage->name != '\0' ? " " : "");
}

static int flag_take(const struct usage *usage, const struct options_line *line, enum options_word found)
{
    char source[NAME_SIZE];

    switch (found) {
    case WORD_HELP: return print_help(usage);
    case WORD_UNKNOWN: return fail_unknown(usage, line->shown);
    case WORD_NO_VALUE:
        return cli_fail(CLI_USAGE, "%s needs a value; see pawl %s --help", line->word, usage->name);
    case WORD_HAS_VALUE:
        return cli_fail(CLI_USAGE, "--%s takes no value; see pawl %s --help", line->option->name,
                        usage->name);
    case WORD_FLAG:
    case WORD_ARGUMENT:
    case WORD_END: break;
    }
    snprintf(source, sizeof(source), "--%s", line->option->name);
    return value_set(line->option, source, line->option->kind == OPTION_FLAG ? "true" : line->value);
}

/* "KEY [FILE]": it must have the first, and may have the second; "NAME [flags] [--] CMD": what is behind "--"
 * is the command's to count. words: what was given. */
static int arguments_check(const struct usage *usage, unsigned count, const char *const *words)
{
    unsigned most = 0;

    for (const char *at = usage->arguments; *at != '\0' && strncmp(at, "[--]", 4) != 0;
         at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");

        most += strncmp(at, "[flags]", strlen("[flags]")) != 0;
        if (most > count && *at != '[') {
            return cli_fail(CLI_USAGE, "missing argument: %.*s; see pawl %s --help", (int)len, at,
                            usage->name);
        }
        at += len;
    }
    return count <= most ? CLI_GO_ON
                         : cli_fail(CLI_USAGE, "unexpected argument: %s; see pawl %s --help",
                                    words[most < ARGUMENTS_MAX ? most : ARGUMENTS_MAX], usage->name);
}

static int flags_complete(const struct usage *usage, int argc, char **argv);

/* used NULL: arguments may stand anywhere. */
static int line_read(const char *name, const struct option *flags, int argc, char **argv,
                     const char *arguments[ARGUMENTS_MAX + 1], int *used)
{
    struct access_given access = {0};
    struct option whole[FLAGS_MAX + 1] = {{0}};
    struct usage all = *usage_find(name), *usage = &all;
    struct options_line line = {.table = whole, .argv = argv, .argc = argc, .at = 1};
    enum options_word found = WORD_END;
    const char *none[ARGUMENTS_MAX + 1];
    unsigned count = 0, own = flags_whole(whole, flags, &access);
    int status;

    usage->flags = whole;
    if (flags_complete_wanted(argc, argv))
        return flags_complete(usage, argc, argv);
    arguments = arguments != NULL ? arguments : none;
    for (unsigned i = 0; i <= ARGUMENTS_MAX; i++)
        arguments[i] = NULL;
    status = values_from_environment(usage->flags);
    while (status == CLI_GO_ON && (found = options_word(&line)) != WORD_END) {
        if (found != WORD_ARGUMENT) {
            status = flag_take(usage, &line, found);
        } else if (used != NULL) {
            line.at--;
            break;
        } else {
            arguments[count < ARGUMENTS_MAX ? count : ARGUMENTS_MAX] = line.word;
            count++;
        }
    }
    if (used != NULL)
        *used = line.at;
    access_set(whole + own);
    return status == CLI_GO_ON && used == NULL ? arguments_check(usage, count, arguments) : status;
}

int flags_read(const char *name, const struct option *flags, int argc, char **argv,
               const char *arguments[ARGUMENTS_MAX + 1])
{
    return line_read(name, flags, argc, argv, arguments, NULL);
}

int flags_read_front(const struct option *flags, int argc, char **argv, int *used)
{
    return line_read("", flags, argc, argv, NULL, used);
}

/* -- completion */

/* What has been typed in front of the last word. */
struct typed {
    const struct usage *usage;
    const char *last;
    const struct option *flag; /* the one whose value is being typed */
    unsigned arguments;
    uint32_t given; /* the flags, by their place in the table */
    int behind;     /* index of the first word behind the first "--"; 0: there is none */
};

bool flags_complete_wanted(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[1], FLAGS_COMPLETE) == 0;
}

/* One candidate, when it begins with what is being typed. */
static void complete_word(const char *typed, const char *word, const char *help)
{
    if (strncmp(word, typed, strlen(typed)) == 0)
        printf("%s%s%s\n", word, *help != '\0' ? "\t" : "", help);
}

/* -- what a value or an argument is called says what it may be */

/* "text|json", "[show|adopt]": one of these. Names in capitals stand for something. */
static void value_print(const char *before, const char *typed, struct bytes name)
{
    static const struct {
        const char *name, *said;
    } known[] = {
        {"FILE", ":files"}, {"DIR", ":directories"}, {"NAME", ":leases"},        {"LEASE", ":leases"},
        {"KEY", ":leases"}, {"HAZARD", ":hazards"},  {"ACCIDENT", ":accidents"},
    };
    char word[WORD_SIZE];

    if (strspn(name.at, "abcdefghijklmnopqrstuvwxyz|") >= name.len &&
        memchr(name.at, '|', name.len) != NULL) {
        while (name.len > 0) {
            struct bytes one = bytes_cut(&name, '|');

            snprintf(word, sizeof(word), "%s%.*s", before, (int)one.len, one.at);
            complete_word(typed, word, "");
        }
        return;
    }
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (bytes_are(name, known[i].name))
            puts(known[i].said);
}

static void typed_read(struct typed *typed, int argc, char **argv)
{
    struct options_line line = {.table = typed->usage->flags, .argv = argv, .argc = argc - 1, .at = 2};
    bool takes_command = strstr(typed->usage->arguments, "CMD") != NULL;
    char *last = argv[argc - 1];
    enum options_word found;

    typed->last = last;
    argv[argc - 1] = NULL; /* a flag in front of it has no value yet */
    while ((!takes_command || typed->arguments < 2) && (found = options_word(&line)) != WORD_END) {
        typed->arguments += found == WORD_ARGUMENT;
        typed->flag = found == WORD_NO_VALUE ? line.option : NULL;
        if ((found == WORD_FLAG || found == WORD_HAS_VALUE) && line.word[1] == '-')
            typed->given |= 1U << (line.option - line.table);
    }
    typed->behind = takes_command && typed->arguments == 2 ? line.at - 1 : line.behind;
    if (takes_command && typed->arguments == 1 && typed->flag == NULL && last[0] != '-')
        typed->behind = argc - 1;
    argv[argc - 1] = last;
}

/* -- what comes next */

static void flags_print(const struct typed *typed)
{
    char word[WORD_SIZE];

    for (const struct option *flag = typed->usage->flags; flag->name != NULL; flag++) {
        if ((typed->given >> (flag - typed->usage->flags) & 1) != 0)
            continue;
        snprintf(word, sizeof(word), "--%s", flag->name);
        complete_word(typed->last, word, flag->help);
        if (flag->letter != '\0' && typed->last[1] == '\0') {
            snprintf(word, sizeof(word), "-%c", flag->letter);
            complete_word(typed->last, word, flag->help);
        }
    }
    complete_word(typed->last, "--help", "this text");
}

/* "NAME", "[LEASE]", "KEY [FILE]", "NAME -- CMD...": the nth of them. */
static void argument_print(const struct typed *typed)
{
    const char *at = typed->usage->arguments;

    for (unsigned i = 0;; i++) {
        const char *name = at + strspn(at, " [");
        size_t len = strcspn(name, " ].");

        if (len == 0 || strncmp(name, "--", 2) == 0)
            return;
        if (i == typed->arguments || name[len] == '.') {
            value_print("", typed->last, (struct bytes){name, len});
            return;
        }
        at = name + strcspn(name, " ");
    }
}

/* "--name=", and the beginning of its value. */
static void flag_value_print(const struct usage *usage, char *word, size_t len)
{
    struct options_line line = {.table = usage->flags, .argv = &word, .argc = 1};
    char before[WORD_SIZE];

    options_word(&line);
    snprintf(before, sizeof(before), "%.*s", (int)len, word);
    if (line.option != NULL && line.option->value != NULL)
        value_print(before, word, bytes_of(line.option->value));
}

static int flags_complete(const struct usage *usage, int argc, char **argv)
{
    struct typed typed = {.usage = usage};
    char *last = argv[argc - 1], *equals = strchr(last, '=');

    typed_read(&typed, argc, argv);
    if (typed.flag != NULL)
        value_print("", last, bytes_of(typed.flag->value));
    else if (typed.behind > 0 && strstr(usage->arguments, "CMD") != NULL)
        printf(":command %d\n", argc - typed.behind);
    else if (typed.behind > 0 || last[0] != '-')
        argument_print(&typed);
    else if (strncmp(last, "--", 2) == 0 && equals != NULL)
        flag_value_print(usage, last, (size_t)(equals - last) + 1);
    else
        flags_print(&typed);
    return CLI_OK;
}

/* They know no command and no flag: at each Tab they ask this program. Names of leases come from the service:
 * a shell that waits for Tab does not wait longer than a second for them. */
int cli_completion(int argc, char **argv)
{
    const char *arguments[ARGUMENTS_MAX + 1];
    int status = flags_read("completion", NULL, argc, argv, arguments);

    if (status != CLI_GO_ON)
        return status;
    for (const struct completion *shell = completions; shell->name != NULL; shell++) {
        if (strcmp(shell->name, arguments[0]) == 0) {
            fputs(shell->text, stdout);
            return CLI_OK;
        }
    }
    return cli_fail(CLI_USAGE, "there is no completion for \"%s\": it is bash, zsh or fish", arguments[0]);
}

/* -- commands by their names */

const struct command *command_find(const struct command *commands, const char *name)
{
    while (commands->name != NULL && strcmp(commands->name, name) != 0)
        commands++;
    return commands->name != NULL ? commands : NULL;
}

int command_unknown(const char *of, const char *word, const char *const *names)
{
    const char *near = options_suggest(word, names);

    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown command %s%s; did you mean pawl %s%s?", of, word, of, near);
    return cli_fail(CLI_USAGE, "unknown command %s%s; see pawl %s--help", of, word, of);
}

int command_run(const struct command *commands, const char *of, int argc, char **argv)
{
    const struct command *command = command_find(commands, argv[0]);
    const char *names[COMMANDS_MAX + 1] = {NULL};
    unsigned count = 0;

    if (command != NULL)
        return command->run(argc, argv);
    for (command = commands; command->name != NULL && count < COMMANDS_MAX; command++) {
        names[count] = command->name;
        count += command->help != NULL;
    }
    names[count] = NULL;
    return command_unknown(of, argv[0], names);
}

void command_list(const struct command *commands, int width)
{
    for (; commands->name != NULL; commands++)
        if (commands->help != NULL)
            printf("  %-*s  %s\n", width, commands->name, commands->help);
}

void command_complete(const struct command *commands, const char *typed)
{
    for (; commands->name != NULL; commands++)
        if (commands->help != NULL)
            complete_word(typed, commands->name, commands->help);
}

/* argv[1] is FLAGS_COMPLETE: of the command behind it, or which command. */
static int group_complete(const struct command *commands, int argc, char **argv)
{
    const struct command *command = command_find(commands, argv[2]);
    char *mark = argv[1];

    if (argc == 3) {
        command_complete(commands, argv[2]);
        return CLI_OK;
    }
    argv[1] = argv[2];
    argv[2] = mark;
    return command != NULL ? command->run(argc - 1, argv + 1) : CLI_OK;
}

int command_group(const struct command *commands, const char *of, int argc, char **argv)
{
    if (flags_complete_wanted(argc, argv))
        return group_complete(commands, argc, argv);
    if (argc < 2)
        return cli_fail(CLI_USAGE, "missing argument: COMMAND; see pawl %s--help", of);
    if (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
        return command_run(commands, of, argc - 1, argv + 1);
    usage_print(argv[0]);
    printf("Commands (pawl %sCOMMAND --help says more):\n", of);
    command_list(commands, 7);
    return CLI_OK;
}

/* -- the PAWL_ variables */

int environment_check(void)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        char name[NAME_SIZE] = {0};
        size_t len = strcspn(*variable, "=");
        const char *near;

        if (strncmp(*variable, PREFIX, PREFIX_LEN) != 0)
            continue;
        memcpy(name, *variable, len < sizeof(name) ? len : sizeof(name) - 1);
        if (is_known_variable(name))
            continue;
        near = options_suggest(name, known_variables);
        return cli_fail(CLI_CONFIG, "the environment has %s, which no program of Pawl knows; %s%s%s", name,
                        near != NULL ? "did you mean " : "unset it", near != NULL ? near : "",
                        near != NULL ? "?" : "");
    }
    return CLI_GO_ON;
}

char **environment_without(const char *const *beginnings, size_t room)
{
    size_t count = 0, kept = 0;
    char **copy;

    while (environ[count] != NULL)
        count++;
    copy = cli_alloc((count + room + 1) * sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        const char *const *at = beginnings;

        while (*at != NULL && strncmp(environ[i], *at, strlen(*at)) != 0)
            at++;
        if (*at == NULL)
            copy[kept++] = environ[i];
    }
    memset(copy + kept, 0, (room + 1) * sizeof(*copy));
    return copy;
}

/* -- what -o env prints when there is nothing to assign
 *
 * eval of an empty text is a success, and the variables of an earlier hold would still stand there. */

#define OF_A_HOLD "PAWL_LEASE PAWL_TOKEN PAWL_FENCING_TOKEN"
#define OF_AN_ACQUIRE OF_A_HOLD " LEASE_GRANT LEASE_HOLDS"

/* ls, history and watch are not here: they print an item a line, which is no one eval. */
static const struct {
    const char *command, *variables;
    bool of_its_hold; /* they stand until the hold is known to be lost */
} assigning[] = {
    {"acquire", OF_AN_ACQUIRE, false}, /* the first */
    {"renew", OF_A_HOLD " PAWL_LEASE_ID", true},
    {"release", OF_A_HOLD " PAWL_LEASE_ID", true},
    {"get", "LEASE LEASE_STATE LEASE_TOKEN LEASE_WAITING LEASE_HOLDER LEASE_EXPIRES_IN_MS", false},
    {"force-release", "LEASE_RELEASED_TOKEN", false},
    {"put", "RESOURCE_KEY RESOURCE_ETAG", false},
};

static bool wants_env(int argc, char **argv)
{
    const struct option table[] = {{.name = "output", .letter = 'o', .kind = OPTION_TEXT}, {0}};
    struct options_line line = {.table = table, .argv = argv, .argc = argc, .at = 1};
    const char *output = getenv("PAWL_OUTPUT");
    enum options_word found;

    while ((found = options_word(&line)) != WORD_END)
        output = found == WORD_FLAG ? line.value : found == WORD_NO_VALUE ? NULL : output;
    return output != NULL && strcmp(output, "env") == 0;
}

/* Its place in the table, or how many there are: it is not there, or eval needs no line. */
static unsigned assigning_find(const char *command, int argc, char **argv)
{
    unsigned i = 0, count = sizeof(assigning) / sizeof(assigning[0]);

    while (i < count && (command == NULL || strcmp(command, assigning[i].command) != 0))
        i++;
    return i < count && wants_env(argc, argv) ? i : count;
}

void environment_failure(const char *command, int argc, char **argv, int status)
{
    /* Asking again with the same lease_id is the way on when the end is not known. */
    bool is_over = status != CLI_UNREACHABLE && status != CLI_USAGE;
    unsigned i = assigning_find(command, argc, argv);

    if (i == sizeof(assigning) / sizeof(assigning[0]))
        return;
    if (!assigning[i].of_its_hold || status == STATUS_LOST) {
        printf("unset %s%s; ", assigning[i].variables,
               is_over && strcmp(command, "acquire") == 0 ? " PAWL_LEASE_ID" : "");
    }
    printf("(exit %d)\n", status);
}

/* The handler of a signal, which is reset by then: the signal does afterwards what it does without one. */
static void signalled(int number)
{
    char text[] = "(exit 000)\n", *digit = strchr(text, ')');

    for (int status = SIGNALLED + number; status > 0; status /= 10)
        *--digit = (char)('0' + status % 10);
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    raise(number);
}

static void signalled_in_acquire(int number)
{
    static const char unset[] = "unset " OF_AN_ACQUIRE "; ";

    (void)!write(STDOUT_FILENO, unset, sizeof(unset) - 1);
    signalled(number);
}

void environment_signals(const char *command, int argc, char **argv)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGABRT};
    unsigned found = assigning_find(command, argc, argv);
    struct sigaction before,
        action = {.sa_flags = (int)SA_RESETHAND, .sa_handler = found == 0 ? signalled_in_acquire : signalled};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (found < sizeof(assigning) / sizeof(assigning[0]) && sigaction(numbers[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

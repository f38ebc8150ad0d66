/* doctor.c - pawl doctor: what is wrong with an installation, and what to do.
 *
 *   doctor_read      flags                                    64 | 78, or go on
 *   doctor_services  both: reachable, version, clock, ready
 *   doctor_store     Redis, when it was named                 78, or go on
 *   doctor_keys      the key file, and a lease of its own
 *   doctor_show      each finding with its remedy             0 | 1 */
#include "api/cli/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "shared/json_write.h"

enum { OWN_FLAGS = 6, OFFSET_MAX_MS = 2000 };

static int doctor_read(struct doctor *d, int argc, char **argv)
{
    struct flag flags[STORE_DESK_FLAGS + OWN_FLAGS + 1] = {
        flag_output(&d->output, "text|json"),
        flag_trace(&d->trace),
        flag_lease_url(&d->lease_url),
        flag_gateway_url(&d->gateway_url),
        {.name = "keys",
         .value = "FILE",
         .help = "the key file of the services: look at it, too",
         .text = &d->keys_file},
        {.name = "probe",
         .help = "take a lease of its own for a moment: do services, keys and store agree?",
         .on = &d->probe},
    };
    const struct usage usage = {
        .name = "doctor",
        .arguments = "",
        .examples = "  pawl doctor\n"
                    "  pawl doctor --redis redis://10.0.0.7:6379 --redis-password-file /etc/pawl/redis "
                    "--keys /etc/pawl/keys\n"
                    "  pawl doctor --probe -o json | jq -r '.findings[] | select(.status == \"problem\") | "
                    ".remedy'\n",
        .summary =
            "Looks at the lease service and the gateway (reachable, ready, version, clock), at Redis when\n"
            "--redis or PAWL_REDIS names it (its settings, and what the store says of itself), and at the\n"
            "keys. Every finding comes with its remedy. Changes nothing, unless --probe is given.\n"
            "Exit status: 0 nothing is wrong, 1 something is.",
        .flags = flags,
    };
    const char *arguments[ARGUMENTS_MAX + 1];

    store_desk_flags(&d->desk, flags + OWN_FLAGS);
    return flags_read(&usage, argc, argv, arguments, NULL);
}

/* -- findings */

struct doctor_finding *doctor_add(struct doctor *doctor, enum doctor_weight weight, const char *check)
{
    unsigned at = doctor->count < DOCTOR_FINDINGS_MAX ? doctor->count++ : DOCTOR_FINDINGS_MAX - 1;
    struct doctor_finding *finding = &doctor->findings[at];

    *finding = (struct doctor_finding){.weight = weight};
    snprintf(finding->check, sizeof(finding->check), "%s", check);
    return finding;
}

void doctor_say(char text[DOCTOR_TEXT_SIZE], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(text, DOCTOR_TEXT_SIZE, format, args);
    va_end(args);
}

int64_t doctor_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void doctor_clock(struct doctor *doctor, const char *check, const char *whose, int64_t offset_ms,
                  int64_t precision_ms)
{
    int64_t apart_ms = offset_ms < 0 ? -offset_ms : offset_ms;
    bool differs = apart_ms > OFFSET_MAX_MS + precision_ms;
    struct doctor_finding *finding = doctor_add(doctor, differs ? DOCTOR_PROBLEM : DOCTOR_OK, check);
    char duration[PRINT_DURATION_SIZE];

    print_duration(duration, apart_ms);
    if (!differs) {
        doctor_say(finding->what, "%s agrees with this machine's, as far as can be told", whose);
        return;
    }
    doctor_say(finding->what, "%s is %s %s this machine's", whose, duration,
               offset_ms > 0 ? "ahead of" : "behind");
    doctor_say(
        finding->todo,
        "Let NTP set the clocks of all hosts (chrony, systemd-timesyncd). No lease depends on it, but the "
        "times in histories and logs do.");
}

/* -- telling */

static const char *weight_name(enum doctor_weight weight)
{
    switch (weight) {
    case DOCTOR_OK: return "ok";
    case DOCTOR_SKIPPED: return "not checked";
    case DOCTOR_PROBLEM: break;
    }
    return "problem";
}

static void show_json(const struct doctor *doctor, bool healthy)
{
    struct json_out out;
    struct bytes text;

    json_out_init(&out);
    json_object(&out, NULL);
    json_bool(&out, "healthy", healthy);
    json_list(&out, "findings");
    for (unsigned i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];

        json_object(&out, NULL);
        json_text(&out, "check", bytes_of(finding->check));
        json_text(&out, "status", bytes_of(weight_name(finding->weight)));
        json_text(&out, "what", bytes_of(finding->what));
        json_text(&out, "remedy", bytes_of(finding->todo));
        json_object_end(&out);
    }
    json_list_end(&out);
    json_object_end(&out);
    text = json_out_bytes(&out);
    printf("%.*s\n", (int)text.len, text.at);
    json_out_done(&out);
}

static void show_text(const struct doctor *doctor)
{
    for (unsigned i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];

        printf("%-11s  %-16s  ", weight_name(finding->weight), finding->check);
        print_safe(stdout, bytes_of(finding->what));
        if (finding->todo[0] != '\0') {
            printf("\n%31s", "");
            print_safe(stdout, bytes_of(finding->todo));
        }
        putchar('\n');
    }
}

static int doctor_show(const struct doctor *doctor)
{
    bool healthy = true;

    for (unsigned i = 0; i < doctor->count; i++) {
        healthy = healthy && doctor->findings[i].weight != DOCTOR_PROBLEM;
    }
    if (doctor->output == OUTPUT_JSON) {
        show_json(doctor, healthy);
    } else {
        show_text(doctor);
    }
    return healthy ? CLI_OK : CLI_REFUSED;
}

int cli_doctor(int argc, char **argv)
{
    struct doctor doctor = {0};
    int status = doctor_read(&doctor, argc, argv);

    if (status == CLI_GO_ON) {
        doctor_services(&doctor);
        status = doctor_store(&doctor);
    }
    if (status == CLI_GO_ON) {
        doctor_keys(&doctor);
        status = doctor_show(&doctor);
    }
    return status;
}

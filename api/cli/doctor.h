/* doctor.h - what pawl doctor looks at, and what it found. */
#ifndef PAWL_CLI_DOCTOR_H
#define PAWL_CLI_DOCTOR_H

#include "api/cli/ask.h"
#include "api/cli/flags.h"
#include "api/cli/store_desk.h"

enum { DOCTOR_CHECK_SIZE = 32, DOCTOR_TEXT_SIZE = 1024, DOCTOR_FINDINGS_MAX = 40 };

struct doctor_finding {
    enum doctor_weight {
        DOCTOR_OK,
        DOCTOR_SKIPPED, /* not looked at; todo says how it would be */
        DOCTOR_PROBLEM
    } weight;
    char check[DOCTOR_CHECK_SIZE]; /* "lease clock" */
    char what[DOCTOR_TEXT_SIZE], todo[DOCTOR_TEXT_SIZE];
};

struct doctor {
    /* flags */
    const char *lease_url, *gateway_url, *keys_file;
    struct store_desk desk;
    bool probe, trace;
    enum output output;
    /* what was found */
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    unsigned count;
    bool lease_answers, gateway_answers;
};

/* The next finding; what and todo are still empty. */
struct doctor_finding *doctor_add(struct doctor *doctor, enum doctor_weight weight, const char *check);
/* printf into what or todo. */
void doctor_say(char text[DOCTOR_TEXT_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Compares a clock with this machine's, which was read before and after it: offset_ms is how far it is ahead;
 * precision_ms: what the reading may be wrong by. */
void doctor_clock(struct doctor *doctor, const char *check, const char *whose, int64_t offset_ms,
                  int64_t precision_ms);
int64_t doctor_now_ms(void);

/* Reachable, of this version, its clock, ready. */
void doctor_services(struct doctor *doctor);
/* Redis: its settings and what the store says of itself. CLI_GO_ON, or CLI_CONFIG when a flag is wrong. */
int doctor_store(struct doctor *doctor);
/* The file, and, with --probe, whether the three agree: a lease of its own, asked for and given back. */
void doctor_keys(struct doctor *doctor);

#endif

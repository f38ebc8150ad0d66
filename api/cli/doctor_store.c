/* doctor_store.c - Redis, when the doctor was told where it is: what it could lose, and what the store says
 * of itself. */
#include "api/cli/cli.h"
#include "api/cli/doctor.h"
#include "api/cli/store_verdict.h"

static void tell_skipped(struct doctor *doctor)
{
    struct doctor_finding *finding = doctor_add(doctor, DOCTOR_SKIPPED, "redis");

    doctor_say(finding->what, "Redis itself was not looked at");
    doctor_say(finding->todo,
               "Say where it is: --redis URL, with --redis-password-file FILE if it has one; or set "
               "PAWL_REDIS.");
}

static void tell_unreachable(struct doctor *doctor)
{
    struct doctor_finding *finding = doctor_add(doctor, DOCTOR_PROBLEM, "redis");

    doctor_say(finding->what, "%s cannot be reached, or does not let us in", doctor->desk.redis);
    doctor_say(finding->todo,
               "Start Redis, or say where it is: --redis URL; its user and password are in PAWL_REDIS or "
               "--redis-password-file.");
}

static void tell_misled(struct doctor *doctor)
{
    struct doctor_finding *finding = doctor_add(doctor, DOCTOR_PROBLEM, "redis");
    const char *detail = NULL;

    store_not_ready(doctor->desk.store, &detail);
    doctor_say(finding->what, "%s", detail);
    doctor_say(finding->todo, "%s", store_misled(doctor->desk.store));
}

static void tell_findings(struct doctor *doctor, const struct store_facts *facts)
{
    struct store_verdict verdict = {0};
    struct doctor_finding *finding;

    store_verdict_make(facts, &verdict);
    for (unsigned i = 0; i < verdict.count; i++) {
        finding = doctor_add(doctor, DOCTOR_PROBLEM, "store");
        doctor_say(finding->what, "%s", verdict.findings[i].what);
        doctor_say(finding->todo, "%s", verdict.findings[i].todo);
    }
    if (verdict.count == 0) {
        finding = doctor_add(doctor, DOCTOR_OK, "store");
        doctor_say(finding->what, "Redis %s keeps what it is told, and the store is whole and admitted",
                   facts->redis_version);
    }
}

static void tell_advice(struct doctor *doctor)
{
    struct doctor_finding *finding = doctor_add(doctor, DOCTOR_OK, "redis settings");

    doctor_say(finding->what,
               "%s, 0 is better: so long after a backup with --rdb, or after the last replica, a new "
               "replication stream begins, and the store is admitted once more",
               store_advice(doctor->desk.store));
}

int doctor_store(struct doctor *doctor)
{
    struct store_facts facts = {0};
    int64_t before_ms, after_ms;
    int status;

    if (doctor->desk.redis == NULL) {
        tell_skipped(doctor);
        return CLI_GO_ON;
    }
    status = store_desk_open(&doctor->desk);
    before_ms = doctor_now_ms();
    if (status == CLI_GO_ON) {
        status = store_facts_read(&doctor->desk, &facts);
    }
    after_ms = doctor_now_ms();
    if (status == CLI_GO_ON) {
        tell_findings(doctor, &facts);
        if (store_advice(doctor->desk.store)[0] != '\0') {
            tell_advice(doctor);
        }
    }
    if (status == CLI_GO_ON && facts.now_ms > 0) {
        doctor_clock(doctor, "redis clock", "the clock of Redis' host",
                     facts.now_ms - (before_ms + (after_ms - before_ms) / 2), after_ms - before_ms);
    }
    if (doctor->desk.store != NULL && store_misled(doctor->desk.store) != NULL) {
        tell_misled(doctor);
        status = CLI_GO_ON;
    } else if (status == CLI_UNREACHABLE) {
        tell_unreachable(doctor);
        status = CLI_GO_ON;
    }
    store_facts_done(&facts);
    store_desk_close(&doctor->desk);
    return status;
}

/* drill_report.c - what pawl drill says. */
#include "api/cli/drill_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"

enum { CELL_SIZE = 32, LINE_SIZE = 200 };

/* -- text */

static void text_begin(const struct drill_report *report)
{
    printf(
        "pawl drill --seed %" PRIu64 "\n\n"
        "accident         rounds   grants   writes   fenced  twice  back  stale   lost  early  no grants "
        "(ms)\n"
        "                                        off                                      median longest\n",
        report->seed);
    fflush(stdout);
}

/* In parentheses what this accident may do. */
static const char *cell(char buf[CELL_SIZE], uint64_t count, unsigned allowed)
{
    snprintf(buf, CELL_SIZE, allowed && count > 0 ? "(%" PRIu64 ")" : "%" PRIu64, count);
    return buf;
}

static void text_sentence(const char *before, const char *sentence)
{
    if (sentence[0] != '\0') {
        printf("  %s", before);
        print_safe(stdout, bytes_of(sentence));
        putchar('\n');
    }
}

/* Writes that should not have been let in, and second holders, whatever showed it. */
static uint64_t stale_of(const struct drill_counts *counts)
{
    return counts->stale + counts->revived + counts->outlived + counts->overlapped + counts->unadmitted;
}

static void text_add(const struct drill *drill)
{
    static const char *const verdicts[] = {"", "FAILED: ", "NOT RUN: ", "interrupted: "};
    const struct drill_counts *counts = &drill->result.counts;
    unsigned allowed = drill->accident->allowed;
    char lost[CELL_SIZE], early[CELL_SIZE], rounds[CELL_SIZE];

    snprintf(rounds, sizeof(rounds), "%u/%u", drill->result.rounds, drill->rounds);
    printf("%-14s %8s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu64 " %5" PRIu64 " %6" PRIu64
           " %6s %6s %7" PRIu64 " %7" PRIu64 "\n",
           drill->accident->name, rounds, counts->grants, counts->writes, counts->fenced, counts->twice,
           counts->regressed, stale_of(counts), cell(lost, counts->lost, allowed & DRILL_MAY_LOSE),
           cell(early, counts->ended_early, allowed & DRILL_MAY_END_EARLY), drill->result.gap_median_ms,
           drill->result.gap_longest_ms);
    text_sentence("", drill->result.note);
    text_sentence(verdicts[drill->end], drill->end != DRILL_PLAYED ? drill->why : "");
    fflush(stdout);
}

static void text_end(const struct drill_report *report)
{
    puts("\ntwice: numbers granted twice; back: grants that went back; stale: writes and renewals let in "
         "that\n"
         "should not have been; lost: acknowledged writes that were gone; early: holds that ended before "
         "their\n"
         "time. In parentheses: what this accident may do.");
    printf("%u of %u good\n", report->good, report->chosen);
}

/* -- JSON */

static void json_count(struct json_out *json, const char *name, uint64_t count)
{
    json_int(json, name, (int64_t)count);
}

static void json_counts(struct json_out *json, const struct drill_counts *counts)
{
    json_count(json, "grants", counts->grants);
    json_count(json, "writes", counts->writes);
    json_count(json, "reads", counts->reads);
    json_count(json, "renewals", counts->renewals);
    json_count(json, "releases", counts->releases);
    json_count(json, "refused", counts->refused);
    json_count(json, "fenced_off", counts->fenced);
    json_count(json, "not_done", counts->not_done);
    json_count(json, "unknown", counts->unknown);
    json_count(json, "twice", counts->twice);
    json_count(json, "regressed", counts->regressed);
    json_count(json, "stale", counts->stale);
    json_count(json, "revived", counts->revived);
    json_count(json, "outlived", counts->outlived);
    json_count(json, "overlapped", counts->overlapped);
    json_count(json, "unadmitted", counts->unadmitted);
    json_count(json, "odd", counts->odd);
    json_count(json, "lost", counts->lost);
    json_count(json, "ended_early", counts->ended_early);
}

static void json_add(struct drill_report *report, const struct drill *drill)
{
    static const char *const ends[] = {"played", "failed", "not-run", "interrupted"};
    struct json_out *json = &report->json;

    json_object(json, NULL);
    json_text(json, "accident", bytes_of(drill->accident->name));
    json_text(json, "end", bytes_of(ends[drill->end]));
    json_text(json, "why", bytes_of(drill->why));
    json_text(json, "note", bytes_of(drill->result.note));
    json_int(json, "rounds", drill->result.rounds);
    json_int(json, "rounds_wanted", drill->rounds);
    json_int(json, "rounds_full", drill->accident->full);
    json_counts(json, &drill->result.counts);
    json_bool(json, "may_lose", drill->accident->allowed & DRILL_MAY_LOSE);
    json_bool(json, "may_end_early", drill->accident->allowed & DRILL_MAY_END_EARLY);
    json_count(json, "without_grants_median_ms", drill->result.gap_median_ms);
    json_count(json, "without_grants_longest_ms", drill->result.gap_longest_ms);
    json_object_end(json);
}

static void json_begin(struct drill_report *report)
{
    json_out_init(&report->json);
    json_object(&report->json, NULL);
    json_int(&report->json, "seed", (int64_t)report->seed);
    json_list(&report->json, "drills");
}

static void json_end(struct drill_report *report)
{
    struct bytes text;

    json_list_end(&report->json);
    json_bool(&report->json, "good", report->good == report->chosen);
    json_object_end(&report->json);
    text = json_out_bytes(&report->json);
    printf("%.*s\n", (int)text.len, text.at);
    json_out_done(&report->json);
}

/* -- both */

void drill_report_begin(struct drill_report *report)
{
    if (report->output == OUTPUT_JSON) {
        json_begin(report);
    } else {
        text_begin(report);
    }
}

void drill_report_add(struct drill_report *report, const struct drill *drill)
{
    report->good += drill->end == DRILL_PLAYED;
    report->not_run += drill->end == DRILL_NOT_RUN;
    if (report->output == OUTPUT_JSON) {
        json_add(report, drill);
    } else {
        text_add(drill);
    }
}

int drill_report_end(struct drill_report *report)
{
    if (report->output == OUTPUT_JSON) {
        json_end(report);
    } else {
        text_end(report);
    }
    if (report->good == report->chosen) {
        return CLI_OK;
    }
    return report->good + report->not_run == report->chosen ? CLI_CONFIG : CLI_REFUSED;
}

/* drill_report.h - what pawl drill says: a line for each accident as it ends, or one JSON object for all. */
#ifndef PAWL_CLI_DRILL_REPORT_H
#define PAWL_CLI_DRILL_REPORT_H

#include "api/cli/drill.h"
#include "api/cli/flags.h"
#include "shared/json_write.h"

struct drill_report {
    enum output output;
    uint64_t seed;
    unsigned chosen, good, not_run;
    struct json_out json;
};

void drill_report_begin(struct drill_report *report);
void drill_report_add(struct drill_report *report, const struct drill *drill);
/* The exit status: 0 only if all that were chosen are good; 78 if nothing went wrong but something could not
 * be played on this machine; else 1. */
int drill_report_end(struct drill_report *report);

#endif

/* verdict.h - what the facts of a store mean: what would be refused and why, and what to do, in plain
 * sentences. Pure: the same facts, the same verdict. */
#ifndef PAWL_CLI_STORE_VERDICT_H
#define PAWL_CLI_STORE_VERDICT_H

#include "api/cli/store/facts.h"

enum { FINDING_TEXT_SIZE = 1024, FINDINGS_MAX = 16, MEMBER_TEXT_BYTES = 320 };

struct store_finding {
    enum { FINDING_REFUSED, FINDING_WARNING } weight; /* REFUSED: grants, or writes too, are */
    char what[FINDING_TEXT_SIZE];                     /* what happened */
    char todo[FINDING_TEXT_SIZE];                     /* what to do now */
};

struct store_verdict {
    struct store_finding findings[FINDINGS_MAX];
    unsigned count;
    int status; /* of pawl store status: 0 grants and writes are possible, 1 something is refused, 78 not ours
                 */
};

void store_verdict_make(const struct store_facts *facts, struct store_verdict *verdict);

/* "ID (pawl-lease pid 12 on host3, last seen 40 s ago)"; member may be NULL: only the id is known. */
void store_verdict_name(char buf[MEMBER_TEXT_BYTES], const char *id, const struct member_fact *member);

#endif

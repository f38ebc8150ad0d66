/* problem.h - every refusal and failure of Pawl, once: api/problems.def. */
#ifndef PAWL_SHARED_PROBLEM_H
#define PAWL_SHARED_PROBLEM_H

#include <stdbool.h>

#include "shared/text/bytes.h"

enum problem {
    PROBLEM_NONE = 0,
#define PROBLEM(name, code, status, retryable, exit_status, title, detail) PROBLEM_##name,
#include "api/problems.def"
#undef PROBLEM
    PROBLEM_COUNT
};

struct problem_info {
    const char *code;  /* "lease-held": stable, for programs */
    unsigned status;   /* HTTP */
    bool retryable;    /* the same request may succeed later, unchanged */
    int exit_status;   /* of the command line */
    const char *title; /* a few words, always the same for a code */
    const char
        *detail; /* what happened and what to do now, when the place that refuses knows nothing better */
};

/* problem must not be PROBLEM_NONE. */
const struct problem_info *problem_info(enum problem problem);
/* PROBLEM_NONE when there is none with this code. */
enum problem problem_find(struct bytes code);

#endif

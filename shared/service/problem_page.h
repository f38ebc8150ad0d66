/* problem_page.h - the page /problems/{code}, for a person who was told the code. */
#ifndef PAWL_SHARED_PROBLEM_PAGE_H
#define PAWL_SHARED_PROBLEM_PAGE_H

#include "shared/text/json_write.h"
#include "shared/text/problem.h"

/* Appends the page to out (used as a plain buffer): HTML5 in UTF-8 that needs nothing else. */
void problem_page_write(enum problem problem, struct json_out *out);
/* The same for a problem that is in no table; its texts may hold anything. */
void problem_page_write_info(const struct problem_info *info, struct json_out *out);

#endif

/* deferred.h - what pawl run says on standard error while its command runs.
 *
 * Standard error may be a pipe that nobody reads, and who must end a command in time waits for nobody: what
 * does not fit there now is kept until the command is over. */
#ifndef PAWL_CLI_RUN_TELL_H
#define PAWL_CLI_RUN_TELL_H

#include "api/cli/run/group.h"
#include "api/client/http_client.h"

enum { RUN_UNTOLD_MAX = 6, RUN_LINE_SIZE = 768 };

enum run_line_kind { RUN_LINE_WRONG /* as cli_fail() */, RUN_LINE_HINT /* as cli_hint() */ };

struct run_untold {
    unsigned count;
    struct run_line {
        enum run_line_kind kind;
        char text[RUN_LINE_SIZE];
    } lines[RUN_UNTOLD_MAX];
};

/* Never waits. What is beyond RUN_UNTOLD_MAX is never told. */
void run_tell(struct run_untold *untold, enum run_line_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What was kept; waits for who reads it. */
void run_tell_rest(struct run_untold *untold);

/* --trace, on any thread: the request as curl would send it. Never waits: a line that does not fit now is
 * left out. */
void run_trace_request(const struct http_client_request *request);
/* --trace, and without it when nothing is: by what that is caught which leaves the command's process group.
 */
enum run_trace { RUN_TRACE_NO, RUN_TRACE_YES };
enum run_orphans { RUN_ORPHANS_NOT_OURS, RUN_ORPHANS_ADOPTED };
void run_tell_catch(struct run_untold *untold, const struct run_group *group, enum run_orphans orphans,
                    enum run_trace trace);

#endif

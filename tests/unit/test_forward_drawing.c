/* test_forward_drawing.c - the machines of forwarded requests and of the takeover: what the headers draw is
 * what the code allows. Where they go is asserted at each step (forward_enter(), recovery_enter()). */
#include "gateway/forward/forward.h"
#include "gateway/intent/intent_internal.h"
#include "tests/unit/check.h"
#include "tests/unit/drawing.h"

enum { FORWARD_ARROWS = 26, RECOVERY_ARROWS = 10 };

TEST(the_drawing_of_a_forwarded_request_is_its_table)
{
    static const char *const names[FORWARD_STATES] = {"NEW",     "TAKING",  "LOOKING", "ASKING", "QUEUED",
                                                      "PROBING", "SENDING", "TELLING", "LATE",   "DONE"};

    CHECK_INT(drawing_check("gateway/forward/forward.h", names, FORWARD_STATES, forward_allows, NULL),
              FORWARD_ARROWS);
}

TEST(the_drawing_of_the_recovery_is_its_table)
{
    static const char *const names[RECOVERY_STATES] = {"IDLE", "AGAIN", "LEAVING", "TAKING", "CLOSING"};

    CHECK_INT(drawing_check("gateway/intent/recovery.c", names, RECOVERY_STATES, recovery_allows, NULL),
              RECOVERY_ARROWS);
}

CHECK_MAIN

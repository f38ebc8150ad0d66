/* test_forward_drawing.c - the machines of forwarded requests and of the takeover: what the headers draw is
 * what the code allows. Where they go is asserted at each step (forward_enter(), takeover_enter()). */
#include "gateway/forward.h"
#include "gateway/takeover.h"
#include "tests/unit/check.h"
#include "tests/unit/drawing.h"

enum { FORWARD_ARROWS = 25, TAKEOVER_ARROWS = 10 };

static bool forward_may(unsigned from, unsigned to)
{
    return forward_allows((enum forward_state)from, (enum forward_state)to);
}

static bool takeover_may(unsigned from, unsigned to)
{
    return takeover_allows((enum takeover_state)from, (enum takeover_state)to);
}

TEST(the_drawing_of_a_forwarded_request_is_its_table)
{
    static const char *const names[FORWARD_STATES] = {"NEW",     "TAKING",  "LOOKING", "ASKING", "QUEUED",
                                                      "PROBING", "SENDING", "TELLING", "LATE",   "DONE"};

    CHECK_INT(drawing_check("gateway/forward.h", names, FORWARD_STATES, forward_may, forward_may),
              FORWARD_ARROWS);
}

TEST(the_drawing_of_the_takeover_is_its_table)
{
    static const char *const names[TAKEOVER_STATES] = {"IDLE", "AGAIN", "LEAVING", "TAKING", "CLOSING"};

    CHECK_INT(drawing_check("gateway/takeover.h", names, TAKEOVER_STATES, takeover_may, takeover_may),
              TAKEOVER_ARROWS);
}

int main(void)
{
    RUN(the_drawing_of_a_forwarded_request_is_its_table);
    RUN(the_drawing_of_the_takeover_is_its_table);
    return check_done();
}

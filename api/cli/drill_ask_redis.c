/* drill_ask_redis.c - one command to the drill's Redis. */
#include "api/cli/drill_world.h"
#include "api/cli/redis_ask.h"

enum { ANSWER_MS = 5000 };

bool drill_world_ask_redis(struct drill_world *world, const char *command, char reply[DRILL_REPLY_SIZE])
{
    const struct redis_ask ask = {.address = world->socket, .line = command, .timeout_ms = ANSWER_MS};
    enum redis_ask_end end = redis_ask(&ask, reply, DRILL_REPLY_SIZE);

    if (end != REDIS_ASK_SAID) {
        return drill_world_wrong(world, "Redis did not do \"%s\": %s", command,
                                 end == REDIS_ASK_ERROR ? reply : "no answer");
    }
    return true;
}

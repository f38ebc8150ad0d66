/* words.c - the words of a command line, put together. */
#include "api/cli/words.h"

#include <assert.h>
#include <stddef.h>

void words_add(struct words *words, const char *const *more)
{
    for (; more != NULL && *more != NULL; more++) {
        assert(words->count < WORDS_MAX);
        words->at[words->count++] = *more;
    }
    words->at[words->count] = NULL;
}

static void add_place(struct words *words, const char *socket, const char *directory)
{
    words_add(words, (const char *const[]){"--port", "0", "--unixsocket", socket, "--unixsocketperm", "600",
                                           "--dir", directory, "--save", "", "--daemonize", "no", NULL});
}

void words_add_store(struct words *words, const char *socket, const char *directory)
{
    add_place(words, socket, directory);
    words_add(words, (const char *const[]){"--appendonly", "yes", "--appendfsync", "always",
                                           "--no-appendfsync-on-rewrite", "no", "--aof-load-truncated", "no",
                                           "--maxmemory-policy", "noeviction", NULL});
}

void words_add_cache(struct words *words, const char *socket, const char *directory)
{
    add_place(words, socket, directory);
    words_add(words, (const char *const[]){"--appendonly", "no", NULL});
}

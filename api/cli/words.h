/* words.h - the words of a command line, put together. They are the caller's, and must outlive it. */
#ifndef PAWL_CLI_WORDS_H
#define PAWL_CLI_WORDS_H

enum { WORDS_MAX = 64 };

struct words {
    const char *at[WORDS_MAX + 1]; /* ends with NULL */
    unsigned count;
};

/* Both take the words up to a NULL; more NULL: none. More than WORDS_MAX in all is a programmer's mistake. */
void words_add(struct words *words, const char *const *more);

/* Those of a redis-server of ours after its program: only at a socket, in the foreground, and with all the
 * settings that Pawl asks of a store. */
void words_add_store(struct words *words, const char *socket, const char *directory);
/* The same, but it keeps nothing: for a recipe that asks nothing of it. */
void words_add_cache(struct words *words, const char *socket, const char *directory);

#endif

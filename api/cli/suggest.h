/* suggest.h - the word that was probably meant. */
#ifndef PAWL_CLI_SUGGEST_H
#define PAWL_CLI_SUGGEST_H

/* The nearest of names (NULL-terminated) to word, or NULL when none is near (more than two slips, or half of
 * it). */
const char *suggest(const char *word, const char *const *names);

#endif

/* flags_complete.h - what may come next on a command line, out of the same tables as --help.
 *
 * A command is asked by its own name, FLAGS_COMPLETE and the words that follow it so far, the last of which
 * is being typed (it may be empty): flags_read() prints then, and reads nothing. One candidate a line, a tab
 * and what it means behind it, or what a shell knows better:
 *
 *   :files  :directories   names of files          :leases  names of leases, as pawl ls tells them
 *   :hazards  :accidents   as pawl demo and pawl drill list them
 *   :command N             a command of its own begins N words before the end */
#ifndef PAWL_CLI_FLAGS_COMPLETE_H
#define PAWL_CLI_FLAGS_COMPLETE_H

#include "api/cli/flags.h"

#define FLAGS_COMPLETE "--complete-words"

/* Whether it is this that the words ask for. */
bool flags_complete_wanted(int argc, char **argv);
/* CLI_OK, always. */
int flags_complete(const struct usage *usage, int argc, char **argv);
/* One candidate, when it begins with what is being typed. */
void flags_complete_word(const char *typed, const char *word, const char *help);

#endif

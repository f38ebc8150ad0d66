/* drawing.h - state machines as their headers draw them: lines "FROM --why--> TO" of the head comment. */
#ifndef PAWL_TESTS_DRAWING_H
#define PAWL_TESTS_DRAWING_H

#include <ctype.h>

#include "tests/unit/check.h"

enum { DRAWING_STATES = 12 };

/* The place of the name that begins here; count: none of them. */
static inline unsigned drawing_state(const char *at, const char *const *names, unsigned count)
{
    size_t len = 0;

    at += strspn(at, " *");
    while (isupper((unsigned char)at[len]))
        len++;
    for (unsigned i = 0; i < count; i++)
        if (bytes_are((struct bytes){at, len}, names[i]))
            return i;
    return count;
}

/* Compares the drawing with the table and with where the machines of this program have gone: a bit for each
 * state, NULL: with the table only. How many arrows it has. */
static inline unsigned drawing_check(const char *path, const char *const *names, unsigned count,
                                     bool (*allows)(unsigned from, unsigned to), const unsigned *gone)
{
    bool drawn[DRAWING_STATES][DRAWING_STATES] = {{false}};
    FILE *file = fopen(path, "re");
    unsigned arrows = 0;
    char line[256];

    if (!CHECK(file != NULL))
        return 0;
    while (fgets(line, sizeof(line), file) != NULL && strstr(line, "*/") == NULL) {
        const char *arrow = strstr(line, "-->");
        unsigned from = drawing_state(line, names, count);
        unsigned to = arrow != NULL ? drawing_state(arrow + 3, names, count) : count;

        if (arrow != NULL && CHECK(from < count && to < count)) {
            arrows += !drawn[from][to];
            drawn[from][to] = true;
        }
    }
    fclose(file);
    for (unsigned from = 0; from < count; from++) {
        for (unsigned to = 0; to < count; to++) {
            bool good = CHECK_INT(drawn[from][to], allows(from, to));

            if (!CHECK_INT(drawn[from][to], gone != NULL ? gone[from] >> to & 1 : drawn[from][to]) || !good)
                printf("# %s to %s\n", names[from], names[to]);
        }
    }
    return arrows;
}

#endif

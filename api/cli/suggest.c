/* suggest.c - the word that was probably meant: Damerau's distance, restricted to neighbours that changed
 * places. */
#include "api/cli/suggest.h"

#include <string.h>

enum { WORD_MAX = 40, SLIPS_MAX = 2 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned slips[WORD_MAX + 1][WORD_MAX + 1];

    for (unsigned i = 0; i <= a_len; i++) {
        slips[i][0] = i;
    }
    for (unsigned j = 0; j <= b_len; j++) {
        slips[0][j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            unsigned best = slips[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            best = least(best, least(slips[i - 1][j], slips[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = least(best, slips[i - 2][j - 2] + 1);
            }
            slips[i][j] = best;
        }
    }
    return slips[a_len][b_len];
}

const char *suggest(const char *word, const char *const *names)
{
    size_t len = strlen(word);
    const char *near = NULL;
    unsigned best = SLIPS_MAX + 1;

    for (; *names != NULL && len <= WORD_MAX; names++) {
        size_t name_len = strlen(*names);
        unsigned slips = name_len <= WORD_MAX ? distance(word, len, *names, name_len) : best;

        if (slips < best && slips * 2 <= name_len) {
            best = slips;
            near = *names;
        }
    }
    return near;
}

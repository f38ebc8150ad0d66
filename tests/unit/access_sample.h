/* access_sample.h - access files as tests write them: with ' for ". */
#ifndef PAWL_TESTS_ACCESS_SAMPLE_H
#define PAWL_TESTS_ACCESS_SAMPLE_H

#include "shared/access/access.h"
#include "tests/unit/check.h"

enum { TEXT_SIZE = 16384 };

static inline struct access *parse(const char *file, char why[ACCESS_WHY_SIZE])
{
    char text[TEXT_SIZE];
    size_t len = strlen(file);

    for (size_t i = 0; i < len; i++)
        text[i] = (char)(file[i] == '\'' ? '"' : file[i]);
    return access_parse((struct bytes){text, len}, why, ACCESS_WHY_SIZE);
}

static inline struct access *must_parse(const char *file)
{
    char why[ACCESS_WHY_SIZE] = "";
    struct access *access = parse(file, why);

    if (access == NULL) {
        printf("# %s: %s\n", file, why);
        abort();
    }
    return access;
}

/* NULL: nobody, who is none. */
static inline const char *identity(const struct access *access, const char *name)
{
    return access_identity(access, bytes_of(name));
}

#endif

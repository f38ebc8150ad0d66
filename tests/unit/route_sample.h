/* route_sample.h - route tables for tests, written with ' for ". */
#ifndef PAWL_TESTS_ROUTE_SAMPLE_H
#define PAWL_TESTS_ROUTE_SAMPLE_H

#include <stdlib.h>

#include "gateway/route/route.h"
#include "tests/unit/check.h"

#define UP "http://127.0.0.1:9000"
#define NAME_127                                                                                             \
    "a23456789012345678901234567890123456789012345678901234567890123"                                        \
    "a234567890123456789012345678901234567890123456789012345678901234"

/* The members that every route has. */
#define G(match, lease, guarantee)                                                                           \
    "'match':'" match "','lease':'" lease "','upstream':'" UP "','guarantee':'" guarantee "'"
#define ANY(match, lease) G(match, lease, "admitted")
#define TO(match, lease, upstream)                                                                           \
    "'match':'" match "','lease':'" lease "','guarantee':'admitted','upstream':'" upstream "'"
#define IF_MATCH(match, lease) G(match, lease, "committed") ",'if_match':true"

/* A table of these routes; NULL with the reason in why. */
static inline struct route_table *table_of(const char *routes, char why[ROUTE_WHY_SIZE])
{
    size_t size = strlen(routes) + sizeof("{\"routes\":[]}");
    char *text = malloc(size);
    struct route_table *table;

    snprintf(text, size, "{'routes':[%s]}", routes);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    table = route_table_parse(bytes_of(text), false, why);
    free(text);
    return table;
}

/* One that must be taken. */
static inline struct route_table *table_good(const char *routes)
{
    char why[ROUTE_WHY_SIZE];
    struct route_table *table = table_of(routes, why);

    if (table == NULL) {
        printf("# %s: %s\n", routes, why);
        abort();
    }
    return table;
}

#define TEST_TABLE(sentence, routes)                                                                         \
    TEST_IN(sentence, struct route_table *, table, table_good(routes), route_table_free(table))

#endif

/* table.c - the whole table: read, checked, freed. */
#include <stdarg.h>
#include <stdlib.h>

#include "gateway/route/route_internal.h"
#include "shared/service/options.h"
#include "shared/text/memory.h"

enum { FILE_BYTES_MAX = 1 << 20, LEVELS_MAX = 8, SHOWN_MAX = 120 };

static struct json *table_json(struct route_reading *reading, struct bytes text, size_t *count);
static bool table_fill(struct route_reading *reading, const struct json *json, size_t count);

struct route_table *route_table_parse(struct bytes text, bool unsafe_redis, char why[ROUTE_WHY_SIZE])
{
    struct route_table *table = route_alloc(1, sizeof(*table));
    struct route_reading reading = {.table = table, .unsafe_redis = unsafe_redis, .why = why};
    size_t count = 0;
    struct json *json = table_json(&reading, text, &count);
    bool good = json != NULL && table_fill(&reading, json, count);

    json_free(json);
    if (!good) {
        route_table_free(table);
        return NULL;
    }
    table->tree = route_tree_new(table);
    route_hash(table);
    why[0] = '\0';
    return table;
}

struct route_table *route_table_load(const char *path, bool unsafe_redis, char why[ROUTE_WHY_SIZE])
{
    char wrong[ROUTE_WHY_SIZE];
    struct route_table *table;
    size_t len = 0;
    char *text = options_read_file(path, FILE_BYTES_MAX, &len, why, ROUTE_WHY_SIZE);

    if (text == NULL) {
        return NULL;
    }
    table = route_table_parse((struct bytes){text, len}, unsafe_redis, wrong);
    if (table != NULL && !route_trust_check(table, wrong)) {
        route_table_free(table);
        table = NULL;
    }
    if (table == NULL) {
        snprintf(why, ROUTE_WHY_SIZE, "%.200s: %.300s", path, wrong);
    }
    free(text);
    return table;
}

static void route_done(struct route *route)
{
    route_pattern_done(&route->own->pattern);
    route_template_done(&route->own->lease);
    route_template_done(&route->own->probe);
    route_lists_done(route->own);
    free(route->own);
    free(route->match);
    free(route->probe);
}

void route_table_free(struct route_table *table)
{
    if (table == NULL) {
        return;
    }
    for (unsigned i = 0; i < table->count; i++) {
        route_done(&table->routes[i]);
    }
    for (unsigned i = 0; i < table->upstream_count; i++) {
        route_upstream_free(table->upstreams[i]);
    }
    route_tree_free(table->tree);
    free(table->routes);
    free(table->upstreams);
    free(table);
}

/* -- reading */

/* NULL: told. */
static struct json *table_json(struct route_reading *reading, struct bytes text, size_t *count)
{
    static const char *const names[] = {"routes", NULL};
    const char *why = NULL;
    enum json_found found;
    struct json *json = json_parse(text, LEVELS_MAX, &why);

    if (json == NULL) {
        route_wrong(reading, "a route table is one JSON object: %s", why);
        return NULL;
    }
    *count = json_list_count(json, "routes", &found);
    if (json_unknown(json, names) != NULL) {
        route_wrong(reading, "the member %.64s is not known here; a route table is {\"routes\":[...]}",
                    json_unknown(json, names));
    } else if (found != JSON_FOUND) {
        route_wrong(reading, "a route table is {\"routes\":[...]}");
    } else if (*count > ROUTES_MAX) {
        route_wrong(reading, "a route table has at most %d routes", ROUTES_MAX);
    }
    if (reading->wrong) {
        json_free(json);
        return NULL;
    }
    return json;
}

static bool table_fill(struct route_reading *reading, const struct json *json, size_t count)
{
    struct route_table *table = reading->table;

    table->routes = route_alloc(count + 1, sizeof(*table->routes));
    table->upstreams = route_alloc(count + 1, sizeof(struct route_upstream *));
    for (size_t i = 0; i < count; i++) {
        const struct json *object = json_list_object(json, "routes", i);

        reading->route = &table->routes[i];
        reading->route->index = (unsigned)i;
        reading->route->own = route_alloc(1, sizeof(*reading->route->own));
        table->count++;
        if (object == NULL) {
            return route_wrong(reading, "a route is an object");
        }
        if (!route_read(reading, object) || !route_check_one(reading)) {
            return false;
        }
    }
    return route_check_all(reading);
}

/* -- for all files */

void *route_alloc(size_t count, size_t size)
{
    return must_have(calloc(count, size));
}

char *route_text(struct bytes text)
{
    char *copy = route_alloc(text.len + 1, 1);

    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    return copy;
}

/* On one line of a terminal, whatever is in it. */
static void show(struct bytes text, char shown[SHOWN_MAX + 1])
{
    size_t len = text.len < SHOWN_MAX ? text.len : SHOWN_MAX;

    for (size_t i = 0; i < len; i++) {
        shown[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
    }
    shown[len] = '\0';
}

bool route_wrong(struct route_reading *reading, const char *format, ...)
{
    const struct route *route = reading->route;
    char shown[SHOWN_MAX + 1];
    size_t len = 0;
    va_list args;

    if (reading->wrong) {
        return false;
    }
    reading->wrong = true;
    if (route != NULL && route->match != NULL) {
        show(bytes_of(route->match), shown);
        len = (size_t)snprintf(reading->why, ROUTE_WHY_SIZE, "routes[%u] (%s): ", route->index, shown);
    } else if (route != NULL) {
        len = (size_t)snprintf(reading->why, ROUTE_WHY_SIZE, "routes[%u]: ", route->index);
    }
    va_start(args, format);
    vsnprintf(reading->why + len, ROUTE_WHY_SIZE - len, format, args);
    va_end(args);
    for (char *c = reading->why + len; *c != '\0'; c++) {
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    }
    return false;
}

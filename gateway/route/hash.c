/* hash.c - what a table means, as one short text: all gateways on a store must have the same.
 *
 * The normal form is a list of texts, each with its length in front (digest_text()'s of the whole): defaults
 * are filled in; captures have numbers instead of names; what is a set is sorted. */
#include <inttypes.h>
#include <stdlib.h>

#include "gateway/route/route_internal.h"
#include "shared/token/random.h"

_Static_assert((int)ROUTE_HASH_CHARS == (int)DIGEST_TEXT, "the hash is what digest_text() writes");

static void put_route(FILE *out, const struct route *route);

/* Another meaning of the same file would be another version. */
static const char version[] = "pawl routes 1";

static void put(FILE *out, const char *text)
{
    fprintf(out, "%zu:%s,", strlen(text), text);
}

static void put_number(FILE *out, uint64_t number)
{
    fprintf(out, "#%" PRIu64 ",", number);
}

void route_hash(struct route_table *table)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL) {
        abort();
    }
    put(out, version);
    for (unsigned i = 0; i < table->count; i++) {
        put_route(out, &table->routes[i]);
    }
    if (fclose(out) != 0) {
        abort();
    }
    digest_text(&(struct bytes){text, len}, 1, table->hash);
    free(text);
}

/* Where the escapes count (if_match: one spelling only), the text as it is written. */
static void put_pattern(FILE *out, const struct route *route)
{
    const struct route_pattern *pattern = &route->own->pattern;

    put_number(out, pattern->count);
    for (unsigned i = 0; i < pattern->count; i++) {
        const struct route_segment *segment = &pattern->segments[i];

        if (segment->text == NULL) {
            fputs("{},", out);
        } else {
            put(out, route->aid == ROUTE_AID_IF_MATCH ? segment->text : segment->decoded);
        }
    }
    put_number(out, pattern->rest);
}

static void put_template(FILE *out, const struct route_template *template)
{
    put_number(out, template->count);
    for (unsigned i = 0; i < template->count; i++) {
        if (template->parts[i].text == NULL) {
            fprintf(out, "{%u},", template->parts[i].capture);
        } else {
            put(out, template->parts[i].text);
        }
    }
}

static void put_upstream(FILE *out, const struct route_upstream *upstream)
{
    put_number(out, upstream->scheme);
    put(out, upstream->host);
    put_number(out, upstream->port);
    put(out, upstream->prefix);
    put(out, upstream->ca_file != NULL ? upstream->ca_file : "");
}

static void put_fields(FILE *out, const struct route_fields *fields)
{
    /* To deny nothing is to say nothing. */
    bool none = fields->kind == ROUTE_LIST_DENY && fields->count == 0;

    put_number(out, none ? ROUTE_LIST_NONE : fields->kind);
    put_number(out, fields->count);
    for (unsigned i = 0; i < fields->count; i++) {
        put(out, fields->names[i]);
    }
}

static void put_route(FILE *out, const struct route *route)
{
    const struct route_own *own = route->own;

    put_pattern(out, route);
    put_template(out, &own->lease);
    put_upstream(out, route->upstream);
    put_number(out, route->guarantee);
    put_number(out, route->check);
    if (route->store[0] != '\0') {
        put(out, route->store);
    }
    put_number(out, route->reads);
    put_number(out, route->aid);
    put_number(out, route->serial);
    put(out, route->unknown_text);
    put(out, route->probe_method != NULL ? route->probe_method : "");
    put_template(out, &own->probe);
    put_number(out, route->timeout_ms);
    put_number(out, route->max_body);
    put_number(out, own->read_count);
    for (unsigned i = 0; i < own->read_count; i++) {
        put(out, own->reads[i]);
    }
    put_fields(out, &own->request);
    put_fields(out, &own->answer);
    for (size_t i = 0; i < sizeof(own->unsure); i++) {
        put_number(out, own->unsure[i]);
    }
    if (route->body != ROUTE_BODY_WHOLE) { /* a text: what follows a route begins with a number */
        put(out, route->body == ROUTE_BODY_IN_DOUBT ? "stream in-doubt" : "stream never-applied");
    }
}

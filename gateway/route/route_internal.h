/* route_internal.h - between the files of the route table (gateway/route/route.h):
 *
 *   path.c      the canonical path; patterns, "/orders/{id}/{line}"; templates, "order:{id}"
 *   upstream.c  "http://127.0.0.1:9000/api", and the files with what it is trusted by and what it is shown
 *   read.c      the members of one route
 *   table.c     all of it together: read, checked, hashed, freed
 *   find.c      what a request is to the table
 *
 * The first fault is reported, with route_wrong(); everything then returns false or NULL. */
#ifndef PAWL_GATEWAY_ROUTE_INTERNAL_H
#define PAWL_GATEWAY_ROUTE_INTERNAL_H

#include <stdio.h>

#include "gateway/route/route.h"
#include "shared/text/json.h"

enum {
    ROUTE_PATTERN_MAX = 1024, /* bytes of match, lease, probe, a prefix */
    ROUTE_SEGMENTS_MAX = 64,  /* of a pattern */
    ROUTE_PARTS_MAX = 2 * ROUTE_CAPTURES_MAX + 1,
    ROUTE_CAPTURE_NAME_MAX = 32,
    ROUTE_METHODS_MAX = 32,
    ROUTE_METHOD_MAX = 32,
    ROUTE_FIELDS_MAX = 100,
    ROUTE_FIELD_MAX = 128,
    ROUTE_FILE_MAX = 1024, /* bytes of the path of a file */
    ROUTE_STATUS_MIN = 200,
    ROUTE_STATUS_MAX = 599,
    ROUTE_UNSURE_MAX = 64
};

/* One segment of a pattern. */
struct route_segment {
    char *text;           /* a literal as it stands in a canonical path; NULL: a capture */
    struct bytes decoded; /* the same, decoded: what is compared */
    char name[ROUTE_CAPTURE_NAME_MAX + 1];
};

struct route_pattern {
    unsigned count; /* without the "**" */
    bool rest;      /* ends with "**" */
    struct route_segment *segments;
    unsigned captures;
    unsigned places[ROUTE_CAPTURES_MAX]; /* which segment each capture is */
};

/* One part of a template: a text, or one of the pattern's captures. */
struct route_part {
    char *text; /* NULL: a capture */
    unsigned capture;
};

struct route_template {
    unsigned count;
    struct route_part parts[ROUTE_PARTS_MAX];
};

enum route_list_kind { ROUTE_LIST_NONE, ROUTE_LIST_ALLOW, ROUTE_LIST_DENY };

/* Names in lower case, sorted. */
struct route_fields {
    enum route_list_kind kind;
    unsigned count;
    char **names;
};

struct route_own {
    struct route_pattern pattern;
    struct route_template lease, probe;
    unsigned read_count;
    char **reads; /* methods, sorted */
    struct route_fields request, answer;
    bool unknown_stated;
    unsigned char unsure[(ROUTE_STATUS_MAX - ROUTE_STATUS_MIN + 1 + 7) / 8]; /* bits */
};

/* What is being read. */
struct route_reading {
    struct route_table *table;
    struct route *route; /* the present one; NULL: the table as a whole */
    bool unsafe_redis;
    char *why; /* ROUTE_WHY_SIZE */
    bool wrong;
};

/* Reports a fault, unless one was reported before. Always false. */
__attribute__((format(printf, 2, 3))) bool route_wrong(struct route_reading *reading, const char *format,
                                                       ...);
/* Zeroed, never NULL, and the table's: freed with it. */
void *route_alloc(struct route_table *table, size_t count, size_t size);
char *route_text(struct route_table *table, struct bytes text);

/* -- path.c */
/* The segments of a canonical path, at most max of them. */
size_t route_path_split(struct bytes path, struct bytes *segments, size_t max);
/* The bytes of a segment of a canonical path; text has room for segment.len. */
size_t route_segment_decode(struct bytes segment, char *text);

bool route_pattern_read(struct route_reading *reading, struct bytes text, struct route_pattern *pattern);
/* Whether every path that narrow matches is matched by wide. */
bool route_pattern_covers(const struct route_pattern *wide, const struct route_pattern *narrow);

/* member: "lease", for the report of a fault. literal: what may stand outside of captures. */
bool route_template_read(struct route_reading *reading, const char *member, struct bytes text,
                         bool (*literal)(struct bytes), struct route_template *template);
bool route_template_has(const struct route_template *template, unsigned capture);
/* Whether some text can be made by both, whatever stands in the captures. */
bool route_templates_meet(const struct route_template *a, const struct route_template *b);
/* Fills in the captures, decoded; false: longer than size. */
bool route_lease_expand(const struct route_template *template, const struct bytes *captures,
                        char lease[NAME_MAX_BYTES + 1], size_t *len);

/* -- upstream.c: one that the table has already is taken again; a file that is not said is empty. */
struct route_upstream *route_upstream_read(struct route_reading *reading, struct bytes url,
                                           const struct bytes tls_files[ROUTE_TLS_FILES]);
/* Whether both are the same server, whatever their prefixes. */
bool route_upstream_same_server(const struct route_upstream *a, const struct route_upstream *b);

/* Reads the files of upstream_tls and upstream_authorization_file; forgets what was in them. */
bool route_proofs_load(struct route_table *table, char why[ROUTE_WHY_SIZE]);
void route_table_forget(struct route_table *table);

/* -- read.c: fills reading->route. */
bool route_read(struct route_reading *reading, const struct json *json);

/* -- table.c */
/* Whether the path is one of Pawl's own, which no route can have. first: its first segment, decoded. */
bool route_is_own_address(struct bytes first);

#endif

/* route.h - the route table: which requests are forwarded, where to, guarded by which lease, and with what
 * promise.
 *
 * A table is read from one strict JSON file (docs/routes.md, api/routes.schema.json) and does not change; a
 * new file is a new table (SIGHUP). Everything that a table cannot keep is an error when it is read, in words
 * that name the route: "routes[2] (/orders/{id}): ...". */
#ifndef PAWL_GATEWAY_ROUTE_H
#define PAWL_GATEWAY_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/text/bytes.h"
#include "shared/token/name.h"

enum {
    ROUTES_MAX = 1000,
    ROUTE_CAPTURES_MAX = 8,
    ROUTE_PATH_MAX = 4096, /* a canonical path with its NUL */
    ROUTE_STORE_SIZE = 25, /* the id of a store with its NUL */
    ROUTE_HASH_CHARS = 43, /* BLAKE2b-256, base64url: digest_text() */
    ROUTE_WHY_SIZE = 512
};

enum route_guarantee { ROUTE_COMMITTED, ROUTE_ORDERED, ROUTE_ADMITTED };
enum route_check { ROUTE_LIVE, ROUTE_MARK };
enum route_reads { ROUTE_READS_OPEN, ROUTE_READS_FENCED };
enum route_unknown { ROUTE_HOLD, ROUTE_GRACE, ROUTE_PROBE };
/* How a body goes on: only when it is whole, or as it comes; then what an unfinished one means is stated. */
enum route_body { ROUTE_BODY_WHOLE, ROUTE_BODY_IN_DOUBT, ROUTE_BODY_NEVER_APPLIED };
/* What makes the check and the write one: nothing, If-Match, or the upstream compares the token. */
enum route_aid { ROUTE_AID_NONE, ROUTE_AID_IF_MATCH, ROUTE_AID_CHECKS };
enum route_scheme { ROUTE_HTTP, ROUTE_HTTPS, ROUTE_UNIX };

/* Files (PEM) of upstream_tls: whom to trust instead of the system's; and what to show to who asks. */
enum route_tls_file { ROUTE_CA_FILE, ROUTE_CERT_FILE, ROUTE_KEY_FILE, ROUTE_TLS_FILES };

/* Where to. Two routes with the same upstream share one (compared by pointer). */
struct route_upstream {
    enum route_scheme scheme;
    char *host;                       /* without brackets; for unix: the path of the socket */
    unsigned port;                    /* 0 for unix */
    char *authority;                  /* for the Host header: "127.0.0.1:9000"; "localhost" for unix */
    char *prefix;                     /* path before the canonical path, "" or "/api" */
    char *tls_files[ROUTE_TLS_FILES]; /* https; NULL: not said */
    struct tls_trust *trust;          /* https: what was in them; NULL: not loaded */
    unsigned index;                   /* 0, 1, ... in the table */
};

/* Whose the header Authorization is. */
enum route_credential { ROUTE_CREDENTIAL_OWN, ROUTE_CREDENTIAL_UPSTREAM };

struct route {
    unsigned index;
    char *match;
    struct route_upstream *upstream;
    enum route_guarantee guarantee;
    enum route_check check;
    enum route_reads reads;
    enum route_unknown unknown;
    enum route_aid aid;
    enum route_body body;
    enum route_credential credential;
    char *authorization_file; /* NULL: none */
    char *authorization;      /* the value of Authorization that was in it; NULL: none, or not loaded */
    bool serial;
    uint64_t grace_ms;   /* ROUTE_GRACE: 1,000 to 86,400,000 */
    uint64_t timeout_ms; /* for the upstream's whole head of an answer, and for a turn in the queue; 100 to
                            600,000, default 30,000 */
    uint64_t max_body;   /* bytes; 0: no limit */
    char store[ROUTE_STORE_SIZE]; /* ROUTE_MARK: whose tokens it takes; "": the gateway's own store's */
    char check_text[ROUTE_STORE_SIZE + 5]; /* for the scripts: "live", "mark", "mark STORE" */
    char unknown_text[24];                 /* for the intent: "h", "p", "g5000" */
    const char *probe_method;              /* ROUTE_PROBE: "GET" or "HEAD"; else NULL */
    struct route_own *own;                 /* route.c's: templates, lists of methods, headers and statuses */
};

struct route_table {
    struct route *routes;
    unsigned count;
    struct route_upstream **upstreams;
    unsigned upstream_count;
    struct route_piece *memory; /* the module's own */
    struct route_table *next;   /* of the tables of before, and who uses this one: the owner's */
    unsigned users;
    bool has_credentials; /* a route whose credential is `upstream` is among them */
    char hash[ROUTE_HASH_CHARS +
              1]; /* of what it means, not of white space, order of members or defaults left out */
};

/* NULL with the reason in why. unsafe_redis: the store can lose locks (--allow-unsafe-redis), so `ordered` is
 * refused. Reads nothing but the text. */
struct route_table *route_table_parse(struct bytes text, bool unsafe_redis, char why[ROUTE_WHY_SIZE]);
/* The same from a file (at most 1 MiB), with what its upstream_tls and upstream_authorization_file name. */
struct route_table *route_table_load(const char *path, bool unsafe_redis, char why[ROUTE_WHY_SIZE]);
/* Nothing goes by it any more: its hash stays, and nothing of what it shows to upstreams. */
void route_table_empty(struct route_table *table);
void route_table_free(struct route_table *table);

/* What a request is to this table. Not to be copied: captures point into path. */
struct route_match {
    const struct route *route;
    char path[ROUTE_PATH_MAX]; /* the canonical path: what was matched, and what is forwarded */
    size_t path_len;
    char lease[NAME_MAX_BYTES + 1];
    size_t lease_len;
    struct bytes captures[ROUTE_CAPTURES_MAX]; /* in path, as they stand there (canonical, not decoded) */
};

/* What a header is by its name: gateway/fields.def, where the kinds are explained. All kinds that the name,
 * which is not empty, is of, or 0; case does not matter. */
enum { FIELD_HOP = 1, FIELD_OWN = 2, FIELD_TARGET = 4, FIELD_VERSION = 8, FIELD_ANSWER = 16 };
unsigned field_kinds(struct bytes name);
/* Whether the name has only letters, digits and "-": what else is in it becomes "_" as soon as CGI, WSGI, PHP
 * and their like make a variable of it, and so another name. */
bool field_is_plain(struct bytes name);

/* The one canonical form of a path as it came (without its query): percent escapes of unreserved characters
 * are decoded, others are in upper case; what must be escaped is. NULL, or what is wrong (a static text,
 * 400): an empty segment that is not the last, "." or ".." segments (also escaped), %2F, %5C and a backslash,
 * %00 and other control characters, bytes that are no UTF-8, a malformed escape, too long. */
const char *route_path_canonical(struct bytes raw, char path[ROUTE_PATH_MAX], size_t *len);

enum route_found { ROUTE_FOUND, ROUTE_NONE, ROUTE_BAD_PATH, ROUTE_BAD_LEASE };
/* The first route that matches. ROUTE_BAD_PATH, ROUTE_BAD_LEASE: 400, *why is a static text. */
enum route_found route_find(const struct route_table *table, struct bytes raw_path, struct route_match *match,
                            const char **why);

/* Whether the method only reads here (default GET, HEAD, OPTIONS; everything else is a write). */
bool route_reads(const struct route *route, struct bytes method);
/* Whether a header of a request, or of an answer, may pass (allow and deny lists of the route; the lists that
 * no route can change, hop-by-hop headers and Pawl's own, are the forwarder's). */
bool route_passes_request(const struct route *route, struct bytes header_name);
bool route_passes_answer(const struct route *route, struct bytes header_name);
/* Whether an answer with this status says how the write ended. Not by default: 202 (to be applied later), and
 * what proxies say of an origin that may still be at work: 408, 502, 503, 504, 520 to 527, 530, 598, 599; the
 * route's `unsure_statuses` replaces that list. */
bool route_is_final(const struct route *route, unsigned status);
/* The probe's path for this request; its captures are those of the lease. */
size_t route_probe_path(const struct route_match *match, char path[ROUTE_PATH_MAX]);

#endif

/* find.c - what a request is to the table: canonical path, route, captures, lease. The first route that
 * matches is found, however many there are, in a tree of segments. */
#include "gateway/route/route_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "shared/text/memory.h"

/* == the tree */

struct node {
    unsigned least;     /* no route in or below this node comes before it */
    unsigned end, rest; /* the route whose pattern ends here, or here with "**"; ROUTE_NONE_FOUND */
    struct node *capture;
    struct child *children; /* sorted */
    unsigned count;
};

struct child {
    struct bytes text; /* the pattern's */
    struct node *node;
};

struct route_tree {
    struct node *root;
};

static struct node *node_new(unsigned index)
{
    struct node *node = route_alloc(1, sizeof(*node));

    *node = (struct node){.least = index, .end = ROUTE_NONE_FOUND, .rest = ROUTE_NONE_FOUND};
    return node;
}

static int compare(struct bytes a, struct bytes b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter > 0 ? memcmp(a.at, b.at, shorter) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Where the child of this text is, or belongs. */
static unsigned child_place(const struct node *node, struct bytes text)
{
    unsigned low = 0, high = node->count;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (compare(node->children[middle].text, text) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct node *child_find(const struct node *node, struct bytes text)
{
    unsigned place = child_place(node, text);

    return place < node->count && bytes_equal(node->children[place].text, text) ? node->children[place].node
                                                                                : NULL;
}

static struct node *child_add(struct node *node, struct bytes text, unsigned index)
{
    unsigned place = child_place(node, text);
    struct child *children = must_have(realloc(node->children, (node->count + 1) * sizeof(*children)));

    memmove(children + place + 1, children + place, (node->count - place) * sizeof(*children));
    children[place] = (struct child){text, node_new(index)};
    node->children = children;
    node->count++;
    return children[place].node;
}

static struct node *node_below(struct node *node, const struct route_segment *segment, unsigned index)
{
    struct bytes text = bytes_of(segment->decoded);
    struct node *child;

    if (segment->text == NULL) {
        if (node->capture == NULL) {
            node->capture = node_new(index);
        }
        return node->capture;
    }
    child = child_find(node, text);
    return child != NULL ? child : child_add(node, text, index);
}

struct route_tree *route_tree_new(const struct route_table *table)
{
    struct route_tree *tree = route_alloc(1, sizeof(*tree));

    tree->root = node_new(0);
    for (unsigned i = 0; i < table->count; i++) {
        const struct route_pattern *pattern = &table->routes[i].own->pattern;
        struct node *node = tree->root;

        for (unsigned j = 0; j < pattern->count; j++) {
            node = node_below(node, &pattern->segments[j], i);
        }
        if (pattern->rest) {
            node->rest = node->rest < i ? node->rest : i;
        } else {
            node->end = node->end < i ? node->end : i;
        }
    }
    return tree;
}

static void node_free(struct node *node)
{
    if (node == NULL) {
        return;
    }
    for (unsigned i = 0; i < node->count; i++) {
        node_free(node->children[i].node);
    }
    node_free(node->capture);
    free(node->children);
    free(node);
}

void route_tree_free(struct route_tree *tree)
{
    if (tree != NULL) {
        node_free(tree->root);
        free(tree);
    }
}

/* The first route below node that matches what is left, if it comes before best; else best. A capture takes
 * no empty segment; "**" takes nothing, too. */
static unsigned find(const struct node *node, const struct bytes *left, size_t count, unsigned best)
{
    const struct node *child;

    if (node == NULL || node->least >= best) {
        return best;
    }
    best = node->rest < best ? node->rest : best;
    if (count == 0) {
        return node->end < best ? node->end : best;
    }
    child = child_find(node, left[0]);
    best = find(child, left + 1, count - 1, best);
    return left[0].len > 0 ? find(node->capture, left + 1, count - 1, best) : best;
}

/* == a request */

static const char bad_lease[] = "what stands in the path makes no lease name: 1 to 128 characters of A-Z a-z "
                                "0-9 . _ : -, beginning with a "
                                "letter or digit";
static const char bad_spelling[] = "a path of this route is written in one way only: without % for what may "
                                   "stand there as it is";
static const char bad_separator[] = "a part of the path has the character that parts it from the next in the "
                                    "lease's name: two paths would have "
                                    "one lease";

struct segments {
    struct bytes at[ROUTE_SEGMENTS_MAX + 1], decoded[ROUTE_SEGMENTS_MAX + 1];
    size_t count;
    char text[ROUTE_PATH_MAX]; /* of those that are not as they stand there */
};

/* More segments than a pattern can have are not looked at: only a "**" takes them. */
static void segments_take(struct bytes path, struct segments *segments)
{
    size_t used = 0;

    segments->count = route_path_split(path, segments->at, ROUTE_SEGMENTS_MAX + 1);
    for (size_t i = 0; i < segments->count; i++) {
        struct bytes segment = segments->at[i];

        if (segment.len > 0 && memchr(segment.at, '%', segment.len) != NULL) {
            char *text = segments->text + used;

            segment.len = route_segment_decode(segment, text);
            segment.at = text;
            used += segment.len;
        }
        segments->decoded[i] = segment;
    }
}

/* Under if_match one lease is one URL. Two paths could have one lease: by an escape that is the same lease
 * ("a%3Ab", "a:b"), or by parts that are put together in another way ("1:2" and "3", "1" and "2:3"). */
static const char *one_url(const struct route_match *match, const struct segments *segments)
{
    const struct route_own *own = match->route->own;
    const struct route_part *parts = own->lease.parts;

    for (unsigned i = 0; i < own->pattern.count; i++) {
        const char *literal = own->pattern.segments[i].text;

        if (literal != NULL ? !bytes_are(segments->at[i], literal)
                            : memchr(segments->at[i].at, '%', segments->at[i].len) != NULL) {
            return bad_spelling;
        }
    }
    for (unsigned i = 0; i + 2 < own->lease.count; i++) {
        struct bytes capture;

        if (parts[i].text != NULL) {
            continue;
        }
        capture = match->captures[parts[i].capture];
        if (memchr(capture.at, parts[i + 1].text[0], capture.len) != NULL) {
            return bad_separator;
        }
    }
    return NULL;
}

enum route_found route_find(const struct route_table *table, struct bytes raw_path, struct route_match *match,
                            const char **why)
{
    struct segments segments;
    unsigned index;

    *why = route_path_canonical(raw_path, match->path, &match->path_len);
    if (*why != NULL) {
        return ROUTE_BAD_PATH;
    }
    segments_take((struct bytes){match->path, match->path_len}, &segments);
    index = route_is_own_address(segments.decoded[0])
                ? ROUTE_NONE_FOUND
                : find(table->tree->root, segments.decoded, segments.count, ROUTE_NONE_FOUND);
    if (index == ROUTE_NONE_FOUND) {
        return ROUTE_NONE;
    }
    match->route = &table->routes[index];
    for (unsigned i = 0; i < match->route->own->pattern.captures; i++) {
        match->captures[i] = segments.at[match->route->own->pattern.places[i]];
    }
    if (!route_lease_expand(&match->route->own->lease, match->captures, match->lease, &match->lease_len) ||
        !name_is_lease((struct bytes){match->lease, match->lease_len})) {
        *why = bad_lease;
    } else if (match->route->aid == ROUTE_AID_IF_MATCH) {
        *why = one_url(match, &segments);
    }
    return *why == NULL ? ROUTE_FOUND : ROUTE_BAD_LEASE;
}

size_t route_probe_path(const struct route_match *match, char path[ROUTE_PATH_MAX])
{
    const struct route_template *probe = &match->route->own->probe;
    size_t len = 0;

    for (unsigned i = 0; i < probe->count; i++) {
        struct bytes piece = probe->parts[i].text != NULL ? bytes_of(probe->parts[i].text)
                                                          : match->captures[probe->parts[i].capture];

        /* The captures are in the lease too, so they are short; each stands here once. */
        assert(len + piece.len < ROUTE_PATH_MAX);
        memcpy(path + len, piece.at, piece.len);
        len += piece.len;
    }
    path[len] = '\0';
    return len;
}

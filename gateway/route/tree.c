/* tree.c - the first route that matches a path, however many there are: a tree of segments. */
#include <stdlib.h>

#include "gateway/route/route_internal.h"
#include "shared/text/memory.h"

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

/* -- growing */

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

/* -- finding */

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

unsigned route_tree_find(const struct route_tree *tree, const struct bytes *decoded, size_t count)
{
    return find(tree->root, decoded, count, ROUTE_NONE_FOUND);
}

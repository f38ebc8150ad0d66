/* json.c - strict reading on top of cJSON: cJSON has the tree and the decoded texts, the scanner says where
 * each value stands in the text, so that numbers and nested objects are taken as they were written. */
#include "shared/text/json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "shared/text/json_scan.h"

enum { FEW_MEMBERS = 8 };

/* One value. All values of a text stand in one array in the order in which they begin: the children of a
 * value follow it, the first at once, each next one where the one before it says. */
struct json {
    struct json_document *document;
    const cJSON *item;
    struct bytes raw;
    unsigned after; /* the number of the first value that is not inside this one */
};

struct json_document {
    cJSON *tree;
    struct json values[];
};

/* -- parsing */

static unsigned number_of(const struct json *json)
{
    return (unsigned)(json - json->document->values);
}

/* Pairs the items of cJSON's tree with the scanner's spans; returns the number behind the last in item. */
static unsigned bind(struct json_document *document, const cJSON *item, unsigned number)
{
    struct json *json = &document->values[number++];

    json->document = document;
    json->item = item;
    for (const cJSON *child = item->child; child; child = child->next)
        number = bind(document, child, number);
    json->after = number;
    return number;
}

static struct json_document *document_new(cJSON *tree, struct bytes text, const struct json_spans *spans)
{
    struct json_document *document = malloc(sizeof(*document) + spans->count * sizeof(document->values[0]));
    unsigned count;

    if (document == NULL)
        return NULL;
    document->tree = tree;
    for (unsigned i = 0; i < spans->count; i++) {
        const struct json_span *span = &spans->at[i];

        document->values[i].raw = (struct bytes){text.at + span->start, span->end - span->start};
    }
    count = bind(document, tree, 0);
    assert(count == spans->count);
    return document;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorting keeps thousands of members from costing their square. Without the memory for it they count as
 * repeated: not read is safe. */
static bool many_names_repeat(const cJSON *object, size_t count)
{
    const char **names = malloc(count * sizeof(*names));
    size_t n = 0;
    bool repeat = false;

    if (names == NULL)
        return true;
    for (const cJSON *child = object->child; child; child = child->next)
        names[n++] = child->string;
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 1; i < n && !repeat; i++)
        repeat = strcmp(names[i - 1], names[i]) == 0;
    free(names);
    return repeat;
}

static bool few_names_repeat(const cJSON *object)
{
    for (const cJSON *a = object->child; a; a = a->next) {
        for (const cJSON *b = a->next; b; b = b->next) {
            if (strcmp(a->string, b->string) == 0)
                return true;
        }
    }
    return false;
}

/* The names as cJSON decoded them, so that "a" and "\u0061" are one. */
static bool names_repeat(const cJSON *item)
{
    size_t count = 0;

    for (const cJSON *child = item->child; child; child = child->next) {
        count++;
        if (child->child && names_repeat(child))
            return true;
    }
    if (!cJSON_IsObject(item))
        return false;
    return count <= FEW_MEMBERS ? few_names_repeat(item) : many_names_repeat(item, count);
}

static struct json *parse_scanned(struct bytes text, const struct json_spans *spans, const char **why)
{
    cJSON *tree = cJSON_ParseWithLengthOpts(text.at, text.len, NULL, 0);
    struct json_document *document;

    if (tree == NULL) {
        *why = "The JSON text cannot be read.";
        return NULL;
    }
    if (names_repeat(tree)) {
        *why = "A member stands there twice.";
        cJSON_Delete(tree);
        return NULL;
    }
    document = document_new(tree, text, spans);
    if (document == NULL) {
        *why = "There is no memory to read the JSON text.";
        cJSON_Delete(tree);
        return NULL;
    }
    return document->values;
}

struct json *json_parse(struct bytes text, unsigned depth_max, const char **why)
{
    struct json_spans spans;
    struct json *json = NULL;

    if (json_scan(text, depth_max, &spans, why))
        json = parse_scanned(text, &spans, why);
    json_spans_done(&spans);
    return json;
}

void json_free(struct json *json)
{
    if (json == NULL)
        return;
    assert(number_of(json) == 0); /* only the whole is freed */
    cJSON_Delete(json->document->tree);
    free(json->document);
}

/* -- finding */

static const struct json *first_child(const struct json *json)
{
    return json + 1 < json->document->values + json->after ? json + 1 : NULL;
}

static const struct json *next_child(const struct json *json, const struct json *child)
{
    return child->after < json->after ? &json->document->values[child->after] : NULL;
}

static const struct json *member(const struct json *json, const char *key)
{
    for (const struct json *child = first_child(json); child; child = next_child(json, child)) {
        if (strcmp(child->item->string, key) == 0)
            return child;
    }
    return NULL;
}

const char *json_unknown(const struct json *json, const char *const *names)
{
    for (const struct json *child = first_child(json); child; child = next_child(json, child)) {
        const char *const *name = names;

        while (*name && strcmp(*name, child->item->string) != 0)
            name++;
        if (*name == NULL)
            return child->item->string;
    }
    return NULL;
}

/* -- values */

static bool integer_of(struct bytes raw, int64_t *value)
{
    bool negative = raw.at[0] == '-';
    int64_t sum = 0;

    for (size_t i = negative; i < raw.len; i++) {
        int digit = raw.at[i] - '0';

        if (digit < 0 || digit > 9) /* a fraction or an exponent */
            return false;
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_sub_overflow(sum, digit, &sum))
            return false;
    }
    /* Counted downwards, because INT64_MIN has no positive twin. */
    if (!negative && sum == INT64_MIN)
        return false;
    *value = negative ? sum : -sum;
    return true;
}

enum json_found json_get_int(const struct json *json, const char *key, int64_t *value)
{
    const struct json *found = member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    return cJSON_IsNumber(found->item) && integer_of(found->raw, value) ? JSON_FOUND : JSON_MISTYPED;
}

enum json_found json_get_bool(const struct json *json, const char *key, bool *value)
{
    const struct json *found = member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    if (!cJSON_IsBool(found->item))
        return JSON_MISTYPED;
    *value = cJSON_IsTrue(found->item);
    return JSON_FOUND;
}

static bool text_of(const struct json *json, struct bytes *value)
{
    if (!cJSON_IsString(json->item))
        return false;
    *value = bytes_of(json->item->valuestring);
    return true;
}

enum json_found json_get_text(const struct json *json, const char *key, struct bytes *value)
{
    const struct json *found = member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    return text_of(found, value) ? JSON_FOUND : JSON_MISTYPED;
}

/* Copies valid JSON without the white space between its parts (to nowhere if buf is NULL); its length. */
static size_t minify(struct bytes raw, char *buf)
{
    bool in_text = false;
    size_t len = 0;

    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.at[i];
        bool escape = in_text && c == '\\'; /* the next byte cannot end the text */

        if (!in_text && (c == ' ' || c == '\n' || c == '\t' || c == '\r'))
            continue;
        if (c == '"')
            in_text = !in_text;
        if (buf)
            buf[len] = c;
        len++;
        if (escape) {
            i++;
            if (buf)
                buf[len] = raw.at[i];
            len++;
        }
    }
    return len;
}

enum json_found json_get_object_raw(const struct json *json, const char *key, char *buf, size_t size,
                                    size_t *len)
{
    const struct json *found = member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    if (!cJSON_IsObject(found->item))
        return JSON_MISTYPED;
    *len = minify(found->raw, NULL);
    if (*len <= size)
        minify(found->raw, buf);
    return JSON_FOUND;
}

const struct json *json_get_object(const struct json *json, const char *key, enum json_found *found)
{
    const struct json *object = member(json, key);

    *found = object == NULL ? JSON_ABSENT : cJSON_IsObject(object->item) ? JSON_FOUND : JSON_MISTYPED;
    return *found == JSON_FOUND ? object : NULL;
}

/* -- lists */

size_t json_list_count(const struct json *json, const char *key, enum json_found *found)
{
    const struct json *list = member(json, key);

    *found = list == NULL ? JSON_ABSENT : cJSON_IsArray(list->item) ? JSON_FOUND : JSON_MISTYPED;
    return *found == JSON_FOUND ? (size_t)cJSON_GetArraySize(list->item) : 0;
}

static const struct json *list_element(const struct json *json, const char *key, size_t i)
{
    const struct json *list = member(json, key);
    const struct json *element;

    if (list == NULL || !cJSON_IsArray(list->item))
        return NULL;
    element = first_child(list);
    while (element && i-- > 0)
        element = next_child(list, element);
    return element;
}

const struct json *json_list_object(const struct json *json, const char *key, size_t i)
{
    const struct json *element = list_element(json, key, i);

    return element && cJSON_IsObject(element->item) ? element : NULL;
}

bool json_list_text(const struct json *json, const char *key, size_t i, struct bytes *value)
{
    const struct json *element = list_element(json, key, i);

    return element && text_of(element, value);
}

bool json_list_int(const struct json *json, const char *key, size_t i, int64_t *value)
{
    const struct json *element = list_element(json, key, i);

    return element && cJSON_IsNumber(element->item) && integer_of(element->raw, value);
}

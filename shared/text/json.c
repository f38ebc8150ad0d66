/* json.c - strict reading on top of cJSON: a scanner checks the grammar and says where each value stands,
 * cJSON has the tree and the decoded texts; numbers and nested objects are taken as they were written. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/text/ascii.h"
#include "shared/text/json.h"
#include "shared/text/utf8.h"

/* == a recursive descent over RFC 8259 that keeps nothing but where each value stands. */

enum {
    JSON_DEPTH_MOST = 64,   /* the largest depth_max; the scanner and json.c recurse so deep */
    JSON_NUMBER_BYTES = 63, /* cJSON 1.7.15 reads no further (number_c_string in parse_number, cJSON.c) */
    JSON_TEXT_BYTES = 256 * 1024 * 1024,
    JSON_SPANS_FEW = 48,
    JSON_NAME_SHOWN = 64,
    JSON_PLACE_SIZE = 128
};

/* Where a value stands in the text. */
struct json_span {
    uint32_t start, end;
};

struct json_spans {
    struct json_span *at; /* few, or malloc'd when there are more */
    unsigned count, size;
    struct json_span few[JSON_SPANS_FEW];
};

struct scan {
    const char *start, *at, *end;
    unsigned depth, depth_max;
    struct json_spans *spans;
    const char *member; /* the last of the object itself, from its quote on; NULL: none yet */
    const char *nul;    /* the first one in whose value stands \u0000: a fault only when there is no other */
    const char *why;
};

static const char has_nul[] = "A text must not have \\u0000 in it.",
                  too_deep[] = "The JSON text has too many levels.",
                  no_memory[] = "There is no memory to read the JSON text.";

static bool scan_value(struct scan *s);

static bool fail(struct scan *s, const char *why)
{
    s->why = why;
    return false;
}

/* -- plain bytes, eight at a time */

static const uint64_t ONES = 0x0101010101010101u, HIGHS = 0x8080808080808080u;

/* The first zero byte has its high bit set in the result; all bytes must be below 0x80. */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - ONES) & HIGHS;
}

static bool word_is_plain(uint64_t word)
{
    uint64_t below_space = (word - ONES * 0x20) & HIGHS;

    if (word & HIGHS)
        return false;
    return !(below_space | zero_bytes(word ^ ONES * '"') | zero_bytes(word ^ ONES * '\\'));
}

static bool char_is_plain(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

size_t json_plain_length(struct bytes text)
{
    size_t i = 0;
    uint64_t word;

    for (; i + sizeof(word) <= text.len; i += sizeof(word)) {
        memcpy(&word, text.at + i, sizeof(word));
        if (!word_is_plain(word))
            break;
    }
    while (i < text.len && char_is_plain(text.at[i]))
        i++;
    return i;
}

/* -- spans */

static bool spans_grow(struct json_spans *spans)
{
    unsigned size = spans->size * 2;
    struct json_span *old = spans->at == spans->few ? NULL : spans->at;
    struct json_span *at = realloc(old, size * sizeof(*at));

    if (at == NULL)
        return false;
    if (old == NULL)
        memcpy(at, spans->few, sizeof(spans->few));
    spans->at = at;
    spans->size = size;
    return true;
}

/* Opens the span of a value that begins here, and gives its number. */
static bool span_begin(struct scan *s, unsigned *number)
{
    struct json_spans *spans = s->spans;

    if (spans->count == spans->size && !spans_grow(spans))
        return fail(s, no_memory);
    spans->at[spans->count].start = (uint32_t)(s->at - s->start);
    *number = spans->count++;
    return true;
}

/* -- the grammar */

static char peek(const struct scan *s)
{
    return s->at < s->end ? *s->at
                          : '\0'; /* NUL is nowhere right outside of a text, so it may stand for the end */
}

static bool take(struct scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

/* The four digits behind "\u", or -1. */
static int scan_hex4(struct scan *s)
{
    int unit = 0;

    if (s->end - s->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = ascii_hex_value(*s->at++);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Behind "\u". */
static bool scan_unicode_escape(struct scan *s)
{
    int unit = scan_hex4(s);

    if (unit < 0)
        return fail(s, "\\u in a text needs four hexadecimal digits.");
    if (unit == 0 && s->nul == NULL)
        s->nul = s->member;
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    if (unit <= 0xDBFF && take(s, '\\') && take(s, 'u')) {
        unit = scan_hex4(s);
        if (unit >= 0xDC00 && unit <= 0xDFFF)
            return true;
    }
    return fail(s, "A text has half of a surrogate pair.");
}

/* Behind the backslash. */
static bool scan_escape(struct scan *s)
{
    if (take(s, 'u'))
        return scan_unicode_escape(s);
    if (peek(s) == '\0' || strchr("\"\\/bfnrt", *s->at) == NULL)
        return fail(s, "A text has a backslash that JSON does not know.");
    s->at++;
    return true;
}

/* At a byte of a text that is not plain, and not its end. */
static bool scan_special(struct scan *s)
{
    size_t length;

    if (s->at == s->end)
        return fail(s, "A text has no closing quote.");
    if (take(s, '\\'))
        return scan_escape(s);
    if ((unsigned char)*s->at < 0x20)
        return fail(s, "A text has a control character that is not escaped.");
    length = utf8_length((struct bytes){s->at, (size_t)(s->end - s->at)});
    if (length == 0)
        return fail(s, "A text is not valid UTF-8.");
    s->at += length;
    return true;
}

/* At the opening quote. */
static bool scan_text(struct scan *s)
{
    s->at++;
    for (;;) {
        s->at += json_plain_length((struct bytes){s->at, (size_t)(s->end - s->at)});
        if (take(s, '"'))
            return true;
        if (!scan_special(s))
            return false;
    }
}

static bool scan_digits(struct scan *s)
{
    const char *first = s->at;

    while (ascii_is_digit(peek(s)))
        s->at++;
    return s->at > first;
}

static bool number_is_right(struct scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            take(s, '-');
        if (!scan_digits(s))
            return false;
    }
    return true;
}

static bool scan_number(struct scan *s)
{
    const char *first = s->at;

    if (!number_is_right(s) || ascii_is_digit(peek(s)))
        return fail(s, "A number is not written as JSON wants.");
    if (s->at - first > JSON_NUMBER_BYTES)
        return fail(s, "A number has more than 63 characters.");
    return true;
}

static bool scan_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i]);

        if ((size_t)(s->end - s->at) >= length && memcmp(s->at, words[i], length) == 0) {
            s->at += length;
            return true;
        }
    }
    return fail(s, s->at == s->end ? "The JSON text ends too early." : "A value is missing or is not JSON.");
}

static bool scan_member(struct scan *s)
{
    skip_space(s);
    if (peek(s) != '"')
        return fail(s, "A member has no name in quotes.");
    s->member = s->depth == 1 ? s->at : s->member;
    const char *nul = s->nul;
    if (!scan_text(s))
        return false;
    if (s->nul != nul)
        return fail(s, "A member's name must not have \\u0000 in it.");
    skip_space(s);
    if (!take(s, ':'))
        return fail(s, "A colon is missing behind a member's name.");
    return scan_value(s);
}

/* At the opening bracket; each element is read by scan_element. */
static bool scan_elements(struct scan *s, char closing, bool (*scan_element)(struct scan *s))
{
    if (s->depth == s->depth_max)
        return fail(s, too_deep);
    s->depth++;
    s->at++;
    skip_space(s);
    if (!take(s, closing)) {
        do {
            if (!scan_element(s))
                return false;
            skip_space(s);
        } while (take(s, ','));
        if (!take(s, closing))
            return fail(s, "A comma or a closing bracket is missing.");
    }
    s->depth--;
    return true;
}

static bool scan_bare_value(struct scan *s)
{
    char c = peek(s);

    if (c == '{')
        return scan_elements(s, '}', scan_member);
    if (c == '[')
        return scan_elements(s, ']', scan_value);
    if (c == '"')
        return scan_text(s);
    return c == '-' || ascii_is_digit(c) ? scan_number(s) : scan_word(s);
}

static bool scan_value(struct scan *s)
{
    unsigned span;

    skip_space(s);
    if (!span_begin(s, &span) || !scan_bare_value(s))
        return false;
    s->spans->at[span].end = (uint32_t)(s->at - s->start);
    return true;
}

static bool scan_all(struct scan *s)
{
    if (s->end - s->start > JSON_TEXT_BYTES)
        return fail(s, "The JSON text is too long.");
    skip_space(s);
    if (peek(s) != '{')
        return fail(s, "The JSON text is not an object.");
    if (!scan_value(s))
        return false;
    skip_space(s);
    if (s->at != s->end)
        return fail(s, "Something stands behind the JSON object.");
    s->member = s->nul;
    return s->nul == NULL || fail(s, has_nul);
}

/* -- what is wrong */

/* What came may go to a terminal. */
static const char *name_show(struct bytes name, char shown[JSON_NAME_SHOWN + 1])
{
    size_t i;

    for (i = 0; i < name.len && i < JSON_NAME_SHOWN; i++)
        shown[i] = char_is_plain(name.at[i]) && name.at[i] != 0x7f ? name.at[i] : '?';
    shown[i] = '\0';
    return shown;
}

static void fault_fill(const struct scan *s, struct json_fault *fault)
{
    size_t left = s->member != NULL ? (size_t)(s->at - s->member) : 0;
    struct bytes name = {left > 1 ? s->member + 1 : NULL, left > 1 ? left - 1 : 0};
    char shown[JSON_NAME_SHOWN + 1], levels[64];
    const char *why = s->why;

    if (fault == NULL)
        return;
    if (why == too_deep) {
        snprintf(levels, sizeof(levels), "The JSON text may have %u levels.", s->depth_max);
        why = levels;
    }
    name_show(bytes_cut(&name, '"'), shown);
    fault->has_nul = why == has_nul;
    fault->no_memory = why == no_memory;
    fault->at = (size_t)(s->at - s->start);
    snprintf(fault->why, sizeof(fault->why), left > 0 ? "%.*s, at the member %s." : "%.*s.",
             (int)strlen(why) - 1, why, shown);
}

/* Whether text is one object with white space around it, nested at most depth_max levels; spans then has
 * every value in the order in which they begin, the object itself first. Repeated members are not looked for
 * here. In any case json_spans_done() follows. */
static bool json_scan(struct bytes text, unsigned depth_max, struct json_spans *spans,
                      struct json_fault *fault)
{
    struct scan s = {.depth_max = depth_max, .spans = spans};

    assert(depth_max >= 1 && depth_max <= JSON_DEPTH_MOST);
    spans->at = spans->few;
    spans->count = 0;
    spans->size = JSON_SPANS_FEW;
    s.start = s.at = text.len ? text.at : "";
    s.end = s.start + text.len;
    if (scan_all(&s))
        return true;
    fault_fill(&s, fault);
    return false;
}

/* == strict reading on top of cJSON: cJSON has the tree and the decoded texts, the scanner says where
 * each value stands in the text, so that numbers and nested objects are taken as they were written. */

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

/* Sorting keeps thousands of members from costing their square. It needs memory, or says no_memory. */
static const char *many_names_repeat(const cJSON *object, size_t count)
{
    const char **names = malloc(count * sizeof(*names)), *repeated = NULL;
    size_t n = 0;

    if (names == NULL)
        return no_memory;
    for (const cJSON *child = object->child; child; child = child->next)
        names[n++] = child->string;
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 1; i < n && repeated == NULL; i++)
        repeated = strcmp(names[i - 1], names[i]) == 0 ? names[i] : NULL;
    free(names);
    return repeated;
}

static const char *few_names_repeat(const cJSON *object)
{
    for (const cJSON *a = object->child; a; a = a->next) {
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->string, b->string) == 0)
                return a->string;
    }
    return NULL;
}

/* The first name, at any level, that an object has twice, as cJSON decoded it, so that "a" and "\u0061" are
 * one; NULL: none. */
static const char *names_repeat(const cJSON *item)
{
    const char *repeated = NULL;
    size_t count = 0;

    for (const cJSON *child = item->child; child; child = child->next) {
        count++;
        if (child->child && (repeated = names_repeat(child)) != NULL)
            return repeated;
    }
    if (!cJSON_IsObject(item))
        return NULL;
    return count <= FEW_MEMBERS ? few_names_repeat(item) : many_names_repeat(item, count);
}

/* Where the name that names_repeat() has found stands: "a.list[2].name". */
static void repeated_show(const cJSON *item, const char *repeated, char place[JSON_PLACE_SIZE])
{
    char shown[JSON_NAME_SHOWN + 1];
    size_t len = 0;

    while (item != NULL && len < JSON_PLACE_SIZE) {
        const cJSON *child = item->child;
        unsigned i = 0;

        for (; child != NULL && (child->child == NULL || names_repeat(child) == NULL); child = child->next)
            i++;
        name_show(bytes_of(child != NULL ? child->string : repeated), shown);
        len += (size_t)(cJSON_IsArray(item)
                            ? snprintf(place + len, JSON_PLACE_SIZE - len, "[%u]", i)
                            : snprintf(place + len, JSON_PLACE_SIZE - len, len > 0 ? ".%s" : "%s", shown));
        item = child;
    }
}

static struct json *parse_scanned(struct bytes text, const struct json_spans *spans, struct json_fault *fault)
{
    cJSON *tree = cJSON_ParseWithLengthOpts(text.at, text.len, NULL, 0);
    const char *repeated = tree != NULL ? names_repeat(tree) : NULL;
    struct json_document *document = tree != NULL && repeated == NULL ? document_new(tree, text, spans)
                                                                      : NULL;
    bool is_twice = repeated != NULL && repeated != no_memory;
    char place[JSON_PLACE_SIZE];

    if (document != NULL)
        return document->values;
    if (is_twice)
        repeated_show(tree, repeated, place);
    if (fault != NULL) {
        fault->has_nul = false;
        fault->no_memory = !is_twice; /* cJSON reads whatever the scanner has taken */
        fault->at = 0;
        snprintf(fault->why, sizeof(fault->why), is_twice ? "The member %s stands there twice." : "%s",
                 is_twice ? place : no_memory);
    }
    cJSON_Delete(tree);
    return NULL;
}

struct json *json_parse(struct bytes text, unsigned depth_max, struct json_fault *fault)
{
    struct json_spans spans;
    struct json *json = NULL;

    if (json_scan(text, depth_max, &spans, fault))
        json = parse_scanned(text, &spans, fault);
    if (spans.at != spans.few)
        free(spans.at);
    return json;
}

void json_free(struct json *json)
{
    if (json == NULL)
        return;
    assert(json == json->document->values); /* only the whole is freed */
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

const struct json *json_member(const struct json *json, const char *key)
{
    for (const struct json *child = first_child(json); child; child = next_child(json, child))
        if (strcmp(child->item->string, key) == 0)
            return child;
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

bool json_is_int(const struct json *json, int64_t *value)
{
    return cJSON_IsNumber(json->item) && integer_of(json->raw, value);
}

enum json_found json_get_int(const struct json *json, const char *key, int64_t *value)
{
    const struct json *found = json_member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    return json_is_int(found, value) ? JSON_FOUND : JSON_MISTYPED;
}

enum json_found json_get_bool(const struct json *json, const char *key, bool *value)
{
    const struct json *found = json_member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    if (!cJSON_IsBool(found->item))
        return JSON_MISTYPED;
    *value = cJSON_IsTrue(found->item);
    return JSON_FOUND;
}

bool json_is_text(const struct json *json, struct bytes *value)
{
    if (!cJSON_IsString(json->item))
        return false;
    *value = bytes_of(json->item->valuestring);
    return true;
}

enum json_found json_get_text(const struct json *json, const char *key, struct bytes *value)
{
    const struct json *found = json_member(json, key);

    if (found == NULL)
        return JSON_ABSENT;
    return json_is_text(found, value) ? JSON_FOUND : JSON_MISTYPED;
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
    const struct json *found = json_member(json, key);

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
    const struct json *object = json_member(json, key);

    *found = object == NULL ? JSON_ABSENT : cJSON_IsObject(object->item) ? JSON_FOUND : JSON_MISTYPED;
    return *found == JSON_FOUND ? object : NULL;
}

/* -- lists */

size_t json_list_count(const struct json *json, const char *key, enum json_found *found)
{
    const struct json *list = json_member(json, key);

    *found = list == NULL ? JSON_ABSENT : cJSON_IsArray(list->item) ? JSON_FOUND : JSON_MISTYPED;
    return *found == JSON_FOUND ? (size_t)cJSON_GetArraySize(list->item) : 0;
}

static const struct json *list_element(const struct json *json, const char *key, size_t i)
{
    const struct json *list = json_member(json, key);
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

    return element && json_is_text(element, value);
}

bool json_list_int(const struct json *json, const char *key, size_t i, int64_t *value)
{
    const struct json *element = list_element(json, key, i);

    return element && json_is_int(element, value);
}

const struct json *json_next(const struct json *json, const struct json *before)
{
    return before == NULL ? first_child(json) : next_child(json, before);
}

struct bytes json_name(const struct json *member)
{
    return bytes_of(member->item->string);
}

enum json_kind json_kind(const struct json *json)
{
    return cJSON_IsObject(json->item)   ? JSON_OBJECT
           : cJSON_IsArray(json->item)  ? JSON_LIST
           : cJSON_IsString(json->item) ? JSON_TEXT
                                        : JSON_OTHER;
}

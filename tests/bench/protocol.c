/* protocol.c - as much of HTTP and of Redis' protocol as tells that an answer is whole, and what it says. */
#include "tests/bench/protocol.h"

#include <stdlib.h>

struct bytes http_answer_header(struct bytes answer, const char *name_and_colon)
{
    size_t name_len = strlen(name_and_colon);
    const char *at = memmem(answer.at, answer.len, name_and_colon, name_len), *end;

    if (!at)
        return (struct bytes){NULL, 0};
    at += name_len;
    end = memmem(at, answer.len - (size_t)(at - answer.at), "\r\n", 2);
    return end ? (struct bytes){at, (size_t)(end - at)} : (struct bytes){NULL, 0};
}

long http_measure(struct bytes in, struct bytes *word)
{
    const char *end = memmem(in.at, in.len, "\r\n\r\n", 4);
    struct bytes head, length;

    if (!end)
        return ANSWER_PART;
    if (memcmp(in.at, "HTTP/1.1 ", 9) != 0)
        return ANSWER_BAD;
    *word = (struct bytes){in.at + 9, 3};
    head = (struct bytes){in.at, (size_t)(end - in.at) + 4};
    if (bytes_are(*word, "204"))
        return (long)head.len;
    length = http_answer_header(head, "Content-Length: ");
    if (length.len == 0) /* chunked, or until the end of the connection: nothing measured here answers so */
        return ANSWER_BAD;
    head.len += strtoul(length.at, NULL, 10);
    return head.len <= in.len ? (long)head.len : ANSWER_PART;
}

/* One line or one text of a reply from at on: its length, its content in word. count is raised by the values
 * that it announces. */
static long resp_value(struct bytes in, size_t at, struct bytes *word, long *count)
{
    const char *line = in.at + at, *end = memmem(line, in.len - at, "\r\n", 2);
    long number;

    if (!end)
        return ANSWER_PART;
    *word = (struct bytes){line + 1, (size_t)(end - line) - 1};
    number = strtol(line + 1, NULL, 10);
    switch (line[0]) {
    case '+':
    case ':': return end + 2 - line;
    case '-': *word = (struct bytes){line, (size_t)(end - line)}; return end + 2 - line;
    case '*': *count += number > 0 ? number : 0; return end + 2 - line;
    case '$': break;
    default: return ANSWER_BAD;
    }
    if (number < 0)
        return end + 2 - line;
    *word = (struct bytes){end + 2, (size_t)number};
    number += end + 4 - line;
    return (size_t)number <= in.len - at ? number : ANSWER_PART;
}

long resp_measure(struct bytes in, struct bytes *word)
{
    size_t at = 0;
    long left = 1, len;
    struct bytes text;

    *word = (struct bytes){NULL, 0};
    for (; left > 0; left--) {
        char kind = at < in.len ? in.at[at] : 0;

        if (at == in.len)
            return ANSWER_PART;
        len = resp_value(in, at, &text, &left);
        if (len <= 0)
            return len;
        if (!word->at && kind != '*')
            *word = text;
        at += (size_t)len;
    }
    return (long)at;
}

/* test_problem_page.c - a problem's page says what the table says, and nothing in it becomes markup. */
#include "shared/service/service.h"
#include "tests/unit/check.h"

static bool has(const struct json_out *page, const char *part)
{
    return memmem(page->at, page->len, part, strlen(part)) != NULL;
}

static unsigned count(const struct json_out *page, char c)
{
    unsigned n = 0;

    for (size_t i = 0; i < page->len; i++)
        n += page->at[i] == c;
    return n;
}

TEST(every_problem_has_a_page_with_its_code_title_and_numbers)
{
    for (unsigned i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++) {
        const struct problem_info *info = problem_info((enum problem)i);
        struct json_out page;
        char part[256];

        json_out_init(&page);
        problem_page_write(problem_info((enum problem)i), &page);
        CHECK(page.len > 15 && memcmp(page.at, "<!DOCTYPE html>", 15) == 0 && has(&page, "</html>\n"));
        snprintf(part, sizeof(part), "<code>%s</code>", info->code);
        CHECK(has(&page, part));
        snprintf(part, sizeof(part), "HTTP status</th><td>%u</td>", info->status);
        CHECK(has(&page, part));
        snprintf(part, sizeof(part), "Exit status of pawl</th><td>%d: ", info->exit_status);
        CHECK(has(&page, part));
        CHECK(has(&page, info->retryable ? "retryable is true" : "retryable is false"));
        CHECK_INT(count(&page, '<'), count(&page, '>'));
        json_out_done(&page);
    }
}

#define TEST_JSON(sentence)                                                                                  \
    TEST_WITH(sentence, struct json_out, page, json_out_init(page), json_out_done(page))

TEST_JSON(nothing_in_a_text_becomes_markup)
{
    static const struct problem_info evil = {"a<b>\"c",  400, false, 1, "<script>alert('x')</script> & more",
                                             "&lt; </p>"};

    problem_page_write(&evil, page);
    CHECK(!has(page, "<script>") && !has(page, "& more") && !has(page, "&lt; </p>"));
    CHECK(has(page, "<h1>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; more</h1>"));
    CHECK(has(page, "<p>&amp;lt; &lt;/p&gt;</p>"));
    CHECK(has(page, "<code>a&lt;b&gt;&quot;c</code>"));
}

TEST_JSON(a_page_needs_nothing_from_elsewhere)
{
    problem_page_write(problem_info(PROBLEM_STALE_TOKEN), page);
    CHECK(!has(page, "src=") && !has(page, "href=") && !has(page, "url(") && !has(page, "http://"));
    CHECK(has(page, "Stop; do not retry with this token."));
}

CHECK_MAIN

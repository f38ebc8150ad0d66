/* test_problem.c - the table of problems is whole and keeps to the contract; its pages say what it says. */
#include <ctype.h>

#include "shared/service/service.h"
#include "shared/text/problem.h"
#include "tests/unit/check.h"

static bool is_kebab_case(const char *code)
{
    for (const char *at = code; *at; at++)
        if (!islower((unsigned char)*at) && *at != '-')
            return false;
    return code[0] != '-' && code[0] != '\0' && code[strlen(code) - 1] != '-';
}

TEST(every_problem_is_found_by_its_code_and_only_by_it)
{
    for (unsigned i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++)
        CHECK_INT(problem_find(bytes_of(problem_info((enum problem)i)->code)), i);
    CHECK_INT(problem_find(BYTES("")), PROBLEM_NONE);
    CHECK_INT(problem_find(BYTES("lease-hel")), PROBLEM_NONE);
    CHECK_INT(problem_find(BYTES("lease-held ")), PROBLEM_NONE);
    CHECK_INT(problem_find(BYTES("Lease-Held")), PROBLEM_NONE);
}

TEST(every_problem_has_a_code_a_status_and_sentences)
{
    for (unsigned i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++) {
        const struct problem_info *info = problem_info((enum problem)i);

        CHECK(is_kebab_case(info->code));
        CHECK(info->status >= 400 && info->status <= 599);
        CHECK(info->title[0] && info->title[strlen(info->title) - 1] != '.');
        CHECK(info->detail[0] && info->detail[strlen(info->detail) - 1] == '.');
    }
}

TEST(every_exit_status_is_one_of_the_contract)
{
    static const int statuses[] = {1, 64, 69, 70, 75, 76, 77, 78};

    for (unsigned i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++) {
        bool known = false;

        for (size_t j = 0; j < sizeof(statuses) / sizeof(statuses[0]); j++)
            known = known || problem_info((enum problem)i)->exit_status == statuses[j];
        CHECK(known);
    }
}

struct told {
    enum problem problem;
    const char *code;
    unsigned status;
    bool retryable;
    int exit_status;
};

/* Those whose numbers the contract names. */
static const struct told told[] = {
    {PROBLEM_INVALID_REQUEST, "invalid-request", 400, false, 64},
    {PROBLEM_OUT_OF_RANGE, "out-of-range", 422, false, 64},
    {PROBLEM_LEASE_HELD, "lease-held", 409, true, 75},
    {PROBLEM_LEASE_LOST, "lease-lost", 410, false, 76},
    {PROBLEM_STALE_TOKEN, "stale-token", 412, false, 76},
    {PROBLEM_LEASE_EXPIRED, "lease-expired", 412, false, 76},
    {PROBLEM_BAD_SIGNATURE, "bad-signature", 403, false, 77},
    {PROBLEM_TOKEN_REQUIRED, "token-required", 428, false, 64},
    {PROBLEM_TOKEN_EXHAUSTED, "token-exhausted", 503, false, 70},
    {PROBLEM_STORE_UNAVAILABLE, "store-unavailable", 503, true, 69},
    {PROBLEM_OUTCOME_UNKNOWN, "outcome-unknown", 504, true, 69},
};

TEST(the_numbers_that_the_contract_names_are_these)
{
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        const struct problem_info *info = problem_info(told[i].problem);

        CHECK_TEXT(bytes_of(info->code), bytes_of(told[i].code));
        CHECK_INT(info->status, told[i].status);
        CHECK_INT(info->retryable, told[i].retryable);
        CHECK_INT(info->exit_status, told[i].exit_status);
    }
}

/* -- pages: nothing in a text becomes markup */

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

        json_out_init(&page);
        problem_page_write(problem_info((enum problem)i), &page);
        CHECK(page.len > 15 && memcmp(page.at, "<!DOCTYPE html>", 15) == 0 && has(&page, "</html>\n"));
        CHECK(has(&page, textf("<code>%s</code>", info->code)));
        CHECK(has(&page, textf("HTTP status</th><td>%u</td>", info->status)));
        CHECK(has(&page, textf("Exit status of pawl</th><td>%d: ", info->exit_status)));
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

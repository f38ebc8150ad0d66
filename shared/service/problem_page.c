/* problem_page.c - what a code means and what to do, as a small page. */
#include "shared/service/problem_page.h"

static void put(struct json_out *out, const char *text)
{
    json_out_append(out, bytes_of(text));
}

/* Text as it stands in an element: https://html.spec.whatwg.org/multipage/syntax.html, "Text". */
static void put_text(struct json_out *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': put(out, "&amp;"); break;
        case '<': put(out, "&lt;"); break;
        case '>': put(out, "&gt;"); break;
        case '"': put(out, "&quot;"); break;
        case '\'': put(out, "&#39;"); break;
        default: json_out_append(out, (struct bytes){text, 1});
        }
    }
}

static void put_element(struct json_out *out, const char *open, const char *text, const char *close)
{
    put(out, open);
    put_text(out, text);
    put(out, close);
}

static void put_number_row(struct json_out *out, const char *name, int number, const char *behind)
{
    put_element(out, "<tr><th>", name, "</th><td>");
    json_out_append_int(out, number);
    put_element(out, "", behind, "</td></tr>\n");
}

/* The exit statuses of the command line (docs/contract.md, "Commands"). */
static const char *exit_meaning(int exit_status)
{
    switch (exit_status) {
    case 1: return ": refused or not found";
    case 64: return ": wrong usage";
    case 69: return ": the service cannot be reached or cannot do it now";
    case 70: return ": a bug";
    case 75: return ": held by another";
    case 76: return ": fenced off or lost";
    case 77: return ": not allowed";
    case 78: return ": configuration";
    default: return "";
    }
}

static void put_head(const struct problem_info *info, struct json_out *out)
{
    put(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put_element(out, "<title>", info->code, " - Pawl</title>\n");
    put(out,
        "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;"
        "color-scheme:light dark}th{text-align:left;padding-right:1rem;vertical-align:top;font-weight:normal}"
        "</style>\n</head>\n");
}

void problem_page_write_info(const struct problem_info *info, struct json_out *out)
{
    put_head(info, out);
    put_element(out, "<body>\n<h1>", info->title, "</h1>\n");
    put_element(out, "<p><code>", info->code, "</code></p>\n");
    put_element(out, "<h2>What it means, and what to do</h2>\n<p>", info->detail, "</p>\n");
    put(out, "<p>The answer itself may say more, in its member <code>detail</code>.</p>\n");
    put(out, "<h2>For programs</h2>\n<table>\n");
    put_number_row(out, "HTTP status", (int)info->status, "");
    put_element(out, "<tr><th>Send it again, unchanged?</th><td>",
                info->retryable ? "Yes, later: it may succeed (retryable is true)."
                                : "No, it will not help (retryable is false).",
                "</td></tr>\n");
    put_number_row(out, "Exit status of pawl", info->exit_status, exit_meaning(info->exit_status));
    put(out, "</table>\n</body>\n</html>\n");
}

void problem_page_write(enum problem problem, struct json_out *out)
{
    problem_page_write_info(problem_info(problem), out);
}

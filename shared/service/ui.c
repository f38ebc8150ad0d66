/* ui.c - the web pages: the files of api/ui, which the build has put into the program.
 *
 * They hold no data, so everybody may have them, and a link from another site may lead here; what they show
 * they ask of /v1 with the access token of who looks. */
#include "ui.h"
#include "shared/service/service.h"

/* Only what comes from here, nothing that stands in the page itself, and in nobody's frame. */
#define UI_POLICY                                                                                            \
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

/* Each is page.html, which looks at its own address; only these end without a type. */
static const char *const pages[] = {"", "leases", "lease", "why", "sessions", "session", "doubt", NULL};

/* What routes forward can read and do whatever the pages of its origin can: there they are not. */
static bool has_ui(struct http_request *req)
{
    const struct service *service = worker_of(req)->service;
    const struct service_settings *settings = &service->settings;
    const char *given = service->listen_given;

    if (settings->ui_listen != NULL)
        return http_is_own(req);
    return settings->routes == NULL &&
           (settings->ui || http_address_is_loopback(given[0] != '\0' ? given : settings->listen));
}

/* Whether the browser's list has this one, and not with q=0; a list of ETags, too. */
static bool header_has(const struct http_request *req, const char *name, const char *wanted)
{
    struct bytes left = http_header(req, name, NULL);

    while (left.len > 0) {
        struct bytes one = bytes_cut(&left, ','), what = bytes_trim(bytes_cut(&one, ';'));

        (void)bytes_take(&what, BYTES("W/"));
        if (bytes_are(what, wanted))
            return !bytes_are(bytes_trim(one), "q=0");
    }
    return false;
}

static const struct ui_file *file_find(struct bytes name)
{
    const struct ui_file *file = ui_files;

    for (const char *const *page = pages; *page != NULL; page++)
        if (bytes_are(name, *page))
            name = BYTES("page.html");
    while (file->name != NULL && !bytes_are(name, file->name))
        file++;
    return file->name != NULL ? file : NULL;
}

static enum step file_send(struct http_request *req, struct bytes name)
{
    bool is_served = has_ui(req);
    const struct ui_file *file = is_served ? file_find(name) : NULL;

    if (!is_served && worker_of(req)->service->settings.routes != NULL)
        return http_refuse_detail(req, PROBLEM_NOT_FOUND,
                                  "What this address forwards would share the origin of the web pages: they "
                                  "are at the address of --ui-listen, if it is given.");
    if (file == NULL)
        return http_refuse(req, PROBLEM_NOT_FOUND);
    bool packed = header_has(req, "Accept-Encoding", "gzip");

    http_reply_foreign(req); /* may be kept, and is asked for again each time */
    http_reply_header(req, "Cache-Control", BYTES("no-cache"));
    http_reply_header(req, "ETag", bytes_of(file->etag));
    http_reply_header(req, "Vary", BYTES("Accept-Encoding"));
    http_reply_header(req, "Content-Security-Policy", BYTES(UI_POLICY));
    http_reply_header(req, "X-Content-Type-Options", BYTES("nosniff"));
    http_reply_header(req, "Referrer-Policy", BYTES("no-referrer"));
    http_reply_header(req, "Cross-Origin-Opener-Policy", BYTES("same-origin"));
    if (header_has(req, "If-None-Match", file->etag + strlen("W/")))
        return http_answer(req, 304);
    if (packed)
        http_reply_header(req, "Content-Encoding", BYTES("gzip"));
    http_reply_static(req, file->type,
                      packed ? (struct bytes){(const char *)file->gzip, file->gzip_len}
                             : (struct bytes){(const char *)file->plain, file->plain_len});
    return http_answer(req, 200);
}

enum step ui_overview_page(struct http_request *req)
{
    return file_send(req, BYTES(""));
}

/* All addresses in the pages are relative. */
enum step ui_slash_page(struct http_request *req)
{
    if (!has_ui(req))
        return file_send(req, BYTES(""));
    http_reply_header(req, "Location", BYTES("ui/"));
    return http_answer(req, 303);
}

enum step ui_file_page(struct http_request *req)
{
    return file_send(req, http_path_part(req, 0));
}

bool service_sends_to_ui(struct http_request *req)
{
    return has_ui(req) && header_has(req, "Accept", "text/html");
}

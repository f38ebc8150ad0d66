/* precondition.c - what a write or a read says about the version that it expects, and which request it is. */
#include "gateway/precondition.h"

#include "shared/token/name.h"

/* W/"..." or "...": etagc is 0x21, 0x23 to 0x7E, or obs-text. */
static bool skip_tag(struct bytes *rest)
{
    size_t i = rest->len > 2 && memcmp(rest->at, "W/", 2) == 0 ? 2 : 0;

    if (i >= rest->len || rest->at[i] != '"')
        return false;
    for (i++; i < rest->len && rest->at[i] != '"'; i++) {
        unsigned char c = (unsigned char)rest->at[i];
        if (c <= 0x20 || c == 0x7F)
            return false;
    }
    if (i >= rest->len)
        return false;
    rest->at += i + 1;
    rest->len -= i + 1;
    return true;
}

bool precondition_is_strong_tag(struct bytes value)
{
    return value.len > 0 && value.at[0] == '"' && skip_tag(&value) && value.len == 0;
}

/* "*", or a list of entity tags, at least one. */
static bool is_tag_list(struct bytes value)
{
    struct bytes rest = value;

    if (bytes_are(value, "*"))
        return true;
    for (;;) {
        rest = bytes_trim(rest);
        if (!skip_tag(&rest))
            return false;
        rest = bytes_trim(rest);
        if (rest.len == 0)
            return true;
        if (rest.at[0] != ',')
            return false;
        rest.at++;
        rest.len--;
    }
}

/* Whether such a list has this strong tag; weakly: W/ in front of one in the list is left aside (RFC 9110
 * section 8.8.3.2). */
static bool lists(struct bytes list, struct bytes tag, bool weakly)
{
    bool found = bytes_are(list, "*");

    while (!found && list.len > 0) {
        struct bytes one = list = bytes_trim(list);

        if (!skip_tag(&list))
            return false;
        one.len -= list.len;
        if (weakly)
            bytes_take(&one, BYTES("W/"));
        found = bytes_equal(one, tag);
        list = bytes_trim(list);
        bytes_take(&list, BYTES(","));
    }
    return found;
}

bool precondition_holds(const struct precondition *precondition, struct bytes tag)
{
    if (precondition->if_match.len > 0 && !(tag.len > 0 && lists(precondition->if_match, tag, false)))
        return false;
    return tag.len == 0 || precondition->if_none_match.len == 0 ||
           !lists(precondition->if_none_match, tag, true);
}

static const char *tags_read(const struct http_request *req, const char *name, struct bytes *tags,
                             const char *wrong)
{
    unsigned count = 0;

    *tags = http_header(req, name, &count);
    return count == 0 || (count == 1 && is_tag_list(*tags)) ? NULL : wrong;
}

const char *precondition_read_tags(struct precondition *precondition, const struct http_request *req)
{
    const char *wrong = tags_read(req, "If-Match", &precondition->if_match,
                                  "The header If-Match must come once, as \"*\" or a list of quoted ETags.");

    return wrong != NULL
               ? wrong
               : tags_read(req, "If-None-Match", &precondition->if_none_match,
                           "The header If-None-Match must come once, as \"*\" or a list of quoted ETags.");
}

const char *precondition_read(struct precondition *precondition, const struct http_request *req)
{
    unsigned count = 0;
    const char *wrong = precondition_read_tags(precondition, req);

    precondition->idempotency_key = http_header(req, "Idempotency-Key", &count);
    if (wrong == NULL && count > 0 && (count > 1 || !name_is_idempotency_key(precondition->idempotency_key)))
        wrong = "The header Idempotency-Key must come once, with 1 to 128 visible ASCII characters.";
    return wrong;
}

void precondition_digest(struct precondition *precondition, const char *identity, struct bytes method,
                         struct bytes type, struct bytes encoding, struct bytes body)
{
    const struct bytes parts[] = {method, type, encoding, body, bytes_of(identity != NULL ? identity : "")};

    if (precondition->idempotency_key.len > 0) {
        digest_text(parts, sizeof(parts) / sizeof(parts[0]) - (identity == NULL), precondition->digest_text);
        precondition->digest = (struct bytes){precondition->digest_text, DIGEST_TEXT};
    }
}

void precondition_add(const struct precondition *precondition, struct fenced_call *fenced)
{
    fenced_begin_lease(fenced);
    fenced_add_key(fenced, keys_resource(fenced->resource_key, fenced->lease, fenced->resource));
    fenced_add_key(fenced, keys_gone(fenced->gone, fenced->on));
    fenced_add_fence(fenced);
    fenced_add(fenced, fenced->resource);
    fenced_add(fenced, precondition->if_match);
    fenced_add(fenced, precondition->if_none_match);
    fenced_add(fenced, precondition->idempotency_key);
    fenced_add(fenced, precondition->digest);
}

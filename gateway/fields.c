/* fields.c - what a header is by its name. */
#include "gateway/fields.h"

#include <strings.h>

#include "shared/ascii.h"

enum form { EXACT, BEGIN, END };

struct field_row {
    const char *text;
    size_t len;
    enum form form;
    unsigned kind;
};

static const struct field_row field_rows[] = {
#define FIELD(kind, form, text, known) {text, sizeof(text) - 1, form, FIELD_##kind},
#include "gateway/fields.def"
#undef FIELD
};

static bool row_fits(const struct field_row *row, struct bytes name)
{
    const char *at = name.at;

    if (row->form == EXACT ? name.len != row->len : name.len < row->len) {
        return false;
    }
    if (row->form == END) {
        at += name.len - row->len;
    }
    return (at[0] | 0x20) == (row->text[0] | 0x20) && strncasecmp(at, row->text, row->len) == 0;
}

unsigned field_kinds(struct bytes name)
{
    bool is_private = name.len > 2 && (name.at[0] | 0x20) == 'x' && name.at[1] == '-';
    struct bytes bare = is_private ? (struct bytes){name.at + 2, name.len - 2} : name;
    unsigned kinds = 0;

    for (size_t i = 0; i < sizeof(field_rows) / sizeof(field_rows[0]); i++) {
        const struct field_row *row = &field_rows[i];

        if (row_fits(row, row->kind == FIELD_OWN && row->form != END ? bare : name)) {
            kinds |= row->kind;
        }
    }
    return kinds;
}

bool field_is_plain(struct bytes name)
{
    return ascii_is_word(name, BYTES("-"));
}

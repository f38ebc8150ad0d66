/* fields.c - what a header is by its name. */
#include "gateway/fields.h"

#include <strings.h>

#include "shared/text/ascii.h"

enum form { EXACT, BEGIN, END };

static bool row_fits(enum form form, struct bytes text, struct bytes name)
{
    if (form == EXACT ? name.len != text.len : name.len < text.len)
        return false;
    return strncasecmp(form == END ? name.at + name.len - text.len : name.at, text.at, text.len) == 0;
}

/* Asked for each header that comes or goes: one comparison of a letter for almost every row. */
unsigned field_kinds(struct bytes name)
{
    bool is_private = name.len > 2 && (name.at[0] | 0x20) == 'x' && name.at[1] == '-';
    struct bytes bare = is_private ? (struct bytes){name.at + 2, name.len - 2} : name;
    int first = name.at[0] | 0x20, bare_first = bare.at[0] | 0x20, last = name.at[name.len - 1] | 0x20;
    unsigned kinds = 0;

#define FIELD(kind, form, text, known)                                                                       \
    if ((FIELD_##kind == FIELD_OWN && (form) != END)                                                         \
            ? ((text)[0] | 0x20) == bare_first && row_fits(form, BYTES(text), bare)                          \
            : ((form) == END ? ((text)[sizeof(text) - 2] | 0x20) == last : ((text)[0] | 0x20) == first) &&   \
                  row_fits(form, BYTES(text), name))                                                         \
        kinds |= FIELD_##kind;
#include "gateway/fields.def"
#undef FIELD
    return kinds;
}

bool field_is_plain(struct bytes name)
{
    size_t i = 0;

    while (i < name.len && (ascii_is_alnum(name.at[i]) || name.at[i] == '-'))
        i++;
    return i == name.len;
}

/* identity.c - the names of identities: one text for each, in a table of the process, since a hold keeps its
 * identity beyond the access file that named it. A name is only looked for while a file is read, so the lock
 * is never in the way of a request. */
#include <pthread.h>
#include <stdlib.h>

#include "shared/access/access_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

struct name {
    unsigned number;
    size_t len;
    char text[];
};

static struct {
    pthread_mutex_t lock;
    struct access_table table;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool access_is_name(struct bytes text)
{
    return text.len > 0 && text.len <= ACCESS_IDENTITY_MAX && ascii_is_alnum(text.at[0]) &&
           ascii_is_word(text, BYTES("._-"));
}

static const struct name *name_of(const char *identity)
{
    return (const struct name *)(const void *)(identity - offsetof(struct name, text));
}

static const char *name_new(struct bytes text)
{
    struct name *name = must_have(malloc(sizeof(*name) + text.len + 1));

    name->number = (unsigned)kept.table.count;
    name->len = text.len;
    memcpy(name->text, text.at, text.len);
    name->text[text.len] = '\0';
    access_table_add(&kept.table, ACCESS_OF_NAME, (struct bytes){name->text, text.len}, name->number);
    return name->text;
}

const char *access_identity_keep(struct bytes name)
{
    const struct access_entry *entry;
    const char *identity;

    pthread_mutex_lock(&kept.lock);
    entry = access_table_find(&kept.table, ACCESS_OF_NAME, name);
    identity = entry != NULL ? entry->key.at : name_new(name);
    pthread_mutex_unlock(&kept.lock);
    return identity;
}

unsigned access_identity_number(const char *identity)
{
    return name_of(identity)->number;
}

size_t access_identity_length(const char *identity)
{
    return name_of(identity)->len;
}

/* identity.c - the names of identities: one text for each, in a table of the process, since a hold keeps its
 * identity beyond the access file that named it. A name is only looked for while a file is read, so the lock
 * is never in the way of a request. */
#include <pthread.h>
#include <stdlib.h>

#include "shared/access/access_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

static struct {
    pthread_mutex_t lock;
    struct access_table table;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool access_is_name(struct bytes text)
{
    return text.len > 0 && text.len <= ACCESS_IDENTITY_MAX && ascii_is_alnum(text.at[0]) &&
           ascii_is_word(text, BYTES("._-"));
}

const char *access_identity_keep(struct bytes name)
{
    const struct access_entry *entry;
    const char *identity;

    pthread_mutex_lock(&kept.lock);
    entry = access_table_find(&kept.table, ACCESS_OF_NAME, name);
    identity = entry != NULL ? entry->key.at : must_have(strndup(name.at, name.len));
    if (entry == NULL)
        access_table_add(&kept.table, ACCESS_OF_NAME, (struct bytes){identity, name.len}, 0);
    pthread_mutex_unlock(&kept.lock);
    return identity;
}

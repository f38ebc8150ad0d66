/* table.c - texts of several kinds, each with a number: an open table, its entries one behind the other. */
#include <sodium.h>
#include <stdlib.h>

#include "shared/access/access_internal.h"
#include "shared/text/memory.h"

enum { SIZE_FIRST = 64 };

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/. Who could choose keys that meet writes the
 * file. */
static uint64_t hash_of(unsigned kind, struct bytes key)
{
    uint64_t hash = (14695981039346656037u ^ kind) * 1099511628211u;

    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.at[i]) * 1099511628211u;
    return hash ^ hash >> 32;
}

/* Where it stands, or would. */
static struct access_entry *place_of(const struct access_table *table, unsigned kind, struct bytes key)
{
    size_t i = hash_of(kind, key) & (table->size - 1);

    for (; table->entries[i].key.at != NULL; i = (i + 1) & (table->size - 1)) {
        const struct access_entry *entry = &table->entries[i];

        if (entry->kind == kind &&
            (kind == ACCESS_OF_TOKEN ? sodium_memcmp(entry->key.at, key.at, key.len) == 0
                                     : bytes_equal(entry->key, key)))
            break;
    }
    return &table->entries[i];
}

const struct access_entry *access_table_find(const struct access_table *table, unsigned kind,
                                             struct bytes key)
{
    const struct access_entry *entry = table->size > 0 ? place_of(table, kind, key) : NULL;

    return entry != NULL && entry->key.at != NULL ? entry : NULL;
}

static void table_grow(struct access_table *table)
{
    struct access_table larger = {.count = table->count,
                                  .size = table->size > 0 ? table->size * 2 : SIZE_FIRST};

    larger.entries = must_have(calloc(larger.size, sizeof(*larger.entries)));
    for (size_t i = 0; i < table->size; i++)
        if (table->entries[i].key.at != NULL)
            *place_of(&larger, table->entries[i].kind, table->entries[i].key) = table->entries[i];
    free(table->entries);
    *table = larger;
}

void access_table_add(struct access_table *table, unsigned kind, struct bytes key, unsigned value)
{
    if (table->size < (table->count + 1) * 2)
        table_grow(table);
    *place_of(table, kind, key) = (struct access_entry){key, kind, value};
    table->count++;
}

void access_table_free(struct access_table *table)
{
    free(table->entries);
    *table = (struct access_table){NULL, 0, 0};
}

/* identity.c - texts of several kinds, each with a number: an open table, its entries one behind the other;
 * and the names of identities: one text for each, in a table of the process, since a hold keeps its identity
 * beyond the access file that named it, and in front of each name what its identity uses. A name is only
 * looked for while a file is read, so the lock is never in the way of a request. */
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shared/access/access_internal.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"

/* -- the table */

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

/* -- names */

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
    if (entry == NULL) {
        struct access_use *use = must_have(calloc(1, sizeof(*use) + name.len + 1));

        memcpy(use->name, name.at, name.len);
        access_table_add(&kept.table, ACCESS_OF_NAME, (struct bytes){use->name, name.len}, 0);
        identity = use->name;
    } else {
        identity = entry->key.at;
    }
    pthread_mutex_unlock(&kept.lock);
    return identity;
}

/* -- what it uses */

struct access_use *access_use(const char *identity)
{
    return (struct access_use *)(void *)((char *)(uintptr_t)identity - offsetof(struct access_use, name));
}

/* What is counted in the store; the rest is counted where it begins and ends. */
void access_count_ends(void)
{
    static const enum access_quota counted[] = {ACCESS_HELD, ACCESS_SESSIONS, ACCESS_STORED_BYTES};

    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < 3 * kept.table.size; i++) {
        const char *identity = kept.table.entries[i / 3].key.at;
        enum access_quota quota = counted[i % 3];

        if (identity != NULL) {
            atomic_store(&access_use(identity)->used[quota], access_use(identity)->counting[quota]);
            access_use(identity)->counting[quota] = 0;
        }
    }
    pthread_mutex_unlock(&kept.lock);
}

/* The generic cell rate algorithm (ITU-T I.371): one number says how full the bucket is, without a lock. */
bool access_bucket_take(_Atomic uint64_t *bucket_ns, uint64_t now_us, int64_t per_s)
{
    const uint64_t second_ns = 1000000000u, one_ns = second_ns / (uint64_t)per_s, now_ns = now_us * 1000u;
    uint64_t full_ns = atomic_load_explicit(bucket_ns, memory_order_relaxed), next_ns;

    do {
        next_ns = (full_ns > now_ns ? full_ns : now_ns) + one_ns;
        if (next_ns > now_ns + second_ns)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(bucket_ns, &full_ns, next_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

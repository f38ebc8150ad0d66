/* safe.c - whether the store can lose what it has acknowledged: then an `ordered` route forwards no write. A
 * file of its own, because the benchmark puts another in its place (tests/bench/safe_any.c). */
#include "gateway/forward/forward_internal.h"

bool forward_store_is_safe(const struct forward *f)
{
    return store_unsafe(f->own->worker->store) == NULL;
}

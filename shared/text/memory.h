/* memory.h - memory that must be there: a process that gets none cannot keep its promises, and ends. */
#ifndef PAWL_SHARED_MEMORY_H
#define PAWL_SHARED_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

/* What an allocation has given; does not return when that is NULL. */
static inline void *must_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "pawl: out of memory\n");
        abort();
    }
    return memory;
}

#endif

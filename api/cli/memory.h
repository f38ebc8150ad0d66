/* memory.h - memory that a command must have: being out of it ends the program (70, a bug). */
#ifndef PAWL_CLI_MEMORY_H
#define PAWL_CLI_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

static inline void *cli_realloc(void *old, size_t size)
{
    void *memory = realloc(old, size > 0 ? size : 1);

    if (memory == NULL) {
        fputs("pawl: out of memory\n", stderr);
        exit(70);
    }
    return memory;
}

static inline void *cli_alloc(size_t size)
{
    return cli_realloc(NULL, size);
}

#endif

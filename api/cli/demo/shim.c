/* shim.c - a page of memory by which a demo makes a preloaded shim shift clocks and fail disks. */
#include "api/cli/demo/shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool shim_page_open(struct shim *shim, const char *object, char *why, size_t size)
{
    const char *options = getenv("ASAN_OPTIONS");
    char *whole = realpath(object, NULL);
    bool found = whole != NULL && access(whole, R_OK) == 0 && strlen(whole) < SHIM_PATH_SIZE - 16;
    void *at = MAP_FAILED;

    if (!found) {
        snprintf(why, size, "the shim %.200s cannot be had: %s", object, strerror(errno));
    } else {
        snprintf(shim->preload, SHIM_PATH_SIZE, "LD_PRELOAD=%s", whole);
    }
    free(whole);
    if (!found) {
        return false;
    }
    shim->page_fd = memfd_create("shim", MFD_CLOEXEC);
    if (shim->page_fd >= 0 && ftruncate(shim->page_fd, (off_t)sizeof(*shim->page)) == 0) {
        at = mmap(NULL, sizeof(*shim->page), PROT_READ | PROT_WRITE, MAP_SHARED, shim->page_fd, 0);
    }
    if (at == MAP_FAILED) {
        snprintf(why, size, "the shim's page cannot be made: %s", strerror(errno));
        return false;
    }
    shim->page = at;
    snprintf(shim->file, SHIM_PATH_SIZE, SHIM_FILE_VARIABLE "=/proc/%ld/fd/%d", (long)getpid(),
             shim->page_fd);
    /* A sanitizer wants to be the first library of all; the shim stands before it, and hands on to it. */
    snprintf(shim->sanitizer, SHIM_PATH_SIZE, "ASAN_OPTIONS=verify_asan_link_order=0:%s",
             options != NULL ? options : "");
    memcpy(shim->variables, (const char *const[]){shim->preload, shim->file, shim->sanitizer},
           3 * sizeof(shim->variables[0]));
    return true;
}

void shim_page_close(struct shim *shim)
{
    if (shim->page != NULL) {
        munmap(shim->page, sizeof(*shim->page));
        close(shim->page_fd);
        shim->page = NULL;
    }
}

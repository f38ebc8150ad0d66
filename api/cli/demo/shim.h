/* shim.h - a page of memory by which a demo or a drill (tests/world/shim.py) tells a preloaded shim
 * (tests/torture/shim.c) what shall go wrong.
 *
 * The shim is put in front of libc by LD_PRELOAD. It finds the page by SHIM_FILE in its environment, and the
 * directory below which disks fail by SHIM_BELOW; without SHIM_FILE it does nothing. Who made the page
 * may write to it at any time: it is read at each call. What the shim did is counted in it, so that an
 * accident that never happened is seen. */
#ifndef PAWL_CLI_DEMO_SHIM_H
#define PAWL_CLI_DEMO_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHIM_FILE_VARIABLE "SHIM_FILE"
#define SHIM_BELOW_VARIABLE "SHIM_BELOW"

/* Or'ed. */
enum shim_fault {
    SHIM_FULL = 1,      /* write and its kin: the half first, as a disk does that fills up, then ENOSPC */
    SHIM_READ_ONLY = 2, /* opening for writing, and renaming: EROFS */
    SHIM_NO_SYNC = 4    /* fsync and fdatasync: EIO */
};

struct shim_page {
    _Atomic int64_t clock_ns; /* added to CLOCK_REALTIME, gettimeofday, time; CLOCK_MONOTONIC never changes */
    _Atomic uint32_t fault;   /* enum shim_fault */
    _Atomic uint32_t loaded;  /* processes that have begun with this page */
    _Atomic uint64_t clock_reads; /* of a clock that was shifted */
    _Atomic uint64_t failed;      /* calls that were made to fail */
};

enum { SHIM_PATH_SIZE = 1024 };

/* The demo's side (stage.c). The page is memory that its process shares: it ends with it, and with it what
 * runs under the shim. */
struct shim {
    struct shim_page *page; /* NULL: not open */
    int page_fd;
    const char *variables[4]; /* of what shall run under it, each NAME=VALUE, up to a NULL; not open: none */
    char preload[SHIM_PATH_SIZE], file[SHIM_PATH_SIZE], sanitizer[SHIM_PATH_SIZE];
};

#endif

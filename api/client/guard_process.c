/* guard_process.c - whose guard it is. A child has a copy of all memory, but no thread that keeps the hold.
 *
 * Its number alone does not tell a child: the first process of a namespace and the first of one that it made
 * are both 1, and a number comes back. So there is a page that the kernel clears in every child (madvise(2),
 * MADV_WIPEONFORK). One that shares the memory (vfork(2)) is told by its number. */
#include <sys/mman.h>
#include <unistd.h>

#include "api/client/guard.h"

bool guard_process_take(struct pawl_guard *guard)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return false;
    }
    (void)madvise(page, size, MADV_WIPEONFORK); /* before Linux 4.14 the number must do */
    *(char *)page = 1;
    guard->process_page = page;
    guard->process = getpid();
    return true;
}

void guard_process_drop(struct pawl_guard *guard)
{
    if (guard->process_page != NULL) {
        munmap(guard->process_page, (size_t)sysconf(_SC_PAGESIZE));
    }
}

bool guard_is_ours(const struct pawl_guard *guard)
{
    return guard->process == getpid() && *(const volatile char *)guard->process_page == 1;
}

/* read_all.h - a file from where it stands to its end. */
#ifndef PAWL_SHARED_READ_ALL_H
#define PAWL_SHARED_READ_ALL_H

#include <stddef.h>
#include <sys/types.h>

/* To the end or to size bytes, also when interrupted; -1 with errno. */
ssize_t read_all(int fd, char *at, size_t size);

#endif

/* read_all.h - a file from where it stands to its end, or by its name; all of a text; standard streams. */
#ifndef PAWL_SHARED_READ_ALL_H
#define PAWL_SHARED_READ_ALL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "shared/text/bytes.h"

/* For reading; -1 with errno. A FIFO that nobody writes to is not waited for: it is empty. */
int open_to_read(const char *path);
/* To the end or to size bytes, also when interrupted; -1 with errno. */
ssize_t read_all(int fd, char *at, size_t size);
/* The same of the file of that name; mode: what it is, and who may do what with it. */
ssize_t read_all_of(const char *path, char *at, size_t size, mode_t *mode);
/* All of it, also when interrupted; false with errno. */
bool write_all(int fd, struct bytes text);
/* First of all in a process: else a file of ours, or a connection, gets the number of a standard stream
 * that the caller closed, and what is said goes there. What is executed finds it closed, as without us. */
void standard_streams_fill(void);

#endif

/* cluster_files.h - what a cluster has on disk: its data, its keys, and a directory for its socket. */
#ifndef PAWL_CLI_CLUSTER_FILES_H
#define PAWL_CLI_CLUSTER_FILES_H

#include <stdbool.h>

#include "api/cli/child.h"

struct cluster_files {
    char run[CHILD_PATH_SIZE];  /* a temporary directory that only we can enter; "": none yet */
    char data[CHILD_PATH_SIZE]; /* where Redis keeps its file and the keys are; run itself, or the user's */
    char keys[CHILD_PATH_SIZE]; /* the key file */
    char state_lease[CHILD_PATH_SIZE], state_gateway[CHILD_PATH_SIZE]; /* state directories of the services */
    char socket[CHILD_PATH_SIZE]; /* of Redis; short enough for a socket's address */
    int lock_fd;                  /* -1: the data is ours alone anyway */
    bool store_made;              /* the store in data was made before */
};

/* data NULL: for the time of this process only. CLI_GO_ON, or the exit status. */
int cluster_files_open(struct cluster_files *files, const char *data);
/* Notes that the store has been made: never again in this directory. */
int cluster_files_note_store(struct cluster_files *files);
/* Deletes what is temporary. */
void cluster_files_close(struct cluster_files *files);

#endif

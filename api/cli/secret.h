/* secret.h - the texts that must not stand in a command line: the lease_id, and the fencing token. */
#ifndef PAWL_CLI_SECRET_H
#define PAWL_CLI_SECRET_H

#include "shared/text/bytes.h"

enum {
    SECRET_SIZE = 1100 /* the longest of them (a fencing token header) and a NUL */
};

/* The lease_id of a hold, out of the file (if one is named) or PAWL_LEASE_ID. CLI_GO_ON, or the exit status.
 */
int secret_lease_id(const char *file, char buf[SECRET_SIZE]);
/* The fencing token header, out of the file (if one is named) or PAWL_FENCING_TOKEN. */
int secret_token(const char *file, char buf[SECRET_SIZE]);

/* Where the lease_id of an acquire comes from, which decides what a hold of it that is over means. */
enum secret_origin {
    SECRET_NEW,      /* made now */
    SECRET_FILE,     /* the file had one from an earlier acquire: a new one may take its place */
    SECRET_LEFTOVER, /* PAWL_LEASE_ID stands beside PAWL_TOKEN: "-o env" of an earlier acquire left it */
    SECRET_PROPOSED  /* PAWL_LEASE_ID alone: the caller means this one and no other */
};

/* The lease_id that an acquire proposes. A file that is not there yet or is empty: a new one. */
int secret_propose(const char *file, char buf[SECRET_SIZE], enum secret_origin *origin);
/* Puts it into the file in the place of before ("": there was none), readable by its owner alone; the file is
 * whole or as before, also when the machine stops. When another process has put one there meanwhile, lease_id
 * becomes that one: those that share the file share the hold. CLI_GO_ON, or the exit status. */
int secret_keep(const char *file, const char *before, char lease_id[SECRET_SIZE]);
/* Takes the file away, unless it has another one by now. */
void secret_forget(const char *file, const char *lease_id);

#endif

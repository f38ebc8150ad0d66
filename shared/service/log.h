/* log.h - one line for each event, on stderr: text for people, JSON lines otherwise.
 *
 * Services log once, where a request ends; shared/ logs at LOG_DEBUG only. No secret is ever a field: no
 * lease_id, no signature, no session secret, no key, no password (the keys of fields are checked against a
 * list: assert). A line is one write(2); safe from several threads. */
#ifndef PAWL_SHARED_LOG_H
#define PAWL_SHARED_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#include "shared/text/bytes.h"

/* LOG_NOTICE: what is written however little is wanted. */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_NOTICE };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
    const char *key;
    enum { LOG_FIELD_END, LOG_FIELD_TEXT, LOG_FIELD_INT } kind;
    struct bytes text;
    int64_t number;
};

#define LOG_T(k, v) ((struct log_field){(k), LOG_FIELD_TEXT, (v), 0})
#define LOG_I(k, v) ((struct log_field){(k), LOG_FIELD_INT, {0, 0}, (v)})
#define LOG_END ((struct log_field){0, LOG_FIELD_END, {0, 0}, 0})

struct log {
    const char *program; /* "pawl-lease" */
    enum log_level level;
    enum log_format format;
    int fd;
    atomic_bool *is_cut; /* the last line is there in part, as a disk was full; NULL: nobody asks */
};

/* Control characters in a text are escaped; a line longer than 4 KiB is cut with a mark. fields ends with
 * LOG_END; NULL: none. */
void log_event(const struct log *log, enum log_level level, const char *event,
               const struct log_field *fields);
bool log_wants(const struct log *log, enum log_level level);

#endif

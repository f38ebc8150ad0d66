/* log.c - one event, one line, one write. */
#include "shared/service/log.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "shared/text/json_write.h"
#include "shared/text/utf8.h"

/* What a pipe takes in one piece (PIPE_BUF on Linux, pipe(7)): lines of several threads do not mix. */
enum { LINE_BYTES = 4096, MARK_BYTES = 16, TIME_BYTES = 32 };

struct level_name {
    const char *text, *json;
};

static const struct level_name level_names[] = {
    [LOG_DEBUG] = {"debug ", "debug"},     [LOG_INFO] = {"info  ", "info"},
    [LOG_WARNING] = {"warn  ", "warning"}, [LOG_ERROR] = {"error ", "error"},
    [LOG_NOTICE] = {"notice ", "notice"},
};

bool log_wants(const struct log *log, enum log_level level)
{
    return level >= log->level;
}

static bool key_is_secret(const char *key)
{
    static const char *const secrets[] = {"lease_id",       "sig",      "signature", "secret",
                                          "session_secret", "password", "key",       "fencing_token",
                                          "authorization"};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        if (strcmp(key, secrets[i]) == 0)
            return true;
    return false;
}

static struct bytes time_text(char buf[TIME_BYTES])
{
    struct timespec now;
    struct tm day;
    size_t len;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);
    len = strftime(buf, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &day);
    return (struct bytes){
        buf, len + (size_t)snprintf(buf + len, TIME_BYTES - len, ".%03dZ", (int)(now.tv_nsec / 1000000))};
}

/* -- text for people */

/* The length of the first character if a terminal may see it; 0: it may not (C0, DEL, C1, no UTF-8). */
static size_t shown_length(struct bytes text)
{
    uint32_t character = 0;
    size_t length = utf8_decode(text, &character);

    return character < 0x20 || (character >= 0x7F && character < 0xA0) ? 0 : length;
}

static bool needs_quotes(struct bytes text)
{
    size_t length;

    if (text.len == 0)
        return true;
    for (size_t i = 0; i < text.len; i += length) {
        length = shown_length((struct bytes){text.at + i, text.len - i});
        if (length == 0 || strchr(" \"\\=", text.at[i]))
            return true;
    }
    return false;
}

static void put_quoted(struct json_out *out, struct bytes text)
{
    json_out_append(out, BYTES("\""));
    for (size_t i = 0; i < text.len;) {
        size_t length = shown_length((struct bytes){text.at + i, text.len - i});

        if (length == 0) {
            if (text.at[i] == '\n')
                json_out_append(out, BYTES("\\n"));
            else
                json_out_print(out, "\\x%02x", (unsigned char)text.at[i]);
            i++;
            continue;
        }
        if (text.at[i] == '"' || text.at[i] == '\\')
            json_out_append(out, BYTES("\\"));
        json_out_append(out, (struct bytes){text.at + i, length});
        i += length;
    }
    json_out_append(out, BYTES("\""));
}

static void text_field(struct json_out *out, const struct log_field *field)
{
    json_out_print(out, " %s=", field->key);
    if (field->kind == LOG_FIELD_INT)
        json_out_append_int(out, field->number);
    else if (needs_quotes(field->text))
        put_quoted(out, field->text);
    else
        json_out_append(out, field->text);
}

/* -- both */

static void put_field(const struct log *log, struct json_out *out, const struct log_field *field)
{
    if (log->format == LOG_TEXT)
        text_field(out, field);
    else if (field->kind == LOG_FIELD_INT)
        json_int(out, field->key, field->number);
    else
        json_text(out, field->key, field->text);
}

/* Writes as much of the field as has room in the line. False: not all of it. */
static bool fit_field(const struct log *log, struct json_out *out, struct log_field field)
{
    const struct json_out before = *out;
    const size_t wanted = field.text.len;

    put_field(log, out, &field);
    while (out->len > LINE_BYTES - MARK_BYTES) {
        out->len = before.len;
        out->comma = before.comma;
        if (field.kind == LOG_FIELD_INT || field.text.len == 0)
            return false;
        field.text = utf8_cut(field.text, field.text.len / 2);
        put_field(log, out, &field);
    }
    return field.text.len == wanted;
}

static void put_fields(const struct log *log, struct json_out *out, const struct log_field *fields)
{
    bool whole = true;

    if (fields && log->format == LOG_TEXT)
        json_out_append(out, BYTES(" ")); /* sets the event off from its fields */
    for (; fields && fields->kind != LOG_FIELD_END; fields++)
        if (!fit_field(log, out, *fields))
            whole = false;
    if (whole)
        return;
    if (log->format == LOG_JSON)
        json_bool(out, "cut", true);
    else
        json_out_append(out, BYTES(" cut=true"));
}

/* As in a file that blocks (docs/decisions/0057): O_NONBLOCK is set by what started the service, or by
 * another process that has the same terminal or pipe. */
static bool waits_for_room(const struct log *log)
{
    struct pollfd room = {log->fd, POLLOUT, 0};

    return errno == EAGAIN && (poll(&room, 1, -1) >= 0 || errno == EINTR);
}

static void write_line(const struct log *log, struct bytes line)
{
    ssize_t written;

    if (log->is_cut != NULL && atomic_load(log->is_cut) && write(log->fd, "\n", 1) == 1)
        atomic_store(log->is_cut, false);
    do
        written = write(log->fd, line.at, line.len);
    while (written < 0 && (errno == EINTR || waits_for_room(log)));
    /* A log that cannot be written can be reported nowhere: the program goes on. */
    if (log->is_cut != NULL && written > 0 && (size_t)written < line.len)
        atomic_store(log->is_cut, true);
}

void log_event(const struct log *log, enum log_level level, const char *event, const struct log_field *fields)
{
    struct json_out out;
    char now[TIME_BYTES];

    for (const struct log_field *field = fields; field && field->kind != LOG_FIELD_END; field++)
        assert(!key_is_secret(field->key)); /* also when the line is not wanted, so that a test meets it */
    if (!log_wants(log, level))
        return;
    json_out_init(&out);
    if (log->format == LOG_JSON) {
        json_object(&out, NULL);
        json_text(&out, "time", time_text(now));
        json_text(&out, "level", bytes_of(level_names[level].json));
        json_text(&out, "program", bytes_of(log->program));
        json_text(&out, "event", bytes_of(event));
    } else {
        json_out_append(&out, time_text(now));
        json_out_print(&out, " %s%s", level_names[level].text, event);
    }
    put_fields(log, &out, fields);
    if (log->format == LOG_JSON)
        json_object_end(&out);
    json_out_append(&out, BYTES("\n"));
    write_line(log, json_out_bytes(&out));
    json_out_done(&out);
}

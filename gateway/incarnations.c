/* incarnations.c - the incarnations of this gateway that are certainly dead. */
#include "gateway/incarnations.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_CHARS = MEMBER_ID_CHARS + 1 + BOOT_ID_CHARS + 1, TEXT_MAX = (INCARNATIONS_MAX + 1) * LINE_CHARS };

static const char file_name[] = "incarnations", new_name[] = "incarnations.new";

static bool is_id(const char *text, size_t len, const char *others)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              (c != '\0' && strchr(others, c) != NULL))) {
            return false;
        }
    }
    return true;
}

static bool is_line(const char *line)
{
    return is_id(line, MEMBER_ID_CHARS, "_-") && line[MEMBER_ID_CHARS] == ' ' &&
           is_id(line + MEMBER_ID_CHARS + 1, BOOT_ID_CHARS, "-") && line[LINE_CHARS - 1] == '\n';
}

void incarnations_parse(struct incarnations *incarnations, const char *text, size_t len, const char *boot_id)
{
    incarnations->count = 0;
    incarnations->has_former = len > 0;
    if (len % LINE_CHARS != 0 || len > TEXT_MAX) {
        return;
    }
    for (size_t at = 0; at < len; at += LINE_CHARS) {
        const char *line = text + at;
        char *dead = incarnations->dead[incarnations->count];

        if (!is_line(line)) {
            incarnations->count = 0;
            return;
        }
        if (memcmp(line + MEMBER_ID_CHARS + 1, boot_id, BOOT_ID_CHARS) == 0 &&
            incarnations->count < INCARNATIONS_MAX) {
            memcpy(dead, line, MEMBER_ID_CHARS);
            dead[MEMBER_ID_CHARS] = '\0';
            incarnations->count++;
        }
    }
}

/* Bytes read, at most size; 0: none. */
static size_t read_all(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t got = 1;

    while (fd >= 0 && len < size && got > 0) {
        got = read(fd, text + len, size - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return len;
}

static bool write_all(int dir_fd, const char *text, size_t len)
{
    int fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return good && renameat(dir_fd, new_name, dir_fd, file_name) == 0 && fsync(dir_fd) == 0;
}

bool incarnations_begin(struct incarnations *incarnations, int dir_fd, const char *incarnation)
{
    char boot_id[BOOT_ID_CHARS + 1] = "", text[TEXT_MAX + LINE_CHARS + 1];
    size_t len, skip;

    incarnations->count = 0;
    incarnations->has_former = false;
    if (dir_fd < 0) {
        return true;
    }
    if (read_all(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), boot_id, BOOT_ID_CHARS) !=
        BOOT_ID_CHARS) {
        return false;
    }
    len = read_all(openat(dir_fd, file_name, O_RDONLY | O_CLOEXEC), text, TEXT_MAX);
    incarnations_parse(incarnations, text, len, boot_id);
    if (len % LINE_CHARS != 0) {
        len = 0; /* it is nobody's: begun anew */
    }
    skip = len >= INCARNATIONS_MAX * LINE_CHARS ? len - (INCARNATIONS_MAX - 1) * LINE_CHARS : 0;
    memmove(text, text + skip, len - skip);
    len -= skip;
    len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s\n", incarnation, boot_id);
    if (!write_all(dir_fd, text, len)) {
        incarnations->count = 0;
        return false;
    }
    return true;
}

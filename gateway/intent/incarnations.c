/* incarnations.c - the incarnations of this gateway that were before this one. */
#include "gateway/intent/incarnations.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/text/ascii.h"

enum { LINE_CHARS = MEMBER_ID_CHARS + 1 + BOOT_ID_CHARS + 1, TEXT_MAX = (INCARNATIONS_MAX + 1) * LINE_CHARS };

static const char file_name[] = "incarnations", new_name[] = "incarnations.new";
/* Of the form of a boot_id, and never one. */
static const char no_boot[] = "------------------------------------";
_Static_assert(sizeof(no_boot) == BOOT_ID_CHARS + 1, "a line is a line");
_Static_assert(sizeof(INCARNATION_LOST) == MEMBER_ID_CHARS + 1, "a line is a line");

static bool is_line(const char *line)
{
    struct bytes id = {line, MEMBER_ID_CHARS}, boot_id = {line + MEMBER_ID_CHARS + 1, BOOT_ID_CHARS};

    return ascii_is_word(id, BYTES("_-")) && line[MEMBER_ID_CHARS] == ' ' &&
           ascii_is_word(boot_id, BYTES("-")) && line[LINE_CHARS - 1] == '\n';
}

static void id_put(char id[MEMBER_ID_CHARS + 1], const char *line)
{
    memcpy(id, line, MEMBER_ID_CHARS);
    id[MEMBER_ID_CHARS] = '\0';
}

static bool parse_failed(struct incarnations *incarnations)
{
    incarnations->count = 0;
    incarnations->others = 1;
    id_put(incarnations->other[0], INCARNATION_LOST);
    return false;
}

bool incarnations_parse(struct incarnations *incarnations, const char *text, size_t len, const char *boot_id)
{
    incarnations->count = incarnations->others = 0;
    incarnations->has_former = len > 0;
    if (len % LINE_CHARS != 0 || len > INCARNATIONS_MAX * LINE_CHARS) {
        return parse_failed(incarnations);
    }
    for (const char *line = text; line < text + len; line += LINE_CHARS) {
        if (!is_line(line)) {
            return parse_failed(incarnations);
        }
        if (memcmp(line + MEMBER_ID_CHARS + 1, boot_id, BOOT_ID_CHARS) == 0) {
            id_put(incarnations->dead[incarnations->count++], line);
        } else {
            id_put(incarnations->other[incarnations->others++], line);
        }
    }
    return true;
}

/* Nothing is proven of any of them. */
static bool begin_failed(struct incarnations *incarnations)
{
    for (unsigned i = 0; i < incarnations->count; i++) {
        memcpy(incarnations->other[incarnations->others++], incarnations->dead[i], MEMBER_ID_CHARS + 1);
    }
    incarnations->count = 0;
    return false;
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
    bool has_boot;

    *incarnations = (struct incarnations){.has_former = false};
    if (dir_fd < 0) {
        return true;
    }
    has_boot = read_all(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), boot_id,
                        BOOT_ID_CHARS) == BOOT_ID_CHARS;
    len = read_all(openat(dir_fd, file_name, O_RDONLY | O_CLOEXEC), text, TEXT_MAX);
    if (!incarnations_parse(incarnations, text, len, boot_id)) {
        len = (size_t)snprintf(text, sizeof(text), "%s %s\n", INCARNATION_LOST, no_boot);
    }
    if (!has_boot) {
        return begin_failed(incarnations);
    }
    skip = len >= INCARNATIONS_MAX * LINE_CHARS ? len - (INCARNATIONS_MAX - 1) * LINE_CHARS : 0;
    memmove(text, text + skip, len - skip);
    len -= skip;
    len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s\n", incarnation, boot_id);
    return write_all(dir_fd, text, len) || begin_failed(incarnations);
}

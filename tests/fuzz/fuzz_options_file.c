/* fuzz_options_file.c - any file fills the places within their bounds or is refused by a sentence. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/service/options.h"
#include "tests/unit/utf8_text.h"

enum { UNTOUCHED = 12345, WHY_BYTES = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct places {
    struct options_text *texts;
    const char *config, *listen;
    bool anonymous;
    unsigned threads;
    uint64_t timeout_ms;
    size_t body_bytes;
    int format;
};

static enum options_result read_file(const char *path, struct places *places, char *why)
{
    const struct option table[] = {
        {.name = "config", .kind = OPTION_TEXT, .place = &places->config, .value = "FILE", .help = ""},
        {.name = "listen", .kind = OPTION_TEXT, .place = &places->listen, .value = "ADDR:PORT", .help = ""},
        {.name = "allow-anonymous",
         .kind = OPTION_FLAG,
         .place = &places->anonymous,
         .value = "",
         .help = ""},
        {.name = "threads",
         .kind = OPTION_UNSIGNED,
         .place = &places->threads,
         .value = "N",
         .help = "",
         .min = 1,
         .max = 64},
        {.name = "timeout",
         .kind = OPTION_DURATION_MS,
         .place = &places->timeout_ms,
         .value = "DUR",
         .help = "",
         .min = 100,
         .max = 60000},
        {.name = "max-body",
         .kind = OPTION_BYTES,
         .place = &places->body_bytes,
         .value = "SIZE",
         .help = "",
         .min = 1024,
         .max = 65536},
        {.name = "log-format",
         .kind = OPTION_CHOICE,
         .place = &places->format,
         .value = "text|json",
         .help = ""},
        {0},
    };
    const struct options_program program = {"fuzz", "", "", table, NULL, &places->texts};
    char *argv[] = {"fuzz", "--config", (char *)(uintptr_t)path, NULL};

    return options_read(&program, 3, argv, NULL, why, WHY_BYTES);
}

static void check_places(const struct places *places)
{
    assert(places->threads == UNTOUCHED || (places->threads >= 1 && places->threads <= 64));
    assert(places->timeout_ms == UNTOUCHED || (places->timeout_ms >= 100 && places->timeout_ms <= 60000));
    assert(places->body_bytes == UNTOUCHED || (places->body_bytes >= 1024 && places->body_bytes <= 65536));
    assert(places->format == UNTOUCHED || places->format == 0 || places->format == 1);
    assert(places->listen == NULL || (places->listen[0] && utf8_is_valid(bytes_of(places->listen))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct places places = {NULL, NULL, NULL, false, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED};
    char path[64], why[WHY_BYTES] = "";
    int fd = memfd_create("options", MFD_CLOEXEC);
    enum options_result result;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    result = read_file(path, &places, why);
    assert(result == OPTIONS_OK || result == OPTIONS_BAD);
    assert((result == OPTIONS_BAD) == (why[0] != '\0'));
    assert(result == OPTIONS_OK || strstr(why, path)); /* the sentence names the file */
    check_places(&places);
    options_texts_free(places.texts);
    close(fd);
    return 0;
}

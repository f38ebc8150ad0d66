/* fuzz_options_file.c - any file fills the places within their bounds or is refused by a sentence. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/options.h"
#include "shared/utf8.h"

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
        {"config", OPTION_TEXT, &places->config, "FILE", "", 0, 0, false},
        {"listen", OPTION_TEXT, &places->listen, "ADDR:PORT", "", 0, 0, false},
        {"allow-anonymous", OPTION_FLAG, &places->anonymous, "", "", 0, 0, false},
        {"threads", OPTION_UNSIGNED, &places->threads, "N", "", 1, 64, false},
        {"timeout", OPTION_DURATION_MS, &places->timeout_ms, "DUR", "", 100, 60000, false},
        {"max-body", OPTION_BYTES, &places->body_bytes, "SIZE", "", 1024, 65536, false},
        {"log-format", OPTION_CHOICE, &places->format, "text|json", "", 0, 0, false},
        {NULL, OPTION_TEXT, NULL, NULL, NULL, 0, 0, false},
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

/* fuzz_store_url.c - any text as the store's url: refused in a sentence, or taken apart within its limits. */
#include <stdlib.h>

#include "shared/store/dial.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* A url that was taken names one place or some sentinels, and what is in it can be used as it is. */
static void check_url(const struct store_url *url)
{
    must((url->host[0] != '\0') + (url->path[0] != '\0') + (url->sentinel_count > 0) == 1);
    must((url->sentinel_count > 0) == (url->name[0] != '\0') && strpbrk(url->name, "\r\n/@ ") == NULL);
    must(url->sentinel_count <= SENTINELS_MAX && strlen(url->name) <= SENTINEL_NAME_MAX);
    for (unsigned i = 0; i < url->sentinel_count; i++) {
        const struct store_place *place = &url->sentinels[i];

        must(place->host[0] != '\0' && strlen(place->host) <= STORE_HOST_MAX);
        must(place->port >= 1 && place->port <= 65535 && strpbrk(place->host, "\r\n/@ ,") == NULL);
    }
    must(url->path[0] == '\0' || url->path[0] == '/');
    must(url->port >= 1 && url->port <= 65535 && url->db <= 65535);
    must(strlen(url->host) <= STORE_HOST_MAX && strlen(url->path) <= STORE_PATH_MAX);
    must(strlen(url->user) <= STORE_USER_MAX && strlen(url->password) <= STORE_PASSWORD_MAX);
    must(strpbrk(url->host, "\r\n/@ ") == NULL);
    for (const char *at = url->password; *at != '\0'; at++)
        must((unsigned char)*at >= 0x20 && *at != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct store_url url;
    bool has_password = false;

    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    const char *bad = store_url_check(text, &has_password);
    must(bad == store_url_read(text, &url));
    if (bad == NULL) {
        check_url(&url);
        must(has_password || url.password[0] == '\0');
    } else {
        must(bad[0] != '\0');
    }
    free(text);
    return 0;
}

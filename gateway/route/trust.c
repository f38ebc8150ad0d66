/* trust.c - the files that say whom an upstream's certificate must come from (ca_file): there,
 * readable, and with certificates in them.
 *
 * libcurl reads them only when it connects, and every request of the route would then be a 502. Here each is
 * looked at as PEM (RFC 7468): GnuTLS takes these two labels, and nothing of a file in which one of them is
 * damaged. What a certificate says is not looked at. */
#include <stdlib.h>

#include "gateway/route/route_internal.h"
#include "shared/service/options.h"
#include "shared/text/ascii.h"

enum { CA_BYTES_MAX = 4 << 20, DER_HEAD = 6, DER_SEQUENCE = 0x30, DER_LONG = 0x80 };

static const char *const labels[] = {"CERTIFICATE-----", "X509 CERTIFICATE-----", NULL};

/* What is needed of a decoded text: how long it is, and how it begins. */
struct der {
    unsigned char head[DER_HEAD];
    size_t len;
};

static int base64_value(char c)
{
    static const char rest[] = "+/";
    const char *found;

    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (ascii_is_digit(c)) {
        return c - '0' + 52;
    }
    found = c != '\0' ? strchr(rest, c) : NULL;
    return found != NULL ? (int)(found - rest) + 62 : -1;
}

static bool is_blank(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

static bool der_read(struct bytes text, struct der *der)
{
    unsigned bits = 0, count = 0, pads = 0;

    *der = (struct der){.len = 0};
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.at[i]);

        if (is_blank(text.at[i])) {
            continue;
        }
        if (text.at[i] == '=' ? ++pads > 2 : value < 0 || pads > 0) {
            return false;
        }
        bits = (bits << 6 | (value < 0 ? 0 : (unsigned)value)) & 0xFFFFFF;
        if (++count % 4 != 0) {
            continue;
        }
        for (unsigned byte = 0; byte < 3 - pads; byte++, der->len++) {
            if (der->len < DER_HEAD) {
                der->head[der->len] = (unsigned char)(bits >> (16 - 8 * byte));
            }
        }
    }
    return count % 4 == 0;
}

/* One sequence, and no more and no less than it says. */
static bool der_is_whole(const struct der *der)
{
    size_t size = 0, more = 0;

    if (der->len <= DER_HEAD || der->head[0] != DER_SEQUENCE) {
        return false;
    }
    if (der->head[1] < DER_LONG) {
        return der->len == 2 + (size_t)der->head[1];
    }
    more = der->head[1] - DER_LONG;
    if (more == 0 || more > DER_HEAD - 2) {
        return false;
    }
    for (size_t i = 0; i < more; i++) {
        size = size << 8 | der->head[2 + i];
    }
    return der->len == 2 + more + size;
}

/* The certificate behind a "-----BEGIN CERTIFICATE-----"; *text goes on behind its end. */
static bool certificate_read(const char **text, const char *label)
{
    char end[64];
    const char *last;
    struct der der;

    snprintf(end, sizeof(end), "-----END %s", label);
    last = strstr(*text, end);
    if (last == NULL || !der_read((struct bytes){*text, (size_t)(last - *text)}, &der) ||
        !der_is_whole(&der)) {
        return false;
    }
    *text = last + strlen(end);
    return true;
}

/* NULL, or what is wrong. text ends with NUL; one in its middle ends it. */
static const char *certificates_wrong(const char *text)
{
    static const char begin[] = "-----BEGIN ";
    unsigned count = 0;

    while ((text = strstr(text, begin)) != NULL) {
        text += strlen(begin);
        for (const char *const *label = labels; *label != NULL; label++) {
            if (strncmp(text, *label, strlen(*label)) != 0) {
                continue;
            }
            text += strlen(*label);
            if (!certificate_read(&text, *label)) {
                return "has a certificate in it that is damaged or cut short";
            }
            count++;
            break;
        }
    }
    return count > 0 ? NULL : "has no certificate in it (PEM: -----BEGIN CERTIFICATE-----)";
}

static bool trust_check(struct route_reading *reading, const char *ca_file)
{
    char why[ROUTE_WHY_SIZE];
    size_t len = 0;
    char *text = options_read_file(ca_file, CA_BYTES_MAX, &len, why, sizeof(why));
    const char *wrong;

    if (text == NULL) {
        return route_wrong(reading, "ca_file: %s", why);
    }
    wrong = certificates_wrong(text);
    free(text);
    return wrong == NULL || route_wrong(reading, "ca_file: %s %s", ca_file, wrong);
}

bool route_trust_check(struct route_table *table, char why[ROUTE_WHY_SIZE])
{
    struct route_reading reading = {.table = table, .why = why};
    unsigned checked = 0;

    for (unsigned i = 0; i < table->count; i++) {
        const struct route_upstream *upstream = table->routes[i].upstream;

        reading.route = &table->routes[i];
        if (upstream->index < checked) { /* with a route before */
            continue;
        }
        checked = upstream->index + 1;
        if (upstream->ca_file != NULL && !trust_check(&reading, upstream->ca_file)) {
            return false;
        }
    }
    return true;
}

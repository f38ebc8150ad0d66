/* dial.c - where Redis is, how a connection to it is made, and when again: for link and subscriber. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "shared/store/dial.h"
#include "shared/text/ascii.h"
#include "shared/text/memory.h"
#include "shared/text/read_all.h"
#include "shared/tls/tls.h"

/* -- redis[s]://[user[:password]@]host[:port][/db], unix:///path[?db=N] and
 * sentinel[s]://[user[:password]@]host[:port][,host[:port]...]/name */

enum { STORE_PASSWORD_FILE_MAX = 4096 };
enum { PORT_DEFAULT = 6379, SENTINEL_PORT_DEFAULT = 26379, PORT_MAX = 65535, DB_MAX = 65535 };

#define TCP_SCHEME BYTES("redis://")
#define TLS_SCHEME BYTES("rediss://")
#define UNIX_SCHEME BYTES("unix://")
#define SENTINEL_SCHEME BYTES("sentinel://")
#define SENTINEL_TLS_SCHEME BYTES("sentinels://")

static struct bytes from(struct bytes text, size_t at)
{
    return (struct bytes){text.at + at, text.len - at};
}

/* Where the character is, or the length. */
static size_t find(struct bytes text, char wanted)
{
    const char *at = text.len > 0 ? memchr(text.at, wanted, text.len) : NULL;

    return at != NULL ? (size_t)(at - text.at) : text.len;
}

/* Where it is for the last time, or the length. */
static size_t find_last(struct bytes text, char wanted)
{
    const char *at = text.len > 0 ? memrchr(text.at, wanted, text.len) : NULL;

    return at != NULL ? (size_t)(at - text.at) : text.len;
}

/* Percent-decodes into a buffer of max + 1 bytes; false when it is malformed, too long, or has a control
 * character. */
static bool decode(struct bytes text, char *to, size_t max)
{
    size_t len = 0;

    while (text.len > 0) {
        size_t taken = ascii_percent_decode(text, &to[len]);
        unsigned char c = (unsigned char)to[len];

        if (taken == 0 || c < 0x20 || c == 0x7f || len == max)
            return false;
        len++;
        text = from(text, taken);
    }
    to[len] = '\0';
    return true;
}

/* Digits only, no zero in front; false also beyond the greatest. */
static bool read_number(struct bytes text, unsigned max, unsigned *number)
{
    int64_t read = bytes_number(text, 5);

    *number = read > 0 ? (unsigned)read : 0;
    return read >= 0 && read <= max && (text.at[0] != '0' || text.len == 1);
}

static const char *read_user(struct bytes text, struct store_url *url)
{
    size_t colon = find(text, ':');

    if (!decode((struct bytes){text.at, colon}, url->user, STORE_USER_MAX))
        return "the user in the store's url is too long or wrongly percent-encoded";
    if (colon < text.len && !decode(from(text, colon + 1), url->password, STORE_PASSWORD_MAX))
        return "the password in the store's url is too long or wrongly percent-encoded";
    return NULL;
}

/* A name or an IPv4 address; or, with colons, an IPv6 address: nothing is decoded in it. */
static bool take_host(struct bytes text, bool has_colons, char host[STORE_HOST_MAX + 1])
{
    if (text.len == 0 || text.len > STORE_HOST_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool good = has_colons ? ascii_hex_value(c) >= 0 || c == ':' || c == '.'
                               : ascii_is_alnum(c) || c == '-' || c == '.' || c == '_';
        if (!good)
            return false;
    }
    memcpy(host, text.at, text.len);
    host[text.len] = '\0';
    return true;
}

static bool read_host(struct bytes text, struct store_url *url)
{
    bool bracketed = text.len > 0 && text.at[0] == '[';

    if (!bracketed)
        return take_host(text, false, url->host);
    return text.len >= 4 && text.at[text.len - 1] == ']' &&
           take_host((struct bytes){text.at + 1, text.len - 2}, true, url->host);
}

bool store_place_read(struct bytes host, struct bytes port, struct store_place *place)
{
    return take_host(host, find(host, ':') < host.len, place->host) &&
           read_number(port, PORT_MAX, &place->port) && place->port > 0;
}

static const char *read_host_and_port(struct bytes text, struct store_url *url)
{
    /* The colons inside the brackets of an IPv6 address are its own. */
    size_t bracket = find(text, ']');
    size_t colon = bracket < text.len ? bracket + 1 : find(text, ':');

    if (!read_host((struct bytes){text.at, colon}, url))
        return "the store's url needs a host: redis://host:port";
    if (colon == text.len)
        return NULL;
    if (text.at[colon] != ':' || !read_number(from(text, colon + 1), PORT_MAX, &url->port) || url->port == 0)
        return "the port in the store's url must be 1 to 65535";
    return NULL;
}

static const char *read_tcp(struct bytes text, struct store_url *url)
{
    size_t slash = find(text, '/');
    struct bytes place = {text.at, slash};
    size_t at = find_last(place, '@');
    const char *bad = NULL;

    if (slash + 1 < text.len && !read_number(from(text, slash + 1), DB_MAX, &url->db))
        return "the database in the store's url must be a number: redis://host:port/0";
    if (at < place.len) {
        bad = read_user((struct bytes){place.at, at}, url);
        place = from(place, at + 1);
    }
    return bad != NULL ? bad : read_host_and_port(place, url);
}

static const char *read_unix(struct bytes text, struct store_url *url)
{
    size_t question = find(text, '?');

    if (text.len == 0 || text.at[0] != '/')
        return "the path in the store's url must be absolute: unix:///path";
    /* hiredis cuts a path that does not fit into sun_path, without a word (net.c of 0.14.1). */
    if (!decode((struct bytes){text.at, question}, url->path, STORE_PATH_MAX))
        return "the path in the store's url is longer than 107 bytes or wrongly percent-encoded";
    if (question == text.len)
        return NULL;
    text = from(text, question);
    if (!bytes_take(&text, BYTES("?db=")) || !read_number(text, DB_MAX, &url->db))
        return "after the path in the store's url only ?db=N may stand";
    return NULL;
}

static const char *read_sentinel(struct bytes text, struct store_url *url)
{
    struct store_place *place = &url->sentinels[url->sentinel_count];
    const char *bad;

    url->port = SENTINEL_PORT_DEFAULT;
    bad = read_host_and_port(text, url);
    if (bad != NULL)
        return bad;
    memcpy(place->host, url->host, sizeof(place->host));
    place->port = url->port;
    for (unsigned i = 0; i < url->sentinel_count; i++)
        if (strcmp(url->sentinels[i].host, place->host) == 0 && url->sentinels[i].port == place->port)
            return "the store's url names a sentinel twice";
    url->sentinel_count++;
    return NULL;
}

static const char *read_sentinels(struct bytes text, struct store_url *url)
{
    size_t slash = find_last(text, '/'), at = find_last((struct bytes){text.at, slash}, '@');
    struct bytes places = at < slash ? (struct bytes){text.at + at + 1, slash - at - 1}
                                     : (struct bytes){text.at, slash};
    struct bytes name = slash < text.len ? from(text, slash + 1) : (struct bytes){NULL, 0};
    const char *bad = at < slash ? read_user((struct bytes){text.at, at}, url) : NULL;

    if (name.len == 0 || name.len > SENTINEL_NAME_MAX || !ascii_is_word(name, BYTES("._-")))
        return "the store's url needs the name of the primary: sentinel://host:port,host:port/name";
    memcpy(url->name, name.at, name.len);
    while (bad == NULL && places.at != NULL && url->sentinel_count < SENTINELS_MAX)
        bad = read_sentinel(bytes_cut(&places, ','), url);
    url->host[0] = '\0';
    url->port = PORT_DEFAULT;
    return bad == NULL && places.at != NULL ? "the store's url names more than 9 sentinels" : bad;
}

const char *store_url_read(const char *text, struct store_url *url)
{
    struct bytes rest = bytes_of(text);

    *url = (struct store_url){.port = PORT_DEFAULT};
    if (bytes_take(&rest, TCP_SCHEME))
        return read_tcp(rest, url);
    if (bytes_take(&rest, UNIX_SCHEME))
        return read_unix(rest, url);
    if (bytes_take(&rest, SENTINEL_SCHEME))
        return read_sentinels(rest, url);
    url->is_tls = true;
    if (bytes_take(&rest, TLS_SCHEME))
        return read_tcp(rest, url);
    if (bytes_take(&rest, SENTINEL_TLS_SCHEME))
        return read_sentinels(rest, url);
    return "the store's url must begin with redis://, rediss://, unix://, sentinel:// or sentinels://";
}

/* Asked of malformed urls too, and then rather once too often: a password must not be shown because of a
 * typing error. */
static bool may_have_password(struct bytes text)
{
    size_t at;

    if (bytes_take(&text, UNIX_SCHEME))
        return false;
    if (!bytes_take(&text, TCP_SCHEME) && !bytes_take(&text, TLS_SCHEME) &&
        !bytes_take(&text, SENTINEL_SCHEME))
        bytes_take(&text, SENTINEL_TLS_SCHEME);
    at = find_last(text, '@');
    return at < text.len && find((struct bytes){text.at, at}, ':') < at;
}

const char *store_url_check(const char *text, bool *has_password)
{
    struct store_url url;
    const char *bad = store_url_read(text, &url);

    *has_password = may_have_password(bytes_of(text));
    explicit_bzero(&url, sizeof(url));
    return bad;
}

/* A URL may have a comma in it: a member of the list begins with a scheme. */
bool store_url_take(struct bytes *list, char url[STORE_URL_SIZE])
{
    const struct bytes schemes[] = {TCP_SCHEME, TLS_SCHEME, UNIX_SCHEME, SENTINEL_SCHEME,
                                    SENTINEL_TLS_SCHEME};
    size_t len = list->len, next = len;

    for (size_t at = 0; at + 1 < list->len && len == list->len; at++)
        for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
            struct bytes rest = {list->at + at + 1, list->len - at - 1};

            if (list->at[at] == ',' && bytes_take(&rest, schemes[i])) {
                len = at;
                next = at + 1;
            }
        }
    if (len == 0 || len >= STORE_URL_SIZE)
        return false;
    memcpy(url, list->at, len);
    url[len] = '\0';
    *list = (struct bytes){list->at + next, list->len - next};
    return true;
}

const char *store_list_check(const char *list, unsigned *count, bool *has_password)
{
    char urls[STORE_LIST_MAX][STORE_URL_SIZE];
    struct bytes rest = bytes_of(list);
    const char *bad = NULL;
    bool has_one = false;

    *has_password = false;
    for (*count = 0; bad == NULL && *count < STORE_LIST_MAX && store_url_take(&rest, urls[*count]);
         ++*count) {
        bad = store_url_check(urls[*count], &has_one);
        *has_password |= has_one;
        if (bad == NULL && strncmp(urls[*count], "sentinel", 8) == 0 && *count + rest.len > 0)
            bad = "--redis takes one store by its sentinels, and nothing beside it";
        for (unsigned i = 0; i < *count && bad == NULL; i++)
            if (strcmp(urls[i], urls[*count]) == 0)
                bad = "--redis names the same store twice: the nodes of a quorum know nothing of each other";
    }
    explicit_bzero(urls, sizeof(urls));
    if (bad == NULL && (rest.len > 0 || *count % 2 == 0))
        bad = "--redis takes one store, or the 3, 5 or 7 nodes of a quorum";
    return bad;
}

/* -- connecting */

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 500, /* grants are made again within 2 s of Redis returning, and not all of it is ours */
    LASTED_MS = 1000,   /* a connection that lived shorter does not begin the pauses anew */
    NAME_KEPT_MS = 2000
};

char *dial_password(struct store_url *url, const char *password)
{
    const char *given = password != NULL ? password : url->password[0] != '\0' ? url->password : NULL;
    char *taken = given != NULL ? must_have(strdup(given)) : NULL;

    explicit_bzero(url->password, sizeof(url->password));
    return taken;
}

void dial_forget_password(char *password)
{
    if (password != NULL) {
        explicit_bzero(password, strlen(password));
        free(password);
    }
}

/* Reads its file again; what was read before counts while that cannot be read. */
static void password_again(char **password, const char *path)
{
    char text[STORE_PASSWORD_FILE_MAX + 1];
    int fd = path != NULL ? open_to_read(path) : -1;
    ssize_t n = fd >= 0 ? read_all(fd, text, sizeof(text) - 1) : -1;

    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] != '\0') {
        dial_forget_password(*password);
        *password = must_have(strdup(text));
    }
    explicit_bzero(text, sizeof(text));
    if (fd >= 0)
        close(fd);
}

/* hiredis would look up a name on the loop's own thread (net.c of 0.14.1 and 1.2.0): it is given addresses
 * only. */
static bool connect_to(struct dial *dial, const char *address, char why[DIAL_WHY_MAX])
{
    const struct store_url *url = &dial->url;
    redisContext *context = url->path[0] != '\0' ? redisConnectUnixNonBlock(url->path)
                                                 : redisConnectNonBlock(address, (int)url->port);

    if (context == NULL || context->err != 0) {
        snprintf(why, DIAL_WHY_MAX, "%s", context != NULL ? context->errstr : "out of memory");
        if (context != NULL)
            redisFree(context);
        return false;
    }
    /* hiredis opens sockets without SOCK_CLOEXEC; a child must not keep the connection alive. */
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    dial->context = context;
    loop_watch_init(dial->loop, &dial->watch, context->fd, dial->ready, LOOP_WRITE);
    return true;
}

static void disconnect(struct dial *dial)
{
    if (dial->context != NULL) {
        loop_watch_done(&dial->watch);
        redisFree(dial->context);
        dial->context = NULL;
    }
}

/* To the next of its addresses; false: there is none any more, and dial->why. */
static bool connect_next(struct dial *dial)
{
    disconnect(dial);
    while (dial->address_next < dial->address_count)
        if (connect_to(dial,
                       dial->addresses[(dial->address_first + dial->address_next++) % dial->address_count],
                       dial->why))
            return true;
    return false;
}

/* IPv4 first, as hiredis has it. */
static void addresses_take(struct dial *dial, const struct addrinfo *list, int family)
{
    for (; list != NULL && dial->address_count < DIAL_ADDRESSES_MAX; list = list->ai_next)
        if (list->ai_family == family &&
            getnameinfo(list->ai_addr, list->ai_addrlen, dial->addresses[dial->address_count],
                        DIAL_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
            dial->address_count++;
}

static void host_found(struct loop_lookup *lookup, const struct addrinfo *list, const char *why)
{
    struct dial *dial = container_of(lookup, struct dial, lookup);

    snprintf(dial->why, sizeof(dial->why), "%s", why != NULL ? why : "its name has no address");
    addresses_take(dial, list, AF_INET);
    addresses_take(dial, list, AF_INET6);
    if (!dial->is_naming) {
        dial->named_until_ms = dial->address_count > 0 ? loop_now_ms() + NAME_KEPT_MS : 0;
        return;
    }
    dial->is_naming = false;
    if (!connect_next(dial))
        dial->ready(&dial->watch, LOOP_WRITE); /* which says why */
}

static bool is_address(const char *host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *list = NULL;
    bool is = getaddrinfo(host, NULL, &hints, &list) == 0;

    if (is)
        freeaddrinfo(list);
    return is;
}

bool dial_begin(struct dial *dial, void (*ready)(struct loop_watch *watch, int events),
                char why[DIAL_WHY_MAX])
{
    const struct store_url *url = &dial->url;
    bool is_named = loop_now_ms() < dial->named_until_ms && strcmp(dial->named, url->host) == 0;
    const char *bad;

    password_again(&dial->password, dial->files.password);
    dial->ready = ready;
    dial->address_next = 0;
    dial->named_until_ms = 0;
    dial->stands = false;
    if (is_named && connect_next(dial))
        return true;
    dial->address_count = dial->address_next = 0;
    if (strcmp(dial->named, url->host) != 0)
        loop_lookup_end(&dial->lookup);
    memcpy(dial->named, url->host, sizeof(dial->named));
    if (url->path[0] != '\0' || is_address(url->host))
        return connect_to(dial, url->host, why);
    bad = loop_lookup_begin(dial->loop, &dial->lookup, url->host, url->port, host_found);
    dial->is_naming = bad == NULL;
    snprintf(why, DIAL_WHY_MAX, "%s", bad != NULL ? bad : "");
    return bad == NULL;
}

/* A socket that is writable has been connected, or has failed to (connect(2), EINPROGRESS). */
static const char *socket_wrong(const struct redisContext *context)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    return error != 0 ? strerror(error) : NULL;
}

static struct tls_trust *trust_new(const struct store_files *files, const char **why)
{
    struct tls_trust *trust = tls_trust_new(files->ca, why);

    if (trust == NULL || files->cert == NULL || tls_trust_show(trust, files->cert, files->key, why))
        return trust;
    tls_trust_free(trust);
    return NULL;
}

const char *store_files_check(const char *text, const struct store_files *files)
{
    const char *why = NULL;
    struct tls_trust *trust;
    struct bytes url = bytes_of(text);
    bool is_sentinel = bytes_take(&url, SENTINEL_SCHEME), is_tls = bytes_take(&url, SENTINEL_TLS_SCHEME);

    if (files->sentinel_password != NULL && !is_sentinel && !is_tls)
        return "--sentinel-password-file is of use with sentinel:// and sentinels:// only";
    if (!is_tls && !bytes_take(&url, TLS_SCHEME))
        return files->ca != NULL || files->cert != NULL || files->key != NULL
                   ? "--redis-ca, --redis-cert and --redis-key are of use with rediss:// and sentinels:// "
                     "only"
                   : NULL;
    if ((files->cert == NULL) != (files->key == NULL))
        return "--redis-cert and --redis-key go together: a certificate and its key";
    trust = trust_new(files, &why);
    tls_trust_free(trust);
    return trust != NULL ? NULL : why != NULL ? why : "out of memory";
}

enum dial_step dial_go_on(struct dial *dial, const char **why)
{
    struct store_wire *wire = &dial->wire;
    enum tls_step step = TLS_FAILED;

    *why = dial->context == NULL ? dial->why : wire->tls == NULL ? socket_wrong(dial->context) : NULL;
    if (*why != NULL && dial->address_next < dial->address_count) {
        *why = dial->why;
        return connect_next(dial) ? DIAL_WAITS : DIAL_FAILED;
    }
    if (*why == NULL && dial->url.is_tls && wire->tls == NULL) {
        struct tls_trust *trust = trust_new(&dial->files, why);

        wire->tls = trust != NULL ? tls_open(trust, dial->context->fd, dial->url.host) : NULL;
        tls_trust_free(trust);
    }
    if (wire->tls != NULL) {
        step = tls_handshake(wire->tls);
        *why = step == TLS_FAILED ? tls_why(wire->tls) : NULL;
    } else if (*why == NULL && !dial->url.is_tls) {
        step = TLS_DONE;
    }
    if (step == TLS_FAILED) {
        *why = *why == NULL ? "out of memory" : *why;
        return DIAL_FAILED;
    }
    loop_watch_set(&dial->watch,
                   LOOP_READ | (step == TLS_WAITS && tls_has_unsent(wire->tls) ? LOOP_WRITE : 0));
    dial->stands = step == TLS_DONE;
    return dial->stands ? DIAL_STANDS : DIAL_WAITS;
}

int dial_read(struct dial *dial)
{
    redisContext *context = dial->context;
    struct tls *tls = dial->wire.tls;
    char text[2 * DIAL_READ_SIZE]; /* behind the first half there is room for a whole record */
    size_t len = 0;
    ssize_t n = 1;

    if (tls == NULL)
        return redisBufferRead(context);
    while (n > 0 && len < DIAL_READ_SIZE) {
        n = tls_read(tls, text + len, sizeof(text) - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (len > 0)
        return redisReaderFeed(context->reader, text, len);
    if (n < 0 && errno == EAGAIN)
        return REDIS_OK;
    context->err = REDIS_ERR_IO;
    snprintf(context->errstr, sizeof(context->errstr), "%s",
             n == 0                 ? "Server closed the connection"
             : tls_why(tls) != NULL ? tls_why(tls)
                                    : "");
    return REDIS_ERR;
}

enum wire_end dial_write(struct dial *dial)
{
    enum wire_end end = wire_flush(&dial->wire, dial->context->fd);

    if (end != WIRE_BROKEN && dial->blocked != (end == WIRE_BLOCKED)) {
        dial->blocked = end == WIRE_BLOCKED;
        loop_watch_set(&dial->watch, dial->blocked ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    }
    return end;
}

bool dial_is_open(const struct dial *dial)
{
    return dial->context != NULL || dial->is_naming;
}

void dial_end(struct dial *dial)
{
    dial->is_naming = false;
    if (dial->context != NULL && !dial->stands)
        dial->address_first += dial->address_next;
    disconnect(dial);
    wire_reset(&dial->wire);
    dial->blocked = false;
}

void dial_close(struct dial *dial)
{
    dial_end(dial);
    loop_lookup_end(&dial->lookup);
}

bool dial_names_itself(const struct dial *dial)
{
    return dial->password != NULL || dial->url.user[0] != '\0';
}

/* A user that needs no password accepts any, also the empty one (ACL rule nopass). */
void dial_put_auth(struct dial *dial)
{
    struct bytes secret = dial->password != NULL ? bytes_of(dial->password) : BYTES("");

    if (dial->url.user[0] != '\0')
        wire_put_command(&dial->wire, (struct bytes[]){BYTES("AUTH"), bytes_of(dial->url.user), secret}, 3);
    else
        wire_put_command(&dial->wire, (struct bytes[]){BYTES("AUTH"), secret}, 2);
}

/* Half of it is jitter, so that services that lost the same Redis do not come back in step. */
uint64_t dial_pause_ms(unsigned *attempts)
{
    uint64_t most = PAUSE_FIRST_MS;

    for (unsigned i = 0; i < *attempts && most < PAUSE_MAX_MS; i++)
        most *= 2;
    most = most < PAUSE_MAX_MS ? most : PAUSE_MAX_MS;
    ++*attempts;
    return most / 2 + (loop_now_us() * UINT64_C(0x9E3779B97F4A7C15) >> 33) % (most / 2 + 1);
}

bool dial_lasted(uint64_t since_us)
{
    return loop_now_us() - since_us >= LASTED_MS * 1000;
}

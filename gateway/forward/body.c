/* body.c - the body of a forwarded request that is longer than what memory holds.
 *
 *   forward_take_body   TAKING: into a file, before anything is admitted   503, or suspended
 *   take_piece          the next of it                                     413 | 503, or go on
 *   take_whole          forward_admit()
 *   take_broken         it never comes whole                               408
 *   forward_put         SENDING: the file goes out, as the upstream takes it
 *   forward_stream      SENDING, a route that streams: passed on as it comes
 *
 * So a client that drips, or dies, has sent nothing on and holds nobody up. The file has no name, or none by
 * the time that it has a byte where the file system wants one, and stays in the page cache as a rule: writing
 * it does not wait for the disk, unless the kernel has more to write than it wants to hold.
 *
 * What has begun to be streamed is broken off by closing the connection. A last chunk would make a whole
 * request of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/forward/forward_internal.h"

/* -- the file */

static int body_folder(const struct forward *f)
{
    const char *path = getenv("TMPDIR");
    int folder = record_daemon_state_dir(f->own->gateway->service);

    if (folder >= 0) {
        return fcntl(folder, F_DUPFD_CLOEXEC, 0);
    }
    return open(path != NULL && path[0] == '/' ? path : "/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int forward_body_file(int folder, const char *request_id)
{
    char name[sizeof("body-") + FORWARD_REQUEST_ID_SIZE];
    int fd = openat(folder, ".", O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { /* open(2): the file system has none */
        snprintf(name, sizeof(name), "body-%s", request_id);
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0) {
            unlinkat(folder, name, 0);
        }
    }
    return fd;
}

static bool body_open(struct forward *f)
{
    int folder = body_folder(f);

    if (folder < 0) {
        return false;
    }
    f->body_fd = forward_body_file(folder, f->request_id);
    close(folder);
    return f->body_fd >= 0;
}

static bool body_add(struct forward *f, struct bytes piece)
{
    struct gateway *gateway = f->own->gateway;
    uint64_t before = atomic_fetch_add(&gateway->body_disk, piece.len);

    f->file_len += piece.len;
    if (before + piece.len > gateway->service->settings.body_disk_max) {
        errno = EDQUOT;
        return false;
    }
    for (size_t done = 0; done < piece.len;) {
        ssize_t n = pwrite(f->body_fd, piece.at + done, piece.len - done,
                           (off_t)(f->file_len - piece.len + done));

        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

void forward_body_drop(struct forward *f)
{
    if (f->body_fd >= 0) {
        close(f->body_fd);
        f->body_fd = -1;
        atomic_fetch_sub(&f->own->gateway->body_disk, f->file_len);
    }
}

/* -- taken whole */

static enum step take_refuse(struct forward *f, enum problem problem, const char *why)
{
    http_note_why(f->fenced.req, why);
    return forward_over(f, fenced_fail(&f->fenced, problem));
}

/* Certainly nothing was sent. */
static enum step take_fails(struct forward *f)
{
    const char *why = strerrordesc_np(errno);

    return take_refuse(f, PROBLEM_OVERLOADED, errno == EDQUOT ? "--max-body-disk is reached" : why);
}

static size_t take_piece(struct http_body_reader *body_reader, struct bytes piece)
{
    struct forward *f = container_of(body_reader, struct forward, body_reader);
    uint64_t max = f->route->max_body, len = http_body(f->fenced.req).len + f->file_len + piece.len;

    if (max > 0 && len > max) {
        take_refuse(f, PROBLEM_TOO_LARGE, "max_body of the route");
    } else if (!body_add(f, piece)) {
        take_fails(f);
    }
    return piece.len;
}

static void take_whole(struct http_body_reader *body_reader)
{
    forward_admit(container_of(body_reader, struct forward, body_reader));
}

static void take_broken(struct http_body_reader *body_reader)
{
    struct forward *f = container_of(body_reader, struct forward, body_reader);

    take_refuse(f, PROBLEM_REQUEST_TIMEOUT, "its body did not come whole");
}

enum step forward_take_body(struct forward *f)
{
    forward_enter(f, FORWARD_TAKING);
    if (http_body_announced(f->fenced.req) > (int64_t)f->own->gateway->service->settings.body_disk_max) {
        return take_refuse(f, PROBLEM_TOO_LARGE, "--max-body-disk");
    }
    if (!body_open(f)) {
        return take_fails(f);
    }
    f->body_reader = (struct http_body_reader){
        .piece = take_piece, .whole = take_whole, .broken = take_broken, .keeps = true};
    http_body_take(f->fenced.req, &f->body_reader);
    return SUSPENDED;
}

/* -- goes out */

int64_t forward_body_length(const struct forward *f)
{
    if (f->body_fd >= 0 || http_body_is_whole(f->fenced.req)) {
        return (int64_t)(http_body(f->fenced.req).len + f->file_len);
    }
    return http_body_announced(f->fenced.req);
}

/* The time for the answer has not begun. */
static void put_took(struct forward *f, size_t taken)
{
    if (taken > 0 && f->state != FORWARD_LATE) {
        forward_alarm(f, f->route->timeout_ms);
    }
}

/* More than the upstream's client ever has room for is offered: what takes all of it takes no more of the
 * request, and all the rest may pass. */
void forward_put(struct forward *f)
{
    char piece[UPSTREAM_UNSENT_MAX + 1];

    while (f->file_at < f->file_len) {
        uint64_t left = f->file_len - f->file_at;
        ssize_t n = pread(f->body_fd, piece, left < sizeof(piece) ? left : sizeof(piece), (off_t)f->file_at);
        size_t taken;

        if (n <= 0) {
            f->why = "the file with the request's body could not be read";
            upstream_abort(&f->call);
            return;
        }
        taken = upstream_write(&f->call, (struct bytes){piece, (size_t)n});
        f->file_at += taken;
        put_took(f, taken);
        if (taken < (size_t)n || (size_t)n == sizeof(piece)) {
            return;
        }
    }
}

/* -- streamed */

/* The upstream has a part of the request, and gets no more. */
static void stream_cut(struct forward *f, enum problem problem, const char *why)
{
    if (f->call.link != NULL) {
        f->cut = problem;
        f->why = why;
        upstream_abort(&f->call);
    }
}

static size_t stream_piece(struct http_body_reader *body_reader, struct bytes piece)
{
    struct forward *f = container_of(body_reader, struct forward, body_reader);
    size_t taken;

    if (f->call.link == NULL) {
        return piece.len; /* the upstream has said all that it had to say */
    }
    if (f->route->max_body > 0 && piece.len > f->route->max_body - f->body_given) {
        stream_cut(f, PROBLEM_TOO_LARGE, "max_body of the route");
        return piece.len;
    }
    taken = upstream_write(&f->call, piece);
    f->body_given += taken;
    put_took(f, taken);
    return taken;
}

static void stream_whole(struct http_body_reader *body_reader)
{
    struct forward *f = container_of(body_reader, struct forward, body_reader);

    f->takes_body = false;
    if (f->call.link != NULL) {
        upstream_body_end(&f->call);
        forward_alarm(f, f->route->timeout_ms);
    }
}

static void stream_broken(struct http_body_reader *body_reader)
{
    stream_cut(container_of(body_reader, struct forward, body_reader), PROBLEM_REQUEST_TIMEOUT,
               "the request's body did not come whole");
}

void forward_stream(struct forward *f)
{
    f->body_reader = (struct http_body_reader){
        .piece = stream_piece, .whole = stream_whole, .broken = stream_broken};
    f->body_given = http_body(f->fenced.req).len;
    f->takes_body = f->was_streamed = true;
    http_body_take(f->fenced.req, &f->body_reader);
}

bool forward_never_applied(const struct forward *f)
{
    return f->route->body == ROUTE_BODY_NEVER_APPLIED && f->state == FORWARD_SENDING && f->takes_body &&
           (int64_t)f->body_given != http_body_announced(f->fenced.req);
}

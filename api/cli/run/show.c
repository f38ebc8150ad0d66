/* show.c - who holds the lease that pawl run waits for. */
#include "api/cli/run/show.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/cli/cli.h"
#include "api/cli/print.h"
#include "api/client/pawl.h"

enum { FIRST_MS = 300, AGAIN_MS = 1000, LOOK_MS = 1000, LINE_SIZE = 512 };

struct run_show {
    const char *name;
    struct pawl *pawl;
    pthread_t thread;
    pthread_mutex_t lock; /* of the line: nothing is drawn once it is over */
    bool over, drawn;
    int stop_fd;
};

/* -- the line */

static unsigned columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void line_make(const struct run_show *show, const struct pawl_view *view, char line[LINE_SIZE])
{
    char held[PRINT_DURATION_SIZE], left[PRINT_DURATION_SIZE];

    print_duration(held, view->held_for_ms);
    print_duration(left, view->expires_in_ms);
    if (view->state == PAWL_TAKEN) {
        snprintf(line, LINE_SIZE, "waiting for %s: held by %s for %s (ends in %s if not renewed); %u in line",
                 show->name, view->holder, held, left, view->waiting);
    } else {
        snprintf(line, LINE_SIZE, "waiting for %s: %s; %u in line", show->name,
                 view->state == PAWL_DELAYED ? "nobody holds it, but it is delayed after a loss"
                                             : "it is free",
                 view->waiting);
    }
}

/* No longer than the terminal is wide: what has gone on to the next line cannot be drawn over. */
static void line_draw(struct run_show *show, const char *line)
{
    size_t len = strlen(line), most = columns() - 1;

    len = len < most ? len : most;
    while (len > 0 && ((unsigned char)line[len] & 0xC0) == 0x80) {
        len--;
    }
    pthread_mutex_lock(&show->lock);
    if (!show->over) {
        fputs("\r\033[K", stderr);
        print_safe(stderr, (struct bytes){line, len});
        fflush(stderr);
        show->drawn = true;
    }
    pthread_mutex_unlock(&show->lock);
}

static void *show_run(void *user)
{
    struct run_show *show = user;
    struct pollfd stop = {.fd = show->stop_fd, .events = POLLIN};
    struct pawl_view view = {.size = sizeof(view)};
    char line[LINE_SIZE];

    for (int pause_ms = FIRST_MS; poll(&stop, 1, pause_ms) == 0; pause_ms = AGAIN_MS) {
        if (pawl_look(show->pawl, show->name, &view, NULL) == PAWL_OK) {
            line_make(show, &view, line);
            line_draw(show, line);
        }
    }
    return NULL;
}

/* -- its epoch */

static bool show_start(struct run_show *show)
{
    sigset_t all, before;
    int wrong;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    wrong = pthread_create(&show->thread, NULL, show_run, show);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return wrong == 0;
}

static void show_done(struct run_show *show)
{
    pawl_close(show->pawl);
    if (show->stop_fd >= 0) {
        close(show->stop_fd);
    }
    pthread_mutex_destroy(&show->lock);
    free(show);
}

struct run_show *run_show_begin(const char *name, const char *lease_url)
{
    struct pawl_options options = {
        .size = sizeof(options), .lease_url = lease_url, .timeout_ms = LOOK_MS, .attempts = 1};
    struct run_show *show;

    if (isatty(STDERR_FILENO) == 0 || tcgetpgrp(STDERR_FILENO) != getpgrp()) {
        return NULL;
    }
    show = cli_alloc(sizeof(*show));
    *show = (struct run_show){.name = name, .pawl = pawl_open(&options, NULL)};
    pthread_mutex_init(&show->lock, NULL);
    show->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (show->pawl == NULL || show->stop_fd < 0 || !show_start(show)) {
        show_done(show);
        return NULL;
    }
    return show;
}

void run_show_end(struct run_show *show)
{
    const uint64_t one = 1;

    if (show == NULL) {
        return;
    }
    (void)!write(show->stop_fd, &one, sizeof(one));
    pthread_mutex_lock(&show->lock);
    show->over = true;
    if (show->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    pthread_mutex_unlock(&show->lock);
}

void run_show_free(struct run_show *show)
{
    if (show != NULL) {
        pthread_join(show->thread, NULL);
        show_done(show);
    }
}

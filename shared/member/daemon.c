/* daemon.c - what both daemons are to the store: the hooks of their service_plan. */
#include "shared/member/member_internal.h"
#include "shared/member/overview_walk.h"

#include "shared/text/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_SIZE = 65, APART_MS = 1000 };

static const struct member_plan *plan_of(const struct service *service)
{
    return service->plan->own;
}

/* A gateway keeps its id over restarts only where it was given a directory. */
static bool wants_dir(const struct service *service)
{
    const char *given = getenv("STATE_DIRECTORY");

    return plan_of(service)->role == MEMBER_LEASE || service->settings.state_dir != NULL ||
           (given != NULL && given[0] != '\0');
}

/* -- that the service has judged by --access: the store knows it too, until it has lost its content */

static bool access_is_missing(const struct member_daemon *daemon)
{
    const struct service_settings *settings = &daemon->service->settings;

    return settings->access == NULL && !settings->allow_anonymous && daemon->state_file.dir.fd >= 0 &&
           faccessat(daemon->state_file.dir.fd, "access", F_OK, 0) == 0;
}

/* A gateway has its incarnations there (gateway/intent/), and only a lease service notes epochs. One with the
 * id of the other would take it out of the store, and with it the floor or the doubt that it stands for. */
static bool is_of_another_role(const struct member_daemon *daemon)
{
    const struct state_file *file = &daemon->state_file;

    return plan_of(daemon->service)->role == MEMBER_GATEWAY
               ? file->recorded.epoch > 0
               : file->dir.fd >= 0 && faccessat(file->dir.fd, "incarnations", F_OK, 0) == 0;
}

static void access_note(struct member_daemon *daemon)
{
    int folder = daemon->state_file.dir.fd;
    int fd = folder >= 0 ? openat(folder, "access", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

    if (folder >= 0 && (fd < 0 || fsync(folder) != 0)) {
        struct log_field fields[] = {LOG_T("why", bytes_of(strerrordesc_np(errno))), LOG_END};

        log_event(&daemon->service->log, LOG_WARNING, "access-not-noted", fields);
    }
    if (fd >= 0)
        close(fd);
}

int member_daemon_open(struct service *service)
{
    struct member_daemon *daemon = must_have(calloc(1, sizeof(*daemon)));
    char path[STATE_PATH_MAX], why[STATE_WHY_MAX];
    bool has_dir = wants_dir(service);
    const char *wrong = has_dir ? state_path(service->settings.state_dir, path) : NULL;

    service->extra = daemon;
    daemon->service = service;
    daemon->state_file.dir.fd = daemon->state_file.dir.lock_fd = -1;
    daemon->store_epoch = epoch_new();
    daemon->overview = overview_new();
    epoch_set_memory_max(daemon->store_epoch, service->settings.store_memory_max);
    if (!has_dir) {
        state_file_none(&daemon->state_file);
    } else if (wrong == NULL) {
        enum state_open end = state_file_open(&daemon->state_file, path, why);

        wrong = end == STATE_OPEN || end == STATE_FRESH ? NULL : why;
    }
    if (wrong == NULL && is_of_another_role(daemon))
        wrong = plan_of(service)->role == MEMBER_GATEWAY ? "this --state-dir is that of a lease service"
                                                         : "this --state-dir is that of a gateway";
    if (wrong == NULL && access_is_missing(daemon))
        wrong = "the service of this --state-dir has run with --access, and this one would let everybody do "
                "everything: give it --access FILE, or --allow-anonymous if that is meant";
    if (wrong == NULL) {
        char host[HOST_SIZE] = "";

        gethostname(host, sizeof(host) - 1);
        snprintf(daemon->who, sizeof(daemon->who), "%s pid %ld on %s", service->plan->name, (long)getpid(),
                 host);
        return -1;
    }
    return service_fail(service, "%s", wrong);
}

void member_daemon_close(struct service *service)
{
    struct member_daemon *daemon = service->extra;

    if (daemon != NULL) {
        state_file_close(&daemon->state_file);
        epoch_free(daemon->store_epoch);
        free(daemon->quota);
        free(daemon->overview);
        overview_walk_free(daemon->overview_walk);
        free(daemon);
    }
}

/* -- the workers */

/* What was recorded goes to the store at once: others may be waiting for it. */
static void daemon_wrote(struct state_file *file)
{
    struct member_daemon *daemon = container_of(file, struct member_daemon, state_file);

    epoch_want_heartbeat(daemon->store_epoch);
}

static void daemon_event(struct member *member, enum log_level level, const char *event,
                         const struct log_field *fields)
{
    struct member_daemon *daemon = container_of(member, struct member_daemon, member);

    log_event(&daemon->service->log, level, event, fields);
    if (strcmp(event, MEMBER_LOSS_ACCEPTED) == 0)
        metric_add(daemon->service->workers[0].metrics, METRIC_STORE_LOSSES, 1);
    if (daemon->service->settings.access != NULL && strcmp(event, "store-admitted") == 0)
        access_note(daemon);
}

/* What is the matter with the store each member sees for itself. */
static void daemon_condition(struct member *member, char code[MEMBER_CONDITION_SIZE])
{
    struct member_daemon *daemon = container_of(member, struct member_daemon, member);
    char detail[READY_DETAIL_SIZE];
    const char *found = service_condition(&daemon->service->workers[0], detail);

    if (found != NULL && strncmp(found, "store-", 6) != 0 && strcmp(found, "draining") != 0 &&
        strcmp(found, "in-doubt") != 0)
        snprintf(code, MEMBER_CONDITION_SIZE, "%s", found);
}

void member_worker_begin(struct worker *worker, struct member_worker *own)
{
    struct member_daemon *daemon = worker->service->extra;

    worker->extra = own;
    member_line_init(&own->line, daemon->store_epoch, worker->store);
    if (worker->index != 0)
        return;
    state_file_start(&daemon->state_file, worker->loop, daemon_wrote);
    daemon->member = (struct member){.worker = worker,
                                     .line = &own->line,
                                     .state_file = &daemon->state_file,
                                     .who = daemon->who,
                                     .condition = daemon_condition,
                                     .event = daemon_event};
    member_start(&daemon->member);
    sweep_start(&daemon->sweep, worker);
    daemon->quota = quota_new(worker);
    daemon->overview_walk = overview_walk_new(worker, &own->line);
}

void member_worker_close(struct worker *worker)
{
    struct member_daemon *daemon = worker->service->extra;

    if (worker->index == 0) {
        sweep_stop(&daemon->sweep);
        overview_walk_stop(daemon->overview_walk);
        member_stop(&daemon->member);
        loop_jobs_wait(worker->loop);
    }
}

/* One that stays at the Redis to which the address has led before makes no call that could show that, and
 * this process could not join without it. */
static void line_follow(struct worker *worker, struct member_worker *own, bool is_same)
{
    uint64_t now_ms = loop_now_ms();

    if (is_same || own->apart_ms == 0) {
        own->apart_ms = is_same ? 0 : now_ms;
    } else if (now_ms - own->apart_ms >= APART_MS) {
        own->apart_ms = 0;
        store_reconnect(worker->store);
    }
}

void member_worker_tick(struct worker *worker)
{
    struct member_daemon *daemon = worker->service->extra;
    struct member_worker *own = worker->extra;

    overview_tick(worker);
    member_line_problem(&own->line); /* takes what has changed also while nobody calls */
    if (worker->index == 0) {
        const char *trouble = state_file_trouble(&daemon->state_file);

        overview_walk_tick(daemon->overview_walk);
        epoch_set_trouble(daemon->store_epoch, trouble != NULL ? trouble : "", daemon->state_file.is_lost);
        if (worker->access != NULL)
            quota_tick(daemon->quota);
        return; /* the member reports this line when no call of its own is under way */
    }
    const char *run = member_line_run(&own->line);
    bool is_idle = store_counts(worker->store).in_flight == 0;

    line_follow(worker, own,
                epoch_line_report(daemon->store_epoch, worker->index, run, is_idle,
                                  store_unsafe(worker->store) != NULL));
}

struct member_line *member_line_of_worker(const struct worker *worker)
{
    struct member_worker *own = worker->extra;

    return &own->line;
}

struct member_line *member_line_of(const struct http_request *req)
{
    return member_line_of_worker(worker_of(req));
}

struct member_self member_self(const struct service *service)
{
    const struct member_daemon *daemon = service->extra;

    return (struct member_self){daemon->state_file.recorded.member, daemon->member.incarnation, daemon->who,
                                daemon->state_file.dir.fd};
}

/* -- how things stand */

/* Links that came to stand after the last heartbeat wait for the next. */
static bool lines_are_allowed(const struct service *service, struct epoch *store_epoch)
{
    for (unsigned i = 0; i < service->settings.threads; i++) {
        const struct store *store = service->workers[i].store;

        if (epoch_allows(store_epoch, store_run_id(store), store_link_since_us(store)) != PROBLEM_NONE) {
            epoch_want_heartbeat(store_epoch);
            return false;
        }
    }
    return true;
}

bool member_daemon_settled(const struct service *service)
{
    const struct member_daemon *daemon = service->extra;

    for (unsigned i = 1; i < service->settings.threads; i++)
        member_worker_tick(&service->workers[i]); /* their own ticks begin when they serve */
    if (daemon->member.state == MEMBER_IN)
        return lines_are_allowed(service, daemon->store_epoch);
    return member_is_settled(&daemon->member);
}

bool member_daemon_unfit(const struct service *service, char detail[READY_DETAIL_SIZE])
{
    const struct member_daemon *daemon = service->extra;
    char text[EPOCH_DETAIL_SIZE];
    enum problem problem;
    const char *check = epoch_check(daemon->store_epoch, &problem, text);

    snprintf(detail, READY_DETAIL_SIZE, "%.*s", READY_DETAIL_SIZE - 1, text);
    return check != NULL && strcmp(check, MEMBER_ACCESS_MISSING) == 0;
}

bool member_daemon_leave(struct service *service)
{
    struct member_daemon *daemon = service->extra;

    member_leave(&daemon->member);
    return member_has_left(&daemon->member);
}

const char *member_worker_ready(struct worker *worker, enum problem *problem, char detail[READY_DETAIL_SIZE])
{
    struct member_daemon *daemon = worker->service->extra;
    struct member_worker *own = worker->extra;
    const struct store_refusal *refusal = epoch_refusal(daemon->store_epoch);
    const char *check = epoch_check(daemon->store_epoch, problem, detail);

    if (refusal != NULL && refusal->what != NULL) {
        *problem = PROBLEM_STORE_UNAVAILABLE;
        snprintf(detail, READY_DETAIL_SIZE, "%s. %s", refusal->what, refusal->todo);
        return refusal->check;
    }
    if (check != NULL)
        return check;
    *problem = member_line_problem(&own->line);
    if (*problem != PROBLEM_NONE) {
        snprintf(detail, READY_DETAIL_SIZE,
                 "The connection to the store is a new one; it is being looked at.");
        return "store-connecting";
    }
    if (store_not_kept(worker->store) != NULL) {
        *problem = PROBLEM_STORE_NOT_KEPT;
        snprintf(detail, READY_DETAIL_SIZE, "Nothing is answered, for %s.", store_not_kept(worker->store));
        return STORE_NOT_KEPT;
    }
    if (epoch_trouble(daemon->store_epoch, detail)) {
        *problem = PROBLEM_FLOOR_REACHED;
        return "state-dir";
    }
    return NULL;
}

void member_worker_stand(struct worker *worker, struct service_stand *stand)
{
    const struct member_daemon *daemon = worker->service->extra;
    struct epoch_set set;

    epoch_nodes(daemon->store_epoch, &set);
    stand->is_joining = set.growing;
    epoch_memory(daemon->store_epoch, &stand->used, &stand->allowed);
    stand->is_full = epoch_is_full(daemon->store_epoch) || epoch_is_crowded(daemon->store_epoch);
    if (plan_of(worker->service)->role == MEMBER_LEASE)
        epoch_registrars(daemon->store_epoch, &stand->registrars, &stand->registrars_heard);
}

/* load.c - the load generator, the same for both sides: HTTP to Pawl, Redis' protocol to Redis.
 *
 *   load --to 127.0.0.1:PORT --speak http|resp|naive|etcd|zookeeper --job lease|put|read|check|hold|idle
 *        [--connections N] [--seconds S] [--rate TASKS-A-SECOND] [--writes N]
 *        [--warm S] [--first N] [--names N] [--holds FILE] [--path PATH]
 *        [--cacert FILE] [--token ACCESS-TOKEN]
 *        [--scripts DIR --identity SCHEMA:ID --epoch N]
 *
 * One JSON object on stdout. Any answer but the expected one ends it with 1 and a sentence on stderr. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/bench/engine.h"
#include "tests/bench/idle.h"
#include "tests/bench/wire.h"

struct options {
    struct engine_plan plan;
    const char *speak, *job, *holds, *path, *scripts, *identity, *epoch, *cacert, *token;
};

static const struct option known[] = {
    {"to", required_argument, NULL, 't'},      {"speak", required_argument, NULL, 's'},
    {"job", required_argument, NULL, 'j'},     {"connections", required_argument, NULL, 'c'},
    {"seconds", required_argument, NULL, 'd'}, {"warm", required_argument, NULL, 'w'},
    {"first", required_argument, NULL, 'f'},   {"names", required_argument, NULL, 'n'},
    {"holds", required_argument, NULL, 'h'},   {"path", required_argument, NULL, 'p'},
    {"scripts", required_argument, NULL, 'l'}, {"identity", required_argument, NULL, 'i'},
    {"epoch", required_argument, NULL, 'e'},   {"rate", required_argument, NULL, 'r'},
    {"writes", required_argument, NULL, 'm'},  {"cacert", required_argument, NULL, 'a'},
    {"token", required_argument, NULL, 'k'},   {NULL, 0, NULL, 0},
};

static void options_read(struct options *o, int argc, char **argv)
{
    int got;

    while ((got = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (got) {
        case 't': o->plan.to = optarg; break;
        case 's': o->speak = optarg; break;
        case 'j': o->job = optarg; break;
        case 'c': o->plan.connections = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'd': o->plan.measure_s = strtod(optarg, NULL); break;
        case 'w': o->plan.warm_s = strtod(optarg, NULL); break;
        case 'f': o->plan.first = strtoull(optarg, NULL, 10); break;
        case 'n': o->plan.names = strtoull(optarg, NULL, 10); break;
        case 'h': o->holds = optarg; break;
        case 'p': o->path = optarg; break;
        case 'l': o->scripts = optarg; break;
        case 'i': o->identity = optarg; break;
        case 'e': o->epoch = optarg; break;
        case 'r': o->plan.rate = strtod(optarg, NULL); break;
        case 'm': o->plan.writes = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'a': o->cacert = optarg; break;
        case 'k': o->token = optarg; break;
        default: exit(64);
        }
    }
    if (!o->plan.to || o->plan.connections == 0 || o->plan.writes == 0 || o->plan.names < o->plan.connections)
        load_fail("--to, at least one connection, and at least as many names as connections are needed");
}

/* Gives Redis the script that the build has put together from its parts; its SHA-1. */
static void script_load(int fd, const char *dir, const char *name, char sha[SHA_BYTES + 1])
{
    static const char head[] = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n";
    struct request ask = {0};
    char path[512], source[65536], answer[256];
    struct bytes word;
    size_t len;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.lua", dir, name);
    file = fopen(path, "r");
    if (!file)
        load_fail("%s: %s", path, strerror(errno));
    len = fread(source, 1, sizeof(source), file);
    fclose(file);
    if (len == 0 || len == sizeof(source))
        load_fail("%s: empty, or too long", path);
    request_addf(&ask, "%s$%zu\r\n", head, len);
    request_add(&ask, (struct bytes){source, len});
    request_add(&ask, BYTES("\r\n"));
    wire_send(fd, (struct bytes){ask.text, ask.len});
    wire_answer(fd, resp_measure, answer, sizeof(answer), &word);
    if (word.len != SHA_BYTES)
        load_fail("%s: %.*s", path, (int)word.len, word.at);
    snprintf(sha, SHA_BYTES + 1, "%.*s", (int)word.len, word.at);
    free(ask.text);
}

static void scripts_load(const struct options *o, struct job_scripts *scripts)
{
    int fd = wire_connect(o->plan.to);

    if (!o->scripts || !o->identity || !o->epoch)
        load_fail("--speak resp needs --scripts, --identity and --epoch");
    script_load(fd, o->scripts, "acquire", scripts->acquire);
    script_load(fd, o->scripts, "release", scripts->release);
    script_load(fd, o->scripts, "write", scripts->write);
    scripts->identity = o->identity;
    scripts->epoch = o->epoch;
    close(fd);
}

static void job_speak(const struct options *o, struct job *job, enum job_kind kind,
                      struct job_scripts *scripts)
{
    if (strcmp(o->speak, "http") == 0) {
        job_init_http(job, kind, o->token);
    } else if (strcmp(o->speak, "resp") == 0) {
        scripts_load(o, scripts);
        job_init_resp(job, kind, scripts);
    } else if (strcmp(o->speak, "naive") == 0 && o->scripts) {
        int fd = wire_connect(o->plan.to);

        script_load(fd, o->scripts, "naive_release", scripts->release);
        job_init_naive(job, scripts->release);
        close(fd);
    } else if (strcmp(o->speak, "etcd") == 0) {
        job_init_etcd(job);
    } else if (strcmp(o->speak, "zookeeper") == 0) {
        job_init_zookeeper(job);
    } else {
        load_fail("cannot speak %s, or not without --scripts", o->speak);
    }
}

static FILE *holds_open(const struct options *o, const char *how)
{
    FILE *file = o->holds ? fopen(o->holds, how) : NULL;

    if (o->holds && !file)
        load_fail("%s: %s", o->holds, strerror(errno));
    return file;
}

static void job_prepare(struct options *o, struct job *job)
{
    static const char *const kinds[] = {[JOB_LEASE] = "lease",
                                        [JOB_PUT] = "put",
                                        [JOB_READ] = "read",
                                        [JOB_CHECK] = "check",
                                        [JOB_HOLD] = "hold"};
    struct job_scripts scripts;
    unsigned kind = 0;

    while (kind <= JOB_HOLD && strcmp(o->job, kinds[kind]) != 0)
        kind++;
    if (kind > JOB_HOLD)
        load_fail("no such job: %s", o->job);
    job_speak(o, job, (enum job_kind)kind, &scripts);
    if (kind == JOB_HOLD)
        o->plan.holds = holds_open(o, "w");
    if (job_has_holds((enum job_kind)kind)) {
        FILE *file = holds_open(o, "r");

        job->path = o->path ? o->path : "/v1/resources/";
        if (file)
            job_read_holds(job, file, job->speech == SPEAK_RESP ? &scripts : NULL);
        if (job->put_count < o->plan.connections)
            load_fail("--holds names %llu resources, too few", (unsigned long long)job->put_count);
        fclose(file);
    }
}

static void times_print(const char *name, const struct histogram *times)
{
    printf("\"%s\":{\"p50\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f},", name,
           histogram_quantile_us(times, 0.5), histogram_quantile_us(times, 0.99),
           histogram_quantile_us(times, 0.999), (double)times->longest_ns / 1000);
}

static void result_print(const struct engine_result *r)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    printf("{\"tasks\":%llu,\"tasks_all\":%llu,\"requests\":%llu,\"requests_all\":%llu,\"seconds\":%.4f,"
           "\"tasks_per_s\":%.1f,",
           (unsigned long long)r->tasks, (unsigned long long)r->tasks_all, (unsigned long long)r->requests,
           (unsigned long long)r->requests_all, r->measured_s, (double)r->tasks / r->measured_s);
    times_print("request_us", &r->request);
    times_print("task_us", &r->task);
    printf("\"cpu_s\":%.3f}\n", (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                                    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

int main(int argc, char **argv)
{
    struct options o = {
        .plan = {.connections = 64, .warm_s = 0.3, .measure_s = 2, .names = 2048, .writes = 1},
        .speak = "http",
        .job = "lease"};
    struct engine_result *result = calloc(1, sizeof(*result));
    const char *why = "no memory";
    struct job job;

    options_read(&o, argc, argv);
    if (o.cacert)
        o.plan.trust = tls_trust_new(o.cacert, &why);
    if (!result || (o.cacert && !o.plan.trust))
        load_fail("%s", why);
    if (strcmp(o.job, "idle") == 0) {
        idle_run(o.plan.to, o.plan.connections, o.path ? o.path : "/livez");
        return 0;
    }
    job_prepare(&o, &job);
    engine_run(&o.plan, &job, result);
    if (o.plan.holds)
        fclose(o.plan.holds);
    result_print(result);
    free(result);
    return 0;
}

/* process.c - what this process uses, in Prometheus' text format and by the names that its clients share:
 * https://prometheus.io/docs/instrumenting/writing_clientlibs/, "Process metrics". */
#include "shared/service/service.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Linux 6.2 and later say the number as the folder's size. */
static unsigned long open_fds(void)
{
    struct stat info = {0};
    unsigned long count = 0;
    DIR *folder;

    if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
        return (unsigned long)info.st_size;
    folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count > 3 ? count - 3 : 0; /* ".", "..", and the folder itself */
}

/* In pages. */
static void memory_read(unsigned long *virtual, unsigned long *resident)
{
    char text[128] = "", *rest = text;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t len = read(fd, text, sizeof(text) - 1);

        text[len > 0 ? len : 0] = '\0';
        close(fd);
    }
    *virtual = strtoul(text, &rest, 10);
    *resident = strtoul(rest, NULL, 10);
}

static void put(struct json_out *out, const char *name, enum metric_kind kind, const char *help, double value)
{
    metric_head_write(&(struct metric){name, kind, NULL, help}, out);
    json_out_print(out, "%s %.15g\n", name, value);
}

void process_metrics_write(const struct service *service, struct json_out *out)
{
    unsigned long virtual, resident;
    double page = (double)sysconf(_SC_PAGESIZE);
    struct rusage used = {0};
    struct rlimit files = {0};
    const struct metric info = {"pawl_build_info", METRIC_GAUGE, NULL, "Which program this is."};

    memory_read(&virtual, &resident);
    getrusage(RUSAGE_SELF, &used);
    getrlimit(RLIMIT_NOFILE, &files);
    metric_head_write(&info, out);
    json_out_print(out, "pawl_build_info{service=\"%s\",version=\"" PAWL_VERSION "\"} 1\n",
                   service->plan->name);
    put(out, "process_cpu_seconds_total", METRIC_COUNTER, "CPU time, user and system.",
        seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime));
    put(out, "process_resident_memory_bytes", METRIC_GAUGE, "Resident memory.", (double)resident * page);
    put(out, "process_virtual_memory_bytes", METRIC_GAUGE, "Virtual memory.", (double)virtual * page);
    put(out, "process_open_fds", METRIC_GAUGE, "Open file descriptors.", (double)open_fds());
    put(out, "process_max_fds", METRIC_GAUGE, "How many may be open.", (double)files.rlim_cur);
    put(out, "process_start_time_seconds", METRIC_GAUGE, "When it was started.", (double)service->began_s);
}

/* runtime/base/limits.c: what a process may take, and what it took. */
#include "runtime/base/limits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t address_space(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%lld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * sysconf(_SC_PAGESIZE);
}

void tl_limit_memory(int64_t bytes)
{
    int64_t now = address_space();
    struct rlimit limit = { 0 };
    if (bytes <= 0 || now == 0)
        return;
    limit.rlim_cur = limit.rlim_max = (rlim_t)(now + bytes);
    setrlimit(RLIMIT_AS, &limit);
}

/* The number behind a word at the start of a line ("MemAvailable:"), or of the first line for ""; -1: there is none. */
static int64_t number_in(const char *path, const char *word)
{
    char line[256];
    long long number = -1;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (number < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0 &&
            sscanf(line + strlen(word), "%lld", &number) != 1)
            number = -1;
    fclose(file);
    return number;
}

static int64_t number_of_group(const char *folder, const char *group, const char *name,
                               const char *word)
{
    char path[4096];
    int size = snprintf(path, sizeof path, "%s%s/%s", folder, group, name);
    return size > 0 && (size_t)size < sizeof path ? number_in(path, word) : -1;
}

/* How much the group has left, what it only caches not counted; INT64_MAX: it has no limit. */
static int64_t left_in_group(const char *group)
{
    static const char two[] = "/sys/fs/cgroup", one[] = "/sys/fs/cgroup/memory";
    const char *folder = two, *cached = "inactive_file ";
    int64_t most = number_of_group(two, group, "memory.max", "");
    int64_t now = number_of_group(two, group, "memory.current", "");
    if (now < 0) { /* the older form */
        folder = one;
        cached = "total_inactive_file ";
        most = number_of_group(one, group, "memory.limit_in_bytes", "");
        now = number_of_group(one, group, "memory.usage_in_bytes", "");
    }
    if (most < 0 || now < 0)
        return INT64_MAX;
    int64_t file = number_of_group(folder, group, "memory.stat", cached);
    now -= file > 0 && file < now ? file : 0;
    return most > now ? most - now : 0;
}

/* Each group has at most what those around it have. In a container the groups of the outside are named, and not there. */
static int64_t left_in_groups(void)
{
    char line[4096];
    int64_t least = left_in_group("");
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (file == NULL)
        return least;
    while (fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL ||
            (strncmp(controllers, "::", 2) != 0 && strstr(controllers, "memory") == NULL))
            continue;
        group++;
        group[strcspn(group, "\n")] = '\0';
        for (char *slash; (slash = strrchr(group, '/')) != NULL; *slash = '\0') {
            int64_t left = left_in_group(group);
            least = left < least ? left : least;
        }
    }
    fclose(file);
    return least;
}

int64_t tl_available_memory(void)
{
    int64_t kilobytes = number_in("/proc/meminfo", "MemAvailable:"), left = left_in_groups();
    if (kilobytes < 0)
        return left == INT64_MAX ? 0 : left;
    return left < kilobytes * 1024 ? left : kilobytes * 1024;
}

/* Of this program alone: getrusage also counts what the process held before it became this program. */
int64_t tl_peak_memory(void)
{
    int64_t kilobytes = number_in("/proc/self/status", "VmHWM:");
    return kilobytes < 0 ? 0 : kilobytes * 1024;
}

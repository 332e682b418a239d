/* runtime/base/limits.c: what a process may take, and what it took. */
#include "runtime/base/limits.h"
#include <stdio.h>
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

/* Of this program alone: getrusage also counts what the process held before it became this program. */
int64_t tl_peak_memory(void)
{
    char line[128];
    long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL)
        return 0;
    while (kilobytes == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lld kB", &kilobytes) != 1)
            kilobytes = 0;
    fclose(file);
    return kilobytes * 1024;
}

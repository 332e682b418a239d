/* runtime/base/limits.c: what a process may take. */
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

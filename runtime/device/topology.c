/* runtime/device/topology.c: cores and caches by hwloc, the affinity mask by the scheduler, the quota
 * by the cgroup file systems (version 2, and 1 where there is no 2). */
#include "runtime/device/topology.h"
#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSORS = 8192, DEFAULT_LINE = 64 };

/* The processors that we may run on. */
typedef struct {
    cpu_set_t *set;
    size_t size;
} mask;

static mask mask_get(void)
{
    mask m = { CPU_ALLOC(MAX_PROCESSORS), CPU_ALLOC_SIZE(MAX_PROCESSORS) };

    if (m.set == NULL)
        return m;
    CPU_ZERO_S(m.size, m.set);
    if (sched_getaffinity(0, m.size, m.set) != 0 || CPU_COUNT_S(m.size, m.set) == 0)
        CPU_SET_S(0, m.size, m.set);
    return m;
}

static int first_allowed(const mask *m, hwloc_const_cpuset_t processors)
{
    for (int p = hwloc_bitmap_first(processors); p >= 0; p = hwloc_bitmap_next(processors, p))
        if (p < MAX_PROCESSORS && CPU_ISSET_S((size_t)p, m->size, m->set))
            return p;
    return -1;
}

static void add_usable_core(tl_topology *t, int processor)
{
    if (t->usable_cores < TL_MAX_THREADS)
        t->core_processor[t->usable_cores++] = processor;
}

static int64_t cache_bytes(hwloc_topology_t h, hwloc_obj_type_t type, int *line, int *cores)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(h, type, 0);

    if (cache == NULL)
        return 0;
    if (cache->attr->cache.linesize > 0)
        *line = (int)cache->attr->cache.linesize;
    *cores = hwloc_get_nbobjs_inside_cpuset_by_type(h, cache->cpuset, HWLOC_OBJ_CORE);
    return (int64_t)cache->attr->cache.size;
}

static void probe_hwloc(tl_topology *t, const mask *m)
{
    hwloc_topology_t h;
    int ignored;

    if (hwloc_topology_init(&h) != 0)
        return;
    if (hwloc_topology_load(h) != 0) {
        hwloc_topology_destroy(h);
        return;
    }
    t->packages = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PACKAGE);
    t->numa_nodes = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_NUMANODE);
    t->cores = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_CORE);
    t->processors = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PU);
    for (int i = 0; i < t->cores; i++) {
        int p = first_allowed(m, hwloc_get_obj_by_type(h, HWLOC_OBJ_CORE, (unsigned)i)->cpuset);
        if (p >= 0)
            add_usable_core(t, p);
    }
    t->l1_bytes = cache_bytes(h, HWLOC_OBJ_L1CACHE, &t->line_bytes, &ignored);
    t->l2_bytes = cache_bytes(h, HWLOC_OBJ_L2CACHE, &t->line_bytes, &ignored);
    t->l3_bytes = cache_bytes(h, HWLOC_OBJ_L3CACHE, &t->line_bytes, &t->l3_cores);

    hwloc_obj_t package = hwloc_get_obj_by_type(h, HWLOC_OBJ_PACKAGE, 0);
    const char *name = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (name != NULL)
        snprintf(t->cpu_name, sizeof t->cpu_name, "%s", name);
    hwloc_topology_destroy(h);
}

/* What hwloc did not tell: every processor counts as a core. */
static void fill_defaults(tl_topology *t, const mask *m)
{
    if (t->usable_cores == 0)
        for (int p = 0; p < MAX_PROCESSORS; p++)
            if (CPU_ISSET_S((size_t)p, m->size, m->set))
                add_usable_core(t, p);
    t->usable_processors = CPU_COUNT_S(m->size, m->set);
    if (t->processors < t->usable_processors)
        t->processors = t->usable_processors;
    if (t->cores < t->usable_cores)
        t->cores = t->usable_cores;
    if (t->packages < 1)
        t->packages = 1;
    if (t->numa_nodes < 1)
        t->numa_nodes = 1;
}

/* The first line of a small file; false when there is none. */
static bool read_line(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return false;
    bool ok = fgets(out, (int)size, file) != NULL;
    fclose(file);
    return ok;
}

double tl_cgroup_quota_parse(const char *text)
{
    char *end;
    double quota = strtod(text, &end);

    if (end == text || !(quota > 0))
        return 0;
    const char *rest = end;
    double period = strtod(rest, &end);
    if (end == rest)
        period = 100000;
    if (!(period > 0) || quota / period > MAX_PROCESSORS)
        return 0;
    return quota / period;
}

/* Whether `name` is one of a comma-separated list; the empty name is the empty list (version 2). */
static bool is_listed(const char *list, const char *name)
{
    if (*name == '\0')
        return *list == '\0';
    size_t size = strlen(name);
    for (const char *at = list;; at++) {
        if (strncmp(at, name, size) == 0 && (at[size] == '\0' || at[size] == ','))
            return true;
        at = strchr(at, ',');
        if (at == NULL)
            return false;
    }
}

/* The path of our group for a controller: lines are "number:controllers:path". */
static bool own_group(const char *controller, char *out, size_t size)
{
    char line[1024];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        char *first = strchr(line, ':');
        char *second = first != NULL ? strchr(first + 1, ':') : NULL;
        if (second == NULL)
            continue;
        *second = '\0';
        if (!is_listed(first + 1, controller))
            continue;
        second[1 + strcspn(second + 1, "\n")] = '\0';
        snprintf(out, size, "%s", second + 1);
        found = true;
    }
    fclose(file);
    return found;
}

typedef void visit_group(tl_topology *t, const char *folder);

/* Our group and those above it, up to the root of the mount: each may limit us. A container sees
 * its own group as the root, so that is always asked too. */
static void for_groups(tl_topology *t, const char *controller, const char *root, visit_group *visit)
{
    char group[1024], folder[1200];

    if (own_group(controller, group, sizeof group))
        while (strlen(group) > 1) {
            snprintf(folder, sizeof folder, "%s%s", root, group);
            visit(t, folder);
            char *slash = strrchr(group, '/');
            if (slash == NULL)
                break;
            *slash = '\0';
        }
    visit(t, root);
}

static void limit_quota(tl_topology *t, double quota)
{
    if (quota > 0 && (t->quota == 0 || quota < t->quota))
        t->quota = quota;
}

static void limit_memory(tl_topology *t, const char *text)
{
    char *end;
    long long bytes = strtoll(text, &end, 10);

    if (end != text && bytes > 0 && (t->memory_bytes == 0 || bytes < t->memory_bytes))
        t->memory_bytes = bytes;
}

static void visit_v2(tl_topology *t, const char *folder)
{
    char path[1300], line[128];

    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_line(path, line, sizeof line))
        limit_quota(t, tl_cgroup_quota_parse(line));
    snprintf(path, sizeof path, "%s/memory.max", folder);
    if (read_line(path, line, sizeof line))
        limit_memory(t, line);
}

static void visit_v1_cpu(tl_topology *t, const char *folder)
{
    char path[1300], quota[64], period[64], both[130];

    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, quota, sizeof quota))
        return;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, period, sizeof period))
        return;
    snprintf(both, sizeof both, "%s %s", quota, period);
    limit_quota(t, tl_cgroup_quota_parse(both));
}

static void visit_v1_memory(tl_topology *t, const char *folder)
{
    char path[1300], line[64];

    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", folder);
    if (read_line(path, line, sizeof line))
        limit_memory(t, line);
}

static void probe_limits(tl_topology *t)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (pages > 0 && page > 0)
        t->memory_bytes = (int64_t)pages * page;
    for_groups(t, "", "/sys/fs/cgroup", visit_v2);
    for_groups(t, "cpu", "/sys/fs/cgroup/cpu", visit_v1_cpu);
    for_groups(t, "memory", "/sys/fs/cgroup/memory", visit_v1_memory);
}

void tl_topology_probe(tl_topology *out)
{
    mask m = mask_get();

    *out = (tl_topology){ .line_bytes = DEFAULT_LINE };
    if (m.set == NULL) {
        add_usable_core(out, 0);
        out->cores = out->processors = out->usable_processors = 1;
        out->packages = out->numa_nodes = 1;
    } else {
        probe_hwloc(out, &m);
        fill_defaults(out, &m);
        CPU_FREE(m.set);
    }
    probe_limits(out);

    out->threads = out->usable_cores;
    int granted = (int)out->quota + (out->quota > (int)out->quota);
    if (granted > 0 && granted < out->threads)
        out->threads = granted;
}

static tl_topology kept;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void keep(void)
{
    tl_topology_probe(&kept);
}

const tl_topology *tl_topology_get(void)
{
    pthread_once(&once, keep);
    return &kept;
}

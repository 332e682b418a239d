/* runtime/device/topology.h: the cores and caches that this process may use. */
#ifndef TL_RUNTIME_DEVICE_TOPOLOGY_H
#define TL_RUNTIME_DEVICE_TOPOLOGY_H
#include <stdint.h>

#define TL_MAX_THREADS 1023

typedef struct {
    char cpu_name[96]; /* "Intel(R) Xeon(R) ..." or "" */
    int packages, numa_nodes;
    int cores, processors; /* of the whole machine (as this container sees it) */
    int usable_cores;      /* with at least one processor in our affinity mask */
    int usable_processors; /* in our affinity mask */
    double quota;          /* processors' worth of time that the cgroup grants; 0: no limit */
    int threads; /* the default: one a usable core, not more than the quota (rounded up) */
    int64_t l1_bytes, l2_bytes; /* data caches of one core; 0: unknown */
    int64_t l3_bytes;           /* of one shared L3; 0: none */
    int l3_cores;               /* that share it */
    int line_bytes;
    int64_t memory_bytes; /* of the machine, or the cgroup's limit when that is less */
    int core_processor
        [TL_MAX_THREADS]; /* of usable core i: its first usable processor (by OS number) */
} tl_topology;

/* Of this process now. Never fails: what cannot be found out keeps a modest default. Takes
 * milliseconds. */
void tl_topology_probe(tl_topology *out);
/* Probed once, kept for the life of the process. */
const tl_topology *tl_topology_get(void);

/* Text of a cgroup v2 cpu.max ("200000 100000", "max 100000") as processors; 0: no limit. */
double tl_cgroup_quota_parse(const char *text);

#endif

/* tuner/run/environment.c: the machine as it was measured on. */
#include "tuner/run/environment.h"
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "runtime/base/map.h"
#include "runtime/base/clock.h"
#include "runtime/device/cpu.h"
#include "runtime/device/topology.h"
#include "tuner/records/record_private.h"

static void add_text(tl_text *out, const char *name, const char *value)
{
    tl_text_format(out, ",\"%s\":", name);
    tl_json_print(value, out);
}

void tl_environment_text(const tl_measure_stats *stats, tl_text *out)
{
    const tl_topology *machine = tl_topology_get();
    struct utsname system = { 0 };
    uname(&system);
    tl_text_add(out, "{\"cpu\":");
    tl_json_print(machine->cpu_name, out);
    add_text(out, "isa", tl_cpu_host_level());
    add_text(out, "system", system.release);
    add_text(out, "llvm", tl_codegen_llvm_version());
    tl_text_format(out, ",\"cores\":%d,\"l2_bytes\":%lld,\"l3_bytes\":%lld,\"memory_bytes\":%lld",
                   machine->usable_cores, (long long)machine->l2_bytes,
                   (long long)machine->l3_bytes, (long long)machine->memory_bytes);
    if (stats != NULL && stats->peak_gflops > 0)
        tl_text_format(out, ",\"peak_gflops\":%.1f,\"l2_gflops\":%.2f,\"copy_gbs\":%.1f",
                       stats->peak_gflops, stats->l2_gflops, stats->copy_gbs);
    tl_text_add(out, "}");
}

void tl_session_name(const char *policy, char out[TL_SESSION_NAME])
{
    char digits[33];
    struct {
        struct timespec now;
        int64_t clock, process;
        unsigned char random[16];
    } seed = { .clock = tl_clock_ns(), .process = getpid() };
    tl_digest digest;
    clock_gettime(CLOCK_REALTIME, &seed.now);
    if (getrandom(seed.random, sizeof seed.random, GRND_NONBLOCK) < 0)
        seed.random[0] = 1; /* time and process number must do */
    tl_digest_start(&digest);
    tl_digest_add(&digest, &seed, sizeof seed);
    tl_digest_text(&digest, digits);
    snprintf(out, TL_SESSION_NAME, "%.30s-%s", policy, digits);
}

const tl_policy_type *tl_session_policy(const char *session)
{
    char name[TL_SESSION_NAME];
    const char *dash = strrchr(session, '-');
    if (dash == NULL)
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)(dash - session), session);
    return tl_policy_find(name);
}

/* driver/probe/probe.c: measures what a machine profile says, again and again until nothing gets better. */
#include "driver/probe/probe.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "driver/probe/probe_private.h"
#include "runtime/base/clock.h"
#include "runtime/base/pages.h"

enum { LEAST_PASSES = 3, MOST_PASSES = 8, FMAS = 24 /* of a round */ };
#define USUAL_SECONDS 8.0

/* Cycles of one of the loops' units of work, the least seen; per cycle where the profile says so, at the end. */
typedef struct {
    tl_machine machine;
    double fma[TL_ISA_COUNT], load[TL_ISA_COUNT], store[TL_ISA_COUNT];
} findings;

static double cycles(tl_probe_loop *loop, void *memory)
{
    return tl_probe_loop_time(loop, memory).cycles;
}

static void measure_unit(tl_isa isa, const tl_probe_loops *loops, char *memory, findings *f)
{
    tl_machine_unit *u = &f->machine.units[isa];
    tl_target target;
    tl_probe_time fma = tl_probe_loop_time(loops->multiply_add, memory);
    double flops = 2.0 * FMAS * tl_isa_infos[isa].vector_bits / 32;
    if (fma.ns > 0)
        u->peak_gflops = flops / fma.ns > u->peak_gflops ? flops / fma.ns : u->peak_gflops;
    tl_probe_keep_least(&f->fma[isa], fma.cycles / FMAS);
    tl_probe_keep_least(&u->fma_latency, cycles(loops->multiply_chain, memory) / 8);
    tl_probe_keep_least(&u->add_latency, cycles(loops->add_chain, memory) / 8);
    tl_probe_keep_least(&f->load[isa], cycles(loops->load, memory) / 16);
    tl_probe_keep_least(&f->store[isa], cycles(loops->store, memory) / 16);
    memset(memory, 0, TL_PROBE_LOOP_BYTES);
    tl_probe_keep_least(&u->broadcast_cycles, cycles(loops->broadcast, memory) / 12);
    tl_probe_keep_least(&u->divide_cycles, cycles(loops->divide, memory) / 8);
    if (tl_target_named(tl_isa_infos[isa].text, &target, NULL) == TL_OK)
        tl_probe_keep_least(&u->exp_cycles, tl_probe_exp(&target));
}

static void tell(const tl_probe_options *o, int pass, const char *what)
{
    if (o->progress != NULL)
        o->progress(o->user, pass, what);
}

static tl_status measure(const tl_probe_options *o, int pass, char *memory, findings *f,
                         tl_diag *diag)
{
    tl_probe_loops loops, widest;
    bool any = false;
    double clock = tl_probe_clock_ghz();
    f->machine.clock_ghz = clock > f->machine.clock_ghz ? clock : f->machine.clock_ghz;
    if (!(clock > 0))
        return tl_fail(diag, TL_DEVICE, "probe: the clock does not move");
    for (int isa = 0; isa < TL_ISA_COUNT; isa++) {
        if (!tl_probe_loops_of((tl_isa)isa, &loops))
            continue;
        tell(o, pass, tl_isa_infos[isa].text);
        measure_unit((tl_isa)isa, &loops, memory, f);
        widest = loops; /* the table of instruction sets goes from narrow to wide */
        any = true;
    }
    tell(o, pass, "caches and memory");
    TL_TRY(tl_probe_memory(o, any ? &widest : NULL, &f->machine, diag));
    tell(o, pass, "threads");
    return tl_probe_threads(o, &f->machine, diag);
}

static double per_cycle(double cycles)
{
    return cycles > 0 ? 1 / cycles : 0;
}

/* The profile of what was found so far. */
static void conclude(const tl_probe_options *o, const findings *f, tl_machine *out)
{
    *out = f->machine;
    for (int isa = 0; isa < TL_ISA_COUNT; isa++) {
        out->units[isa].fma_per_cycle = per_cycle(f->fma[isa]);
        out->units[isa].loads_per_cycle = per_cycle(f->load[isa]);
        out->units[isa].stores_per_cycle = per_cycle(f->store[isa]);
    }
    const tl_topology *t = tl_topology_get();
    time_t now = time(NULL);
    struct tm day;
    snprintf(out->cpu, sizeof out->cpu, "%s", t->cpu_name[0] ? t->cpu_name : o->host->cpu);
    tl_machine_caches(o->host, out->caches);
    out->cores = o->host->cores;
    if (gmtime_r(&now, &day) != NULL)
        strftime(out->date, sizeof out->date, "%Y-%m-%d", &day);
    tl_machine_seal(out, o->before);
}

tl_status tl_probe(const tl_probe_options *o, tl_machine *out, tl_diag *diag)
{
    findings f = { 0 };
    char before[33] = "";
    int64_t start = tl_clock_ns(), pass_ns = 0;
    double seconds = o->seconds > 0 ? o->seconds : USUAL_SECONDS;
    char *memory = tl_pages_take(TL_PROBE_LOOP_BYTES);
    if (memory == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "out of memory");
    tl_status status = TL_OK;
    for (int pass = 0; pass < MOST_PASSES && status == TL_OK; pass++) {
        int64_t begun = tl_clock_ns();
        status = measure(o, pass, memory, &f, diag);
        if (status != TL_OK)
            break;
        conclude(o, &f, out);
        int64_t now = tl_clock_ns();
        pass_ns = now - begun > pass_ns ? now - begun : pass_ns;
        bool is_settled = pass + 1 >= LEAST_PASSES && strcmp(before, out->digest) == 0;
        if (is_settled || (double)(now + pass_ns - start) > seconds * 1e9)
            break;
        memcpy(before, out->digest, sizeof before);
    }
    tl_pages_give(memory, TL_PROBE_LOOP_BYTES);
    return status;
}

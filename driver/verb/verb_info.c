/* driver/verb/verb_info.c: tilth info: this machine. */
#include <stdio.h>
#include <string.h>
#include "driver/verb/verbs.h"
#include "codegen/codegen.h"
#include "driver/cli/session.h"
#include "driver/pipeline/host_machine.h"
#include "driver/pipeline/host_target.h"
#include "driver/probe/probe.h"
#include "runtime/device/cpu.h"
#include "runtime/device/device.h"
#include "runtime/device/peak.h"
#include "runtime/device/topology.h"

typedef struct {
    double gflops_one, gflops_all;
    tl_peak_bandwidth bandwidth_one, bandwidth_all;
} measured;

static tl_status measure(tl_pool *pool, measured *m, tl_diag *diag)
{
    tl_progress("measuring peak");
    m->gflops_one = tl_peak_gflops(pool, 1, 0, 0.2);
    m->gflops_all = tl_peak_gflops(pool, 0, 0, 0.2);
    tl_progress("measuring bandwidth");
    TL_TRY(tl_peak_measure_bandwidth(pool, 1, 0.2, &m->bandwidth_one, diag));
    TL_TRY(tl_peak_measure_bandwidth(pool, 0, 0.2, &m->bandwidth_all, diag));
    tl_progress_done();
    return TL_OK;
}

/* Shows one GPU, or why there is none. */
static void print_gpu(const tl_device_type *type, const tl_device *device, const char *why,
                      bool json)
{
    int64_t available = 0, total = 0;
    if (device != NULL)
        device->type->memory((tl_device *)device, &available, &total, NULL);
    const tl_device_facts *f = device != NULL ? &device->facts : NULL;
    if (!json && f == NULL) {
        printf("gpu         none for %s: %s\n", type->name, why);
    } else if (!json) {
        printf("gpu         %s:%d %s (%s), %d multiprocessors, %.1f GB (%.1f free), %s\n",
               type->name, f->number, f->name, f->arch, f->multiprocessors, (double)total * 1e-9,
               (double)available * 1e-9, f->driver);
        printf("            %.0f GFLOP/s f32 and %.0f GB/s by its clocks; %lld KB shared memory a "
               "block, L2 %lld KB\n",
               f->f32_gflops, f->memory_gbs, (long long)f->shared_block >> 10,
               (long long)f->l2_bytes >> 10);
    } else if (f == NULL) {
        printf("{\"record\":\"gpu\",\"type\":\"%s\",\"present\":false,\"why\":", type->name);
        tl_print_json_text(why);
        printf("}\n");
    } else {
        printf("{\"record\":\"gpu\",\"type\":\"%s\",\"present\":true,\"number\":%d,\"name\":",
               type->name, f->number);
        tl_print_json_text(f->name);
        printf(",\"arch\":\"%s\",\"driver\":\"%s\",\"multiprocessors\":%d,\"memory_bytes\":%lld,"
               "\"free_bytes\":%lld,\"l2_bytes\":%lld,\"shared_block_bytes\":%lld,\"clock_mhz\":%d,"
               "\"f32_gflops\":%.0f,\"memory_gbs\":%.0f}\n",
               f->arch, f->driver, f->multiprocessors, (long long)total, (long long)available,
               (long long)f->l2_bytes, (long long)f->shared_block, f->clock_mhz, f->f32_gflops,
               f->memory_gbs);
    }
}

static void print_gpus_of(const tl_device_type *type, bool json)
{
    tl_diag diag = { 0 };
    int count;
    if (type->count(&count, &diag) != TL_OK) {
        print_gpu(type, NULL, diag.text, json);
        return;
    }
    for (int i = 0; i < count; i++) {
        tl_device *device = NULL;
        tl_status status = type->open(i, &device, &diag);
        print_gpu(type, status == TL_OK ? device : NULL, diag.text, json);
        tl_device_close(device);
    }
}

static void print_gpus(bool json)
{
    for (int i = 0; tl_device_type_at(i) != NULL; i++)
        if (tl_device_type_at(i) != &tl_device_type_cpu)
            print_gpus_of(tl_device_type_at(i), json);
}

static void print_json(const tl_target *target, const measured *m, bool quick)
{
    const tl_topology *t = tl_topology_get();
    tl_print_env_json();
    printf("{\"record\":\"machine\",\"isa\":\"%s\",\"llvm_cpu\":\"%s\",\"vector_bits\":%d,\"vector_"
           "registers\":%d,"
           "\"memory_bytes\":%lld",
           tl_isa_infos[target->isa].text, target->cpu, tl_isa_infos[target->isa].vector_bits,
           tl_isa_infos[target->isa].vector_registers, (long long)t->memory_bytes);
    if (!quick)
        printf(",\"peak_gflops_1\":%.1f,\"peak_gflops\":%.1f,\"read_gbs_1\":%.1f,\"read_gbs\":%.1f,"
               "\"copy_gbs_1\":%.1f,"
               "\"copy_gbs\":%.1f",
               m->gflops_one, m->gflops_all, m->bandwidth_one.read_gbs, m->bandwidth_all.read_gbs,
               m->bandwidth_one.copy_gbs, m->bandwidth_all.copy_gbs);
    printf("}\n");
    print_gpus(true);
}

static void print_text(const tl_target *target, const measured *m, bool quick, int threads)
{
    const tl_topology *t = tl_topology_get();
    const tl_isa_info *isa = &tl_isa_infos[target->isa];
    printf("processor   %s\n", t->cpu_name[0] ? t->cpu_name : "unknown");
    printf("cores       %d usable of %d, %d thread%s by default", t->usable_cores, t->cores,
           t->threads, t->threads == 1 ? "" : "s");
    if (t->quota > 0)
        printf(", quota %.2f processors", t->quota);
    printf("\ncaches      L1 %lld KB and L2 %lld KB a core, L3 %lld KB shared\n",
           (long long)t->l1_bytes >> 10, (long long)t->l2_bytes >> 10,
           (long long)t->l3_bytes >> 10);
    printf("memory      %.1f GB\n", (double)t->memory_bytes * 1e-9);
    printf("vector      %s (%s), %d bits, %d registers%s%s\n", isa->text, target->cpu,
           isa->vector_bits, isa->vector_registers, target->has_vnni ? ", VNNI" : "",
           target->has_bf16_dot ? ", BF16" : "");
    if (!quick) {
        printf("peak        %.0f GFLOP/s f32 on one core, %.0f on %d (%s, measured now)\n",
               m->gflops_one, m->gflops_all, threads, tl_peak_isa(0));
        printf("bandwidth   %.1f GB/s read, %.1f GB/s copy on one core; %.1f and %.1f on %d\n",
               m->bandwidth_one.read_gbs, m->bandwidth_one.copy_gbs, m->bandwidth_all.read_gbs,
               m->bandwidth_all.copy_gbs, threads);
    }
    print_gpus(false);
    printf("versions    tilth %s, LLVM %s\n", TILTH_VERSION, tl_codegen_llvm_version());
}

/* ---- the machine profile ---- */

typedef struct {
    bool json, is_first;
    tl_isa section;
} value_printer;

static void print_value(void *user, tl_isa isa, const char *name, double value, const char *unit,
                        const char *words)
{
    value_printer *p = user;
    if (p->json) {
        if (isa != p->section)
            printf("%s\"%s\":{", p->section == TL_ISA_COUNT ? "," : "},", tl_isa_infos[isa].text);
        printf("%s\"%s\":%.6g", isa != p->section || p->is_first ? "" : ",", name, value);
        p->is_first = false;
        p->section = isa;
        return;
    }
    if (isa != p->section)
        printf("  %s\n", tl_isa_infos[isa].text);
    p->section = isa;
    if (value > 0)
        printf("    %-22s %8.4g %-8s %s\n", name, value, unit, words);
}

static void print_profile(const tl_machine *m, const char *path, bool is_of_here, bool json)
{
    value_printer p = { json, true, TL_ISA_COUNT };
    char stamp[33];
    tl_machine_stamp(m, stamp);
    if (json) {
        printf("{\"record\":\"machine_profile\",\"file\":");
        tl_print_json_text(path);
        printf(",\"cpu\":");
        tl_print_json_text(m->cpu);
        printf(",\"caches\":");
        tl_print_json_text(m->caches);
        printf(",\"cores\":%d,\"date\":", m->cores);
        tl_print_json_text(m->date);
        printf(",\"digest\":\"%s\",\"stamp\":\"%s\",\"of_this_machine\":%s,\"values\":{", m->digest,
               stamp, is_of_here ? "true" : "false");
        tl_machine_visit(m, print_value, &p);
        printf("%s}}\n", p.section == TL_ISA_COUNT ? "" : "}");
        return;
    }
    printf("profile     %.8s, for default schedules %.8s; %s%s%s\n", m->digest, stamp, m->date,
           m->date[0] ? ", " : "", path);
    if (!is_of_here)
        printf("            of another machine: %s, caches %s, %d cores\n", m->cpu, m->caches,
               m->cores);
    tl_machine_visit(m, print_value, &p);
}

static void show_pass(void *user, int pass, const char *what)
{
    (void)user;
    tl_progress("probing, look %d: %s", pass + 1, what);
}

/* Measures, and keeps the profile at `path`. Where that cannot be written, what was measured is shown all the same. */
static tl_status probe(const tl_target *host, tl_pool *pool, const char *path, tl_machine *out,
                       tl_diag *diag)
{
    tl_machine before;
    bool has_before =
        tl_machine_load(path, &before, NULL) == TL_OK && tl_machine_is_of(&before, host);
    const tl_probe_options options = {
        .host = host, .pool = pool, .before = has_before ? &before : NULL, .progress = show_pass
    };
    tl_status status = tl_probe(&options, out, diag);
    tl_progress_done();
    return status != TL_OK ? status : tl_machine_store(path, out, diag);
}

typedef struct {
    bool json, quick, probe;
    const char *machine;
} info_options;

/* The profile that is asked for, or this machine's if there is one. */
static tl_status show_profile(const info_options *o, const tl_target *host, tl_pool *pool,
                              tl_diag *diag)
{
    tl_text path = { 0 };
    tl_machine m = tl_machine_built_in;
    bool is_named = o->machine != NULL && strcmp(o->machine, "probed") != 0, any = true;
    tl_status status = TL_OK;
    if (is_named && strcmp(o->machine, "built-in") != 0)
        tl_text_add(&path, o->machine);
    else if (!is_named && !tl_machine_default_path(host, &path))
        status = tl_fail(diag, TL_BAD_ARGUMENT,
                         "no place for the profile: neither XDG_DATA_HOME nor HOME is set "
                         "(--machine FILE names one)");
    if (status == TL_OK && o->probe && path.size == 0)
        status = tl_fail(diag, TL_BAD_ARGUMENT, "--probe cannot replace the built-in profile");
    else if (status == TL_OK && o->probe)
        status = probe(host, pool, path.data, &m, diag);
    else if (status == TL_OK && path.size > 0) {
        status = tl_machine_load(path.data, &m, diag);
        if (status != TL_OK && !is_named)
            tl_context(diag, "this machine has no sound profile: tilth info --probe makes one");
    }
    bool is_measured = m.cpu[0] != '\0';
    if (status != TL_OK && o->machine == NULL && !o->probe) { /* nobody asked: no profile is fine */
        any = false;
        status = TL_OK;
    }
    if (any && (status == TL_OK || (o->probe && is_measured)))
        print_profile(&m, path.size > 0 ? path.data : "built in",
                      !is_measured || tl_machine_is_of(&m, host), o->json);
    tl_text_free(&path);
    return status;
}

int tl_verb_info(int argc, char **argv)
{
    info_options o = { 0 };
    const tl_option options[] = {
        { "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &o.json },
        { "--quick", NULL, TL_OPTION_FLAG, NULL, "do not measure", &o.quick },
        { "--probe", NULL, TL_OPTION_FLAG, NULL,
          "measure this machine's profile (at most 10 s) and keep it", &o.probe },
        { "--machine", NULL, TL_OPTION_TEXT, "FILE|probed|built-in",
          "the profile to show or, with --probe, to write", &o.machine },
        { 0 },
    };
    const tl_verb_help help = {
        "info",
        "",
        "Shows this machine as tilth sees it: cores, caches, vector ISA, measured peak and "
        "bandwidth, GPUs.",
        "The peak is that of a loop of fused multiply-adds on registers; other tenants and the "
        "clock move it, so it is\n"
        "what this machine gave during the last half second, not what it can do at best.\n\n"
        "A machine profile is what the analytic model may go by (--machine of run, tune, ...): "
        "ports, latencies, what a\n"
        "line takes from each cache, what it costs that threads meet. --probe measures it, looks "
        "several times and keeps\n"
        "the best, in $XDG_DATA_HOME/tilth; values are rounded, so that a second probe says the "
        "same. The digest names\n"
        "its values.",
        "  tilth info\n  tilth info --json | jq .\n  tilth info --quick --probe\n  tilth run "
        "M.onnx --machine probed",
        options,
        0,
        0,
        NULL,
    };
    int positional_count, code;
    const char *positional[1];
    if (!tl_verb_begin(&help, argc, argv, positional, &positional_count, &code))
        return code;

    tl_diag diag = { 0 };
    tl_target target;
    measured m = { 0 };
    tl_pool *pool = NULL;
    tl_status status = tl_target_resolve(NULL, &target, &diag);
    if (status == TL_OK)
        status = tl_pool_create(NULL, &pool, &diag);
    if (status == TL_OK && !o.quick)
        status = measure(pool, &m, &diag);
    if (status == TL_OK && o.json)
        print_json(&target, &m, o.quick);
    else if (status == TL_OK)
        print_text(&target, &m, o.quick, tl_pool_threads(pool));
    if (status == TL_OK)
        status = show_profile(&o, &target, pool, &diag);
    if (status != TL_OK)
        code = tl_report_failure("info", status, &diag);
    tl_pool_destroy(pool);
    return code;
}

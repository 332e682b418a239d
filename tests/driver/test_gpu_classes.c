/* tests/driver/test_gpu_classes.c: every kind of kernel that the networks of ../shared/models have on a GPU runs emulated: a
 * small one of each, in tests/golden/gpu_classes, compared with the interpreter; and there is one of each, which the networks
 * are read for where they are. Of theirs, no stage is left to one thread. GOLDEN_UPDATE=1 writes those that are missing and
 * drops those that no network has any more; TL_ONLY runs those whose name has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include "driver/pipeline/model.h"
#include "runtime/base/file.h"
#include "tests/codegen/emulated.h"
#include "tests/driver/cli_run.h"
#include "tests/driver/gpu_cases.h"

#define CASES    "tests/golden/gpu_classes"
#define NETWORKS "../shared/models"
enum { MOST_BUFFERS = 32, NETWORK_COUNT = 19, MOST_ALONE = 256 };

/* Targets and numerics whose kernels differ. */
static const struct {
    const char *target;
    tl_numerics numerics;
} ways[] = {
    { "cuda,sm_80", TL_NUMERICS_RELAXED },
    { "cuda,sm_80", TL_NUMERICS_TF32 },
    { "cuda,sm_90a", TL_NUMERICS_TF32 },
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- cases as files ---- */

/* "# cuda,sm_80: ..." is the first line: for which target, and what its schedule is made of. */
static gpu_case read_case(tl_arena *arena, const char *path)
{
    tl_text file = { 0 };
    tl_diag diag = { 0 };
    tl_program *naive;
    gpu_case out = { 0 };
    char target[32] = "";
    if (tl_file_read(path, &file, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    const char *name = strrchr(path, '/') + 1, *dash = strchr(name, '-');
    const char *family = tl_arena_strndup(arena, name, (size_t)(dash - name));
    if (sscanf(tl_text_get(&file), "# %31[^:]:", target) != 1 ||
        tl_program_parse(arena, tl_text_get(&file), name, &naive, &diag) != TL_OK ||
        gpu_case_of(arena, family, naive, tl_arena_strdup(arena, target), &out, &diag) != TL_OK)
        fail_msg("%s: %s", path, diag.text);
    tl_text_free(&file);
    return out;
}

static void visit_cases(const char *only, void (*visit)(tl_arena *, const gpu_case *, const char *))
{
    glob_t files;
    if (glob(CASES "/*.tk", 0, NULL, &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        if (only != NULL && strstr(files.gl_pathv[i], only) == NULL)
            continue;
        tl_arena *arena = tl_arena_create(0);
        gpu_case c = read_case(arena, files.gl_pathv[i]);
        visit(arena, &c, files.gl_pathv[i]);
        tl_arena_destroy(arena);
    }
    globfree(&files);
}

/* ---- they run ---- */

static emulated gpu;

static double number(const tl_buffer *b, const void *data, int64_t at)
{
    tl_number value = tl_number_load(b->dtype, data, (size_t)at);
    return tl_dtype_is_float(b->dtype) ? value.f : (double)value.i;
}

static void compare(const gpu_case *c, const tl_buffer *b, const void *want, const void *got)
{
    double largest = 0, bound = tl_dtype_is_float(b->dtype) ? tl_program_error_bound(c->naive) : 0;
    int64_t count = tl_buffer_max_elements(b);
    for (int64_t k = 0; k < count; k++)
        largest = fmax(largest, fabs(number(b, want, k)));
    for (int64_t k = 0; k < count; k++) {
        double w = number(b, want, k), g = number(b, got, k);
        if (g != w && !(isnan(g) && isnan(w)) && !(fabs(g - w) <= bound * (largest + fabs(w))))
            fail_msg("%s: %s[%lld] is %.9g, not %.9g", c->name, b->name, (long long)k, g, w);
    }
}

static void run_case(tl_arena *arena, const gpu_case *c, const char *path)
{
    void *want[MOST_BUFFERS], *got[MOST_BUFFERS];
    tl_diag diag = { 0 };
    tl_target target;
    const tl_program *naive = c->naive;
    if (strstr(path, c->name) == NULL)
        fail_msg("%s is %s now, made of %s: GOLDEN_UPDATE=1", path, c->name, c->made_of);
    assert_in_range(naive->param_count, 1, MOST_BUFFERS);
    emulated_data(arena, naive, 25, 2, want); /* an index below 2 fits everywhere */
    emulated_data(arena, naive, 25, 2, got);
    if (emulated_want(arena, naive, want, &diag) != TL_OK ||
        tl_target_named(c->target, &target, &diag) != TL_OK ||
        emulated_run(&gpu, arena, c->scheduled, &target, got, NULL, &diag) != TL_OK)
        fail_msg("%s: %s", c->name, diag.text);
    for (int i = 0; i < naive->param_count; i++)
        if (naive->params[i]->role == TL_ROLE_OUTPUT)
            compare(c, naive->params[i], want[i], got[i]);
}

static void cases_run_emulated(void **state)
{
    (void)state;
    tl_diag diag = { 0 };
    if (emulated_open(&gpu, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    visit_cases(getenv("TL_ONLY"), run_case);
    emulated_close(&gpu);
}

/* ---- there is one of each ---- */

static tl_arena *names;
static tl_map *known,
    *of_networks; /* classes and rules that have a case, and those that networks have */

/* The network's graph beside a file of as many bytes as its weights, of which a few are there. */
static const char *lay_out(tl_arena *arena, const char *folder, const char *name)
{
    enum { WRITTEN = 1024 };
    char line[512];
    long long offset, count, total = 0;
    tl_random random = tl_random_make(1);
    const char *to = tl_arena_format(arena, "%s/%s.onnx", folder, name);
    FILE *list = fopen(tl_arena_format(arena, NETWORKS "/%s/%s.weights.txt", name, name), "r");
    FILE *weights = fopen(tl_arena_format(arena, "%s/%s.weights", folder, name), "wb");
    tl_text graph = { 0 };
    assert_non_null(list);
    assert_non_null(weights);
    while (fgets(line, sizeof line, list) != NULL) {
        float values[WRITTEN];
        if (sscanf(line, "# total %lld", &total) == 1 ||
            sscanf(line, "%lld %lld", &offset, &count) != 2)
            continue;
        for (int i = 0; i < WRITTEN; i++)
            values[i] = (float)tl_random_unit(&random) + 0.5f;
        size_t some = (size_t)(count < WRITTEN ? count : WRITTEN);
        assert_int_equal(fseek(weights, (long)offset, SEEK_SET), 0);
        assert_int_equal(fwrite(values, sizeof *values, some, weights), some);
    }
    assert_int_equal(fflush(weights), 0);
    assert_int_equal(ftruncate(fileno(weights), (off_t)total), 0);
    fclose(weights);
    fclose(list);
    const char *from = tl_arena_format(arena, NETWORKS "/%s/%s.onnx", name, name);
    if (tl_file_read(from, &graph, NULL) != TL_OK ||
        tl_file_write(to, graph.data, graph.size, NULL) != TL_OK)
        fail_msg("%s: cannot be copied to %s", from, to);
    tl_text_free(&graph);
    return to;
}

static void write_case(tl_arena *arena, const char *family, gpu_case *kind, const char *network)
{
    tl_text out = { 0 };
    const char *text = gpu_shrink(arena, family, kind);
    tl_text_format(&out, "# %s: %s\n# as in %s\n%s", kind->target, kind->made_of, network, text);
    const char *path = tl_arena_format(arena, CASES "/%s.tk", kind->name);
    if (tl_file_write(path, out.data, out.size, NULL) != TL_OK)
        fail_msg("%s cannot be written", path);
    tl_text_free(&out);
}

/* Whether class and rule are in the map; they are afterwards. */
static bool note_kind(tl_map *map, const gpu_case *kind)
{
    bool had = tl_map_has(map, kind->unit) && tl_map_has(map, kind->made_of);
    tl_map_put(map, tl_arena_strdup(names, kind->unit), map);
    tl_map_put(map, tl_arena_strdup(names, kind->made_of), map);
    return had;
}

/* How many iterations of a stage one thread goes through alone, while the others of its block do nothing: most of any stage. */
static int64_t alone(const tl_stmt *stmt, int64_t iterations)
{
    int64_t extent = 1, most = 0;
    switch (stmt->kind) {
    case TL_STMT_LOOP:
        if (strncmp(tl_loop_kind_infos[stmt->u.loop.kind].text, "threadIdx", 9) == 0)
            return 0;
        (void)tl_const_int(stmt->u.loop.extent, &extent);
        return alone(stmt->u.loop.body,
                     tl_loop_kind_infos[stmt->u.loop.kind].gpu ? iterations : iterations * extent);
    case TL_STMT_SEQ:
        for (int i = 0; i < stmt->u.seq.count; i++) {
            int64_t part = alone(stmt->u.seq.items[i], iterations);
            most = part > most ? part : most;
        }
        return most;
    case TL_STMT_ALLOC:
        return alone(stmt->u.alloc.body, iterations);
    case TL_STMT_BLOCK: /* a warp computes a call together */
        return stmt->u.block->call == NULL ? iterations : 0;
    case TL_STMT_BARRIER:
    case TL_STMT_PREFETCH:
    case TL_STMT_IF:
    case TL_STMT_STORE:
    case TL_STMT_CALL:
    case TL_STMT_KIND_COUNT:
        break;
    }
    return 0;
}

static void read_network(const char *folder, const char *name, int *missing)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_pool *pool;
    const char *path = lay_out(arena, folder, name);
    if (tl_pool_create(&(tl_pool_options){ .threads = 1 }, &pool, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    for (int w = 0; w < WAYS; w++) {
        tl_model *model;
        tl_model_options options = { .target = ways[w].target,
                                     .numerics = ways[w].numerics,
                                     .no_cache = true,
                                     .no_database = true,
                                     .compile_only = true,
                                     .foreign = true,
                                     .inspect_only = true,
                                     .pool = pool };
        if (tl_model_load(path, &options, &model, &diag) != TL_OK)
            fail_msg("%s: %s", name, diag.text);
        const tl_model_facts *facts = tl_model_get_facts(model);
        for (int k = 0; k < facts->kernel_count; k++) {
            const tl_model_kernel *kernel = &facts->kernels[k];
            const char *family = kernel->kernel->family;
            if (alone(kernel->scheduled->body, 1) > MOST_ALONE)
                fail_msg("%s of %s, %s: one thread computes a stage of %lld iterations",
                         kernel->kernel->name, name, ways[w].target,
                         (long long)alone(kernel->scheduled->body, 1));
            gpu_case kind =
                gpu_case_with(arena, family, kernel->naive, ways[w].target, kernel->trace);
            note_kind(of_networks, &kind);
            if (note_kind(known, &kind))
                continue;
            ++*missing;
            print_message("no case of %s: %s of %s, %s\n", kind.name, kernel->kernel->name, name,
                          ways[w].target);
            if (getenv("GOLDEN_UPDATE") != NULL)
                write_case(arena, family, &kind, name);
        }
        tl_model_destroy(model);
    }
    tl_pool_destroy(pool);
    tl_arena_destroy(arena);
}

static void note_case(tl_arena *arena, const gpu_case *c, const char *path)
{
    (void)arena;
    if (strstr(path, c->name) != NULL)
        note_kind(known, c);
}

static int stale;

static void note_stale(tl_arena *arena, const gpu_case *c, const char *path)
{
    (void)arena;
    if (strstr(path, c->name) != NULL && tl_map_has(of_networks, c->unit) &&
        tl_map_has(of_networks, c->made_of))
        return;
    stale++;
    print_message("no network has %s\n", path);
    if (getenv("GOLDEN_UPDATE") != NULL)
        unlink(path);
}

static void networks_have_no_others(void **state)
{
    (void)state;
    glob_t found;
    int missing = 0;
    if (glob(NETWORKS "/*/*.weights.txt", 0, NULL, &found) != 0 || found.gl_pathc < NETWORK_COUNT) {
        print_message("the networks of " NETWORKS " are not here\n");
        skip();
    }
    names = tl_arena_create(0);
    known = tl_map_create(names);
    of_networks = tl_map_create(names);
    stale = 0;
    visit_cases(NULL, note_case);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char name[64];
        assert_int_equal(sscanf(found.gl_pathv[i], NETWORKS "/%63[^/]", name), 1);
        read_network(cli_folder, name, &missing);
    }
    globfree(&found);
    visit_cases(NULL, note_stale);
    tl_arena_destroy(names);
    if (getenv("GOLDEN_UPDATE") == NULL && missing + stale > 0)
        fail_msg("%d kinds of kernels have no case, %d cases are of no kernel: GOLDEN_UPDATE=1 "
                 "writes and drops them",
                 missing, stale);
}

int main(void)
{
    tl_codegen_own_process();
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_no_others),
        cmocka_unit_test(cases_run_emulated),
    };
    return cmocka_run_group_tests_name("gpu classes", tests, cli_set_up, cli_tear_down);
}

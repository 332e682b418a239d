/* codegen/emulate/emulate.c: loads modules, and spreads the blocks of a launch over threads of the CPU.
 *
 * Clusters are taken in their order. When one fails, only those before it still run, so that of several mistakes the
 * first is told, however many work. */
#include <llvm-c/IRReader.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "codegen/emulate/module_private.h"
#include "runtime/base/float_mode.h"

/* ---- loading ---- */

/* Nothing of this process may lie where shared memory seems to be. */
static bool window_is_free;
static void take_window(void)
{
    size_t bytes = (size_t)(TL_SHARED_STEP * (1 + TL_GPU_CLUSTER));
    void *wanted = (void *)(uintptr_t)TL_SHARED_WINDOW;
    void *got = mmap(wanted, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    window_is_free = got == wanted;
    if (got != MAP_FAILED && !window_is_free)
        munmap(got, bytes);
}

static tl_status parse(LLVMContextRef context, const char *ir, size_t size, LLVMModuleRef *out,
                       tl_diag *diag)
{
    char *message = NULL;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, size, "module");
    if (!LLVMParseIRInContext(context, buffer, out, &message))
        return TL_OK;
    tl_status status = tl_fail(diag, TL_BAD_TEXT, "the module is no LLVM IR: %s", message);
    LLVMDisposeMessage(message);
    *out = NULL;
    return status;
}

static const char passes[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse)";

typedef struct {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
    char complaint[512];
    tl_text object;
} loading;

static tl_status compile(loading *l, tl_emulated *out, const tl_target *host, const char *ir,
                         size_t size, tl_diag *diag)
{
    l->context = LLVMContextCreate();
    tl_llvm_collect(l->context, l->complaint);
    TL_TRY(tl_llvm_borrow(host, &l->machine, diag));
    TL_TRY(parse(l->context, ir, size, &l->module, diag));
    TL_TRY(tl_emulate_rewrite(out, l->module, l->machine, host, diag));
    TL_TRY(tl_llvm_optimise(l->module, passes, l->machine, diag));
    TL_TRY(tl_llvm_generate(l->module, l->machine, LLVMObjectFile, &l->object, diag));
    TL_TRY(tl_object_check(l->object.data, l->object.size, diag));
    return l->complaint[0] == '\0' ? TL_OK : tl_fail(diag, TL_INTERNAL, "LLVM: %s", l->complaint);
}

static tl_status link_kernels(tl_emulated *out, const tl_target *host, const tl_text *object,
                              tl_diag *diag)
{
    const tl_descriptor names = { .name = "emulated", .phase_count = out->kernel_count };
    TL_TRY(tl_jit_create(host, &out->jit, diag));
    TL_TRY(tl_jit_add(out->jit, object->data, object->size, &names, &out->code, diag));
    for (int i = 0; i < out->kernel_count; i++) {
        tl_phase_fn *phase = tl_jit_phase(out->code, i);
        memcpy(&out->kernels[i].entry, &phase, sizeof phase);
    }
    return TL_OK;
}

static tl_status load(tl_emulated *out, const tl_target *host, const char *ir, size_t size,
                      tl_diag *diag)
{
    loading *l = calloc(1, sizeof *l);
    if (l == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory to load a module");
    tl_llvm_guard guard;
    tl_llvm_enter(&guard);
    if (setjmp(guard.escape) != 0) { /* LLVM's objects are in no state to be disposed of */
        tl_status status =
            tl_fail(diag, TL_INTERNAL, "LLVM gave up on a module to be emulated: %s", guard.text);
        tl_llvm_leave(&guard);
        tl_text_free(&l->object);
        free(l);
        return status;
    }
    tl_status status = compile(l, out, host, ir, size, diag);
    tl_llvm_leave(&guard);
    if (status == TL_OK)
        status = link_kernels(out, host, &l->object, diag);
    tl_text_free(&l->object);
    if (l->module != NULL)
        LLVMDisposeModule(l->module);
    if (l->machine != NULL)
        tl_llvm_give_back(host, l->machine);
    LLVMContextDispose(l->context);
    free(l);
    return status;
}

tl_status tl_emulated_load(const tl_target *host, const char *ir, size_t size, tl_emulated **out,
                           tl_diag *diag)
{
    enum { ARENA_LIMIT = 1 << 28 };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_window);
    if (!window_is_free)
        return tl_fail(
            diag, TL_DEVICE,
            "the addresses of an emulated GPU's shared memory are taken in this process");
    if (tl_target_is_gpu(host))
        return tl_fail(diag, TL_BAD_ARGUMENT, "a GPU is emulated on a CPU, not on %s",
                       host->triple);
    TL_TRY(tl_llvm_start(diag));
    tl_arena *arena = tl_arena_create(ARENA_LIMIT);
    tl_emulated *module = calloc(1, sizeof *module);
    if (arena == NULL || module == NULL || TL_ARENA_GUARD(arena)) {
        tl_arena_destroy(arena);
        free(module);
        return tl_fail(diag, TL_NO_MEMORY, "no memory to load a module");
    }
    module->arena = arena;
    tl_status status = load(module, host, ir, size, diag);
    if (status != TL_OK) {
        tl_emulated_unload(module);
        return status;
    }
    *out = module;
    return TL_OK;
}

void tl_emulated_unload(tl_emulated *module)
{
    if (module == NULL)
        return;
    tl_jit_remove(module->code);
    tl_jit_destroy(module->jit);
    tl_arena_destroy(module->arena);
    free(module);
}

int tl_emulated_find(const tl_emulated *module, const char *kernel)
{
    for (int i = 0; i < module->kernel_count; i++)
        if (strcmp(module->kernels[i].name, kernel) == 0)
            return i;
    return -1;
}

const char *tl_emulated_name(const tl_emulated *module, int kernel)
{
    return kernel >= 0 && kernel < module->kernel_count ? module->kernels[kernel].name : NULL;
}

/* ---- launching ---- */

typedef struct {
    const tl_emulated *module;
    const tl_emulated_kernel *kernel;
    const tl_emulated_launch *launch;
    int cluster[3];    /* blocks of one, by axis */
    int64_t groups[3]; /* clusters of the grid, by axis */
    int64_t group_count;
    atomic_llong next, failed; /* the first cluster that nobody has taken; the first that failed */
    pthread_mutex_t lock;
    tl_status status; /* of `failed` */
    tl_diag diag;
} job;

static void keep_failure(job *j, int64_t group, tl_status status, const tl_diag *diag)
{
    pthread_mutex_lock(&j->lock);
    if (group < atomic_load(&j->failed)) {
        atomic_store(&j->failed, group);
        j->status = status;
        j->diag = *diag;
    }
    pthread_mutex_unlock(&j->lock);
}

static void place_blocks(const job *j, tl_gpu_team *team, int64_t group)
{
    const int64_t at[3] = { group % j->groups[0], group / j->groups[0] % j->groups[1],
                            group / j->groups[0] / j->groups[1] };
    for (int k = 0; k < team->block_count; k++) {
        const int in[3] = { k % j->cluster[0], k / j->cluster[0] % j->cluster[1],
                            k / j->cluster[0] / j->cluster[1] };
        for (int a = 0; a < 3; a++)
            team->blocks[k].index[a] = (int)at[a] * j->cluster[a] + in[a];
    }
}

static void *work(void *context)
{
    job *j = context;
    tl_gpu_team *team = calloc(1, sizeof *team);
    tl_diag diag = { 0 };
    if (team == NULL) {
        keep_failure(j, 0, tl_fail(&diag, TL_NO_MEMORY, "no memory for a GPU block"), &diag);
        return NULL;
    }
    const tl_emulated_launch *l = j->launch;
    team->launch = l;
    team->kernel = j->kernel->name;
    team->entry = j->kernel->entry;
    team->static_bytes = j->module->static_bytes;
    team->shared_bytes = j->module->dynamic_at + l->shared_bytes;
    team->thread_count = l->block[0] * l->block[1] * l->block[2];
    team->block_count = j->cluster[0] * j->cluster[1] * j->cluster[2];
    uint64_t mode = j->module->flushes ? tl_float_mode_enter() : 0;
    tl_status status = tl_gpu_team_create(team, j->module->stack_bytes, &diag);
    if (status != TL_OK)
        keep_failure(j, 0, status, &diag);
    for (int64_t group;
         status == TL_OK && (group = atomic_fetch_add(&j->next, 1)) < j->group_count;) {
        if (group > atomic_load(&j->failed))
            break;
        place_blocks(j, team, group);
        status = tl_gpu_team_run(team);
        if (status != TL_OK)
            keep_failure(j, group, status, &team->diag);
    }
    if (j->module->flushes)
        tl_float_mode_leave(mode);
    tl_gpu_team_destroy(team);
    free(team);
    return NULL;
}

static tl_status check_shape(const tl_emulated *module, const tl_emulated_kernel *k,
                             const tl_emulated_launch *l, job *j, tl_diag *diag)
{
    static const int most[3] = { INT32_MAX, 65535, 65535 }, most_threads[3] = { 1024, 1024, 64 };
    int64_t threads = 1, blocks = 1;
    j->group_count = 1;
    for (int a = 0; a < 3; a++) {
        j->cluster[a] = l->cluster[a] > 1 ? l->cluster[a] : 1;
        if (l->grid[a] < 1 || l->grid[a] > most[a] || l->block[a] < 1 ||
            l->block[a] > most_threads[a])
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "kernel %s: no GPU launches %d blocks of %d threads along %c", k->name,
                           l->grid[a], l->block[a], "xyz"[a]);
        if (l->grid[a] % j->cluster[a] != 0)
            return tl_fail(diag, TL_BAD_ARGUMENT,
                           "kernel %s: %d blocks along %c are no whole clusters of %d", k->name,
                           l->grid[a], "xyz"[a], j -> cluster[a]);
        threads *= l->block[a];
        blocks *= j->cluster[a];
        j->groups[a] = l->grid[a] / j->cluster[a];
        j->group_count *= j->groups[a];
    }
    if (threads > TL_GPU_THREADS || (k->most_threads > 0 && threads > k->most_threads))
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "kernel %s: a block of %lld threads, it is made for %lld at most", k->name,
                       (long long)threads,
                       (long long)(k->most_threads > 0 ? k->most_threads : TL_GPU_THREADS));
    if (k->exact_threads > 0 && threads != k->exact_threads)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "kernel %s: a block of %lld threads, it is made for %lld", k->name,
                       (long long)threads, (long long)k->exact_threads);
    if (blocks > TL_GPU_CLUSTER)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s: a cluster has %d blocks at most", k->name,
                       TL_GPU_CLUSTER);
    if (l->shared_bytes < 0 || l->shared_bytes > TL_GPU_SHARED - module->dynamic_at)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "kernel %s: %lld bytes of shared memory beside its own %lld, a block has %d",
                       k->name, (long long)l->shared_bytes, (long long)module->dynamic_at,
                       TL_GPU_SHARED);
    if (l->argument_count != k->argument_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "kernel %s takes %d arguments, not %d", k->name,
                       k->argument_count, l->argument_count);
    return TL_OK;
}

static int count_workers(const tl_emulated_launch *l, int64_t groups)
{
    enum { MOST = 16 };
    int64_t n = l->cpu_threads > 0 ? l->cpu_threads : sysconf(_SC_NPROCESSORS_ONLN);
    n = n > MOST ? MOST : n;
    n = n > groups ? groups : n;
    return n > 1 ? (int)n : 1;
}

tl_status tl_emulated_run(tl_emulated *module, int kernel, const tl_emulated_launch *launch,
                          tl_diag *diag)
{
    if (kernel < 0 || kernel >= module->kernel_count)
        return tl_fail(diag, TL_BAD_ARGUMENT, "the module has %d kernels, and none of number %d",
                       module->kernel_count, kernel);
    tl_emulated_launch l = *launch;
    l.max_steps = l.max_steps > 0 ? l.max_steps : INT64_C(1) << 32;
    job j = { .module = module, .kernel = &module->kernels[kernel], .launch = &l };
    TL_TRY(check_shape(module, j.kernel, &l, &j, diag));
    atomic_store(&j.failed, INT64_MAX);
    pthread_mutex_init(&j.lock, NULL);
    int workers = count_workers(&l, j.group_count), started = 0;
    pthread_t threads[16];
    for (; started < workers - 1; started++)
        if (pthread_create(&threads[started], NULL, work, &j) != 0)
            break;
    work(&j);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.lock);
    return j.status == TL_OK ? TL_OK : tl_fail(diag, j.status, "%s", j.diag.text);
}

/* tests/support/meaning.c: the check of one kernel and trace, and the loop over seeds. */
#include "tests/support/meaning.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ir/interpret/interpret.h"
#include "schedule/trace.h"
#include "tests/support/patience.h"
#include "tests/support/random_kernel.h"
#include "tests/support/random_schedule.h"

/* Splits of splits make loops that are mostly guarded away, and unrolled loops of unrolled loops long code: what takes
 * too long is left out, and counted. */
enum { MAX_INSTANCES = 300 * 1000, MAX_WRITTEN_OUT = 1500, MAX_STEPS = 12 };

typedef struct {
    meaning *m;
    tl_arena *arena;
    const tl_program *naive;
    tl_schedule *schedule;
    bool is_exact; /* no roundings, or the same ones: results are the same to the last bit */
    meaning_failure *out;
} check;

static bool fail(check *c, const char *kind, const char *text)
{
    snprintf(c->out->kind, sizeof c->out->kind, "%s", kind);
    snprintf(c->out->text, sizeof c->out->text, "%s", text);
    return false;
}

/* Texts. */

static bool check_program_text(check *c)
{
    tl_diag diag = { 0 };
    tl_program *program;
    const char *text = tl_program_text(c->arena, tl_schedule_program(c->schedule));
    if (tl_program_parse(c->arena, text, "printed", &program, &diag) != TL_OK)
        return fail(c, "the printed program does not parse", diag.text);
    /* names that clashed are other names once they are read back, and sums are ordered by names: once */
    const char *named = tl_program_text(c->arena, program);
    if (tl_program_parse(c->arena, named, "printed", &program, &diag) != TL_OK)
        return fail(c, "the printed program does not parse", diag.text);
    if (strcmp(named, tl_program_text(c->arena, program)) != 0)
        return fail(c, "the program prints, parses and prints otherwise", named);
    if (tl_program_hash(program) != tl_program_hash(tl_schedule_program(c->schedule)))
        return fail(c, "another hash when printed and parsed", named);
    return true;
}

static bool check_trace_text(check *c)
{
    tl_diag diag = { 0 };
    tl_trace *trace;
    const char *steps = tl_trace_text(c->arena, tl_schedule_trace(c->schedule));
    if (tl_trace_parse(c->arena, steps, "recorded", NULL, &trace, &diag) != TL_OK)
        return fail(c, "the recorded trace does not parse", diag.text);
    if (strcmp(steps, tl_trace_text(c->arena, trace)) != 0)
        return fail(c, "the trace prints, parses and prints otherwise", steps);
    tl_schedule *replayed = tl_schedule_create(c->arena, c->naive, NULL, true);
    if (tl_trace_apply(trace, replayed, &diag) != TL_OK)
        return fail(c, "the recorded trace does not replay", diag.text);
    if (tl_program_hash(tl_schedule_program(replayed)) !=
        tl_program_hash(tl_schedule_program(c->schedule)))
        return fail(c, "the recorded trace replays to another program", steps);
    return true;
}

/* Data. */

static int64_t elements_of(tl_arena *arena, const tl_buffer *b, const tl_program *program,
                           int64_t dim)
{
    int64_t size = 1;
    for (int i = 0; i < b->rank; i++) {
        int64_t extent;
        if (!tl_const_int(b->shape[i], &extent)) {
            tl_binding binding = { program->dims[0], tl_int(arena, dim) };
            if (!tl_const_int(tl_substitute(arena, b->shape[i], &binding, 1), &extent))
                extent = 0;
        }
        size *= extent;
    }
    return size;
}

static meaning_run make_run(check *c, int64_t dim)
{
    meaning_run run = { .dims = { dim } };
    tl_random random = tl_random_make(c->m->seed);
    for (int p = 0; p < c->naive->param_count; p++) {
        const tl_buffer *b = c->naive->params[p];
        int64_t count = elements_of(c->arena, b, c->naive, dim);
        size_t size = tl_dtype_size(b->dtype) * (size_t)count;
        run.data[p] = tl_arena_alloc(c->arena, size, 64);
        memset(run.data[p], 0x5A, size);
        for (int64_t i = 0; i < count && b->role != TL_ROLE_OUTPUT; i++) {
            int64_t value = tl_random_below(&random, 7) - 3;
            if (b->dtype == TL_BOOL)
                value = value > 0;
            tl_number number = { .i = value };
            if (tl_dtype_is_float(b->dtype))
                number.f = (double)value * (c->naive->strict ? tl_random_unit(&random) : 1);
            tl_number_store(b->dtype, run.data[p], (size_t)i, number);
        }
    }
    return run;
}

static tl_status interpret(const tl_program *program, const meaning_run *run, tl_diag *diag)
{
    tl_argument arguments[MEANING_MAX_BUFFERS];
    for (int p = 0; p < program->param_count; p++)
        arguments[p] = (tl_argument){ program->params[p], run->data[p] };
    tl_interpret_options options = { .check = true, .max_instances = MAX_INSTANCES };
    return tl_interpret(program, arguments, program->param_count, run->dims, &options, diag);
}

static bool is_close(const check *c, tl_dtype dtype, tl_number x, tl_number y)
{
    if (!tl_dtype_is_float(dtype))
        return x.i == y.i;
    if (x.f == y.f || (isnan(x.f) && isnan(y.f)))
        return true;
    double tolerance = c->is_exact ? 0 : dtype == TL_F32 || dtype == TL_F64 ? 1e-5 : 2e-2;
    return fabs(x.f - y.f) <= tolerance * fmax(1.0, fabs(x.f));
}

static bool compare(check *c, const meaning_run *want, const meaning_run *got, const char *kind)
{
    for (int p = 0; p < c->naive->param_count; p++) {
        const tl_buffer *b = c->naive->params[p];
        int64_t count = elements_of(c->arena, b, c->naive, want->dims[0]);
        for (int64_t i = 0; i < count; i++) {
            tl_number x = tl_number_load(b->dtype, want->data[p], (size_t)i);
            tl_number y = tl_number_load(b->dtype, got->data[p], (size_t)i);
            if (is_close(c, b->dtype, x, y))
                continue;
            bool is_float = tl_dtype_is_float(b->dtype);
            return fail(c, kind,
                        tl_arena_format(c->arena, "%s[%lld] is %.9g, not %.9g (dim %lld)", b->name,
                                        (long long)i, is_float ? y.f : (double)y.i,
                                        is_float ? x.f : (double)x.i, (long long)want->dims[0]));
        }
    }
    return true;
}

/* What the interpreter has found, without the names and numbers. */
static const char *kind_of(const char *sentence)
{
    static const char *const kinds[] = { "out of bounds",      "race on",
                                         "is read before",     "barrier",
                                         "outside its region", "outside its domain",
                                         "divided by zero" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(sentence, kinds[i]) != NULL)
            return kinds[i];
    return "the interpreter refuses the program";
}

/* What a program is. */

typedef struct {
    bool is_gpu, has_functions, has_quotients;
    int64_t written_out; /* blocks after unrolling */
} traits;

static bool visit_expr(const tl_expr *e, void *context)
{
    traits *t = context;
    t->has_functions |= e->kind == TL_EXPR_CALL;
    t->has_quotients |= e->kind == TL_EXPR_DIV && tl_dtype_is_float(e->dtype);
    return true;
}

static void find_traits(const tl_stmt *stmt, int64_t copies, traits *t)
{
    if (stmt->kind == TL_STMT_LOOP) {
        int64_t extent = 1;
        tl_loop_kind kind = stmt->u.loop.kind;
        t->is_gpu = t->is_gpu || tl_loop_kind_infos[kind].gpu;
        if (kind == TL_LOOP_UNROLLED || kind == TL_LOOP_VECTORIZED)
            (void)tl_const_int(stmt->u.loop.extent, &extent);
        if (kind == TL_LOOP_VECTORIZED)
            extent = 1 + extent / 8; /* registers */
        find_traits(stmt->u.loop.body, copies * extent, t);
    } else if (stmt->kind == TL_STMT_SEQ) {
        for (int i = 0; i < stmt->u.seq.count; i++)
            find_traits(stmt->u.seq.items[i], copies, t);
    } else if (stmt->kind == TL_STMT_ALLOC) {
        tl_scope scope = stmt->u.alloc.buffer->scope;
        t->is_gpu = t->is_gpu || scope == TL_SCOPE_SHARED || tl_scope_threads[scope] > 0;
        find_traits(stmt->u.alloc.body, copies, t);
    } else if (stmt->kind == TL_STMT_BLOCK) {
        t->written_out += copies;
        for (int i = 0; i < stmt->u.block->store_count; i++)
            tl_expr_visit(stmt->u.block->stores[i].value, visit_expr, t);
    } else if (stmt->kind == TL_STMT_BARRIER) {
        t->is_gpu = true;
    }
}

static traits traits_of(const tl_program *program)
{
    traits t = { 0 };
    if (program->prepare)
        find_traits(program->prepare, 1, &t);
    find_traits(program->body, 1, &t);
    return t;
}

static int make_runs(check *c, meaning_run *runs)
{
    if (c->naive->dim_count == 0) {
        runs[0] = make_run(c, 0);
        return 1;
    }
    int64_t most = c->naive->dims[0]->max;
    runs[0] = make_run(c, 1);
    runs[1] = make_run(c, most);
    runs[2] = make_run(c, 1 + (int64_t)(c->m->seed % (uint64_t)most));
    return MEANING_MAX_RUNS;
}

static bool check_compiled(check *c, const tl_program *program, const meaning_run *want, int count)
{
    tl_diag diag = { 0 };
    meaning_run got[MEANING_MAX_RUNS];
    traits t = traits_of(program);
    meaning_compiled_fn *compiled = t.is_gpu ? c->m->emulated : c->m->compiled;
    if (compiled == NULL)
        return true;
    if (t.written_out > MAX_WRITTEN_OUT) {
        c->m->left_out++;
        return true;
    }
    make_runs(c, got);
    tl_status status = compiled(c->arena, program, c->m->seed, got, count, &diag);
    if (status == TL_UNSUPPORTED) {
        c->m->refused++;
        return true;
    }
    if (status != TL_OK)
        return fail(c, tl_arena_format(c->arena, "compiling: %s", tl_status_text(status)),
                    diag.text);
    for (int i = 0; i < count; i++)
        if (!compare(c, &want[i], &got[i], "the compiled program computes something else"))
            return false;
    return true;
}

static bool check_values(check *c)
{
    tl_diag diag = { 0 };
    meaning_run want[MEANING_MAX_RUNS], got[MEANING_MAX_RUNS];
    const tl_program *program = tl_schedule_program(c->schedule);
    traits t = traits_of(c->naive);
    c->is_exact = !t.has_functions && (c->naive->strict || !t.has_quotients);
    if (c->m->break_program)
        program = c->m->break_program(c->arena, program);
    int count = make_runs(c, want);
    make_runs(c, got);
    for (int i = 0; i < count; i++) {
        tl_status status = interpret(c->naive, &want[i], &diag);
        if (status == TL_OK)
            status = interpret(program, &got[i], &diag);
        else if (status != TL_BUDGET)
            return fail(c, MEANING_BAD_KERNEL, diag.text);
        if (status == TL_BUDGET) {
            c->m->left_out++;
            return true;
        }
        if (status != TL_OK)
            return fail(c, kind_of(diag.text), diag.text);
        if (!compare(c, &want[i], &got[i], "the program computes something else"))
            return false;
    }
    return check_compiled(c, program, want, count);
}

static bool holds(check *c, const char *kernel, const char *trace, uint64_t hash)
{
    tl_diag diag = { 0 };
    tl_program *naive;
    tl_trace *steps;
    if (tl_program_parse(c->arena, kernel, "kernel", &naive, &diag) != TL_OK ||
        tl_program_verify(naive, &diag) != TL_OK)
        return fail(c, MEANING_BAD_KERNEL, diag.text);
    c->naive = naive;
    if (naive->param_count > MEANING_MAX_BUFFERS)
        return fail(c, MEANING_BAD_KERNEL, "it has too many parameters");
    if (tl_trace_parse(c->arena, trace, "trace", NULL, &steps, &diag) != TL_OK)
        return fail(c, "the trace does not parse", diag.text);
    c->schedule = tl_schedule_create(c->arena, naive, NULL, true);
    tl_status status = tl_trace_apply(steps, c->schedule, &diag);
    if (status != TL_OK)
        return fail(c, tl_arena_format(c->arena, "replaying: %s", tl_status_text(status)),
                    diag.text);
    if (hash != 0 && tl_program_hash(tl_schedule_program(c->schedule)) != hash)
        return fail(c, "the trace replays to another program", trace);
    if (!check_program_text(c) || !check_trace_text(c))
        return false;
    /* what threads share is defined only with the barriers; where there is no place for them, it is not */
    tl_arg out[TL_MAX_ARGS];
    int out_count;
    if (traits_of(tl_schedule_program(c->schedule)).is_gpu &&
        tl_schedule_apply(c->schedule, TL_PRIM_place_barriers, NULL, 0, out, &out_count, NULL) !=
            TL_OK) {
        c->m->left_out++;
        return true;
    }
    return check_values(c);
}

bool meaning_holds(meaning *m, const char *kernel, const char *trace, uint64_t hash,
                   meaning_failure *out)
{
    tl_arena *arena = tl_arena_create(0);
    check c = { .m = m, .arena = arena, .out = out };
    *out = (meaning_failure){ 0 };
    bool is_ok = holds(&c, kernel, trace, hash);
    tl_arena_destroy(arena);
    return is_ok;
}

/* Seeds. */

static uint64_t running_seed;

/* A crash or an endless loop says where it was. */
static void say_seed(int signal)
{
    char text[96];
    int length = snprintf(text, sizeof text, "signal %d: TL_SEED=%llu TL_COUNT=1\n", signal,
                          (unsigned long long)running_seed);
    if (write(2, text, (size_t)length) != length)
        _exit(2);
    _exit(1);
}

static void report(meaning *m, uint64_t seed, const char *kernel, const char *trace,
                   const meaning_failure *failure)
{
    tl_arena *arena = tl_arena_create(0);
    meaning_failure now;
    const char *name = tl_arena_format(arena, "meaning_%llu", (unsigned long long)seed);
    alarm(0);
    meaning_reduce(m, arena, &kernel, &trace, failure);
    meaning_holds(m, kernel, trace, 0, &now);
    if (now.kind[0] == 0) /* only the steps as they were applied first fail, not their replay */
        now = *failure;
    const char *path = meaning_write(arena, "build/failures", name, kernel, trace, &now);
    fprintf(stderr,
            "TL_SEED=%llu TL_COUNT=1\n%s: %s\nreduced to\nkernel\n%s\ntrace\n%s\n"
            "tilth schedule %s.tk %s.tr --verify\n\n",
            (unsigned long long)seed, now.kind, now.text, kernel, trace, path, path);
    tl_arena_destroy(arena);
}

/* False: the case failed. */
static bool run_case(meaning *m, random_steps *steps, uint64_t seed, bool may_bind)
{
    tl_arena *arena = tl_arena_create(0);
    tl_random random = tl_random_make(seed);
    meaning_failure failure;
    tl_diag diag = { 0 };
    tl_program *program;
    m->seed = seed;
    const char *kernel = random_kernel(arena, &random), *trace = "";
    if (m->strict)
        kernel = tl_arena_format(arena, "strict %s", kernel);
    bool is_ok = meaning_holds(m, kernel, "", 0, &failure);
    if (is_ok && tl_program_parse(arena, kernel, "kernel", &program, &diag) == TL_OK) {
        steps->schedule = tl_schedule_create(arena, program, NULL, true);
        steps->random = &random;
        steps->may_bind = may_bind && tl_random_below(&random, 3) == 0;
        tl_schedule_seed(steps->schedule, seed);
        bool applied = random_steps_apply(steps, MAX_STEPS);
        trace = tl_trace_text(arena, tl_schedule_trace(steps->schedule));
        uint64_t hash = tl_program_hash(tl_schedule_program(steps->schedule));
        is_ok = meaning_holds(m, kernel, trace, applied ? hash : 0, &failure);
        if (is_ok && !applied) {
            snprintf(failure.kind, sizeof failure.kind, "applying: %s",
                     tl_status_text(steps->status));
            snprintf(failure.text, sizeof failure.text, "%s", steps->diag.text);
            is_ok = false;
        }
    }
    if (!is_ok)
        report(m, seed, kernel, trace, &failure);
    tl_arena_destroy(arena);
    return is_ok;
}

/* What wants a loop that is a pipeline of bulk copies already, inside of bound threads, no random steps lead to:
 * tests/codegen/test_gpu_group.c has its schedules. */
static const bool is_out_of_reach[TL_PRIM_COUNT] = { [TL_PRIM_specialize] = true };

int64_t meaning_run_cases(meaning *m, uint64_t first, uint64_t count, bool may_bind)
{
    random_steps steps = { 0 };
    int64_t failures = 0, most = (int64_t)meaning_environment("TL_FAILURES", 10);
    signal(SIGSEGV, say_seed);
    signal(SIGABRT, say_seed);
    signal(SIGFPE, say_seed);
    signal(SIGALRM, say_seed);
    for (uint64_t seed = first; seed < first + count && failures < most; seed++) {
        running_seed = seed;
        alarm(60 * PATIENCE);
        failures += !run_case(m, &steps, seed, may_bind);
    }
    alarm(0);
    printf("%lld of %llu not run to the end, %lld refused by code generation; applied/tried:",
           (long long)m->left_out, (unsigned long long)count, (long long)m->refused);
    for (int i = 0; i < TL_PRIM_COUNT; i++)
        printf(" %s %lld/%lld", random_prim_names[i], (long long)steps.applied[i],
               (long long)steps.tried[i]);
    printf("\n");
    for (int i = 0; i < TL_PRIM_COUNT && count >= 500 && may_bind && !m->strict && failures == 0;
         i++) {
        if (steps.applied[i] == 0 && !is_out_of_reach[i]) {
            fprintf(stderr, "%s was never legal\n", random_prim_names[i]);
            failures++;
        }
    }
    return failures;
}

uint64_t meaning_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

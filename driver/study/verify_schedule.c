/* driver/study/verify_schedule.c: whether a schedule means what the naive program means: the interpreter's word, and the
 * compiled code's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "driver/study/measure_kernel.h"
#include "ir/interpret/interpret.h"
#include "runtime/base/random.h"

/* The interpreter does some ten million instances a second. */
enum { MOST_INSTANCES = 20000000, MOST_POINT_LOADS = 20000000, MOST_POINTS = 1000 };

/* What an element may be off by, over the largest magnitude: sums change their order. */
static double tolerance_of(const tl_program *naive, tl_dtype dtype)
{
    if (!tl_dtype_is_float(dtype))
        return 0;
    if (naive->tf32 && dtype == TL_F32)
        return tl_program_error_bound(naive);
    return dtype == TL_F64 ? 1e-10 : dtype == TL_F32 ? 1e-4 : dtype == TL_F16 ? 1e-2 : 5e-2;
}

typedef struct {
    const tl_study *study;
    tl_verdict *verdict;
    tl_diag *diag;
} judge;

static bool is_output(const tl_buffer *b)
{
    return b->role == TL_ROLE_OUTPUT || b->role == TL_ROLE_INOUT;
}

/* Takes a pair of values into the verdict; false: they differ by too much. */
static bool same(judge *j, tl_dtype dtype, tl_number got, tl_number want, double largest)
{
    if (!tl_dtype_is_float(dtype))
        return got.i == want.i;
    if ((isnan(got.f) && isnan(want.f)) || got.f == want.f)
        return true;
    double error = fabs(got.f - want.f), relative = largest > 0 ? error / largest : error;
    if (!(error <= j->verdict->max_error))
        j->verdict->max_error = error;
    if (!(relative <= j->verdict->max_relative))
        j->verdict->max_relative = relative;
    return error <= tolerance_of(j->study->naive, dtype) * (largest + fabs(want.f));
}

static double largest_of(tl_dtype dtype, const void *data, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count && tl_dtype_is_float(dtype); i++) {
        double value = fabs(tl_number_load(dtype, data, (size_t)i).f);
        largest = isfinite(value) && value > largest ? value : largest;
    }
    return largest;
}

static void index_text(const tl_study *study, const tl_buffer *b, int64_t at, tl_text *out)
{
    int64_t index[TL_MAX_ARGS] = { 0 };
    for (int a = b->rank - 1; a >= 0; a--) {
        tl_buffer axis = { .rank = 1, .shape = &b->shape[a] };
        int64_t extent = tl_study_elements(study, &axis);
        if (a < TL_MAX_ARGS)
            index[a] = extent > 0 ? at % extent : 0;
        at = extent > 0 ? at / extent : 0;
    }
    tl_text_format(out, "%s[", b->name);
    for (int a = 0; a < b->rank && a < TL_MAX_ARGS; a++)
        tl_text_format(out, "%s%lld", a ? ", " : "", (long long)index[a]);
    tl_text_add(out, "]");
}

static tl_status differ(judge *j, const tl_buffer *b, int64_t at, tl_number got, tl_number want,
                        const char *who, const char *from)
{
    tl_text name = { 0 };
    index_text(j->study, b, at, &name);
    if (tl_dtype_is_float(b->dtype))
        tl_fail(j->diag, TL_WRONG_RESULT, "%s is %.9g in %s, and %.9g in %s", tl_text_get(&name),
                got.f, who, want.f, from);
    else
        tl_fail(j->diag, TL_WRONG_RESULT, "%s is %lld in %s, and %lld in %s", tl_text_get(&name),
                (long long)got.i, who, (long long)want.i, from);
    tl_text_free(&name);
    return TL_WRONG_RESULT;
}

static tl_status compare(judge *j, const tl_arguments *got, const tl_arguments *want,
                         const char *who, const char *from)
{
    for (int i = 0; i < got->count; i++) {
        const tl_buffer *b = j->study->naive->params[i];
        if (!is_output(b))
            continue;
        double largest = largest_of(b->dtype, want->data[i], want->elements[i]);
        for (int64_t e = 0; e < got->elements[i]; e++) {
            tl_number x = tl_number_load(b->dtype, got->data[i], (size_t)e),
                      y = tl_number_load(b->dtype, want->data[i], (size_t)e);
            if (!same(j, b->dtype, x, y, largest))
                return differ(j, b, e, x, y, who, from);
        }
    }
    return TL_OK;
}

/* What the interpreter has to say against a program is a wrong result, not a failure of ours. */
static tl_status interpret(judge *j, const tl_program *program, const char *who,
                           tl_arguments *arguments)
{
    tl_argument *list = TL_NEW_ARRAY(j->study->arena, tl_argument, arguments->count);
    for (int i = 0; i < arguments->count; i++)
        list[i] = (tl_argument){ program->params[i], arguments->data[i] };
    tl_arguments_reset(j->study, arguments);
    tl_interpret_options options = { .check = true, .max_instances = 4LL * MOST_INSTANCES };
    tl_status status =
        tl_interpret(program, list, arguments->count, j->study->dims, &options, j->diag);
    if (status != TL_OK)
        tl_context(j->diag, "%s, interpreted", who);
    return status == TL_BAD_IR ? TL_WRONG_RESULT : status;
}

/* Instances of the naive program: an operation or more each. */
static bool is_small(const tl_study *study)
{
    int64_t elements = 0;
    for (int i = 0; i < study->naive->param_count; i++)
        elements += tl_study_elements(study, study->naive->params[i]);
    return study->flops <= 2LL * MOST_INSTANCES && elements <= MOST_INSTANCES;
}

/* Some elements of each output, corners first, as the naive program defines them. */
static tl_status check_points(judge *j, const tl_arguments *got)
{
    const tl_study *study = j->study;
    const tl_program *p = study->naive;
    tl_argument *list = TL_NEW_ARRAY(study->arena, tl_argument, got->count);
    for (int i = 0; i < got->count; i++)
        list[i] = (tl_argument){ p->params[i], got->data[i] };
    for (int i = 0; i < got->count; i++) {
        const tl_buffer *b = p->params[i];
        if (b->role != TL_ROLE_OUTPUT || got->elements[i] == 0)
            continue;
        int64_t cost = study->flops / got->elements[i] + 1;
        int64_t count =
            MOST_POINT_LOADS / cost < MOST_POINTS ? MOST_POINT_LOADS / cost + 1 : MOST_POINTS;
        int64_t *points = TL_NEW_ARRAY(study->arena, int64_t, count * b->rank + 1);
        int64_t *at = TL_NEW_ARRAY(study->arena, int64_t, count);
        tl_number *want = TL_NEW_ARRAY(study->arena, tl_number, count);
        tl_random random = tl_random_make(11);
        for (int64_t n = 0; n < count; n++)
            for (int a = 0; a < b->rank; a++) {
                tl_buffer axis = { .rank = 1, .shape = &b->shape[a] };
                int64_t extent = tl_study_elements(study, &axis);
                bool corner = b->rank < 62 && n < (int64_t)1 << b->rank;
                int64_t index =
                    corner ? (n >> a & 1 ? extent - 1 : 0) : tl_random_below(&random, extent);
                points[n * b->rank + a] = index;
                at[n] = at[n] * extent + index;
            }
        TL_TRY(
            tl_interpret_points(p, list, got->count, study->dims, b, points, count, want, j->diag));
        double largest = largest_of(b->dtype, got->data[i], got->elements[i]);
        for (int64_t n = 0; n < count; n++) {
            tl_number x = tl_number_load(b->dtype, got->data[i], (size_t)at[n]);
            if (!same(j, b->dtype, x, want[n], largest))
                return differ(j, b, at[n], x, want[n], "the compiled schedule",
                              "the naive program, interpreted");
        }
        j->verdict->points += count;
    }
    return TL_OK;
}

static tl_status run_compiled(judge *j, const tl_program *program, tl_arguments *arguments)
{
    tl_version *version;
    tl_arguments_reset(j->study, arguments);
    TL_TRY(tl_version_make(j->study, program, arguments, &version, j->diag));
    tl_version_run(version);
    tl_version_free(version);
    return TL_OK;
}

/* `sets`: compiled schedule, compiled naive, interpreted. */
static tl_status judge_all(judge *j, const tl_program *scheduled, tl_arguments sets[3])
{
    const tl_study *study = j->study;
    for (int i = 0; i < 3; i++)
        TL_TRY(tl_arguments_make(study, 1, &sets[i], j->diag));
    if (is_small(study)) {
        TL_TRY(interpret(j, study->naive, "the naive program", &sets[1]));
        TL_TRY(interpret(j, scheduled, "the scheduled program", &sets[2]));
        TL_TRY(compare(j, &sets[2], &sets[1], "the scheduled program, interpreted",
                       "the naive one, interpreted"));
        j->verdict->interpreted = true;
        if (tl_target_is_gpu(&study->target))
            return TL_OK; /* its code does not run here */
        TL_TRY(run_compiled(j, scheduled, &sets[0]));
        TL_TRY(compare(j, &sets[0], &sets[2], "the compiled schedule",
                       "the same program, interpreted"));
    } else if (tl_target_is_gpu(&study->target)) {
        return tl_fail(j->diag, TL_UNSUPPORTED,
                       "%s is too large to be interpreted (%lld operations), and code for %s does "
                       "not run here: make it smaller (--set, for dims)",
                       study->naive->name, (long long)study->flops,
                       tl_isa_infos[study->target.isa].text);
    } else {
        TL_TRY(run_compiled(j, scheduled, &sets[0]));
        TL_TRY(check_points(j, &sets[0]));
    }
    for (int i = 0; i < sets[0].count; i++)
        j->verdict->elements += is_output(study->naive->params[i]) ? sets[0].elements[i] : 0;
    TL_TRY(run_compiled(j, study->naive, &sets[1]));
    return compare(j, &sets[0], &sets[1], "the compiled schedule", "the compiled naive program");
}

tl_status tl_verify_schedule(const tl_study *study, const tl_program *scheduled, tl_verdict *out,
                             tl_diag *diag)
{
    tl_diag scratch = { 0 };
    tl_arguments sets[3] = { { 0 }, { 0 }, { 0 } };
    *out = (tl_verdict){ 0 };
    judge j = { study, out, diag ? diag : &scratch };
    tl_status status = judge_all(&j, scheduled, sets);
    for (int i = 0; i < 3; i++)
        tl_arguments_free(&sets[i]);
    out->right = status == TL_OK;
    return status;
}

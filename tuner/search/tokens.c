/* tuner/search/tokens.c: tokens of decisions, of workloads and of machines. */
#include "tuner/search/tokens.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/expr/index.h"
#include "runtime/base/map.h"
#include "tuner/cost/features.h"

typedef enum { RAW, LOG } kind;
typedef struct {
    const char *name;
    kind kind;
} column;

#define DECISION(name, kind, words) D_##name,
enum {
#include "tuner/search/tokens.def"
    DECISION_COLUMNS,
};
#undef DECISION
#define WORKLOAD(name, kind, words) W_##name,
enum {
#include "tuner/search/tokens.def"
    WORKLOAD_COLUMNS,
};
#undef WORKLOAD
#define MACHINE_COLUMN(name, kind, words) M_##name,
enum {
#include "tuner/search/tokens.def"
    MACHINE_COLUMNS,
};
#undef MACHINE_COLUMN
static const column decision_columns[] = {
#define DECISION(name, kind, words) { #name, kind },
#include "tuner/search/tokens.def"
#undef DECISION
};
static const column workload_columns[] = {
#define WORKLOAD(name, kind, words) { #name, kind },
#include "tuner/search/tokens.def"
#undef WORKLOAD
};
static const column machine_columns[] = {
#define MACHINE_COLUMN(name, kind, words) { #name, kind },
#include "tuner/search/tokens.def"
#undef MACHINE_COLUMN
};
static const char *const profile_columns[] = {
#define MACHINE(name, ...)      #name,
#define MACHINE_UNIT(name, ...) #name,
#include "ir/program/machine.def"
#undef MACHINE
#undef MACHINE_UNIT
};
enum {
    ROLE_CODE = 12,
    BLOCK_CODE = 8,
    FAMILY_CODE = 16,
    SPATIAL_AXES = 6,
    REDUCE_AXES = 4,
    PROFILE_COLUMNS = sizeof profile_columns / sizeof *profile_columns,
    DECISION_WIDTH = DECISION_COLUMNS + ROLE_CODE + BLOCK_CODE,
    WORKLOAD_WIDTH = WORKLOAD_COLUMNS + SPATIAL_AXES + REDUCE_AXES + FAMILY_CODE,
    MACHINE_WIDTH = MACHINE_COLUMNS + PROFILE_COLUMNS,
};

/* --- names
 * ------------------------------------------------------------------------------------------------------------ */

int tl_cost_token_width(tl_cost_token token)
{
    static const int widths[TL_COST_TOKEN_COUNT] = { [TL_COST_TOKEN_DECISION] = DECISION_WIDTH,
                                                     [TL_COST_TOKEN_WORKLOAD] = WORKLOAD_WIDTH,
                                                     [TL_COST_TOKEN_MACHINE] = MACHINE_WIDTH };
    return widths[token];
}

/* A part of a token: columns with names of their own, or numbered ones. */
typedef struct {
    int count;
    const column *columns; /* NULL: numbered */
    const char *name;
} part;
static const part parts[TL_COST_TOKEN_COUNT][4] = {
    [TL_COST_TOKEN_DECISION] = { { DECISION_COLUMNS, decision_columns, "" },
                                 { ROLE_CODE, NULL, "role" },
                                 { BLOCK_CODE, NULL, "block" } },
    [TL_COST_TOKEN_WORKLOAD] = { { WORKLOAD_COLUMNS, workload_columns, "" },
                                 { SPATIAL_AXES, NULL, "spatial" },
                                 { REDUCE_AXES, NULL, "reduce" },
                                 { FAMILY_CODE, NULL, "family" } },
    [TL_COST_TOKEN_MACHINE] = { { MACHINE_COLUMNS, machine_columns, "" },
                                { PROFILE_COLUMNS, NULL, "profile" } },
};

void tl_cost_token_name(tl_cost_token token, int at, char out[48])
{
    assert(at >= 0 && at < tl_cost_token_width(token));
    const part *p = parts[token];
    for (; at >= p->count; p++)
        at -= p->count;
    if (p->columns != NULL)
        snprintf(out, 48, "%s", p->columns[at].name);
    else if (token == TL_COST_TOKEN_MACHINE)
        snprintf(out, 48, "%s.%s", p->name, profile_columns[at]);
    else
        snprintf(out, 48, "%s%d", p->name, at + 1);
}

static tl_columns columns_of(tl_cost_token token)
{
    tl_columns columns = { .width = tl_cost_token_width(token) };
    tl_digest digest;
    char name[48];
    tl_digest_start(&digest);
    for (int i = 0; i < columns.width; i++) {
        tl_cost_token_name(token, i, name);
        tl_digest_add(&digest, name, strlen(name) + 1);
    }
    for (int k = 0; token == TL_COST_TOKEN_DECISION && k < TL_SPACE_KIND_COUNT; k++) {
        snprintf(name, sizeof name, "%s %d", tl_space_infos[k].name, tl_space_infos[k].revision);
        tl_digest_add(&digest, name, strlen(name) + 1);
    }
    tl_digest_text(&digest, columns.digest);
    return columns;
}

tl_sample_shape tl_sample_shape_of_points(void)
{
    tl_sample_shape shape = tl_sample_shape_of_rows();
    shape.decision = columns_of(TL_COST_TOKEN_DECISION);
    shape.workload = columns_of(TL_COST_TOKEN_WORKLOAD);
    shape.machine = columns_of(TL_COST_TOKEN_MACHINE);
    return shape;
}

/* --- codes
 * ------------------------------------------------------------------------------------------------------------ */

/* Adds the code of a word. */
static void add_code(const char *word, size_t length, int count, float *out)
{
    assert(count <= 64);
    uint64_t hash = tl_hash_bytes(word, length, 0x746f6b656e73u);
    for (int i = 0; i < count; i++)
        out[i] += hash >> i & 1 ? 1.0F : -1.0F;
}

static void fill_columns(const column *columns, int count, const double *values, float *out)
{
    for (int i = 0; i < count; i++)
        out[i] = columns[i].kind == LOG ? tl_feature_log(values[i]) : (float)values[i];
}

/* --- tasks
 * ------------------------------------------------------------------------------------------------------------ */

/* A block of a naive program. */
typedef struct {
    const tl_block *block;
    double spatial, reduce;
} stage;

typedef struct {
    int stage_count;
    stage *stages;
} outline;

struct tl_tokens {
    const tl_space *space;
    const outline *lowerings;
};

static double extent_of(const tl_iter *iter)
{
    return fmax((double)tl_expr_range(iter->extent).max, 1);
}

typedef struct {
    outline *out;
    bool counts;
} finder;

static bool find_stage(const tl_stmt *stmt, void *user)
{
    finder *f = user;
    if (stmt->kind != TL_STMT_BLOCK)
        return true;
    if (!f->counts) {
        const tl_block *block = stmt->u.block;
        stage *s = &f->out->stages[f->out->stage_count];
        *s = (stage){ block, 1, 1 };
        for (int i = 0; i < block->iter_count; i++)
            *(block->iters[i].kind == TL_ITER_SPATIAL ? &s->spatial : &s->reduce) *=
                extent_of(&block->iters[i]);
    }
    f->out->stage_count++;
    return true;
}

tl_tokens *tl_tokens_create(tl_arena *arena, const tl_space *space)
{
    tl_tokens *tokens = TL_NEW(arena, tl_tokens);
    int count = tl_space_task(space)->lowering_count;
    outline *lowerings = TL_NEW_ARRAY(arena, outline, count);
    for (int i = 0; i < count; i++) {
        const tl_stmt *body = tl_space_program(space, i)->body;
        finder f = { &lowerings[i], true };
        tl_stmt_visit(body, find_stage, &f);
        lowerings[i].stages = TL_NEW_ARRAY(arena, stage, lowerings[i].stage_count);
        lowerings[i].stage_count = 0;
        f.counts = false;
        tl_stmt_visit(body, find_stage, &f);
    }
    tokens->space = space;
    tokens->lowerings = lowerings;
    return tokens;
}

/* --- decisions
 * -------------------------------------------------------------------------------------------------------- */

/* The stage that a decision is about: "conv" of "conv.ow.3"; blocks that a schedule makes are named after theirs,
 * "conv_rf". */
static const stage *stage_of(const outline *lowering, const char *name, size_t length)
{
    const stage *best = NULL;
    size_t longest = 0;
    for (int i = 0; i < lowering->stage_count; i++) {
        const char *block = lowering->stages[i].block->name;
        size_t size = strlen(block);
        if (size <= length && size > longest && memcmp(block, name, size) == 0 &&
            (size == length || name[size] == '_')) {
            best = &lowering->stages[i];
            longest = size;
        }
    }
    return best;
}

/* "conv.ow.3" is about part 3 of axis ow. */
static double axis_of(const stage *s, const char *role, double *part_number)
{
    const char *dot = strchr(role, '.');
    for (int i = 0; s != NULL && dot != NULL && i < s->block->iter_count; i++) {
        const char *name = s->block->iters[i].var->name;
        if (strlen(name) == (size_t)(dot - role) && memcmp(name, role, strlen(name)) == 0) {
            *part_number = atoi(dot + 1);
            return extent_of(&s->block->iters[i]);
        }
    }
    return 0;
}

static double octaves(double value)
{
    return log2(fmax(fabs(value), 0.5));
}

static void describe_answer(const tl_decision *d, double *values)
{
    int64_t value = d->options[d->taken], initial = d->options[d->initial], largest = value;
    for (int i = 0; i < d->count; i++)
        largest = d->options[i] > largest ? d->options[i] : largest;
    values[D_value] = (double)value;
    values[D_is_none] = value == 0;
    values[D_is_power] = value > 0 && (value & (value - 1)) == 0;
    values[D_options] = d->count;
    values[D_place] = d->count > 1 ? (double)d->taken / (d->count - 1) : 0;
    values[D_largest] = (double)largest;
    values[D_default_value] = (double)initial;
    values[D_from_default] = octaves((double)value) - octaves((double)initial);
    values[D_is_default] = d->taken == d->initial;
}

static void fill_decision(const outline *lowering, const tl_decision *d, bool is_plain, float *out)
{
    double values[DECISION_COLUMNS] = { 0 };
    size_t block = strcspn(d->name, ".");
    const char *role = d->name[block] == '.' ? d->name + block + 1 : d->name + block;
    const stage *s = stage_of(lowering, d->name, block);
    describe_answer(d, values);
    values[D_axis] = axis_of(s, role, &values[D_part]);
    values[D_divides] =
        values[D_axis] > 0 && values[D_value] > 0 && fmod(values[D_axis], values[D_value]) == 0;
    values[D_block_spatial] = s != NULL ? s->spatial : 0;
    values[D_block_reduce] = s != NULL ? s->reduce : 0;
    values[D_is_plain] = is_plain;
    fill_columns(decision_columns, DECISION_COLUMNS, values, out);
    /* of an axis' part the name of the axis is no role */
    const char *last = values[D_axis] > 0 ? strchr(role, '.') : role;
    add_code(last, strlen(last), ROLE_CODE, out + DECISION_COLUMNS);
    add_code(d->name, block, BLOCK_CODE, out + DECISION_COLUMNS + ROLE_CODE);
}

int tl_tokens_of_point(const tl_tokens *tokens, tl_arena *arena, const tl_point *point,
                       const float **out)
{
    const tl_measure_task *task = tl_space_task(tokens->space);
    const outline *lowering = &tokens->lowerings[point->lowering];
    bool is_plain = tl_space_kind_of(tokens->space) == TL_SPACE_PLAIN;
    float *made = TL_NEW_ARRAY(arena, float, (point->count + 1) * DECISION_WIDTH);
    int64_t *numbers = TL_NEW_ARRAY(arena, int64_t, task->lowering_count);
    for (int i = 0; i < task->lowering_count; i++)
        numbers[i] = i;
    const tl_decision first = {
        .name = tl_arena_format(arena, "%s.lowering", task->lowerings[point->lowering].name),
        .count = task->lowering_count,
        .options = numbers,
        .initial = 0,
        .taken = point->lowering,
    };
    fill_decision(lowering, &first, is_plain, made);
    for (int i = 0; i < point->count; i++)
        fill_decision(lowering, &point->decisions[i], is_plain,
                      made + (size_t)(i + 1) * DECISION_WIDTH);
    *out = made;
    return point->count + 1;
}

/* --- the workload
 * ----------------------------------------------------------------------------------------------------- */

static void measure_buffers(const tl_program *program, double *values)
{
    for (int i = 0; i < program->param_count; i++) {
        const tl_buffer *b = program->params[i];
        double bytes = fmax((double)tl_buffer_max_bytes(b), 0);
        values[W_constant_bytes] += b->role == TL_ROLE_CONST ? bytes : 0;
        values[W_output_bytes] += b->role == TL_ROLE_OUTPUT ? bytes : 0;
        if (b->role == TL_ROLE_OUTPUT) {
            values[W_element_bytes] = (double)tl_dtype_size(b->dtype);
            values[W_is_float] = tl_dtype_is_float(b->dtype);
        }
    }
}

/* The extents of the block's axes, those that are more than 1 in their order. */
static void fill_axes(const tl_block *block, float *out)
{
    int spatial = 0, reduce = 0;
    for (int i = 0; i < block->iter_count; i++) {
        double extent = extent_of(&block->iters[i]);
        if (extent <= 1)
            continue;
        if (block->iters[i].kind == TL_ITER_SPATIAL && spatial < SPATIAL_AXES)
            out[spatial++] = tl_feature_log(extent);
        else if (block->iters[i].kind != TL_ITER_SPATIAL && reduce < REDUCE_AXES)
            out[SPATIAL_AXES + reduce++] = tl_feature_log(extent);
    }
}

static void add_family(const char *family, float *out)
{
    while (*family != '\0') {
        size_t length = strcspn(family, "_");
        add_code(family, length, FAMILY_CODE, out);
        family += length + (family[length] == '_');
    }
}

void tl_cost_token_of_workload(const tl_tokens *tokens, const char *family, double flops,
                               double bytes, float *out)
{
    double values[WORKLOAD_COLUMNS] = { 0 };
    const outline *direct = &tokens->lowerings[0];
    const stage *largest = NULL;
    for (int i = 0; i < tl_cost_token_width(TL_COST_TOKEN_WORKLOAD); i++)
        out[i] = 0;
    for (int i = 0; i < direct->stage_count; i++) {
        const stage *s = &direct->stages[i];
        if (largest == NULL || s->spatial * s->reduce > largest->spatial * largest->reduce)
            largest = s;
    }
    values[W_flops] = flops;
    values[W_bytes] = bytes;
    values[W_intensity] = flops / fmax(bytes, 1);
    values[W_blocks] = direct->stage_count;
    values[W_lowerings] = tl_space_task(tokens->space)->lowering_count;
    values[W_spatial] = largest != NULL ? largest->spatial : 0;
    values[W_reduce] = largest != NULL ? largest->reduce : 0;
    values[W_cores] = tl_space_target(tokens->space)->cores;
    values[W_threads] = tl_space_threads(tokens->space);
    measure_buffers(tl_space_program(tokens->space, 0), values);
    fill_columns(workload_columns, WORKLOAD_COLUMNS, values, out);
    if (largest != NULL)
        fill_axes(largest->block, out + WORKLOAD_COLUMNS);
    add_family(family, out + WORKLOAD_COLUMNS + SPATIAL_AXES + REDUCE_AXES);
}

/* --- the machine
 * ------------------------------------------------------------------------------------------------------ */

void tl_cost_token_of_machine(const tl_target *target, float *out)
{
    const tl_isa_info *isa = &tl_isa_infos[target->isa];
    const tl_machine *machine = tl_machine_of(target);
    const tl_machine_unit *unit = tl_machine_unit_of(target);
    const double values[MACHINE_COLUMNS] = {
        [M_vector_bits] = isa->vector_bits,
        [M_registers] = isa->vector_registers,
        [M_masks] = isa->has_masks,
        [M_fma] = isa->has_fma,
        [M_is_gpu] = tl_target_is_gpu(target),
        [M_l1_bytes] = (double)target->l1_bytes,
        [M_l2_bytes] = (double)target->l2_bytes,
        [M_l3_bytes] = (double)target->l3_bytes,
        [M_cores] = target->cores,
    };
    const double profile[] = {
#define MACHINE(name, ...)      machine->name,
#define MACHINE_UNIT(name, ...) unit->name,
#include "ir/program/machine.def"
#undef MACHINE
#undef MACHINE_UNIT
    };
    fill_columns(machine_columns, MACHINE_COLUMNS, values, out);
    for (int i = 0; i < PROFILE_COLUMNS; i++)
        out[MACHINE_COLUMNS + i] = tl_feature_log(profile[i]);
}

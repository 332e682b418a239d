/* ir/interpret/interpret_code.c: expressions to code: a tree of nodes that each know the function which evaluates them.
 * Indices become sums over slots; what is not affine in them stays an atom of the sum. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include "ir/interpret/interpret_private.h"
#include "runtime/base/array.h"
#include "runtime/base/checked.h"

/* ---- leaves ---- */

static double constant_number(const tl_interp_code *c, tl_frame *f)
{
    (void)f;
    return c->u.constant;
}
static int64_t constant_integer(const tl_interp_code *c, tl_frame *f)
{
    (void)f;
    return c->u.value;
}
static int64_t slot_value(const tl_interp_code *c, tl_frame *f)
{
    return f->slots[c->u.slot];
}
static int64_t sum_value(const tl_interp_code *c, tl_frame *f)
{
    return tl_sum_value(c->u.sum, f);
}

/* ---- loads ---- */

static int64_t plain_offset(const tl_interp_access *access, tl_frame *f)
{
    int64_t offset = tl_sum_value(&access->flat, f);
    if ((uint64_t)offset >= (uint64_t)f->storages[access->memory]->count)
        tl_access_locate(access, f); /* says which index it was */
    return offset;
}
static int64_t checked_offset(const tl_interp_access *access, tl_frame *f)
{
    int64_t offset = tl_access_locate(access, f);
    tl_check_read(f, access->memory, offset);
    return offset;
}
static double load_number(const tl_interp_code *c, tl_frame *f)
{
    int64_t offset = plain_offset(c->u.access, f);
    return tl_memory_number(c->dtype, f->storages[c->u.access->memory]->data, offset);
}
static int64_t load_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t offset = plain_offset(c->u.access, f);
    return tl_memory_integer(c->dtype, f->storages[c->u.access->memory]->data, offset);
}
static double load_number_checked(const tl_interp_code *c, tl_frame *f)
{
    int64_t offset = checked_offset(c->u.access, f);
    return tl_memory_number(c->dtype, f->storages[c->u.access->memory]->data, offset);
}
static int64_t load_integer_checked(const tl_interp_code *c, tl_frame *f)
{
    int64_t offset = checked_offset(c->u.access, f);
    return tl_memory_integer(c->dtype, f->storages[c->u.access->memory]->data, offset);
}
static double demand_number(const tl_interp_code *c, tl_frame *f)
{
    int64_t offset = tl_access_locate(c->u.access, f);
    return f->machine->demand(f, c->u.access->memory, offset).f;
}
static int64_t demand_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t offset = tl_access_locate(c->u.access, f);
    return f->machine->demand(f, c->u.access->memory, offset).i;
}

/* ---- floats: computed in double and rounded to the dtype, which is exact rounding for f32, f16 and bf16 ---- */

static double add_number(const tl_interp_code *c, tl_frame *f)
{
    return tl_round_to(c->dtype, tl_code_number(c->a, f) + tl_code_number(c->b, f));
}
static double sub_number(const tl_interp_code *c, tl_frame *f)
{
    return tl_round_to(c->dtype, tl_code_number(c->a, f) - tl_code_number(c->b, f));
}
static double mul_number(const tl_interp_code *c, tl_frame *f)
{
    return tl_round_to(c->dtype, tl_code_number(c->a, f) * tl_code_number(c->b, f));
}
static double div_number(const tl_interp_code *c, tl_frame *f)
{
    return tl_round_to(c->dtype, tl_code_number(c->a, f) / tl_code_number(c->b, f));
}
static double min_number(const tl_interp_code *c, tl_frame *f)
{
    double a = tl_code_number(c->a, f);
    return tl_min_number(a, tl_code_number(c->b, f));
}
static double max_number(const tl_interp_code *c, tl_frame *f)
{
    double a = tl_code_number(c->a, f);
    return tl_max_number(a, tl_code_number(c->b, f));
}

/* ---- integers: wrap to the dtype ---- */

static int64_t add_integer(const tl_interp_code *c, tl_frame *f)
{
    uint64_t a = (uint64_t)tl_code_integer(c->a, f);
    return tl_wrap_to(c->dtype, (int64_t)(a + (uint64_t)tl_code_integer(c->b, f)));
}
static int64_t sub_integer(const tl_interp_code *c, tl_frame *f)
{
    uint64_t a = (uint64_t)tl_code_integer(c->a, f);
    return tl_wrap_to(c->dtype, (int64_t)(a - (uint64_t)tl_code_integer(c->b, f)));
}
static int64_t mul_integer(const tl_interp_code *c, tl_frame *f)
{
    uint64_t a = (uint64_t)tl_code_integer(c->a, f);
    return tl_wrap_to(c->dtype, (int64_t)(a * (uint64_t)tl_code_integer(c->b, f)));
}

static int64_t divisor(const tl_interp_code *c, tl_frame *f)
{
    int64_t b = tl_code_integer(c->b, f);
    if (b == 0)
        tl_machine_fail(f, TL_BAD_IR, "an integer is divided by zero");
    return b;
}
static int64_t div_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = divisor(c, f);
    if (c->dtype == TL_U64)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? tl_wrap_to(c->dtype, (int64_t)(0 - (uint64_t)a)) : a / b;
}
static int64_t floordiv_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = divisor(c, f);
    if (c->dtype == TL_U64)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? tl_wrap_to(c->dtype, (int64_t)(0 - (uint64_t)a)) : tl_floordiv(a, b);
}
static int64_t floormod_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = divisor(c, f);
    if (c->dtype == TL_U64)
        return (int64_t)((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : tl_floormod(a, b);
}
static int64_t min_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = tl_code_integer(c->b, f);
    return tl_less(c->dtype, (tl_number){ .i = b }, (tl_number){ .i = a }) ? b : a;
}
static int64_t max_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = tl_code_integer(c->b, f);
    return tl_less(c->dtype, (tl_number){ .i = a }, (tl_number){ .i = b }) ? b : a;
}

/* ---- conditions ---- */

static int64_t lt_number(const tl_interp_code *c, tl_frame *f)
{
    double a = tl_code_number(c->a, f);
    return a < tl_code_number(c->b, f);
}
static int64_t le_number(const tl_interp_code *c, tl_frame *f)
{
    double a = tl_code_number(c->a, f);
    return a <= tl_code_number(c->b, f);
}
static int64_t eq_number(const tl_interp_code *c, tl_frame *f)
{
    double a = tl_code_number(c->a, f);
    return a == tl_code_number(c->b, f);
}
static int64_t ne_number(const tl_interp_code *c, tl_frame *f)
{
    double a = tl_code_number(c->a, f);
    return a != tl_code_number(c->b, f);
}
static int64_t lt_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = tl_code_integer(c->b, f);
    return c->from == TL_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}
static int64_t le_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = tl_code_integer(c->b, f);
    return c->from == TL_U64 ? (uint64_t)a <= (uint64_t)b : a <= b;
}
static int64_t eq_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    return a == tl_code_integer(c->b, f);
}
static int64_t ne_integer(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f);
    return a != tl_code_integer(c->b, f);
}
/* Both operands run: compiled code may evaluate both. */
static int64_t and_condition(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = tl_code_integer(c->b, f);
    return a & b;
}
static int64_t or_condition(const tl_interp_code *c, tl_frame *f)
{
    int64_t a = tl_code_integer(c->a, f), b = tl_code_integer(c->b, f);
    return a | b;
}
static int64_t not_condition(const tl_interp_code *c, tl_frame *f)
{
    return !tl_code_integer(c->a, f);
}
static double select_number(const tl_interp_code *c, tl_frame *f)
{
    return tl_code_number(tl_code_integer(c->a, f) ? c->b : c->c, f);
}
static int64_t select_integer(const tl_interp_code *c, tl_frame *f)
{
    return tl_code_integer(tl_code_integer(c->a, f) ? c->b : c->c, f);
}

/* ---- casts ---- */

static tl_number cast_operand(const tl_interp_code *c, tl_frame *f)
{
    tl_number value;
    if (tl_dtype_is_float(c->from))
        value.f = tl_code_number(c->a, f);
    else
        value.i = tl_code_integer(c->a, f);
    return tl_number_cast(c->dtype, c->from, value);
}
static double cast_number(const tl_interp_code *c, tl_frame *f)
{
    return cast_operand(c, f).f;
}
static int64_t cast_integer(const tl_interp_code *c, tl_frame *f)
{
    return cast_operand(c, f).i;
}

static tl_number bits_operand(const tl_interp_code *c, tl_frame *f)
{
    tl_number value = tl_dtype_is_float(c->from) ? (tl_number){ .f = tl_code_number(c->a, f) }
                                                 : (tl_number){ .i = tl_code_integer(c->a, f) };
    return tl_number_bits(c->dtype, c->from, value);
}
static double bits_number(const tl_interp_code *c, tl_frame *f)
{
    return bits_operand(c, f).f;
}
static int64_t bits_integer(const tl_interp_code *c, tl_frame *f)
{
    return bits_operand(c, f).i;
}

/* ---- compilation ---- */

static tl_interp_code *make(tl_compiler *c, tl_dtype dtype)
{
    tl_interp_code *code = TL_NEW(tl_compiler_machine(c)->arena, tl_interp_code);
    code->dtype = code->from = dtype;
    return code;
}

static const tl_interp_code *constant(tl_compiler *c, int64_t value)
{
    tl_interp_code *code = make(c, TL_I64);
    code->integer = constant_integer;
    code->u.value = value;
    return code;
}

/* A sum in the making. */
typedef struct {
    tl_compiler *compiler;
    int64_t constant;
    int term_count, term_capacity, atom_count, atom_capacity;
    tl_term *terms;
    tl_atom *atoms;
} sum_builder;

static void add_term(sum_builder *s, int slot, int64_t factor)
{
    assert(slot >= 0);
    for (int i = 0; i < s->term_count; i++) {
        if (s->terms[i].slot == slot) {
            s->terms[i].factor = (int64_t)((uint64_t)s->terms[i].factor + (uint64_t)factor);
            return;
        }
    }
    TL_ROOM(tl_compiler_machine(s->compiler)->arena, s->terms, s->term_count, s->term_capacity);
    s->terms[s->term_count++] = (tl_term){ slot, factor };
}

static void add_atom(sum_builder *s, const tl_interp_code *code, int64_t factor)
{
    TL_ROOM(tl_compiler_machine(s->compiler)->arena, s->atoms, s->atom_count, s->atom_capacity);
    s->atoms[s->atom_count++] = (tl_atom){ code, factor };
}

static const tl_interp_code *compile_node(tl_compiler *c, const tl_expr *e);

/* The value of an i64 expression that is constant once the dims are known. */
static bool known(const tl_compiler *c, const tl_expr *e, int64_t *value)
{
    if (e->kind == TL_EXPR_INT) {
        *value = e->u.value;
        return true;
    }
    return e->kind == TL_EXPR_VAR && tl_compiler_dim(c, e->u.var, value);
}

static void collect(sum_builder *s, const tl_expr *e, int64_t factor)
{
    int64_t value;
    if (known(s->compiler, e, &value)) {
        s->constant = (int64_t)((uint64_t)s->constant + (uint64_t)factor * (uint64_t)value);
    } else if (e->kind == TL_EXPR_VAR) {
        add_term(s, tl_compiler_slot(s->compiler, e->u.var), factor);
    } else if (e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_SUB) {
        collect(s, e->args[0], factor);
        collect(s, e->args[1], e->kind == TL_EXPR_ADD ? factor : (int64_t)(0 - (uint64_t)factor));
    } else if (e->kind == TL_EXPR_MUL && known(s->compiler, e->args[1], &value)) {
        collect(s, e->args[0], (int64_t)((uint64_t)factor * (uint64_t)value));
    } else if (e->kind == TL_EXPR_MUL && known(s->compiler, e->args[0], &value)) {
        collect(s, e->args[1], (int64_t)((uint64_t)factor * (uint64_t)value));
    } else {
        add_atom(s, compile_node(s->compiler, e), factor);
    }
}

static tl_interp_sum finish(const sum_builder *s)
{
    return (tl_interp_sum){ s->constant, s->term_count, s->atom_count, s->terms, s->atoms };
}

tl_interp_sum tl_sum_compile(tl_compiler *c, const tl_expr *e)
{
    sum_builder s = { .compiler = c };
    collect(&s, e, 1);
    return finish(&s);
}

tl_interp_access tl_access_compile(tl_compiler *c, const tl_buffer *buffer,
                                   const tl_expr *const *indices)
{
    assert(buffer->rank >= 0);
    tl_machine *m = tl_compiler_machine(c);
    tl_interp_access access = { .dtype = buffer->dtype, .rank = buffer->rank };
    access.memory = tl_compiler_memory(c, buffer);
    const int64_t *strides = m->memories[access.memory].strides;

    tl_interp_sum *axes = TL_NEW_ARRAY(m->arena, tl_interp_sum, buffer->rank);
    sum_builder flat = { .compiler = c };
    for (int i = 0; i < buffer->rank; i++) {
        axes[i] = tl_sum_compile(c, indices[i]);
        int64_t stride = strides[i];
        flat.constant =
            (int64_t)((uint64_t)flat.constant + (uint64_t)axes[i].constant * (uint64_t)stride);
        for (int k = 0; k < axes[i].term_count; k++)
            add_term(&flat, axes[i].terms[k].slot,
                     (int64_t)((uint64_t)axes[i].terms[k].factor * (uint64_t)stride));
        for (int k = 0; k < axes[i].atom_count; k++)
            add_atom(&flat, axes[i].atoms[k].code,
                     (int64_t)((uint64_t)axes[i].atoms[k].factor * (uint64_t)stride));
    }
    access.axes = axes;
    access.flat = finish(&flat);
    return access;
}

static const tl_interp_code *compile_load(tl_compiler *c, const tl_expr *e)
{
    assert(e->kind == TL_EXPR_LOAD && e->arg_count == e->u.buffer->rank);
    tl_machine *m = tl_compiler_machine(c);
    tl_interp_access *access = TL_NEW(m->arena, tl_interp_access);
    *access = tl_access_compile(c, e->u.buffer, e->args);

    tl_interp_code *code = make(c, e->dtype);
    code->u.access = access;
    if (m->demand != NULL) {
        code->number = demand_number;
        code->integer = demand_integer;
    } else if (m->check) {
        code->number = load_number_checked;
        code->integer = load_integer_checked;
    } else {
        code->number = load_number;
        code->integer = load_integer;
    }
    return code;
}

/* The evaluators of an operator: on floats, on integers, and for comparisons by the operands' class. */
typedef struct {
    tl_number_code *number;
    tl_integer_code *integer;
    tl_integer_code *compare_numbers, *compare_integers;
} evaluators;

static const evaluators operators[TL_EXPR_KIND_COUNT] = {
    [TL_EXPR_ADD] = { add_number, add_integer, NULL, NULL },
    [TL_EXPR_SUB] = { sub_number, sub_integer, NULL, NULL },
    [TL_EXPR_MUL] = { mul_number, mul_integer, NULL, NULL },
    [TL_EXPR_DIV] = { div_number, div_integer, NULL, NULL },
    [TL_EXPR_FLOORDIV] = { NULL, floordiv_integer, NULL, NULL },
    [TL_EXPR_FLOORMOD] = { NULL, floormod_integer, NULL, NULL },
    [TL_EXPR_MIN] = { min_number, min_integer, NULL, NULL },
    [TL_EXPR_MAX] = { max_number, max_integer, NULL, NULL },
    [TL_EXPR_LT] = { NULL, NULL, lt_number, lt_integer },
    [TL_EXPR_LE] = { NULL, NULL, le_number, le_integer },
    [TL_EXPR_EQ] = { NULL, NULL, eq_number, eq_integer },
    [TL_EXPR_NE] = { NULL, NULL, ne_number, ne_integer },
    [TL_EXPR_AND] = { NULL, and_condition, NULL, NULL },
    [TL_EXPR_OR] = { NULL, or_condition, NULL, NULL },
    [TL_EXPR_NOT] = { NULL, not_condition, NULL, NULL },
    [TL_EXPR_SELECT] = { select_number, select_integer, NULL, NULL },
    [TL_EXPR_CAST] = { cast_number, cast_integer, NULL, NULL },
    [TL_EXPR_BITS] = { bits_number, bits_integer, NULL, NULL },
};

static const tl_interp_code *compile_operator(tl_compiler *c, const tl_expr *e)
{
    if (e->arg_count > 3)
        tl_compiler_fail(c, TL_BAD_IR, "%s has %d operands", tl_expr_infos[e->kind].text,
                         e->arg_count);
    tl_interp_code *code = make(c, e->dtype);
    const tl_interp_code *operands[3] = { NULL, NULL, NULL };
    for (int i = 0; i < e->arg_count; i++)
        operands[i] = tl_code_compile(c, e->args[i]);
    code->a = operands[0];
    code->b = operands[1];
    code->c = operands[2];
    if (e->arg_count > 0)
        code->from = e->args[0]->dtype;

    bool suits;
    if (e->kind == TL_EXPR_CALL) {
        suits = tl_function_code(code, e->u.function);
    } else {
        const evaluators *row = &operators[e->kind];
        bool compares = row->compare_integers != NULL;
        code->number = compares ? NULL : row->number;
        code->integer = compares ? (tl_dtype_is_float(code->from) ? row->compare_numbers
                                                                  : row->compare_integers)
                                 : row->integer;
        suits = tl_dtype_is_float(e->dtype) ? code->number != NULL : code->integer != NULL;
    }
    if (!suits)
        tl_compiler_fail(c, TL_BAD_IR, "%s is not defined for %s operands",
                         e->kind == TL_EXPR_CALL ? tl_function_infos[e->u.function].text
                                                 : tl_expr_infos[e->kind].text,
                         tl_dtype_infos[code->from].text);
    return code;
}

/* Anything that is not a sum. */
static const tl_interp_code *compile_node(tl_compiler *c, const tl_expr *e)
{
    tl_interp_code *code;
    int64_t value;
    switch (e->kind) {
    case TL_EXPR_INT:
        code = make(c, e->dtype);
        code->integer = constant_integer;
        code->u.value = e->u.value;
        return code;
    case TL_EXPR_FLOAT:
        code = make(c, e->dtype);
        code->number = constant_number;
        code->u.constant = e->u.number;
        return code;
    case TL_EXPR_VAR:
        if (known(c, e, &value))
            return constant(c, value);
        code = make(c, TL_I64);
        code->integer = slot_value;
        code->u.slot = tl_compiler_slot(c, e->u.var);
        return code;
    case TL_EXPR_LOAD:
        return compile_load(c, e);
    case TL_EXPR_ADD:
    case TL_EXPR_SUB:
    case TL_EXPR_MUL:
    case TL_EXPR_DIV:
    case TL_EXPR_FLOORDIV:
    case TL_EXPR_FLOORMOD:
    case TL_EXPR_MIN:
    case TL_EXPR_MAX:
    case TL_EXPR_LT:
    case TL_EXPR_LE:
    case TL_EXPR_EQ:
    case TL_EXPR_NE:
    case TL_EXPR_AND:
    case TL_EXPR_OR:
    case TL_EXPR_NOT:
    case TL_EXPR_SELECT:
    case TL_EXPR_CAST:
    case TL_EXPR_BITS:
    case TL_EXPR_CALL:
        return compile_operator(c, e);
    case TL_EXPR_KIND_COUNT:
        break;
    }
    tl_compiler_fail(c, TL_BAD_IR, "an expression has the unknown kind %d", (int)e->kind);
}

const tl_interp_code *tl_code_compile(tl_compiler *c, const tl_expr *e)
{
    bool is_sum = e->dtype == TL_I64 &&
                  (e->kind == TL_EXPR_ADD || e->kind == TL_EXPR_SUB || e->kind == TL_EXPR_MUL);
    if (!is_sum)
        return compile_node(c, e);

    tl_interp_sum sum = tl_sum_compile(c, e);
    if (sum.term_count == 0 && sum.atom_count == 0)
        return constant(c, sum.constant);
    if (sum.term_count == 0 && sum.atom_count == 1 && sum.constant == 0 && sum.atoms[0].factor == 1)
        return sum.atoms[0].code;
    tl_interp_sum *kept = TL_NEW(tl_compiler_machine(c)->arena, tl_interp_sum);
    *kept = sum;
    tl_interp_code *code = make(c, TL_I64);
    code->integer = sum_value;
    code->u.sum = kept;
    return code;
}

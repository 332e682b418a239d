/* codegen/emit/emit_mma_llvm.c: products of a warp by mma.sync, and the fragments that its threads hold.
 *
 * What a thread holds of C is told in emit_fragment_llvm.c; its lane is l = 4g + t. A and B are tiles of 32 bytes in the
 * direction of k; w elements make a word of 32 bits:
 *     A, word 0, 1, 2, 3: rows g, g + 8, g, g + 8, elements from w*t on, and (2, 3) from w*t + k/2 on
 *     B, word 0, 1: column g, the same elements
 * ldmatrix loads them where they lie in shared memory in rows at multiples of 16 bytes; else every thread loads its own. */
#include <assert.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "ir/program/intrinsics.h"

enum { TILE_ROWS = 16, TILE_COLUMNS = 8, TILE_REGISTERS = 4, WARP = 32, FIRST_SM = 80 };
enum { MOST_FRAGMENT = 4 };

typedef enum { WORDS, HALVES } word_kind;
typedef struct {
    const char *name, *instruction; /* NULL: there is none */
    tl_dtype a;
    int n, k;
    bool is_nk;
    word_kind words;
} product;

static const struct {
    const char *name, *instruction;
    word_kind words;
} instructions[] = {
#define MMA(name, instruction, words) { #name, "llvm.nvvm.mma." instruction, words },
#include "codegen/emit/mma_instructions.def"
#undef MMA
};

static const product products[] = {
#define PRODUCT(name, c, a, b, m, n, k, lies, operands) \
    { #name, NULL, TL_##a, n, k, #lies[0] == 'n', WORDS },
#include "ir/program/warp_products.def"
#undef PRODUCT
};

static bool find_product(const char *name, product *out)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        if (strcmp(products[i].name, name) != 0)
            continue;
        *out = products[i];
        for (size_t k = 0; k < sizeof instructions / sizeof instructions[0]; k++)
            if (strcmp(instructions[k].name, name) == 0) {
                out->instruction = instructions[k].instruction;
                out->words = instructions[k].words;
            }
        return true;
    }
    return false;
}

bool tl_emit_is_warp_product(const tl_intrinsic_call *call)
{
    product p;
    return find_product(call->name, &p);
}

/* ---- operands ---- */

typedef struct {
    tl_address at;
    LLVMTypeRef element;
    int size;            /* bytes of an element */
    int64_t row, column; /* strides in elements, of the tile's two axes as they are in the region */
} tile;

static LLVMValueRef number(tl_emitter *em, int64_t value)
{
    return LLVMConstInt(em->i64, (unsigned long long)value, true);
}

/* The region's first element, and the strides of its two axes that are longer than one. */
static bool find_tile(tl_emitter *em, const char *name, const tl_region *region, tile *out)
{
    if (!tl_emit_address(em, region->buffer, region->begin, region, true, &out->at))
        return false;
    int64_t strides[2];
    int count = 0;
    for (int a = 0; a < region->buffer->rank; a++) {
        const tl_expr *extent = tl_emit_substitute(em, region->extent[a]);
        if (tl_is_int(extent, 1))
            continue;
        if (count == 2 || !tl_const_int(out->at.storage->strides[a], &strides[count])) {
            tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                         "%s: the region of %s has more than two axes, or strides that are not "
                         "constant",
                         name, region->buffer->name);
            return false;
        }
        count++;
    }
    out->row = strides[0];
    out->column = strides[1];
    out->element = tl_emit_memory_type(em, region->buffer->dtype);
    out->size = (int)tl_dtype_size(region->buffer->dtype);
    return count == 2;
}

static LLVMValueRef element_at(tl_emitter *em, const tile *t, LLVMValueRef row, LLVMValueRef column)
{
    LLVMBuilderRef b = em->builder;
    LLVMValueRef at = LLVMBuildAdd(b, LLVMBuildMul(b, row, number(em, t->row), ""),
                                   LLVMBuildMul(b, column, number(em, t->column), ""), "");
    if (t->at.inner == NULL)
        return LLVMBuildGEP2(b, t->element, t->at.pointer, &at, 1, "");
    at = tl_emit_swizzled(em, t->at.storage->buffer, LLVMBuildAdd(b, at, t->at.inner, ""));
    at = LLVMBuildMul(b, at, number(em, t->size),
                      ""); /* in bytes: made once, in front of the loops */
    return LLVMBuildGEP2(b, LLVMInt8TypeInContext(em->context), t->at.outer, &at, 1, "");
}

static bool has_rows(const tl_emitter *em, const tile *t)
{
    const tl_placement *p = tl_plan_find(em->plan, t->at.storage->buffer);
    return p != NULL && p->place == TL_PLACE_BLOCK && t->column == 1 && t->at.align == 16 &&
           t->row * t->size % 16 == 0;
}

static LLVMValueRef lane_part(tl_emitter *em, int shift, int count)
{
    LLVMValueRef v = em->gpu.thread[0];
    if (shift > 0)
        v = LLVMBuildLShr(em->builder, v, number(em, shift), "");
    return LLVMBuildAnd(em->builder, v, number(em, count - 1), "");
}

/* Lane l brings the address of a row of 16 bytes: row l % rows, and the next 16 bytes of it for the next lanes. */
static void load_matrices(tl_emitter *em, const tile *t, int rows, int count, bool transposed,
                          LLVMValueRef *words)
{
    LLVMBuilderRef b = em->builder;
    int shift = rows == TILE_ROWS ? 4 : 3, across = count * 8 / rows;
    LLVMValueRef chunk = across > 1 ? lane_part(em, shift, across) : number(em, 0);
    LLVMValueRef column = LLVMBuildMul(b, chunk, number(em, 16 / t->size), "");
    LLVMValueRef pointer = element_at(em, t, lane_part(em, 0, rows), column);
    const char *name = tl_arena_format(em->arena, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%d%s.b16",
                                       count, transposed ? ".trans" : "");
    LLVMTypeRef type = LLVMTypeOf(pointer);
    LLVMValueRef v = tl_emit_convergent(em, tl_emit_intrinsic(em, name, &type, 1, &pointer, 1));
    for (int i = 0; i < count; i++)
        words[i] = LLVMBuildExtractValue(b, v, (unsigned)i, "");
}

static LLVMValueRef plus(tl_emitter *em, LLVMValueRef v, int64_t value)
{
    return value == 0 ? v : LLVMBuildAdd(em->builder, v, number(em, value), "");
}

/* A word of elements that follow each other along one axis of the tile. */
static LLVMValueRef load_word(tl_emitter *em, const tile *t, LLVMValueRef row, LLVMValueRef column,
                              bool along_columns)
{
    LLVMBuilderRef b = em->builder;
    int count = 4 / t->size;
    int64_t step = along_columns ? t->column : t->row;
    LLVMValueRef first = element_at(em, t, row, column), word = NULL;
    for (int i = 0; i < count; i++) {
        LLVMValueRef at = t->at.inner == NULL
                              ? tl_emit_offset(em, t->element, first, step * i)
                              : element_at(em, t, plus(em, row, along_columns ? 0 : i),
                                           plus(em, column, along_columns ? i : 0));
        LLVMValueRef v = LLVMBuildLoad2(b, t->element, at, "");
        LLVMSetAlignment(v, (unsigned)t->size);
        if (t->size == 4)
            return LLVMBuildBitCast(b, v, em->i32, "");
        v = LLVMBuildZExt(b, v, em->i32, "");
        v = LLVMBuildShl(b, v, LLVMConstInt(em->i32, (unsigned)(8 * t->size * i), false), "");
        word = word == NULL ? v : LLVMBuildOr(b, word, v, "");
    }
    return word;
}

static void load_a(tl_emitter *em, const product *p, const tile *t, LLVMValueRef *words)
{
    if (has_rows(em, t)) {
        load_matrices(em, t, TILE_ROWS, 4, false, words);
        return;
    }
    LLVMValueRef g = lane_part(em, 2, 8);
    LLVMValueRef from = LLVMBuildMul(em->builder, lane_part(em, 0, 4), number(em, 4 / t->size), "");
    for (int i = 0; i < 4; i++)
        words[i] =
            load_word(em, t, plus(em, g, i % 2 * 8), plus(em, from, i / 2 * (p->k / 2)), true);
}

static void load_b(tl_emitter *em, const product *p, const tile *t, LLVMValueRef *words)
{
    if (has_rows(em, t) && p->is_nk) {
        load_matrices(em, t, TILE_COLUMNS, 2, false, words);
        return;
    }
    if (has_rows(em, t) && t->size == 2) {
        load_matrices(em, t, TILE_ROWS, 2, true, words);
        return;
    }
    LLVMValueRef g = lane_part(em, 2, 8);
    LLVMValueRef from = LLVMBuildMul(em->builder, lane_part(em, 0, 4), number(em, 4 / t->size), "");
    for (int i = 0; i < 2; i++) {
        LLVMValueRef k = plus(em, from, i * (p->k / 2));
        words[i] = p->is_nk ? load_word(em, t, g, k, true) : load_word(em, t, k, g, false);
    }
}

/* As what a tensor core takes: two halves are a pair. Of the bits of an f32 it looks at those that tf32 has. */
static LLVMValueRef hand_over(tl_emitter *em, const product *p, LLVMValueRef word)
{
    LLVMTypeRef pair = LLVMVectorType(LLVMHalfTypeInContext(em->context), 2);
    return p->words == HALVES ? LLVMBuildBitCast(em->builder, word, pair, "") : word;
}

/* ---- C ---- */

/* Where this thread's four elements are. */
static bool find_fragment(tl_emitter *em, const char *name, const tl_region *region,
                          LLVMValueRef *pointers, LLVMTypeRef *type)
{
    const tl_buffer *buffer = region->buffer;
    *type = tl_emit_memory_type(em, buffer->dtype);
    if (buffer->scope == TL_SCOPE_WARP) {
        int64_t first;
        LLVMValueRef base;
        if (!tl_emit_warp_tile(em, buffer, region->begin, &base, &first))
            return false;
        for (int i = 0; i < TILE_REGISTERS; i++)
            pointers[i] = tl_emit_offset(em, *type, base, first + i);
        return true;
    }
    tile t;
    if (!find_tile(em, name, region, &t))
        return false;
    LLVMValueRef g = lane_part(em, 2, 8);
    LLVMValueRef column = LLVMBuildMul(em->builder, lane_part(em, 0, 4), number(em, 2), "");
    for (int i = 0; i < TILE_REGISTERS; i++)
        pointers[i] = element_at(em, &t, plus(em, g, i / 2 * 8), plus(em, column, i % 2));
    return true;
}

/* ---- the call ---- */

static bool check_call(tl_emitter *em, const product *p)
{
    const char *why = em->gpu.phase == NULL ? "a CPU has no warps"
                      : p->instruction == NULL
                          ? "no GPU multiplies f32 so; mma_m16n8k8_tf32 takes them as tf32"
                      : em->target->gpu.sm < FIRST_SM ? "it takes sm_80 or later"
                      : em->gpu.phase->launch.block[0] != WARP || (em->gpu.loops & 1u)
                          ? "a warp does it: it stands outside of the threadIdx.x loops, and these "
                            "have 32 threads"
                          : NULL;
    if (why != NULL)
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "intrinsic %s: %s", p->name, why);
    return why == NULL;
}

void tl_emit_mma(tl_emitter *em, const tl_intrinsic_call *call)
{
    product p;
    tile a, b;
    LLVMValueRef c_at[TILE_REGISTERS], d_at[TILE_REGISTERS];
    LLVMTypeRef type;
    bool known = find_product(call->name, &p);
    assert(known && call->read_count == 3 && call->write_count == 1);
    if (!known || !check_call(em, &p) || !find_tile(em, p.name, &call->reads[1], &a) ||
        !find_tile(em, p.name, &call->reads[2], &b) ||
        !find_fragment(em, p.name, &call->reads[0], c_at, &type) ||
        !find_fragment(em, p.name, &call->writes[0], d_at, &type))
        return;
    LLVMValueRef args[4 + 2 + TILE_REGISTERS], words[MOST_FRAGMENT];
    load_a(em, &p, &a, words);
    for (int i = 0; i < 4; i++)
        args[i] = hand_over(em, &p, words[i]);
    load_b(em, &p, &b, words);
    for (int i = 0; i < 2; i++)
        args[4 + i] = hand_over(em, &p, words[i]);
    for (int i = 0; i < TILE_REGISTERS; i++) {
        args[6 + i] = LLVMBuildLoad2(em->builder, type, c_at[i], "");
        LLVMSetAlignment(args[6 + i], 4);
    }
    LLVMValueRef d = tl_emit_convergent(em, tl_emit_intrinsic(em, p.instruction, NULL, 0, args,
                                                              6 + TILE_REGISTERS));
    for (int i = 0; i < TILE_REGISTERS; i++) {
        LLVMValueRef v = LLVMBuildExtractValue(em->builder, d, (unsigned)i, "");
        LLVMSetAlignment(LLVMBuildStore(em->builder, v, d_at[i]), 4);
    }
}

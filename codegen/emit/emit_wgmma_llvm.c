/* codegen/emit/emit_wgmma_llvm.c: products of a warpgroup by wgmma, which read their operands by themselves.
 *
 *     C[64, n] += A[64, k]*B        dev_wgmma_nN_TYPE_tT(C's registers.., descriptor of A, descriptor of B) -> C's registers
 *
 * k is 32 bytes. C is held by the warpgroup (emit_fragment_llvm.c). A and B are told by descriptors: matrices in shared memory
 * whose rows of 32, 64 or 128 bytes are swizzled, 8 rows to an atom, atoms side by side:
 *     A as [64, k], B as [n, k]      a row is one of the matrix; k is a piece of it
 *     B as [k, n], [n/b, k, b]       a row is b columns of one k; n is one such block, or several
 * A may be held by the warpgroup as well: each thread hands over four words, where mma.sync has them (emit_mma_llvm.c). */
#include <assert.h>
#include <string.h>
#include "codegen/emit/emit_private.h"
#include "ir/program/intrinsics.h"

enum { GROUP = 128, ROWS = 64, ATOM_ROWS = 8, STEP_BYTES = 32, MOST_SUMS = 128, MOST_ROW = 128 };

typedef struct {
    const char *name;
    tl_dtype c, a, b;
    int n, k;
    bool is_nk;
} product;

static const product products[] = {
#define PRODUCT(name, c, a, b, m, n, k, lies, operands) \
    { #name, TL_##c, TL_##a, TL_##b, n, k, #lies[0] == 'n' },
#include "ir/program/warpgroup_products.def"
#undef PRODUCT
};

static const product *find_product(const char *name)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        if (strcmp(products[i].name, name) == 0)
            return &products[i];
    return NULL;
}

/* As the emulator and the assembly name what is multiplied. */
static const char *type_text(const product *p)
{
    return p->a == TL_U8     ? "u8"
           : p->a == TL_I8   ? "s8"
           : p->a == TL_F32  ? "tf32"
           : p->a == TL_BF16 ? "bf16"
                             : "f16";
}

/* ---- matrices in shared memory ---- */

/* The axes of a region that are longer than one: rows and elements of a row, and blocks before them (-1: none). */
typedef struct {
    int block, row, column;
    int64_t blocks, rows, columns; /* extents */
} matrix_axes;

static bool find_axes(tl_emitter *em, const tl_region *region, matrix_axes *out)
{
    int axes[3], count = 0;
    int64_t extents[3] = { 0 };
    for (int a = 0; a < region->buffer->rank; a++) {
        const tl_expr *extent = tl_emit_substitute(em, region->extent[a]);
        if (tl_is_int(extent, 1))
            continue;
        if (count == 3 || !tl_const_int(extent, &extents[count]))
            return false;
        axes[count++] = a;
    }
    if (count < 2)
        return false;
    *out = (matrix_axes){ count == 3 ? axes[0] : -1,   axes[count - 2],    axes[count - 1],
                          count == 3 ? extents[0] : 1, extents[count - 2], extents[count - 1] };
    return true;
}

static bool is_multiple(tl_emitter *em, const tl_expr *e, int64_t of)
{
    const tl_expr *rest =
        tl_floormod_expr(em->arena, tl_emit_substitute(em, e), tl_int(em->arena, of));
    return tl_is_int(rest, 0);
}

static const char *shape_fault(tl_emitter *em, const tl_region *region, const matrix_axes *x,
                               const tl_buffer_storage *storage, bool by_columns)
{
    const tl_buffer *buffer = region->buffer;
    int64_t size = (int64_t)tl_dtype_size(buffer->dtype), row = 0, step = 0;
    if (buffer->swizzle == 0)
        return "it is not swizzled: swizzle(buffer, 128) is the order that wgmma reads";
    if (!tl_const_int(storage->strides[x->row], &row) ||
        !tl_const_int(storage->strides[x->column], &step) || step != 1 ||
        row * size != buffer->swizzle)
        return "its rows are not as long as its swizzle; transform_layout cuts longer ones";
    if (!is_multiple(em, region->begin[x->row], ATOM_ROWS))
        return "the matrix does not begin at a multiple of 8 rows";
    int64_t piece = by_columns ? row : STEP_BYTES / size;
    if (!is_multiple(em, region->begin[x->column], piece) || x->columns > row)
        return "the matrix does not begin at a piece of a row";
    return NULL;
}

/* (address >> 4) | (bytes from block to block >> 4) << 16 | (from 8 rows to 8 rows >> 4) << 32 | kind of swizzle << 62 */
static LLVMValueRef descriptor(tl_emitter *em, const product *p, const tl_region *region,
                               bool by_columns)
{
    LLVMBuilderRef b = em->builder;
    matrix_axes x;
    tl_address at;
    const tl_buffer *buffer = region->buffer;
    if (!tl_emit_address(em, buffer, region->begin, region, true, &at))
        return NULL;
    const tl_placement *place = tl_plan_find(em->plan, buffer);
    const char *why = place == NULL || place->place != TL_PLACE_BLOCK ? "it is not in shared memory"
                      : !find_axes(em, region, &x)
                          ? "its region has not two axes, or three"
                          : shape_fault(em, region, &x, at.storage, by_columns);
    if (why != NULL) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "intrinsic %s: it reads %s, and %s", p->name,
                     buffer->name, why);
        return NULL;
    }
    int64_t row = buffer->swizzle, leading = 16, block = 0;
    int64_t size = (int64_t)tl_dtype_size(buffer->dtype);
    if (x.block >= 0 && tl_const_int(at.storage->strides[x.block], &block))
        leading = block * size;
    uint64_t kind = row == 128 ? 1 : row == 64 ? 2 : 3;
    uint64_t fixed =
        (uint64_t)(leading >> 4) << 16 | (uint64_t)(row * ATOM_ROWS >> 4) << 32 | kind << 62;
    /* the constant comes last: the steps of a slice have the rest in common */
    LLVMValueRef address = LLVMBuildPtrToInt(b, at.storage->base, em->i32, "");
    LLVMValueRef moving = LLVMBuildTrunc(b, at.moving, em->i32, "");
    moving = LLVMBuildMul(b, moving, LLVMConstInt(em->i32, (unsigned)size, false), "");
    address = LLVMBuildAdd(b, address, moving, "");
    address = LLVMBuildAnd(b, address, LLVMConstInt(em->i32, 0x3ffff, false), "");
    address = LLVMBuildLShr(b, address, LLVMConstInt(em->i32, 4, false), "");
    address = LLVMBuildZExt(b, address, em->i64, "");
    LLVMValueRef first = LLVMBuildOr(b, address, LLVMConstInt(em->i64, fixed, false), "");
    LLVMValueRef step = LLVMConstInt(em->i64, (unsigned long long)(at.constant * size >> 4), true);
    return LLVMBuildAdd(b, first, step, "");
}

/* ---- what the warpgroup holds ---- */

/* The registers of a thread's part of a region whose rows are one tile's: the first of `count`. */
static bool find_registers(tl_emitter *em, const tl_region *region, int64_t *first,
                           LLVMValueRef *base)
{
    if (region->buffer->scope != TL_SCOPE_WARPGROUP) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "a product of a warpgroup: %s is in scope %s; what it adds up to is held by "
                     "the warpgroup: cache_write(BLOCK, warpgroup)",
                     region->buffer->name, tl_scope_texts[region->buffer->scope]);
        return false;
    }
    return tl_emit_warp_tile(em, region->buffer, region->begin, base, first);
}

/* Four words: rows g and g + 8 of the first 16 bytes of each row, then of the next. */
static bool load_a(tl_emitter *em, const product *p, const tl_region *region, LLVMValueRef *words)
{
    int64_t first;
    LLVMValueRef base;
    if (p->k != 16) {
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED,
                     "intrinsic %s: of operands that a warpgroup holds it takes f16 and bf16",
                     p->name);
        return false;
    }
    if (!find_registers(em, region, &first, &base))
        return false;
    for (int i = 0; i < 4; i++) {
        LLVMValueRef at = tl_emit_offset(em, em->i16, base, first + 2 * i);
        words[i] = LLVMBuildLoad2(em->builder, em->i32, at, "");
        LLVMSetAlignment(words[i], 4);
    }
    return true;
}

static bool check_call(tl_emitter *em, const product *p)
{
    const char *why =
        em->gpu.phase == NULL                                   ? "a CPU has no warpgroups"
        : em->target->gpu.sm != 90 || !em->target->gpu.is_exact ? "it takes sm_90a"
        : em->gpu.phase->launch.block[0] != GROUP || (em->gpu.loops & 1u)
            ? "a warpgroup does it: it stands outside of the threadIdx.x loops, and these have "
              "128 threads"
            : NULL;
    if (why != NULL)
        tl_emit_fail(em, em->i64, TL_UNSUPPORTED, "intrinsic %s: %s", p->name, why);
    return why == NULL;
}

void tl_emit_group_product(tl_emitter *em, const tl_intrinsic_call *call)
{
    const product *p = find_product(call->name);
    LLVMValueRef args[MOST_SUMS + 8], base, to;
    int64_t first, first_to;
    assert(p != NULL && call->read_count == 3 && call->write_count == 1);
    if (p == NULL || !check_call(em, p) || !find_registers(em, &call->reads[0], &first, &base) ||
        !find_registers(em, &call->writes[0], &first_to, &to))
        return;
    int sums = p->n / 2, count = sums;
    LLVMTypeRef type = tl_emit_memory_type(em, p->c), types[MOST_SUMS];
    bool from_registers = call->reads[1].buffer->scope == TL_SCOPE_WARPGROUP;
    for (int i = 0; i < sums; i++) {
        types[i] = type;
        args[i] = LLVMBuildLoad2(em->builder, type, tl_emit_offset(em, type, base, first + i), "");
        LLVMSetAlignment(args[i], 4);
    }
    if (from_registers) {
        if (!load_a(em, p, &call->reads[1], args + count))
            return;
        count += 4;
    } else {
        args[count++] = descriptor(em, p, &call->reads[1], false);
    }
    args[count++] = descriptor(em, p, &call->reads[2], !p->is_nk);
    if (em->status != TL_OK)
        return;
    const char *name = tl_arena_format(em->arena, "dev_wgmma_n%d_%s_t%d%s", p->n, type_text(p),
                                       !p->is_nk, from_registers ? "_r" : "");
    LLVMTypeRef result = LLVMStructTypeInContext(em->context, types, (unsigned)sums, false);
    LLVMValueRef d = tl_emit_device(em, name, result, args, count);
    for (int i = 0; i < sums; i++) {
        LLVMValueRef v = LLVMBuildExtractValue(em->builder, d, (unsigned)i, "");
        LLVMSetAlignment(LLVMBuildStore(em->builder, v, tl_emit_offset(em, type, to, first_to + i)),
                         4);
    }
}

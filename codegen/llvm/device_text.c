/* codegen/llvm/device_text.c: the instructions of families of device functions, whose names say what is in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/llvm/llvm_private.h"

static bool take(const char **rest, const char *word)
{
    size_t n = strlen(word);
    bool is_there = strncmp(*rest, word, n) == 0;
    *rest += is_there ? n : 0;
    return is_there;
}

static int take_number(const char **rest)
{
    char *end;
    long n = strtol(*rest, &end, 10);
    bool is_number = end != *rest && n >= 0 && n < 1 << 10;
    *rest = end;
    return is_number ? (int)n : -1;
}

/* "{$0, $1, ...}" */
static void add_list(tl_text *out, int first, int count)
{
    for (int i = 0; i < count; i++)
        tl_text_format(out, "%s$%d", i == 0 ? "{" : ", ", first + i);
    tl_text_add(out, "}");
}

/* Results in registers of one kind, which are the first arguments' as well. */
static void add_tied(tl_text *operands, const char *kind, int count)
{
    for (int i = 0; i < count; i++)
        tl_text_format(operands, "%s=%s", i == 0 ? "" : ",", kind);
    for (int i = 0; i < count; i++)
        tl_text_format(operands, ",%d", i);
}

/* nN_TYPE_tT[_r]: T is 1 where B lies by columns, r where A is in registers. */
static bool wgmma(const char *rest, tl_text *code, tl_text *operands)
{
    static const struct {
        const char *name, *types, *depth, *sums;
        bool is_float, has_order; /* whether A and B may lie otherwise */
    } kinds[] = {
        { "bf16_", "f32.bf16.bf16", "k16", "f", true, true },
        { "f16_", "f32.f16.f16", "k16", "f", true, true },
        { "tf32_", "f32.tf32.tf32", "k8", "f", true, false },
        { "s8_", "s32.s8.s8", "k32", "r", false, false },
        { "u8_", "s32.u8.u8", "k32", "r", false, false },
    };
    size_t kind = 0, kind_count = sizeof kinds / sizeof kinds[0];
    int n = take(&rest, "n") ? take_number(&rest) : -1;
    if (n < 8 || n > 256 || n % 8 != 0 || !take(&rest, "_"))
        return false;
    while (kind < kind_count && !take(&rest, kinds[kind].name))
        kind++;
    int order = kind < kind_count && take(&rest, "t") ? take_number(&rest) : -1;
    bool in_registers = take(&rest, "_r");
    if (order < 0 || order > kinds[kind].has_order || *rest != '\0')
        return false;
    int sums = n / 2, next = 2 * sums;
    tl_text_format(code, "wgmma.mma_async.sync.aligned.m64n%d%s.%s ", n, kinds[kind].depth,
                   kinds[kind].types);
    add_list(code, 0, sums);
    add_tied(operands, kinds[kind].sums, sums);
    tl_text_add(code, ", ");
    if (in_registers) {
        add_list(code, next, 4);
        next += 4;
        tl_text_add(operands, ",r,r,r,r,l");
    } else {
        tl_text_format(code, "$%d", next++);
        tl_text_add(operands, ",l,l");
    }
    tl_text_format(code, ", $%d, 1%s", next, kinds[kind].is_float ? ", 1, 1" : "");
    if (kinds[kind].has_order)
        tl_text_format(code, "%s, %d", in_registers ? "" : ", 0", order);
    tl_text_add(code, ";");
    return true;
}

/* nN_TYPE: N/2 sums, which come out as they went in. */
static bool wg_done(const char *rest, tl_text *code, tl_text *operands)
{
    int n = take(&rest, "n") ? take_number(&rest) : -1;
    bool is_float = take(&rest, "_f32");
    if (n < 2 || n > 256 || n % 2 != 0 || (!is_float && !take(&rest, "_i32")) || *rest != '\0')
        return false;
    add_tied(operands, is_float ? "f" : "r", n / 2);
    tl_text_add(code, "");
    return true;
}

static bool wg_wait(const char *rest, tl_text *code, tl_text *operands)
{
    int n = take_number(&rest);
    if (n < 0 || n > 7 || *rest != '\0')
        return false;
    tl_text_format(code, "wgmma.wait_group.sync.aligned %d;", n);
    tl_text_add(operands, "~{memory}");
    return true;
}

/* Nd[_multicast](to, map, N numbers, mbarrier[, blocks]) */
static bool tma(const char *rest, tl_text *code, tl_text *operands)
{
    int rank = take_number(&rest);
    bool is_axes = take(&rest, "d") && rank >= 1 && rank <= 5;
    bool is_multicast = take(&rest, "_multicast");
    if (!is_axes || *rest != '\0')
        return false;
    if (is_multicast)
        tl_text_format(code, "{ .reg .b16 blocks; cvt.u16.u32 blocks, $%d; ", rank + 3);
    tl_text_format(code,
                   "cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes%s "
                   "[$0], [$1, ",
                   rank, is_multicast ? ".multicast::cluster" : "");
    add_list(code, 2, rank);
    tl_text_format(code, "], [$%d]%s;%s", rank + 2, is_multicast ? ", blocks" : "",
                   is_multicast ? " }" : "");
    tl_text_add(operands, "r,l");
    for (int i = 0; i < rank + 1 + is_multicast; i++)
        tl_text_add(operands, ",r");
    tl_text_add(operands, ",~{memory}");
    return true;
}

/* Nd(map, from, N numbers) */
static bool tma_store(const char *rest, tl_text *code, tl_text *operands)
{
    int rank = take_number(&rest);
    if (!take(&rest, "d") || rank < 1 || rank > 5 || *rest != '\0')
        return false;
    tl_text_format(code, "cp.async.bulk.tensor.%dd.global.shared::cta.bulk_group [$0, ", rank);
    add_list(code, 2, rank);
    tl_text_add(code, "], [$1];");
    tl_text_add(operands, "l,r");
    for (int i = 0; i < rank; i++)
        tl_text_add(operands, ",r");
    tl_text_add(operands, ",~{memory}");
    return true;
}

static const struct {
    const char *prefix;
    bool (*write)(const char *rest, tl_text *code, tl_text *operands);
} families[] = {
    { "dev_wgmma_", wgmma },        { "dev_wg_done_", wg_done }, { "dev_wg_wait", wg_wait },
    { "dev_tma_store", tma_store }, { "dev_tma", tma },
};

bool tl_llvm_device_text(const char *name, tl_text *code, tl_text *operands)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        size_t n = strlen(families[i].prefix);
        if (strncmp(name, families[i].prefix, n) == 0)
            return families[i].write(name + n, code, operands);
    }
    return false;
}

/* ir/program/target.c: targets as text and by name. */
#include "ir/program/target.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tl_isa_info tl_isa_infos[TL_ISA_COUNT] = {
#define ISA(name, text, vector_bits, registers, masks, fma, features) \
    [TL_ISA_##name] = { text, vector_bits, registers, masks, fma, features },
#include "ir/program/target.def"
#undef ISA
};

static const char *const isa_names[TL_ISA_COUNT] = {
#define ISA(name, ...) [TL_ISA_##name] = #name,
#include "ir/program/target.def"
#undef ISA
};

static const struct {
    const char *cpu;
    int cores, threads_sm, blocks_sm, registers_sm;
    int64_t shared_block, shared_sm, l2_bytes;
} archs[] = {
#define ARCH(...) { __VA_ARGS__ },
#include "ir/program/gpu_archs.def"
#undef ARCH
};
enum { ARCH_COUNT = sizeof archs / sizeof *archs };

bool tl_target_is_gpu(const tl_target *t)
{
    return t->isa == TL_ISA_PTX;
}

int tl_target_lanes(const tl_target *t, tl_dtype dtype)
{
    assert(dtype < TL_DTYPE_COUNT);
    int lanes = tl_isa_infos[t->isa].vector_bits / tl_dtype_infos[dtype].bits;
    return lanes < 1 ? 1 : lanes;
}

void tl_target_print(const tl_target *t, tl_text *out)
{
    tl_text_format(out, "isa=%s triple=%s cpu=%s features=%s vnni=%d bf16=%d", isa_names[t->isa],
                   t->triple, t->cpu, t->features, t->has_vnni, t->has_bf16_dot);
    tl_text_format(out, " l1=%" PRId64 " l2=%" PRId64 " l3=%" PRId64 " cores=%d", t->l1_bytes,
                   t->l2_bytes, t->l3_bytes, t->cores);
}

/* ---- parsing ---- */

static tl_status set_word(const char *key, const char *value, char *out, size_t size, tl_diag *diag)
{
    if (strlen(value) >= size)
        return tl_fail(diag, TL_BAD_TEXT, "target: %s is longer than %zu characters", key,
                       size - 1);
    strcpy(out, value);
    return TL_OK;
}

static tl_status set_number(const char *key, const char *value, int64_t max, int64_t *out,
                            tl_diag *diag)
{
    char *end;
    if (*value < '0' || *value > '9')
        return tl_fail(diag, TL_BAD_TEXT, "target: %s=%.40s is not a number", key, value);
    unsigned long long number = strtoull(value, &end, 10);
    if (*end != '\0' || number > (unsigned long long)max)
        return tl_fail(diag, TL_BAD_TEXT, "target: %s=%.40s is not a number up to %" PRId64, key,
                       value, max);
    *out = (int64_t)number;
    return TL_OK;
}

static tl_status set_isa(const char *value, tl_isa *out, tl_diag *diag)
{
    for (int i = 0; i < TL_ISA_COUNT; i++)
        if (strcmp(isa_names[i], value) == 0) {
            *out = (tl_isa)i;
            return TL_OK;
        }
    return tl_fail(diag, TL_BAD_TEXT, "target: there is no ISA %.40s", value);
}

static tl_status set_flag(const char *key, const char *value, bool *out, tl_diag *diag)
{
    int64_t number;
    TL_TRY(set_number(key, value, 1, &number, diag));
    *out = number != 0;
    return TL_OK;
}

static tl_status set_int(const char *key, const char *value, int *out, tl_diag *diag)
{
    int64_t number;
    TL_TRY(set_number(key, value, 1 << 24, &number, diag));
    *out = (int)number;
    return TL_OK;
}

/* The generation is in the name of the processor. */
static void read_arch(tl_target *t)
{
    char *end;
    if (!tl_target_is_gpu(t) || strncmp(t->cpu, "sm_", 3) != 0)
        return;
    t->gpu.sm = (int)strtol(t->cpu + 3, &end, 10);
    t->gpu.is_exact = strcmp(end, "a") == 0;
}

static tl_status set_field(tl_target *t, const char *key, const char *value, tl_diag *diag)
{
    const int64_t most = INT64_C(1) << 50;
    if (strcmp(key, "isa") == 0)
        return set_isa(value, &t->isa, diag);
    if (strcmp(key, "triple") == 0)
        return set_word(key, value, t->triple, sizeof t->triple, diag);
    if (strcmp(key, "cpu") == 0)
        return set_word(key, value, t->cpu, sizeof t->cpu, diag);
    if (strcmp(key, "features") == 0)
        return set_word(key, value, t->features, sizeof t->features, diag);
    if (strcmp(key, "vnni") == 0)
        return set_flag(key, value, &t->has_vnni, diag);
    if (strcmp(key, "bf16") == 0)
        return set_flag(key, value, &t->has_bf16_dot, diag);
    if (strcmp(key, "l1") == 0)
        return set_number(key, value, most, &t->l1_bytes, diag);
    if (strcmp(key, "l2") == 0)
        return set_number(key, value, most, &t->l2_bytes, diag);
    if (strcmp(key, "l3") == 0)
        return set_number(key, value, most, &t->l3_bytes, diag);
    if (strcmp(key, "cores") == 0) {
        int64_t cores;
        TL_TRY(set_number(key, value, 1 << 20, &cores, diag));
        if (cores < 1)
            return tl_fail(diag, TL_BAD_TEXT, "target: cores=0 leaves nothing to run on");
        t->cores = (int)cores;
        return TL_OK;
    }
    if (strcmp(key, "threads_sm") == 0)
        return set_int(key, value, &t->gpu.threads_sm, diag);
    if (strcmp(key, "blocks_sm") == 0)
        return set_int(key, value, &t->gpu.blocks_sm, diag);
    if (strcmp(key, "registers_sm") == 0)
        return set_int(key, value, &t->gpu.registers_sm, diag);
    if (strcmp(key, "shared_block") == 0)
        return set_number(key, value, most, &t->gpu.shared_block, diag);
    if (strcmp(key, "shared_sm") == 0)
        return set_number(key, value, most, &t->gpu.shared_sm, diag);
    return tl_fail(diag, TL_BAD_TEXT, "target: there is no field %.40s", key);
}

tl_status tl_target_parse(const char *text, tl_target *out, tl_diag *diag)
{
    tl_target target = { .cores = 1 };
    char field[sizeof target.features + 32];
    bool has_isa = false;
    while (*text != '\0') {
        size_t size = strcspn(text, " \n");
        if (size >= sizeof field)
            return tl_fail(diag, TL_BAD_TEXT, "target: a field is longer than %zu characters",
                           sizeof field - 1);
        memcpy(field, text, size);
        field[size] = '\0';
        text += size + strspn(text + size, " \n");
        if (size == 0)
            continue;
        char *equals = strchr(field, '=');
        if (equals == NULL)
            return tl_fail(diag, TL_BAD_TEXT, "target: %.40s is not KEY=VALUE", field);
        *equals = '\0';
        TL_TRY(set_field(&target, field, equals + 1, diag));
        has_isa |= strcmp(field, "isa") == 0;
    }
    if (!has_isa)
        return tl_fail(diag, TL_BAD_TEXT, "target: the field isa is missing");
    read_arch(&target);
    *out = target;
    return TL_OK;
}

/* ---- names ---- */

const char *tl_target_gpu_arch(int major, int minor)
{
    const char *best = NULL;
    for (int i = 0; i < ARCH_COUNT; i++) {
        int sm = atoi(archs[i].cpu + 3);
        bool is_exact = archs[i].cpu[strlen(archs[i].cpu) - 1] == 'a';
        if (is_exact ? sm == 10 * major + minor : sm <= 10 * major + minor)
            best = archs[i].cpu;
    }
    return best;
}

/* "sm_120", "sm_103a", "sm_100f": there may be such a generation. */
static bool is_generation(const char *arch)
{
    size_t digits = strncmp(arch, "sm_", 3) == 0 ? strspn(arch + 3, "0123456789") : 0;
    const char *end = arch + 3 + digits;
    return (digits == 2 || digits == 3) &&
           (*end == '\0' || strcmp(end, "a") == 0 || strcmp(end, "f") == 0);
}

static tl_status unknown_gpu(const char *arch, const char *known, tl_diag *diag)
{
    if (!is_generation(arch))
        return tl_fail(diag, TL_BAD_ARGUMENT, "there is no GPU target %.40s; known are %s", arch,
                       known);
    int sm = atoi(arch + 3);
    const char *runs = tl_target_gpu_arch(sm / 10, sm % 10);
    if (runs == NULL)
        return tl_fail(diag, TL_UNSUPPORTED,
                       "GPU target %s is too old: %s or a newer one is needed; known are %s", arch,
                       archs[0].cpu, known);
    return tl_fail(diag, TL_UNSUPPORTED,
                   "GPU target %s is not known: its GPUs run code for %s; known are %s", arch, runs,
                   known);
}

static tl_status gpu_named(const char *arch, tl_target *out, tl_diag *diag)
{
    tl_text known = { 0 };
    for (int i = 0; i < ARCH_COUNT; i++) {
        tl_text_format(&known, "%s%s", i > 0 ? ", " : "", archs[i].cpu);
        if (strcmp(archs[i].cpu, arch) != 0)
            continue;
        *out = (tl_target){ .isa = TL_ISA_PTX,
                            .triple = "nvptx64-nvidia-cuda",
                            .l1_bytes = archs[i].shared_sm,
                            .l2_bytes = archs[i].l2_bytes,
                            .cores = archs[i].cores,
                            .gpu = { .threads_sm = archs[i].threads_sm,
                                     .blocks_sm = archs[i].blocks_sm,
                                     .registers_sm = archs[i].registers_sm,
                                     .shared_block = archs[i].shared_block,
                                     .shared_sm = archs[i].shared_sm } };
        strcpy(out->cpu, arch);
        read_arch(out);
        tl_text_free(&known);
        return TL_OK;
    }
    tl_status status = unknown_gpu(arch, tl_text_get(&known), diag);
    tl_text_free(&known);
    return status;
}

tl_status tl_target_named(const char *name, tl_target *out, tl_diag *diag)
{
    size_t size = strcspn(name, ",");
    if ((size == 4 && memcmp(name, "cuda", 4) == 0) ||
        (size == 7 && memcmp(name, "nvptx64", 7) == 0))
        return gpu_named(name[size] == ',' ? name + size + 1 : "sm_90", out, diag);
    for (int i = 0; i < TL_ISA_COUNT; i++) {
        if (strcmp(tl_isa_infos[i].text, name) != 0)
            continue;
        tl_isa isa = (tl_isa)i;
        bool x86 = isa != TL_ISA_NEON;
        *out = (tl_target){
            .isa = isa, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .l3_bytes = 8 << 20, .cores = 1
        };
        strcpy(out->triple, x86 ? "x86_64-pc-linux-gnu" : "aarch64-unknown-linux-gnu");
        strcpy(out->cpu, x86 ? name : "generic");
        strcpy(out->features, tl_isa_infos[i].features);
        return TL_OK;
    }
    tl_text known = { 0 };
    for (int i = 0; i < TL_ISA_COUNT; i++)
        tl_text_format(&known, "%s%s", i > 0 ? ", " : "", tl_isa_infos[i].text);
    tl_status status = tl_fail(diag, TL_BAD_ARGUMENT, "there is no target %.60s; known are %s",
                               name, tl_text_get(&known));
    tl_text_free(&known);
    return status;
}

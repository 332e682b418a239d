/* codegen/emulate/device_calls.c: finds the row of a function's name, and reads what the name says. */
#include <stdlib.h>
#include <string.h>
#include "codegen/emulate/emulate_private.h"

/* ---- parsers: what follows the prefix ---- */

static bool take(const char **rest, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*rest, word, n) != 0)
        return false;
    *rest += n;
    return true;
}

static bool take_number(const char **rest, int *out)
{
    char *end;
    long n = strtol(*rest, &end, 10);
    if (end == *rest || n < 0 || n > 1 << 20)
        return false;
    *rest = end;
    *out = (int)n;
    return true;
}

/* One of `words`: its number. */
static bool take_word(const char **rest, const char *const words[], int count, int *out)
{
    for (*out = 0; *out < count; ++*out)
        if (take(rest, words[*out]))
            return true;
    return false;
}
#define TAKE_WORD(rest, words, out) take_word(rest, words, sizeof(words) / sizeof *(words), out)

static bool parse_any(const char *rest, int tags[TL_CALL_TAGS])
{
    (void)rest;
    (void)tags;
    return true;
}

static bool parse_aligned(const char *rest, int tags[TL_CALL_TAGS])
{
    (void)tags;
    take(&rest, ".relaxed");
    take(&rest, ".aligned");
    return *rest == '\0';
}

static bool parse_shared(const char *rest, int tags[TL_CALL_TAGS])
{
    (void)tags;
    take(&rest, ".shared");
    return *rest == '\0';
}

static bool parse_sreg(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const words[] = {
        "tid.",           "ntid.",           "ctaid.",      "nctaid.",         "laneid",
        "warpid",         "nwarpid",         "warpsize",    "cluster.ctarank", "cluster.nctarank",
        "cluster.ctaid.", "cluster.nctaid.", "clusterid.",  "nclusterid.",     "lanemask.eq",
        "lanemask.lt",    "lanemask.le",     "lanemask.gt", "lanemask.ge",     "smid",
        "clock64",        "clock",           "globaltimer"
    };
    if (!TAKE_WORD(&rest, words, &tags[0]))
        return false;
    if (rest[-1] == '.') {
        tags[1] = *rest - 'x';
        return tags[1] >= 0 && tags[1] < 3 && rest[1] == '\0';
    }
    return *rest == '\0';
}

/* MODE.TYPE, with a p where whether the lane was there is a second result. */
static bool parse_shuffle(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const modes[] = { "up.", "down.", "bfly.", "idx." };
    static const char *const types[] = { "i32", "f32" };
    int type;
    if (!TAKE_WORD(&rest, modes, &tags[0]) || !TAKE_WORD(&rest, types, &type))
        return false;
    tags[1] = take(&rest, "p");
    return *rest == '\0';
}

static bool parse_vote(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const modes[] = { "all", "any", "uni", "ballot" };
    return TAKE_WORD(&rest, modes, &tags[0]) && take(&rest, ".sync") && *rest == '\0';
}

static bool parse_redux(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const modes[] = { "add", "min", "max", "umin", "umax", "and", "or", "xor" };
    return TAKE_WORD(&rest, modes, &tags[0]) && *rest == '\0';
}

/* x1, x2, x4; transposed. */
static bool parse_ldmatrix(const char *rest, int tags[TL_CALL_TAGS])
{
    if (!take(&rest, "x") || !take_number(&rest, &tags[0]) || tags[0] > 4)
        return false;
    tags[1] = take(&rest, ".trans") || take(&rest, "_trans");
    take(&rest, ".b16");
    return *rest == '\0';
}

/* mMnNkK.row.col[.satfinite].TYPE[.TYPE]: sizes, then what A, B and the sums are. */
static bool parse_mma(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const types[] = { "f32.f32", "f16.f16", "bf16", "tf32", "f64",
                                         "s8.u8",   "u8.s8",   "s8",   "u8" };
    if (!take(&rest, "m") || !take_number(&rest, &tags[0]) || !take(&rest, "n") ||
        !take_number(&rest, &tags[1]) || !take(&rest, "k") || !take_number(&rest, &tags[2]) ||
        !take(&rest, ".row.col."))
        return false;
    tags[4] = take(&rest, "satfinite.");
    if (!TAKE_WORD(&rest, types, &tags[3]) || *rest != '\0')
        return false;
    if (tags[3] == 4)
        return tags[0] == 8 && tags[1] == 8 && tags[2] == 4;
    static const int bytes[] = { 2, 2, 2, 4, 8, 1, 1, 1, 1 };
    int depth = tags[2] * bytes[tags[3]]; /* one or two registers of B */
    return tags[0] == 16 && tags[1] == 8 && (depth == 16 || depth == 32);
}

static bool parse_copy_async(const char *rest, int tags[TL_CALL_TAGS])
{
    if (!take_number(&rest, &tags[0]) || (tags[0] != 4 && tags[0] != 8 && tags[0] != 16))
        return false;
    tags[1] = take(&rest, ".s");
    return *rest == '\0';
}

static bool parse_copy_arrive(const char *rest, int tags[TL_CALL_TAGS])
{
    tags[0] = take(&rest, ".noinc");
    take(&rest, ".shared");
    return *rest == '\0';
}

static bool parse_bulk_wait(const char *rest, int tags[TL_CALL_TAGS])
{
    tags[0] = take(&rest, ".read");
    return *rest == '\0';
}

static bool parse_tensor(const char *rest, int tags[TL_CALL_TAGS])
{
    if (!take_number(&rest, &tags[0]) || tags[0] < 1 || tags[0] > TL_TENSOR_MAP_AXES ||
        !take(&rest, "d"))
        return false;
    tags[1] = take(&rest, "_multicast");
    return *rest == '\0';
}

static bool parse_count(const char *rest, int tags[TL_CALL_TAGS])
{
    tags[0] = -1; /* it is the argument */
    return *rest == '\0' || (take_number(&rest, &tags[0]) && *rest == '\0');
}

/* nN_TYPE[_tT][_r]: T is 1 where B lies with its columns contiguous, r where A is in registers. */
static bool parse_wgmma(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const types[] = { "bf16", "f16", "tf32", "s8", "u8" };
    if (!take(&rest, "n") || !take_number(&rest, &tags[0]) || !take(&rest, "_") ||
        !TAKE_WORD(&rest, types, &tags[1]))
        return false;
    if (take(&rest, "_t") && !take_number(&rest, &tags[2]))
        return false;
    tags[3] = take(&rest, "_r");
    return *rest == '\0' && tags[0] >= 8 && tags[0] <= 256 && tags[0] % 8 == 0 && tags[2] <= 1;
}

static bool parse_set_registers(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const modes[] = { "dec", "inc" };
    return TAKE_WORD(&rest, modes, &tags[0]) && take(&rest, ".sync.aligned.u32") && *rest == '\0';
}

static bool parse_is_space(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const words[] = { "shared.cluster", "shared", "global" };
    return TAKE_WORD(&rest, words, &tags[0]) && *rest == '\0';
}

/* OP{.WORD}.TYPE: only the operation and whether it is of doubles say what is computed. */
static bool parse_number(const char *rest, int tags[TL_CALL_TAGS])
{
    static const char *const words[] = { "ex2.",         "lg2.",        "rcp.",      "rsqrt.",
                                         "sqrt.",        "sin.",        "cos.",      "div.",
                                         "fma.",         "add.",        "mul.",      "fmin.",
                                         "fmax.",        "fabs.",       "saturate.", "f2tf32.rna",
                                         "ff2bf16x2.rn", "ff2f16x2.rn", "f2bf16.rn", "dev_tanh" };
    if (!TAKE_WORD(&rest, words, &tags[0]))
        return false;
    size_t n = strlen(rest);
    tags[1] = n > 0 && rest[n - 1] == 'd';
    tags[2] = strstr(rest, "nan") != NULL;
    return true;
}

/* ---- the table ---- */

typedef struct {
    const char *prefix;
    tl_gpu_run *run;
    tl_gpu_parse *parse;
    bool pure;
} row;

#define parse_NULL NULL
static const row rows[] = {
#define CALL(prefix, run, parse, pure) { prefix, tl_call_##run, parse_##parse, pure },
#include "codegen/emulate/device_calls.def"
#undef CALL
};

static const row *find_row(const char *name, int tags[TL_CALL_TAGS])
{
    const row *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = strlen(rows[i].prefix);
        if (strncmp(name, rows[i].prefix, n) != 0 || (found != NULL && n <= longest))
            continue;
        int read[TL_CALL_TAGS] = { 0 };
        if (rows[i].parse == NULL ? name[n] != '\0' : !rows[i].parse(name + n, read))
            continue;
        found = &rows[i];
        longest = n;
        memcpy(tags, read, sizeof read);
    }
    return found;
}

/* Without llvm.nvvm. in front and address spaces behind. */
static const char *shorten(tl_arena *arena, const char *symbol)
{
    static const char prefix[] = "llvm.nvvm.";
    char *name = tl_arena_strdup(arena, strncmp(symbol, prefix, sizeof prefix - 1) == 0
                                            ? symbol + sizeof prefix - 1
                                            : symbol);
    for (size_t n = strlen(name); n > 3 && name[n - 3] == '.' && name[n - 2] == 'p' &&
                                  name[n - 1] >= '0' && name[n - 1] <= '9';
         n -= 3)
        name[n - 3] = '\0';
    return name;
}

tl_status tl_gpu_call_find(tl_arena *arena, const char *symbol, tl_gpu_call *out, tl_diag *diag)
{
    const char *name = shorten(arena, symbol);
    const row *found = find_row(name, out->tags);
    if (found == NULL)
        return tl_fail(diag, TL_UNSUPPORTED, "the emulator does not know the function %s", symbol);
    out->name = name;
    out->run = found->run;
    out->pure = found->pure;
    return TL_OK;
}

/* ir/program/machine.c: machine profiles as values and as text. */
#include "ir/program/machine.h"
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"

static const char title[] = "tilth machine profile 1";
enum { MOST_TEXT = 64 << 10, LINE = 160 };
#define KEPT 0.75 /* of a step: within that an earlier value stays */

typedef enum { STEP, RATIO } value_grid;

typedef struct {
    const char *name;
    size_t offset;
    double built_in;
    value_grid grid;
    double size, least, most;
    const char *unit, *words;
} value_type;

static const value_type machine_values[] = {
#define MACHINE(name, built_in, grid, size, least, most, unit, words) \
    { #name, offsetof(tl_machine, name), built_in, grid, size, least, most, unit, words },
#include "ir/program/machine.def"
#undef MACHINE
};
static const value_type unit_values[] = {
#define MACHINE_UNIT(name, built_in, grid, size, least, most, unit, words) \
    { #name, offsetof(tl_machine_unit, name), built_in, grid, size, least, most, unit, words },
#include "ir/program/machine.def"
#undef MACHINE_UNIT
};
enum {
    MACHINE_VALUES = sizeof machine_values / sizeof *machine_values,
    UNIT_VALUES = sizeof unit_values / sizeof *unit_values
};

const tl_machine tl_machine_built_in = {
#define MACHINE(name, built_in, ...) .name = built_in,
#include "ir/program/machine.def"
#undef MACHINE
};
static const tl_machine_unit built_in_unit = {
#define MACHINE_UNIT(name, built_in, ...) .name = built_in,
#include "ir/program/machine.def"
#undef MACHINE_UNIT
};

/* Golden Cove and its successors with vectors of 256 bits: the built-in unit but for broadcasts (a probe of an Emerald
 * Rapids; three a cycle where they share lines). */
#define BROADCAST offsetof(tl_machine_unit, broadcast_cycles)
static const tl_machine_unit golden_cove = {
#define MACHINE_UNIT(name, built_in, ...) \
    .name = offsetof(tl_machine_unit, name) == BROADCAST ? 0.5 : built_in,
#include "ir/program/machine.def"
#undef MACHINE_UNIT
};
#undef BROADCAST
static const char *const golden_coves[] = { "alderlake",      "raptorlake",    "meteorlake",
                                            "sapphirerapids", "emeraldrapids", "graniterapids",
                                            "graniterapids-d" }; /* LLVM's names */

const tl_machine *tl_machine_of(const tl_target *target)
{
    return target->machine != NULL ? target->machine : &tl_machine_built_in;
}

const tl_machine_unit *tl_machine_unit_of(const tl_target *target)
{
    const tl_machine_unit *unit = &tl_machine_of(target)->units[target->isa];
    if (unit->fma_per_cycle > 0)
        return unit;
    for (size_t i = 0; target->isa == TL_ISA_AVX2 && i < sizeof golden_coves / sizeof *golden_coves;
         i++)
        if (strcmp(target->cpu, golden_coves[i]) == 0)
            return &golden_cove;
    return &built_in_unit;
}

static double *at(void *row, const value_type *type)
{
    return (double *)((char *)row + type->offset);
}

static double get(const void *row, const value_type *type)
{
    return *(const double *)((const char *)row + type->offset);
}

/* ---- rounding ---- */

static double steps_between(const value_type *type, double a, double b)
{
    return type->grid == STEP ? fabs(a - b) / type->size : fabs(log(a / b)) / log(type->size);
}

/* Three digits are more than any of them is known to, and few enough to read. */
static double three_digits(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.3g", x);
    return strtod(text, NULL);
}

static double settle(const value_type *type, double measured, double before)
{
    if (!(measured > 0) || !isfinite(measured))
        return type->built_in;
    double x = fmin(fmax(measured, type->least), type->most);
    if (before > 0 && steps_between(type, x, before) <= KEPT)
        return before;
    x = type->grid == STEP ? round(x / type->size) * type->size
                           : three_digits(pow(type->size, round(log(x) / log(type->size))));
    return fmin(fmax(x, type->least), type->most);
}

static bool is_measured(const tl_machine_unit *unit)
{
    return unit->fma_per_cycle > 0;
}

static void print_values(const tl_machine *m, bool explains, tl_text *out);

static void name_digest(const tl_machine *m, char out[33])
{
    tl_text text = { 0 };
    tl_digest digest;
    print_values(m, false, &text);
    tl_digest_start(&digest);
    tl_digest_add(&digest, tl_text_get(&text), text.size);
    tl_digest_text(&digest, out);
    tl_text_free(&text);
}

void tl_machine_seal(tl_machine *m, const tl_machine *before)
{
    for (int i = 0; i < MACHINE_VALUES; i++) {
        const value_type *v = &machine_values[i];
        *at(m, v) = settle(v, get(m, v), before != NULL ? get(before, v) : 0);
    }
    for (int isa = 0; isa < TL_ISA_COUNT; isa++)
        for (int i = 0; i < UNIT_VALUES && is_measured(&m->units[isa]); i++) {
            const value_type *v = &unit_values[i];
            double was = before != NULL ? get(&before->units[isa], v) : 0;
            *at(&m->units[isa], v) = settle(v, get(&m->units[isa], v), was);
        }
    name_digest(m, m->digest);
}

static void add_asked(tl_digest *digest, const value_type *types, int count, const void *row)
{
    for (int i = 0; i < count; i++) {
        double x = get(row, &types[i]);
        if (types[i].built_in > 0)
            tl_digest_add(digest, &x, sizeof x);
    }
}

void tl_machine_stamp(const tl_machine *m, char out[33])
{
    tl_digest digest;
    tl_digest_start(&digest);
    add_asked(&digest, machine_values, MACHINE_VALUES, m);
    for (int isa = 0; isa < TL_ISA_COUNT; isa++)
        add_asked(&digest, unit_values, UNIT_VALUES,
                  is_measured(&m->units[isa]) ? &m->units[isa] : &built_in_unit);
    tl_digest_text(&digest, out);
}

/* ---- text ---- */

void tl_machine_caches(const tl_target *t, char out[64])
{
    snprintf(out, 64, "%lldK %lldK %lldK", (long long)t->l1_bytes >> 10,
             (long long)t->l2_bytes >> 10, (long long)t->l3_bytes >> 10);
}

void tl_machine_visit(const tl_machine *m, tl_machine_visitor *visit, void *user)
{
    for (int i = 0; i < MACHINE_VALUES; i++)
        visit(user, TL_ISA_COUNT, machine_values[i].name, get(m, &machine_values[i]),
              machine_values[i].unit, machine_values[i].words);
    for (int isa = 0; isa < TL_ISA_COUNT; isa++)
        for (int i = 0; i < UNIT_VALUES && is_measured(&m->units[isa]); i++)
            visit(user, (tl_isa)isa, unit_values[i].name, get(&m->units[isa], &unit_values[i]),
                  unit_values[i].unit, unit_values[i].words);
}

typedef struct {
    tl_text *out;
    bool explains;
    tl_isa section;
} printer;

static void print_value(void *user, tl_isa isa, const char *name, double value, const char *unit,
                        const char *words)
{
    printer *p = user;
    char line[LINE];
    if (isa != p->section)
        tl_text_format(p->out, "[%s]\n", tl_isa_infos[isa].text);
    p->section = isa;
    if (!(value > 0))
        return; /* nobody knows */
    snprintf(line, sizeof line, "%s = %.6g", name, value);
    if (p->explains)
        tl_text_format(p->out, "%-30s # %s%s%s\n", line, unit, *unit ? ", " : "", words);
    else
        tl_text_format(p->out, "%s\n", line);
}

static void print_values(const tl_machine *m, bool explains, tl_text *out)
{
    printer p = { out, explains, TL_ISA_COUNT };
    tl_text_format(out, "cpu = %s\ncaches = %s\ncores = %d\n", m->cpu, m->caches, m->cores);
    tl_machine_visit(m, print_value, &p);
}

void tl_machine_print(const tl_machine *m, tl_text *out)
{
    tl_text_format(out, "%s\ndate = %s\n", title, m->date);
    print_values(m, true, out);
    tl_text_format(out, "digest = %s\n", m->digest);
}

/* ---- parsing ---- */

typedef struct {
    tl_machine *m;
    tl_isa section; /* TL_ISA_COUNT: before the first */
    int line;
    bool seen[MACHINE_VALUES + UNIT_VALUES];
    bool has_digest;
    char digest[33];
} reader;

static tl_status set_word(const reader *r, const char *key, const char *word, char *out,
                          size_t size, tl_diag *diag)
{
    if (strlen(word) >= size)
        return tl_fail(diag, TL_BAD_TEXT, "line %d: %s is longer than %zu characters", r->line, key,
                       size - 1);
    for (const char *c = word; *c; c++)
        if (*c < ' ' || *c > '~')
            return tl_fail(diag, TL_BAD_TEXT, "line %d: %s has a character that is none of a name",
                           r->line, key);
    strcpy(out, word);
    return TL_OK;
}

static tl_status set_value(reader *r, const char *key, const char *word, tl_diag *diag)
{
    bool is_unit = r->section != TL_ISA_COUNT;
    const value_type *types = is_unit ? unit_values : machine_values;
    void *row = is_unit ? (void *)&r->m->units[r->section] : (void *)r->m;
    for (int i = 0; i < (is_unit ? UNIT_VALUES : MACHINE_VALUES); i++) {
        char *end;
        if (strcmp(types[i].name, key) != 0)
            continue;
        bool *seen = &r->seen[i + (is_unit ? MACHINE_VALUES : 0)];
        double x = strtod(word, &end);
        if (*seen)
            return tl_fail(diag, TL_BAD_TEXT, "line %d: %s is said twice", r->line, key);
        if (end == word || *end != '\0' || !(x >= types[i].least && x <= types[i].most))
            return tl_fail(diag, TL_BAD_TEXT, "line %d: %s = %.40s is not between %g and %g",
                           r->line, key, word, types[i].least, types[i].most);
        *at(row, &types[i]) = x;
        *seen = true;
        return TL_OK;
    }
    return tl_fail(diag, TL_BAD_TEXT, "line %d: %s has no value %.40s", r->line,
                   is_unit ? "an instruction set" : "a machine", key);
}

static tl_status set_cores(const reader *r, const char *word, tl_diag *diag)
{
    char *end;
    long cores = strtol(word, &end, 10);
    if (end == word || *end != '\0' || cores < 1 || cores > 1 << 20)
        return tl_fail(diag, TL_BAD_TEXT, "line %d: cores = %.40s is no number of cores", r->line,
                       word);
    r->m->cores = (int)cores;
    return TL_OK;
}

static tl_status begin_section(reader *r, const char *name, tl_diag *diag)
{
    for (int isa = 0; isa < TL_ISA_COUNT; isa++) {
        size_t size = strlen(tl_isa_infos[isa].text);
        if (strncmp(name, tl_isa_infos[isa].text, size) != 0 || strcmp(name + size, "]") != 0)
            continue;
        if (is_measured(&r->m->units[isa]))
            break;
        r->section = (tl_isa)isa;
        r->m->units[isa] = built_in_unit;
        memset(r->seen + MACHINE_VALUES, 0, UNIT_VALUES * sizeof *r->seen);
        return TL_OK;
    }
    return tl_fail(diag, TL_BAD_TEXT, "line %d: [%.40s is no instruction set, or one a second time",
                   r->line, name);
}

/* A line without its comment and the blanks around it. */
static tl_status read_line(reader *r, char *line, tl_diag *diag)
{
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t");
    size_t size = strlen(line);
    while (size > 0 && strchr(" \t\r", line[size - 1]) != NULL)
        line[--size] = '\0';
    if (size == 0)
        return TL_OK;
    if (line[0] == '[')
        return begin_section(r, line + 1, diag);
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return tl_fail(diag, TL_BAD_TEXT, "line %d: neither KEY = VALUE nor [SECTION]", r->line);
    const char *word = equals + 1 + strspn(equals + 1, " \t");
    do
        *equals = '\0';
    while (equals > line && strchr(" \t", *--equals) != NULL);
    if (strcmp(line, "cpu") == 0)
        return set_word(r, line, word, r->m->cpu, sizeof r->m->cpu, diag);
    if (strcmp(line, "caches") == 0)
        return set_word(r, line, word, r->m->caches, sizeof r->m->caches, diag);
    if (strcmp(line, "date") == 0)
        return set_word(r, line, word, r->m->date, sizeof r->m->date, diag);
    if (strcmp(line, "cores") == 0)
        return set_cores(r, word, diag);
    if (strcmp(line, "digest") == 0) {
        r->has_digest = true;
        return set_word(r, line, word, r->digest, sizeof r->digest, diag);
    }
    return set_value(r, line, word, diag);
}

static tl_status read_lines(reader *r, const char *text, size_t size, tl_diag *diag)
{
    char line[LINE];
    for (size_t at = 0; at < size; r->line++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : size - at;
        if (length >= sizeof line)
            return tl_fail(diag, TL_BAD_TEXT, "line %d: longer than %d characters", r->line,
                           LINE - 1);
        memcpy(line, text + at, length);
        line[length] = '\0';
        at += length + 1;
        if (r->line > 1)
            TL_TRY(read_line(r, line, diag));
        else if (strcmp(line, title) != 0)
            return tl_fail(diag, TL_BAD_TEXT, "no machine profile: the first line is not \"%s\"",
                           title);
    }
    return TL_OK;
}

tl_status tl_machine_parse(const char *text, size_t size, tl_machine *out, tl_diag *diag)
{
    tl_machine m = tl_machine_built_in;
    reader r = { .m = &m, .section = TL_ISA_COUNT, .line = 1 };
    if (size == 0 || size > MOST_TEXT)
        return tl_fail(diag, TL_BAD_TEXT, "no machine profile: %zu bytes", size);
    TL_TRY(read_lines(&r, text, size, diag));
    if (m.cpu[0] == '\0')
        return tl_fail(diag, TL_BAD_TEXT, "a machine profile without a line \"cpu = NAME\"");
    name_digest(&m, m.digest);
    if (r.has_digest && strcmp(r.digest, m.digest) != 0)
        return tl_fail(diag, TL_BAD_TEXT,
                       "its values are not those of its digest: cut off, or changed by hand (then "
                       "take out the line \"digest\")");
    *out = m;
    return TL_OK;
}

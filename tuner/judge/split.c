/* tuner/judge/split.c: draws sides. */
#include "tuner/judge/split.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/map.h"

const tl_split_info tl_split_infos[TL_SPLIT_COUNT] = {
#define SPLIT(name, text, words) [TL_SPLIT_##name] = { text, words },
#include "tuner/judge/splits.def"
#undef SPLIT
};

bool tl_split_from_text(const char *text, tl_split_kind *out)
{
    for (int i = 0; i < TL_SPLIT_COUNT; i++)
        if (strcmp(text, tl_split_infos[i].text) == 0) {
            *out = (tl_split_kind)i;
            return true;
        }
    return false;
}

/* A number in 0..1 of a workload, or of one of its programs. */
static double draw(const char *workload, const uint32_t *program, uint64_t seed)
{
    uint64_t hash = tl_hash_bytes(workload, strlen(workload), seed);
    if (program != NULL)
        hash = tl_hash_bytes(program, sizeof *program, hash);
    /* FNV's high bits are poor for alike inputs: mixed as splitmix64 does */
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return (double)((hash ^ (hash >> 31)) >> 11) * 0x1p-53;
}

static bool runs(const tl_network *networks, int count, const char *workload)
{
    for (int n = 0; n < count; n++)
        for (int i = 0; i < networks[n].count; i++)
            if (strcmp(networks[n].workloads[i], workload) == 0)
                return true;
    return false;
}

/* The machine to be judged on; -1: none is meant. */
static int find_machine(const tl_corpus *c, const char *name)
{
    if (name == NULL)
        return c->domain_count - 1;
    for (int i = 0; i < c->domain_count; i++)
        if (strstr(c->domains[i].name, name) != NULL ||
            strstr(c->domains[i].target, name) != NULL ||
            (*name != '\0' && strncmp(c->domains[i].machine, name, strlen(name)) == 0))
            return i;
    return -1;
}

static tl_status check_options(const tl_corpus *c, const tl_split_options *o, int *machine,
                               tl_diag *diag)
{
    if (o->kind == TL_SPLIT_MODEL && o->held_out_count == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "a split by model needs networks that are held out (--hold-out MODEL)");
    if (o->kind != TL_SPLIT_MACHINE)
        return TL_OK;
    if (c->domain_count < 2)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "a split by machine needs records of two machines; all of these are of %s",
                       c->domain_count == 1 ? c->domains[0].name : "none");
    *machine = find_machine(c, o->machine);
    if (*machine < 0)
        return tl_fail(diag, TL_BAD_ARGUMENT, "no machine of the records is called '%s'",
                       o->machine);
    return TL_OK;
}

static bool is_judged(const tl_corpus *c, const tl_split_options *o, int machine, int program)
{
    const tl_corpus_task *task = &c->tasks[c->samples[0].task[program]];
    const char *workload = task->series->task->workload;
    switch (o->kind) {
    case TL_SPLIT_WITHIN_TASK:
        return draw(workload, &c->program[program], o->seed) < o->test;
    case TL_SPLIT_TASK:
        return draw(workload, NULL, o->seed) < o->test;
    case TL_SPLIT_MODEL:
        return runs(o->held_out, o->held_out_count, workload);
    case TL_SPLIT_MACHINE:
        return c->samples[0].domain[c->samples[0].task[program]] == machine;
    case TL_SPLIT_COUNT:
        break;
    }
    return false;
}

/* Of what is not judged on; of a split within tasks by program, else by workload. */
static bool is_checked(const tl_corpus *c, const tl_split_options *o, int program)
{
    const char *workload = c->tasks[c->samples[0].task[program]].series->task->workload;
    bool within = o->kind == TL_SPLIT_WITHIN_TASK;
    return draw(workload, within ? &c->program[program] : NULL, o->seed ^ 0x636865636bu) < o->check;
}

static void count_sides(const tl_corpus *c, const uint8_t *side, tl_split_sizes *sizes)
{
    *sizes = (tl_split_sizes){ 0 };
    for (int t = 0; t < c->task_count; t++) {
        bool has[3] = { false, false, false };
        for (int i = 0; i < c->tasks[t].count; i++) {
            int p = c->tasks[t].first + i;
            if (isnan(c->samples[0].label[p])) {
                sizes->unmeasured[side[p]]++;
                continue;
            }
            sizes->programs[side[p]]++;
            has[side[p]] = true;
        }
        for (int k = 0; k < 3; k++)
            sizes->tasks[k] += has[k];
    }
}

tl_status tl_split_make(const tl_corpus *c, const tl_split_options *o, uint8_t *side,
                        tl_split_sizes *sizes, tl_diag *diag)
{
    int machine = -1;
    TL_TRY(check_options(c, o, &machine, diag));
    for (int p = 0; p < c->count; p++)
        side[p] = is_judged(c, o, machine, p) ? TL_SIDE_TEST
                  : is_checked(c, o, p)       ? TL_SIDE_CHECK
                                              : TL_SIDE_TRAIN;
    count_sides(c, side, sizes);
    if (sizes->programs[TL_SIDE_TEST] == 0 || sizes->programs[TL_SIDE_TRAIN] == 0)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "a split by %s of these %d programs of %d workloads leaves nothing to %s",
                       tl_split_infos[o->kind].text, c->count, c->workload_count,
                       sizes->programs[TL_SIDE_TEST] == 0 ? "be judged on" : "learn from");
    return TL_OK;
}

int tl_split_side(const tl_corpus *c, const uint8_t *side, tl_side wanted, int *out)
{
    int count = 0;
    for (int p = 0; p < c->count; p++)
        if (side[p] == wanted)
            out[count++] = p;
    return count;
}

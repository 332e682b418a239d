/* driver/conformance/report_cases.c: what became of the cases, for people and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/conformance/conformance.h"

const char *const tl_case_verdicts[TL_VERDICT_COUNT] = {
    [TL_CASE_PASSED] = "passed", [TL_CASE_FAILED] = "failed", [TL_CASE_SKIPPED] = "skipped"
};

typedef struct {
    int of[TL_VERDICT_COUNT];
    int close; /* of those that passed */
} counts;

static void count_case(counts *c, const tl_case_result *r)
{
    c->of[r->verdict]++;
    c->close += r->verdict == TL_CASE_PASSED && r->max_ulp <= TL_CLOSE_ULP;
}

static bool is_listed(const tl_case_report *report, const tl_case *c)
{
    return report->expected != NULL && tl_map_has(report->expected, c->name);
}

/* ---- tables ---- */

static const struct {
    const char *name, *operators;
} groups[] = {
#define GROUP(name, operators) { name, operators },
#include "driver/conformance/case_groups.def"
#undef GROUP
};

const char *tl_case_group(const char *op)
{
    size_t size = strlen(op);
    if (strchr(op, '.') != NULL)
        return "other domains";
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (const char *at = groups[i].operators; *at != '\0'; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            if (length == size && memcmp(at, op, size) == 0)
                return groups[i].name;
            at += length;
        }
    return "others";
}

/* The words that a case counts for in a table, a blank between; false: there are none. */
typedef void words_of(const tl_case_result *r, tl_text *out);

static void operators_of(const tl_case_result *r, tl_text *out)
{
    tl_text_add(out, r->operators[0] != '\0' ? r->operators : "(unknown)");
}

static void groups_of(const tl_case_result *r, tl_text *out)
{
    char words[sizeof r->operators], *state;
    memcpy(words, r->operators, sizeof words);
    for (char *op = strtok_r(words, " ", &state); op != NULL; op = strtok_r(NULL, " ", &state)) {
        char name[32];
        snprintf(name, sizeof name, "%s", tl_case_group(op));
        for (char *blank = name; (blank = strchr(blank, ' ')) != NULL;)
            *blank = '_';
        tl_text_format(out, "%s ", name);
    }
}

static void opset_of(const tl_case_result *r, tl_text *out)
{
    tl_text_format(out, r->opset > 0 ? "opset_%02d" : "(unknown)", r->opset);
}

static void dtypes_of(const tl_case_result *r, tl_text *out)
{
    for (int d = 0; d < TL_DTYPE_COUNT; d++)
        if ((r->dtypes >> d & 1) != 0)
            tl_text_format(out, "%s ", tl_dtype_infos[d].text);
    if (r->dtypes == 0)
        tl_text_add(out, "(unknown)");
}

static const struct {
    const char *record, *heading;
    words_of *words;
} tables[] = {
    { "operator", "operator", operators_of },
    { "group", "operators of", groups_of },
    { "opset", "opset", opset_of },
    { "dtype", "dtype", dtypes_of },
};
enum { TABLE_COUNT = sizeof tables / sizeof *tables };

static int by_key(const void *a, const void *b)
{
    return strcmp(((const tl_map_entry *)a)->key, ((const tl_map_entry *)b)->key);
}

/* A case counts once for each of its words. */
static void count_words(tl_arena *arena, tl_map *map, const tl_case_result *r, words_of *words)
{
    tl_text list = { 0 };
    char *state;
    tl_map *seen = tl_map_create(arena);
    words(r, &list);
    for (char *word = list.data != NULL ? strtok_r(list.data, " ", &state) : NULL; word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        const char *key = tl_arena_strdup(arena, word);
        if (tl_map_has(seen, key))
            continue;
        tl_map_put(seen, key, seen);
        counts *c = tl_map_find(map, key);
        if (c == NULL) {
            c = TL_NEW(arena, counts);
            tl_map_put(map, key, c);
        }
        count_case(c, r);
    }
    tl_text_free(&list);
}

static void print_table(tl_arena *arena, int table, const tl_case_list *list,
                        const tl_case_result *results, bool json)
{
    tl_map *map = tl_map_create(arena);
    for (int i = 0; i < list->count; i++)
        count_words(arena, map, &results[i], tables[table].words);
    size_t count = tl_map_count(map);
    tl_map_entry *entries = TL_NEW_ARRAY(arena, tl_map_entry, count);
    for (size_t i = 0; i < count; i++)
        entries[i] = tl_map_at(map, i);
    qsort(entries, count, sizeof *entries, by_key);
    if (!json)
        printf("%s%-32s %7s %7s %7s %12s\n", table > 0 ? "\n" : "", tables[table].heading, "passed",
               "failed", "skipped", "in 100 ULP");
    for (size_t i = 0; i < count; i++) {
        const counts *c = entries[i].value;
        const int *of = c->of;
        if (json) {
            printf("{\"record\":\"%s\",\"name\":", tables[table].record);
            tl_print_json_text(entries[i].key);
            printf(",\"passed\":%d,\"failed\":%d,\"skipped\":%d,\"close\":%d}\n",
                   of[TL_CASE_PASSED], of[TL_CASE_FAILED], of[TL_CASE_SKIPPED], c->close);
        } else {
            printf("%-32s %7d %7d %7d %12d\n", entries[i].key, of[TL_CASE_PASSED],
                   of[TL_CASE_FAILED], of[TL_CASE_SKIPPED], c->close);
        }
    }
}

/* ---- cases ---- */

/* Lines that follow the first of a reason stand below it. */
static void print_reason(const tl_case *c, const tl_case_result *r)
{
    tl_print_styled(stdout, r->verdict == TL_CASE_FAILED ? TL_STYLE_RED : TL_STYLE_BOLD, "%s",
                    tl_case_verdicts[r->verdict]);
    printf(" %s: %s\n", c->name, r->reason);
}

/* How the list compares; gives how many that are on it did not pass. */
static int print_expected(const tl_case_list *list, const tl_case_result *results,
                          const tl_case_report *report, tl_arena *arena)
{
    int worse = 0, newly = 0, listed = 0;
    tl_map *found = tl_map_create(arena);
    if (report->expected == NULL)
        return 0;
    for (int i = 0; i < list->count; i++) {
        const tl_case *c = &list->cases[i];
        bool passed = results[i].verdict == TL_CASE_PASSED;
        tl_map_put(found, c->name, found);
        if (is_listed(report, c) && !passed && !report->json)
            printf("no longer passes: %s (%s)\n", c->name, tl_case_verdicts[results[i].verdict]);
        if (!is_listed(report, c) && passed && !report->json)
            printf("passes newly: %s\n", c->name);
        worse += is_listed(report, c) && !passed;
        newly += !is_listed(report, c) && passed;
    }
    for (size_t i = 0; i < tl_map_count(report->expected); i++) {
        const char *name = tl_map_at(report->expected, i).key;
        if (!tl_case_matches(name, report->filter))
            continue;
        listed++;
        if (tl_map_has(found, name))
            continue;
        worse++;
        if (!report->json)
            printf("no longer there: %s\n", name);
    }
    if (report->json)
        printf("{\"record\":\"expected\",\"listed\":%d,\"worse\":%d,\"newly\":%d}\n", listed, worse,
               newly);
    else
        printf("of %d that are listed as passing, %d pass; %d pass newly\n", listed, listed - worse,
               newly);
    return worse;
}

/* ---- JSON ---- */

static void print_number(const char *name, double value)
{
    if (isfinite(value))
        printf(",\"%s\":%.9g", name, value);
    else
        printf(",\"%s\":null", name);
}

static void print_text(const char *name, const char *value)
{
    printf(",\"%s\":", name);
    tl_print_json_text(value);
}

static void print_json(const tl_case *c, const tl_case_result *r, const tl_case_report *report)
{
    char words[sizeof r->operators], *state;
    memcpy(words, r->operators, sizeof words);
    printf("{\"record\":\"case\"");
    print_text("name", c->name);
    print_text("result", tl_case_verdicts[r->verdict]);
    printf(",\"operators\":[");
    for (char *op = strtok_r(words, " ", &state), *next; op != NULL; op = next) {
        next = strtok_r(NULL, " ", &state);
        tl_print_json_text(op);
        if (next != NULL)
            putchar(',');
    }
    printf("],\"seconds\":%.3f", r->seconds);
    if (report->expected != NULL)
        printf(",\"listed\":%s", is_listed(report, c) ? "true" : "false");
    if (r->verdict == TL_CASE_PASSED)
        print_number("max_ulp", r->max_ulp);
    else
        print_text("reason", r->reason);
    if (r->output >= 0) {
        printf(",\"data_set\":%d,\"output\":%d,\"wrong\":%lld,\"elements\":%lld", r->data_set,
               r->output, (long long)r->wrong, (long long)r->elements);
        print_text("index", r->index);
        print_text("got", r->got);
        print_text("expected", r->expected);
    }
    printf("}\n");
}

bool tl_report_cases(tl_arena *arena, const tl_case_list *list, const tl_case_result *results,
                     const tl_case_report *report)
{
    counts sum = { 0 };
    for (int i = 0; i < list->count; i++)
        count_case(&sum, &results[i]);
    for (int t = 0; t < TABLE_COUNT; t++)
        print_table(arena, t, list, results, report->json);
    if (!report->json)
        printf("\n");
    for (int i = 0; i < list->count; i++) {
        const tl_case *c = &list->cases[i];
        const tl_case_result *r = &results[i];
        if (report->json)
            print_json(c, r, report);
        else if (r->verdict == TL_CASE_FAILED || is_listed(report, c) || tl_verbose)
            if (r->verdict != TL_CASE_PASSED)
                print_reason(c, r);
    }
    int worse = print_expected(list, results, report, arena);
    const int *of = sum.of;
    if (report->json)
        printf("{\"record\":\"summary\",\"passed\":%d,\"failed\":%d,\"skipped\":%d,\"close\":%d}\n",
               of[TL_CASE_PASSED], of[TL_CASE_FAILED], of[TL_CASE_SKIPPED], sum.close);
    else
        printf("%d of the passed are within %d ULP\n%d passed, %d failed, %d skipped\n", sum.close,
               TL_CLOSE_ULP, of[TL_CASE_PASSED], of[TL_CASE_FAILED], of[TL_CASE_SKIPPED]);
    return report->expected != NULL ? worse == 0 : of[TL_CASE_FAILED] == 0;
}

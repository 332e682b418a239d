/* driver/cost/cost_print.c: what came of training and judging, as lines for people and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/cost/cost_lesson.h"

static int sum_of(const int by_side[3])
{
    return by_side[TL_SIDE_TRAIN] + by_side[TL_SIDE_CHECK] + by_side[TL_SIDE_TEST];
}

static void print_sides(const tl_lesson *l)
{
    const int *programs = l->sizes.programs, *tasks = l->sizes.tasks;
    if (!l->has_split && l->o->output == NULL) {
        printf("sides       none: all programs are judged on\n");
        return;
    }
    if (!l->has_split) {
        printf("sides       none is held out: %d programs to learn from, %d to stop by\n",
               programs[TL_SIDE_TRAIN], programs[TL_SIDE_CHECK]);
        return;
    }
    printf("sides       by %s (%s)\n"
           "            %d programs of %d tasks to learn from, %d of %d to stop by, %d of %d to be "
           "judged on\n",
           tl_split_infos[l->split].text, tl_split_infos[l->split].words, programs[TL_SIDE_TRAIN],
           tasks[TL_SIDE_TRAIN], programs[TL_SIDE_CHECK], tasks[TL_SIDE_CHECK],
           programs[TL_SIDE_TEST], tasks[TL_SIDE_TEST]);
}

void tl_lesson_print(const tl_lesson *l)
{
    const tl_corpus *c = l->corpus;
    const int measured = sum_of(l->sizes.programs),
              unmeasured = l->sizes.unmeasured[TL_SIDE_TRAIN] + l->sizes.unmeasured[TL_SIDE_CHECK];
    if (l->o->common.json) {
        printf("{\"record\":\"data\",\"programs\":%d,\"tasks\":%d,\"workloads\":%d,\"machines\":%d,"
               "\"lost\":%" PRId64 ",\"from_cache\":%s,\"seconds\":%.3f,\"split\":\"%s\","
               "\"learn\":%d,\"check\":%d,\"judge\":%d,\"unmeasured\":%d}\n",
               measured, c->task_count, c->workload_count, c->domain_count, c->lost,
               c->was_kept ? "true" : "false", c->seconds,
               l->has_split ? tl_split_infos[l->split].text : "", l->sizes.programs[TL_SIDE_TRAIN],
               l->sizes.programs[TL_SIDE_CHECK], l->sizes.programs[TL_SIDE_TEST], unmeasured);
        return;
    }
    printf("data        %d programs of %d workloads on %d machine%s; rows %s in %.1f s\n", measured,
           c->workload_count, c->domain_count, c->domain_count == 1 ? "" : "s",
           c->was_kept ? "read from the cache" : "computed", c->seconds);
    print_sides(l);
    if (unmeasured > 0)
        printf("            %d more that nobody measured, of which the teacher tells: %d to learn "
               "from, %d to stop by\n",
               unmeasured, l->sizes.unmeasured[TL_SIDE_TRAIN], l->sizes.unmeasured[TL_SIDE_CHECK]);
    fflush(stdout);
}

void tl_written_print(const tl_lesson *l, const char *path, tl_cost_model *model)
{
    const tl_parameter *parameters;
    int64_t numbers = 0;
    int count = tl_cost_model_parameters(model, &parameters);
    for (int i = 0; i < count; i++)
        numbers += (int64_t)parameters[i].rows * parameters[i].columns;
    if (tl_is_stdout(path))
        return;
    if (l->o->common.json) {
        printf("{\"record\":\"written\",\"file\":");
        tl_print_json_text(path);
        printf(",\"type\":\"%s\",\"parameters\":%" PRId64 "}\n", model->type->name, numbers);
    } else {
        printf("written     %s (%s", path, model->type->name);
        if (numbers > 0)
            printf(", %" PRId64 " numbers", numbers);
        printf(")\n");
    }
}

/* --- a card ------------------------------------------------------------------------------------------------------- */

static void json_score(const char *key, const tl_score *s)
{
    if (s->units == 0 || isnan(s->value))
        printf(",\"%s\":null", key);
    else
        printf(",\"%s\":{\"value\":%.5f,\"low\":%.5f,\"high\":%.5f,\"units\":%d}", key, s->value,
               s->low, s->high, s->units);
}

static void print_card_json(const char *name, uint64_t seed, const tl_report_card *card)
{
    const tl_judgement *j = &card->judgement;
    const tl_calibration *c = &card->calibration;
    for (int m = 0; m < TL_METRIC_COUNT; m++) {
        printf("{\"record\":\"metric\",\"model\":");
        tl_print_json_text(name);
        printf(",\"seed\":%" PRIu64 ",\"metric\":\"%s\"", seed, tl_metric_infos[m].text);
        json_score("tasks", &j->model.of[m]);
        json_score("ceiling", &j->ceiling.of[m]);
        json_score("networks", &j->networks.of[m]);
        json_score("networks_ceiling", &j->networks_ceiling.of[m]);
        json_score("twice", &j->twice.of[m]);
        json_score("twice_ceiling", &j->twice_ceiling.of[m]);
        if (m <= TL_METRIC_PAIRS_NEAR)
            printf(",\"pairs\":%" PRId64, j->pairs[m]);
        printf("}\n");
    }
    printf("{\"record\":\"calibration\",\"model\":");
    tl_print_json_text(name);
    printf(",\"seed\":%" PRIu64
           ",\"programs\":%d,\"learned\":%s,\"within_1\":%.4f,\"within_2\":%.4f,"
           "\"spread\":%.4f,\"programs_a_second\":%.0f,\"bins\":[",
           seed, card->programs, card->has_learned ? "true" : "false", c->within_1, c->within_2,
           c->spread, card->programs_a_second);
    for (int b = 0; b < TL_CALIBRATION_BINS; b++)
        printf("%s[%.5f,%.5f]", b > 0 ? "," : "", c->bins[b].expected, c->bins[b].made);
    printf("]}\n");
}

/* Networks of which something was judged. */
static void print_networks_json(const tl_lesson *l, const char *name, uint64_t seed,
                                const tl_report_card *card)
{
    for (int n = 0; n < card->network_count; n++) {
        if (isnan(card->network_values[TL_METRIC_TOP_1 * card->network_count + n]))
            continue;
        printf("{\"record\":\"network\",\"model\":");
        tl_print_json_text(name);
        printf(",\"seed\":%" PRIu64 ",\"network\":", seed);
        tl_print_json_text(l->networks[n].name);
        for (int m = 0; m < TL_METRIC_COUNT; m++) {
            const double value = card->network_values[m * card->network_count + n];
            if (!isnan(value))
                printf(",\"%s\":%.5f", tl_metric_infos[m].text, value);
        }
        printf("}\n");
    }
}

/* What tasks of a family come to, the worst family first. */
typedef struct {
    const char *family;
    int tasks;
    double sums[TL_METRIC_COUNT];
    int counts[TL_METRIC_COUNT];
} family_row;

static double mean_of(const family_row *row, int metric)
{
    return row->counts[metric] > 0 ? row->sums[metric] / row->counts[metric] : NAN;
}

static int by_pairs(const void *x, const void *y)
{
    const family_row *a = x, *b = y;
    double p = mean_of(a, TL_METRIC_PAIRS), q = mean_of(b, TL_METRIC_PAIRS);
    if (isnan(p) || isnan(q))
        return isnan(p) - isnan(q);
    return p != q ? (p < q ? -1 : 1) : strcmp(a->family, b->family);
}

static family_row *find_families(const tl_lesson *l, const tl_report_card *card, int *count)
{
    const tl_corpus *c = card->corpus;
    tl_map *known = tl_map_create(l->arena);
    family_row *rows = TL_NEW_ARRAY(l->arena, family_row, c->task_count + 1);
    *count = 0;
    for (int t = 0; t < c->task_count; t++) {
        const char *family = c->tasks[t].series->task->family;
        if (isnan(card->task_values[TL_METRIC_TOP_1 * c->task_count + t]))
            continue;
        family_row *row = tl_map_find(known, family);
        if (row == NULL) {
            row = &rows[(*count)++];
            row->family = family;
            tl_map_put(known, family, row);
        }
        row->tasks++;
        for (int m = 0; m < TL_METRIC_COUNT; m++) {
            double value = card->task_values[m * c->task_count + t];
            row->sums[m] += isnan(value) ? 0 : value;
            row->counts[m] += !isnan(value);
        }
    }
    qsort(rows, (size_t)*count, sizeof *rows, by_pairs);
    return rows;
}

static void print_families(const tl_lesson *l, const char *name, const tl_report_card *card)
{
    int count;
    const family_row *rows = find_families(l, card, &count);
    if (!l->o->common.json)
        printf("%-44s %5s  pairs   near    top-1   top-5\n", "family", "tasks");
    for (int i = 0; i < count; i++) {
        const family_row *r = &rows[i];
        if (!l->o->common.json) {
            printf("%-44.44s %5d  %.3f   %.3f   %.3f   %.3f\n", r->family, r->tasks,
                   mean_of(r, TL_METRIC_PAIRS), mean_of(r, TL_METRIC_PAIRS_NEAR),
                   mean_of(r, TL_METRIC_TOP_1), mean_of(r, TL_METRIC_TOP_5));
            continue;
        }
        printf("{\"record\":\"family\",\"model\":");
        tl_print_json_text(name);
        printf(",\"family\":");
        tl_print_json_text(r->family);
        printf(",\"tasks\":%d", r->tasks);
        for (int m = 0; m < TL_METRIC_COUNT; m++)
            if (r->counts[m] > 0)
                printf(",\"%s\":%.5f", tl_metric_infos[m].text, mean_of(r, m));
        printf("}\n");
    }
}

/* "0.921 (0.90 to 0.94)", in the width of a column. */
static void print_score(const tl_score *s, bool interval)
{
    if (s->units == 0 || isnan(s->value))
        printf("  %-*s", interval ? 22 : 7, "-");
    else if (interval)
        printf("  %.3f (%.3f to %.3f)", s->value, s->low, s->high);
    else
        printf("  %.3f  ", s->value);
}

static bool has_any(const tl_scores *scores)
{
    for (int m = 0; m < TL_METRIC_COUNT; m++)
        if (scores->of[m].units > 0)
            return true;
    return false;
}

void tl_card_print(const tl_lesson *l, const char *name, uint64_t seed, const tl_report_card *card)
{
    const tl_judgement *j = &card->judgement;
    const tl_calibration *c = &card->calibration;
    if (l->o->common.json) {
        print_card_json(name, seed, card);
        print_networks_json(l, name, seed, card);
        print_families(l, name, card);
        fflush(stdout);
        return;
    }
    bool networks = has_any(&j->networks), twice = has_any(&j->twice);
    tl_text picture = { 0 };
    printf("\n%s, seed %" PRIu64 ": %d programs%s, %.0f a second of a core\n", name, seed,
           card->programs, card->has_learned ? "" : ", of which it knows nothing",
           card->programs_a_second);
    printf("              over tasks              retest");
    printf("%s%s\n", networks ? "   over networks           retest" : "",
           twice ? "   measured twice          retest" : "");
    for (int m = 0; m < TL_METRIC_COUNT; m++) {
        printf("%-12s", tl_metric_infos[m].text);
        print_score(&j->model.of[m], true);
        print_score(&j->ceiling.of[m], false);
        if (networks) {
            print_score(&j->networks.of[m], true);
            print_score(&j->networks_ceiling.of[m], false);
        }
        if (twice) {
            print_score(&j->twice.of[m], true);
            print_score(&j->twice_ceiling.of[m], false);
        }
        printf("\n");
    }
    tl_calibration_print(c, &picture);
    printf("deviations  %.0f %% of the errors are within one that is expected, %.0f %% within two "
           "(68 and 95 are right)\n",
           100 * c->within_1, 100 * c->within_2);
    printf("%s", tl_text_get(&picture));
    tl_text_free(&picture);
    if (tl_verbose)
        print_families(l, name, card);
    fflush(stdout);
}

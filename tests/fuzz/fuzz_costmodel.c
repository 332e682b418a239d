/* tests/fuzz/fuzz_costmodel.c: the file of a cost model. The digest in its line "content" is made to fit, so that
 * what lies behind it is read, too; a model that is taken has to come back from its own file, and to predict.
 * Boosted trees are not tried: what is behind their digest is XGBoost's to read. */
#include <stdio.h>
#include <string.h>
#include "runtime/base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tuner/cost/cost_model.h"

enum { MOST_COLUMNS = 4096, ROWS = 3 };

/* The same file with the content line that belongs to it; as it is where it has none. */
static void mend(const uint8_t *bytes, size_t size, tl_text *out)
{
    static const char word[] = "\ncontent ";
    const uint8_t *line = memmem(bytes, size, word, sizeof word - 1);
    const uint8_t *end =
        line != NULL ? memchr(line + 1, '\n', size - (size_t)(line + 1 - bytes)) : NULL;
    if (end == NULL) {
        tl_text_add_bytes(out, bytes, size);
        return;
    }
    const size_t head = (size_t)(line + 1 - bytes), body = size - (size_t)(end + 1 - bytes);
    char digits[33];
    tl_digest digest;
    tl_digest_start(&digest);
    tl_digest_add(&digest, bytes, head);
    tl_digest_add(&digest, end + 1, body);
    tl_digest_text(&digest, digits);
    tl_text_add_bytes(out, bytes, head);
    tl_text_format(out, "content %zu %s\n", body, digits);
    tl_text_add_bytes(out, end + 1, body);
}

/* A program of some rows and decisions, all columns alike. */
static void predict(tl_arena *arena, tl_cost_model *model)
{
    const tl_sample_shape *shape = &model->shape;
    if (shape->row.width > MOST_COLUMNS || shape->decision.width > MOST_COLUMNS ||
        shape->workload.width > MOST_COLUMNS || shape->machine.width > MOST_COLUMNS)
        return;
    float *numbers = TL_NEW_ARRAY(arena, float, ROWS *MOST_COLUMNS);
    for (int i = 0; i < ROWS * MOST_COLUMNS; i++)
        numbers[i] = 0.5F;
    const int first = 0, count = ROWS, task = 0;
    const tl_cost_samples program = { .shape = *shape,
                                      .count = 1,
                                      .task_count = 1,
                                      .domain_count = 1,
                                      .first_row = &first,
                                      .row_count = &count,
                                      .rows = numbers,
                                      .first_decision = &first,
                                      .decision_count = &count,
                                      .decisions = numbers,
                                      .task = &task,
                                      .workloads = numbers,
                                      .machines = numbers };
    float mean, variance;
    tl_cost_model_predict(model, &program, &mean, &variance);
    if (!(mean > -1e30F && mean < 1e30F && variance >= 0))
        fuzz_fail("a prediction is no number", NULL);
}

static void check_again(const tl_cost_model *model, tl_diag *diag)
{
    tl_text file = { 0 };
    tl_cost_model *again;
    if (tl_cost_model_pack(model, &file, diag) != TL_OK ||
        tl_cost_model_unpack("again", file.data, file.size, &again, diag) != TL_OK)
        fuzz_fail("a model that was taken does not come back from its own file", diag);
    tl_cost_model_destroy(again);
    tl_text_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_cost_model *model = NULL;
    tl_text file = { 0 };
    mend(bytes, size, &file);
    if (TL_ARENA_GUARD(arena) == 0 && file.size > 0 &&
        memmem(file.data, file.size, "type trees", 10) == NULL) {
        const tl_status status = tl_cost_model_unpack("input", file.data, file.size, &model, &diag);
        fuzz_check_refusal(status, &diag);
        if (status == TL_OK) {
            predict(arena, model);
            check_again(model, &diag);
            tl_cost_model_destroy(model);
        }
    }
    tl_text_free(&file);
    tl_arena_destroy(arena);
    return 0;
}

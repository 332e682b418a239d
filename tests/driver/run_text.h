/* tests/driver/run_text.h: a model of one line of text (onnx_text.h), compiled and run on numbers. */
#ifndef TL_TESTS_DRIVER_RUN_TEXT_H
#define TL_TESTS_DRIVER_RUN_TEXT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/pipeline/model.h"
#include "runtime/executable/bindings.h"
#include "runtime/executable/regions.h"
#include "tests/runtime/kernels.h"
#include "tests/frontend/onnx_text.h"

static tl_pool *pool;
static char *folder;

static inline int set_up(void **state)
{
    (void)state;
    folder = temp_folder_make();
    return tl_pool_create(&(tl_pool_options){ .threads = 2 }, &pool, NULL) == TL_OK ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    tl_pool_destroy(pool);
    temp_folder_remove(folder);
    return 0;
}

static inline tl_status try_load(const char *text, tl_model **out, tl_diag *diag)
{
    const tl_model_options options = {
        .no_database = true, .cache_folder = folder, .threads = 2, .pool = pool
    };
    tl_text file = text_model(text);
    *diag = (tl_diag){ 0 };
    tl_status status = tl_model_load_memory(file.data, file.size, NULL, &options, out, diag);
    tl_text_free(&file);
    return status;
}

/* A model and a runner of it. */
typedef struct {
    tl_model *model;
    tl_runner *runner;
    const tl_executable_spec *spec;
} running;

static inline running load(const char *text)
{
    running r;
    tl_diag diag;
    if (try_load(text, &r.model, &diag) != TL_OK ||
        tl_runner_create(tl_model_executable(r.model), pool, 2, &r.runner, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    r.spec = tl_executable_info(tl_model_executable(r.model));
    return r;
}

static inline void unload(running *r)
{
    tl_runner_destroy(r->runner);
    tl_model_destroy(r->model);
}

static inline int count_steps(const running *r, int kernel)
{
    int count = 0;
    for (int i = 0; i < r->spec->step_count; i++)
        count += r->spec->steps[i].kernel == kernel;
    return count;
}

/* Runs; numbers are given as doubles, `counts` of each input. Outputs are the caller's to free. */
static inline tl_status run(running *r, const double *const *inputs, tl_tensor *outputs,
                            tl_diag *diag)
{
    tl_tensor in[4];
    *diag = (tl_diag){ 0 };
    for (int i = 0; i < r->spec->input_count; i++) {
        const tl_port *port = &r->spec->inputs[i];
        assert_int_equal(tl_tensor_create(port->dtype, port->rank, port->shape, &in[i], NULL),
                         TL_OK);
        for (int64_t k = 0; k < tl_tensor_elements(&in[i]); k++)
            tl_number_store(port->dtype, in[i].data, (size_t)k,
                            tl_number_cast(port->dtype, TL_F64, (tl_number){ .f = inputs[i][k] }));
    }
    memset(outputs, 0, sizeof *outputs * (size_t)r->spec->output_count);
    tl_status status = tl_runner_run_tensors(r->runner, in, outputs, NULL, diag);
    for (int i = 0; i < r->spec->input_count; i++)
        tl_tensor_free(&in[i]);
    return status;
}

static inline void expect(running *r, const double *const *inputs, int output, int64_t count,
                          const double *numbers)
{
    tl_tensor outputs[4];
    tl_diag diag;
    if (run(r, inputs, outputs, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(tl_tensor_elements(&outputs[output]), count);
    for (int64_t i = 0; i < count; i++)
        if (fabs(tl_tensor_get(&outputs[output], i) - numbers[i]) > 1e-5 * fabs(numbers[i]))
            fail_msg("element %d is %g, not %g", (int)i, tl_tensor_get(&outputs[output], i),
                     numbers[i]);
    for (int i = 0; i < r->spec->output_count; i++)
        tl_tensor_free(&outputs[i]);
}

#define LIST(...)  ((const double[]){ __VA_ARGS__ })
#define GIVEN(...) ((const double *const[]){ __VA_ARGS__ })

static inline void refused(const char *text, tl_status status, const char *says)
{
    tl_model *model;
    tl_diag diag;
    assert_int_equal(try_load(text, &model, &diag), status);
    if (strstr(diag.text, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, says);
}

#endif

/* driver/conformance/conformance.h: a tree of ONNX test cases, each in a process of its own.
 *
 *     FOLDER/SUITE/CASE/model.onnx
 *                       test_data_set_N/input_K.pb, output_K.pb
 *
 *     tl_find_cases --> cases --tl_run_cases--> (a child a case: tl_run_case) --> results --> report, list of those that pass
 *
 * A case that crashes, hangs or takes too much memory has failed; the others go on. */
#ifndef TL_DRIVER_CONFORMANCE_CONFORMANCE_H
#define TL_DRIVER_CONFORMANCE_CONFORMANCE_H
#include <signal.h>
#include "driver/cli/session.h"
#include "runtime/base/map.h"

typedef enum { TL_CASE_PASSED, TL_CASE_FAILED, TL_CASE_SKIPPED, TL_VERDICT_COUNT } tl_case_verdict;
extern const char *const tl_case_verdicts[TL_VERDICT_COUNT]; /* "passed" */

typedef struct {
    const char *name;   /* path below the tree: "node/test_acos" */
    const char *folder; /* its own, as it can be opened */
    double rtol, atol;  /* an element is right when |a-e| <= atol + rtol*|e| */
} tl_case;
typedef struct {
    int count;
    tl_case *cases; /* by name */
} tl_case_list;

/* What became of a case. Goes through a pipe in one piece: no pointers, and at most PIPE_BUF bytes. */
typedef struct {
    tl_case_verdict verdict;
    bool is_final;       /* false: the case was still running */
    char operators[768]; /* of its graph, a space between */
    int opset;           /* of ONNX's own domain; 0: not known */
    uint32_t dtypes;     /* of its inputs and outputs, a bit each */
    char reason[2048];   /* why it failed or was refused */
    /* The first element that is wrong, when one is: `output` -1: none is. */
    int data_set, output;
    char index[128], got[48], expected[48]; /* "[0, 3]" */
    int64_t wrong, elements;                /* of that output */
    double max_ulp; /* over all outputs (driver/conformance/compare_output.h) */
    double seconds;
} tl_case_result;
enum { TL_CLOSE_ULP = 100 }; /* a passed case is close when no element is further off */

/* The cases below a folder whose name has `filter` in it or, with * ? or [, matches it in whole or behind the last slash; NULL:
 * all. Tolerances of the suite, or of FOLDER/MANIFEST.csv (columns suite, case, rtol, atol). TL_BAD_ARGUMENT: there are none. */
tl_status tl_find_cases(tl_arena *arena, const char *folder, const char *filter, tl_case_list *out,
                        tl_diag *diag);
bool tl_case_matches(const char *name, const char *filter);

/* Runs one case here. The threads of `options` are also those that compile. */
typedef void tl_case_fn(const tl_case *c, const tl_session_options *options, tl_case_result *result,
                        void (*note)(const tl_case_result *));
/* `note` is called when the operators are known, in case it ends badly. */
void tl_run_case(const tl_case *c, const tl_session_options *options, tl_case_result *result,
                 void (*note)(const tl_case_result *));

typedef struct {
    int jobs;       /* at once */
    double limit_s; /* for one case; 0: none */
    /* address space of one case beyond what the process starts with; 0: any */
    int64_t memory_bytes;
    tl_case_fn *run; /* in the child: tl_run_case */
    const tl_session_options *session;
    void (*progress)(int done, int total, int failed); /* NULL: none */
} tl_case_runner;
/* Runs every case in a child of this process, which must have no other threads; `results` has one for each. TL_DEVICE: no
 * child can be started. */
tl_status tl_run_cases(const tl_case_list *list, const tl_case_runner *runner,
                       tl_case_result *results, tl_diag *diag);

/* A list of cases that pass: a name a line; empty lines and lines that begin with # do not count. */
tl_status tl_expected_read(tl_arena *arena, const char *path, tl_map **out, tl_diag *diag);
tl_status tl_expected_write(const char *path, const tl_case_list *list,
                            const tl_case_result *results, tl_diag *diag);

typedef struct {
    const char *filter;     /* that the cases were chosen by; NULL: none */
    const tl_map *expected; /* NULL: no list */
    bool json;
} tl_case_report;
/* The group of an operator (driver/conformance/case_groups.def). */
const char *tl_case_group(const char *op);
/* Tables by operator, by its group, by opset and by dtype (a case counts for each of its own), what
 * failed, how the list compares, and the sums; or JSON. Gives whether all is as it should be: nothing
 * failed, or with a list, all that is on it passed. */
bool tl_report_cases(tl_arena *arena, const tl_case_list *list, const tl_case_result *results,
                     const tl_case_report *report);

#endif

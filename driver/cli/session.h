/* driver/cli/session.h: what the verbs that take a model have in common: their options, a pool, the loaded model. */
#ifndef TL_DRIVER_CLI_SESSION_H
#define TL_DRIVER_CLI_SESSION_H
#include "driver/cli/cli.h"
#include "driver/pipeline/jit_symbols.h"
#include "driver/pipeline/family.h"
#include "driver/pipeline/model.h"
#include "driver/pipeline/host_machine.h"
#include "driver/pipeline/host_target.h"
#include "runtime/executable/bindings.h"

typedef struct {
    int64_t threads, most_turns;
    const char *target, *cache, *numerics, *database, *machine, *max_memory;
    bool no_cache, no_database, json;
    tl_text_list shapes;
    /* Inputs that the verb will run with (--input, --data), whose shapes open axes take; NULL: none. */
    const tl_text_list *given;
    const char *data;
} tl_session_options;

/* Rows for a verb's option table. */
#define TL_SESSION_OPTIONS(o)                                                                           \
    { "--threads", NULL, TL_OPTION_INT, "N", "threads to run on (default: one a usable core)",          \
      &(o).threads },                                                                                   \
        { "--target",                                                                                   \
          NULL,                                                                                         \
          TL_OPTION_TEXT,                                                                               \
          tl_target_words,                                                                              \
          "what to compile for (cpu: this machine)",                                                    \
          &(o).target },                                                                                \
        { "--machine",                                                                                  \
          NULL,                                                                                         \
          TL_OPTION_TEXT,                                                                               \
          "FILE|probed|built-in",                                                                       \
          "what default schedules assume of the machine: a profile (tilth info --probe)",               \
          &(o).machine },                                                                               \
        { "--numerics",                                                                                 \
          NULL,                                                                                         \
          TL_OPTION_TEXT,                                                                               \
          "relaxed|strict|tf32",                                                                        \
          "strict: sums in their order (relaxed)",                                                      \
          &(o).numerics },                                                                              \
        { "--shape",  NULL, TL_OPTION_LIST, "IN=D,D,..", "gives an input a shape; may be repeated",     \
          &(o).shapes },                                                                                \
        { "--max-turns",                                                                                \
          NULL,                                                                                         \
          TL_OPTION_INT,                                                                                \
          "N",                                                                                          \
          "of a loop that data end (default: 2^20; 1024 where each turn's results are kept)",           \
          &(o).most_turns },                                                                            \
        { "--cache",                                                                                    \
          NULL,                                                                                         \
          TL_OPTION_TEXT,                                                                               \
          "DIR",                                                                                        \
          "compiled objects (default: $XDG_CACHE_HOME/tilth)",                                          \
          &(o).cache },                                                                                 \
        { "--no-cache", NULL, TL_OPTION_FLAG, NULL, "neither read nor write the cache",                 \
          &(o).no_cache },                                                                              \
        { "--db",                                                                                       \
          NULL,                                                                                         \
          TL_OPTION_TEXT,                                                                               \
          "FILE",                                                                                       \
          "schedules from these records of the tuner (default: $XDG_DATA_HOME/tilth/records.db)",       \
          &(o).database },                                                                              \
        { "--no-db", NULL, TL_OPTION_FLAG, NULL, "untuned: default schedules only", &(o).no_database }, \
        { "--max-memory",                                                                               \
          NULL,                                                                                         \
          TL_OPTION_TEXT,                                                                               \
          "SIZE",                                                                                       \
          "refuse what takes more (default: 80 % of what is free)",                                     \
          &(o).max_memory },                                                                            \
    {                                                                                                   \
        "--json", NULL, TL_OPTION_FLAG, NULL, "one JSON object a line", &(o).json                       \
    }

typedef struct {
    tl_arena *arena;
    tl_pool *pool;
    tl_model *model;
    tl_family *family; /* of calls that follow one another (tl_session_open_calls); NULL: one */
    tl_join *join;     /* that the model is made of (tl_session_open_ranges); NULL: one graph */
    tl_onnx *onnx;     /* of the join */
    int threads;
    const tl_machine *machine; /* that --machine named; NULL: the built-in profile */
    tl_jit_symbols *symbols;   /* of the model's kernels, for gdb and perf */
} tl_session;

/* Whether the options go together. */
tl_status tl_session_check(const tl_session_options *options, tl_diag *diag);
/* The same, and makes the pool; what opening begins with, and all that a verb without a model needs. Close it also on failure. */
tl_status tl_session_start(tl_session *session, const tl_session_options *options, tl_diag *diag);
/* The profile that --machine names (NULL: it was not given), in `arena`; mentions one of another machine. */
tl_status tl_session_machine(tl_arena *arena, const char *word, const tl_machine **out,
                             tl_diag *diag);
/* What the options say of how a model is loaded, into `model`, whose other fields stay; shapes live in the session's
 * arena. The session is started. */
tl_status tl_session_model_options(const tl_session *session, const tl_session_options *options,
                                   tl_model_options *model, tl_diag *diag);
/* Makes the pool, loads the model. `extra` may preset fields of the model's options; NULL: none. */
tl_status tl_session_open(tl_session *session, const char *path, const tl_session_options *options,
                          const tl_model_options *extra, tl_diag *diag);
/* The same where --shape gives ranges: one code for all extents in them (driver/cli/session_ranges.c). */
bool tl_session_has_ranges(const tl_session_options *options);
tl_status tl_session_open_ranges(tl_session *session, const char *path,
                                 const tl_session_options *options, const tl_model_options *extra,
                                 tl_diag *diag);
void tl_session_close(tl_session *session);

/* Inputs for a model: from FILE.npy, FILE.pb or random:SEED by name (--input NAME=...), from a folder (--data), the rest
 * at random. `inputs` has a tensor an input of the executable; free each with tl_tensor_free. */
tl_status tl_session_inputs(const tl_executable_spec *spec, const tl_text_list *given,
                            const char *folder, int64_t seed, tl_tensor *inputs, tl_diag *diag);
/* Those, and outputs; `dims` are the executable's (NULL: it has none). Free it also after a failure. */
tl_status tl_session_bindings(const tl_session *session, const tl_executable *executable,
                              const int64_t *dims, const tl_text_list *given, const char *folder,
                              int64_t seed, tl_bindings *out, tl_diag *diag);

/* ---- a model that is called several times, with the data of a folder each (driver/cli/session_calls.c) ---- */

enum { TL_MOST_CALLS = 1024 };
typedef struct {
    int count;
    const char *folders[TL_MOST_CALLS];
} tl_data_folders;
/* The folders of --data; one that holds folders test_data_set_0, test_data_set_1, ... stands for these. */
tl_status tl_data_folders_find(tl_arena *arena, const tl_text_list *given, tl_data_folders *out,
                               tl_diag *diag);

/* One call: the code for its shapes, which is the session's or, where there are several calls, a part of its family's. */
typedef struct {
    const tl_model *model;
    tl_executable *executable;
    const int64_t *dims; /* of the executable, for this call; NULL: it has none */
    tl_family_code code;
} tl_session_call;
/* As tl_session_open, for several calls; nothing is compiled yet. */
tl_status tl_session_open_calls(tl_session *session, const char *path,
                                const tl_session_options *options, const tl_model_options *extra,
                                tl_diag *diag);
/* The code for the call that `given` and `data` of the options are, and their shapes; compiles it where there is none. */
tl_status tl_session_begin_call(const tl_session *session, const tl_session_options *options,
                                tl_session_call *out, tl_diag *diag);
void tl_session_end_call(tl_session_call *call); /* zero-initialised is fine */
/* tl_session_bindings, and a runner, of the call. */
tl_status tl_session_call_bindings(const tl_session *session, const tl_session_call *call,
                                   const tl_session_options *options, int64_t seed,
                                   tl_bindings *out, tl_diag *diag);
tl_status tl_session_call_runner(const tl_session *session, const tl_session_call *call,
                                 tl_runner **out, tl_diag *diag);
/* "batch = 2, tokens = 17" of code with dims, as JSON the members of an object; else nothing. */
void tl_session_describe_call(const tl_session_call *call, bool json, tl_text *out);

/* ---- files ---- */

/* From FILE.npy, or FILE.pb (one TensorProto); the caller's. */
tl_status tl_read_tensor(const char *path, tl_tensor *out, tl_diag *diag);
/* The file that FOLDER/names.txt gives for "PREFIX NAME", else FOLDER/PREFIX_NAME.npy, else FOLDER/PREFIX_INDEX.pb, as beside
 * ONNX models; false: there is none. */
bool tl_data_file(const char *folder, const char *prefix, const char *name, int index,
                  tl_text *path);
/* Static shapes for the inputs of a model whose axes are open: of `options->shapes`, of the given inputs' files, and of what
 * those say of axes with the same name; and the values in these files, for a shape may depend on them.
 * In the session's arena, into `model`. */
tl_status tl_session_bind_shapes(const tl_session *session, const char *path,
                                 const tl_session_options *options, tl_model_options *model,
                                 tl_diag *diag);
/* The same once the model's inputs are known. */
tl_status tl_session_bind_signature(const tl_session *session, const tl_onnx_signature *signature,
                                    const tl_session_options *options, tl_model_options *model,
                                    tl_diag *diag);

/* driver/cli/json.c. {"record":"env",...}: the first line of every --json output. */
void tl_print_env_json(void);
void tl_print_json_text(const char *text); /* quoted and escaped */
/* The same into a text; bytes that are no UTF-8 as \u00XX, so is what no terminal shows. */
void tl_json_add_text(tl_text *out, const char *text);

#endif

/* tests/driver/test_transfer_cli.c: tilth transfer: its options, kernels and models that take schedules of others, what is used
 * afterwards, and what there is to say when there is nobody to take from. */
#include "tests/driver/cli_run.h"
#include "runtime/base/file.h"

static void write_gemm(const char *name, int rows)
{
    char path[PATH_MAX];
    tl_text text = { 0 };
    snprintf(path, sizeof path, "%s/%s", cli_folder, name);
    tl_text_format(&text,
                   "kernel gemm%d(A: f32[%d, 64], const B: f32[64, 80], out C: f32[%d, 80])\n"
                   "  gemm: C[i, j] = sum(A[i, k]*B[k, j])\n",
                   rows, rows, rows);
    assert_int_equal(tl_file_write(path, tl_text_get(&text), text.size, NULL), TL_OK);
    tl_text_free(&text);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    write_gemm("g.tk", 48);
    expect(0, "exit status:", "transfer --help");
    expect(2, "an argument is missing", "transfer");
    expect(2, "-1 is not in 0..64", "transfer $D/g.tk -k -1");
    expect(2, "'best' is none: shape, ", "transfer $D/g.tk --rank best");
    expect(2, "neither pool, auto, starter nor a model", "transfer $D/g.tk --from $D/absent.onnx");
    expect(2, "'deep' is neither full nor plain", "transfer $D/g.tk --space deep --no-db");
    expect(2, "name a database for them", "transfer $D/g.tk --space plain");
    expect(2, "the donors need a file", "transfer $D/g.tk --no-db");
    expect(2, "absent.jsonl", "transfer $D/g.tk --donors $D/absent.jsonl");
    expect_shell(2, "holds no sound record",
                 "echo '{\"record\":\"trial\",\"uid\":\"00\"}' >$D/bad.jsonl; "
                 "$TILTH transfer $D/g.tk --donors $D/bad.jsonl");
    expect(2, "a kernel goes by itself", "transfer $D/g.tk $D/g.tk");
}

/* Nobody to take from is no failure: the default schedule stays. */
static void without_donors_the_default_stays(void **state)
{
    (void)state;
    write_gemm("g.tk", 48);
    expect(0, "0 of 1 kernels have one of their class",
           "transfer $D/g.tk --db $D/empty.db --threads 1");
    expect(0, "no donor: its default schedule",
           "transfer $D/g.tk --db $D/empty.db --threads 1 -k 0");
}

static void kernels_take_from_kernels(void **state)
{
    (void)state;
    /* In the plain space, where no default schedule is the best. */
    write_gemm("g.tk", 48);
    write_gemm("h.tk", 40);
    expect(0, "trials    8 in",
           "tune $D/g.tk --space plain --policy random --trials 8 --threads 1 --db $D/t.db "
           "--transfer 0");
    expect(0, "1 of 1 kernels have one of their class, 100.0 % of the expected time",
           "transfer $D/h.tk --space plain --threads 1 --db $D/t.db");
    expect(0, "nothing was timed",
           "transfer $D/h.tk --space plain --threads 1 --db $D/t.db -k 0 --others-only");
    /* whatever won: of all but its default schedule */
    expect_shell(
        0, "\"donor\":\"gemm48\"",
        "$TILTH db export --db $D/t.db -o $D/all.jsonl -q; "
        "sed '0,/\"record\":\"trial\"/{/\"record\":\"trial\"/d}' $D/all.jsonl >$D/t.jsonl; "
        "$TILTH transfer $D/h.tk --threads 1 --no-db --donors $D/t.jsonl -k 0 --others-only "
        "--rank shape --json");
    expect(0, "\"route\":\"trace\"",
           "transfer $D/h.tk --threads 1 --no-db --donors $D/t.jsonl -k 0 --others-only "
           "--trace-only --json");
    /* a search of its own begins with them */
    expect_shell(0, "\"kernels\":1,\"covered\":1",
                 "cp $D/t.db $D/u.db; $TILTH transfer $D/h.tk --space plain --threads 1 --db "
                 "$D/u.db --from auto "
                 "--json");
}

#define SMALL "tuner/data/headroom/batch_norm_small.tk"
#define LARGE "tuner/data/headroom/batch_norm_196.tk"

/* What comes with tilth is for those who have nothing yet, and for nobody who did not ask. */
static void the_starter_database(void **state)
{
    (void)state;
    write_gemm("g.tk", 48);
    expect(0, ", of the starter database; ",
           "transfer $D/g.tk --no-db --from starter --threads 1 -k 0");
    expect(0, ", of the starter database; ",
           "transfer $D/g.tk --db $D/nothing.db --threads 1 -k 0");
    expect(0, "donors    0 schedules of 0 other workloads; ",
           "transfer $D/g.tk --db $D/nothing.db --from auto --threads 1 -k 0");
    /* a default schedule that was measured is nothing that has won: those that come with tilth still help */
    expect(0, "", "tune " SMALL " --policy random --trials 1 --threads 1 --db $D/own.db");
    expect(0, " of them of the starter database; ", "transfer " LARGE " --db $D/own.db -k 0");
    expect(0, "\"starters\":0,", "transfer " LARGE " --db $D/own.db -k 0 --from auto --json");
    expect(0, "", "tune $D/g.tk --policy random --trials 4 --threads 1 --db $D/w.db");
    expect(0, " records written to ", "db export --winners --db $D/w.db -o $D/w.jsonl");
}

/* A recorded search that began with schedules of others decides the same when it is replayed. */
static void a_search_begins_with_them(void **state)
{
    (void)state;
    write_gemm("g.tk", 48);
    write_gemm("h.tk", 36);
    expect(0, "", "tune $D/g.tk --policy random --trials 6 --threads 1 --db $D/s.db --transfer 0");
    expect_shell(
        0, ", transfer",
        "$TILTH tune $D/h.tk --policy random --trials 12 --threads 1 --db $D/s.db --record "
        "$D/s.jsonl -v --json >$D/one 2>$D/one.log; "
        "$TILTH tune $D/h.tk --policy random --trials 12 --threads 1 --replay $D/s.jsonl -v "
        "--json >$D/two 2>$D/two.log; "
        "grep -o '\"uid\":\"[0-9a-f]*\"' $D/one >$D/a; grep -c trial $D/s.jsonl; "
        "grep '\"record\":\"task\"' $D/two | grep -o '\"best_ns\":[0-9.]*' >$D/d; "
        "grep '\"record\":\"task\"' $D/one | grep -o '\"best_ns\":[0-9.]*' >$D/c; "
        "diff $D/c $D/d && echo same, transfer");
}

static void models_take_from_models(void **state)
{
    (void)state;
    expect(0, "", "model bert_tiny -o $D/m.onnx --shape input_ids=1,16 -q");
    expect(0, "", "model bert_tiny -o $D/n.onnx --shape input_ids=1,24 -q");
    expect(0, "",
           "tune $D/m.onnx --policy random --trials 60 --threads 1 --check 0.5 --db $D/m.db");
    expect(0, "\"record\":\"verdict\"",
           "transfer $D/n.onnx --from $D/m.onnx -k 1 --threads 1 --check 0.5 --db $D/m.db --json");
    /* untimed: what was checked is kept, and the model runs with it */
    expect_shell(0, "its outputs are right with them; nothing was timed\nkept      ",
                 "cp $D/m.db $D/k.db; $TILTH transfer $D/n.onnx --from auto -k 0 --threads 1 --db "
                 "$D/k.db");
    expect_shell(0, "\"kept\":true",
                 "cp $D/m.db $D/k.db; $TILTH transfer $D/n.onnx --from auto -k 0 --threads 1 --db "
                 "$D/k.db --json");
    expect(0, "n.onnx", "db choices --db $D/k.db");
    expect(0, "ok", "verify $D/n.onnx --per-node --threads 1 --db $D/k.db --no-cache");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(without_donors_the_default_stays),
        cmocka_unit_test(kernels_take_from_kernels),
        cmocka_unit_test(the_starter_database),
        cmocka_unit_test(a_search_begins_with_them),
        cmocka_unit_test(models_take_from_models),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}

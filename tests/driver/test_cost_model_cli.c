/* tests/driver/test_cost_model_cli.c: tilth cost-model as a user meets it: from data to a model, judged, brought up
 * to date; interrupted; and what is refused. */
#include "tests/driver/cli_run.h"
#include "ir/program/machine.h"
#include "tests/tuner/synthetic_data.h"
#include "tuner/cost/cost_model.h"

enum { WORKLOADS = 14, POINTS = 24 };

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", cli_folder, name);
    return path;
}

/* Products number `first` on, whose labels follow the law. */
static void write_data(const char *name, int first, int count, const synthetic_law *law)
{
    int64_t bytes;
    tl_diag diag = { 0 };
    tl_arena *arena = tl_arena_create(0);
    tl_dataset *set = tl_dataset_create(arena);
    for (int i = first; i < first + count; i++) {
        synthetic_law own = *law;
        own.seed += (uint64_t)i;
        add_synthetic(arena, set, synthetic_task(arena, i), &own);
    }
    need(tl_dataset_write(set, in_folder(name), &bytes, &diag), &diag);
    tl_arena_destroy(arena);
}

/* Data of one machine, of another, what is new, and what is wrong; and a model. */
static int set_up(void **state)
{
    tl_machine machine = tl_machine_built_in;
    tl_text profile = { 0 };
    if (cli_set_up(state) != 0)
        return -1;
    strcpy(machine.cpu, "Another machine");
    machine.cores = 2;
    tl_machine_seal(&machine, NULL);
    tl_machine_print(&machine, &profile);
    write_data("a.tld", 0, WORKLOADS, &(synthetic_law){ "x86-64-v4", "", POINTS, 1, 0.02, 1 });
    write_data("b.tld", 0, 6,
               &(synthetic_law){ "x86-64-v3", tl_text_get(&profile), POINTS, 1, 0.02, 1 });
    write_data("new.tld", WORKLOADS, 8, &(synthetic_law){ "x86-64-v4", "", POINTS, 1, 0.02, 1 });
    write_data("poison.tld", WORKLOADS, 8,
               &(synthetic_law){ "x86-64-v4", "", POINTS, -1, 0.02, 1 });
    write_data("noise.tld", WORKLOADS, 8, &(synthetic_law){ "x86-64-v4", "", POINTS, 0.3, 0.5, 1 });
    write_data("again.tld", 0, WORKLOADS, &(synthetic_law){ "x86-64-v4", "", POINTS, 1, 0.03, 1 });
    tl_text_free(&profile);
    expect_shell(0, "written     ",
                 "$TILTH cost-model train $D/a.tld -m mlp,hidden=32 --epochs 30 -o $D/m.tlm -q");
    return 0;
}

static void a_model_is_trained_and_judged(void **state)
{
    (void)state;
    expect_shell(
        0, "sides       by task (other workloads)",
        "$TILTH cost-model train $D/a.tld -m mlp,hidden=32 --epochs 5 --split task -o $D/n.tlm -q");
    expect_shell(0, "pairs near", "$TILTH cost-model eval $D/a.tld -m $D/m.tlm -q");
    expect_shell(0, "gemm                                            14",
                 "$TILTH cost-model eval $D/a.tld -m $D/m.tlm -v");
    expect_shell(0, "{\"record\":\"family\",\"model\":",
                 "$TILTH cost-model eval $D/a.tld -m $D/m.tlm --json -q");
    expect_shell(0, "fits this tilth: yes, rows of tilth", "$TILTH cost-model info $D/m.tlm");
    expect_shell(0, "\"fits\":true,\"rows\":\"tilth\"", "$TILTH cost-model info $D/m.tlm --json");
    expect_shell(0, "mlp", "$TILTH cost-model info");
    /* what is not trained yet is trained on the other side; with TenSet's rows, too */
    expect_shell(0, "mlp,hidden=16@tenset, seed 2:",
                 "$TILTH cost-model eval $D/a.tld --split within-task -m mlp,hidden=16@tenset -m "
                 "analytic --epochs 3 --seeds 2 -q");
    expect_shell(0, "\"model\":\"analytic\",\"seed\":1,\"metric\":\"pairs\",\"tasks\":{\"value\":",
                 "$TILTH cost-model eval $D/a.tld --split task -m analytic --json -q");
    expect_shell(0, "sides       by machine",
                 "$TILTH cost-model eval $D/a.tld $D/b.tld --machine-out Another -m analytic -q");
    expect_shell(0, "measured twice",
                 "$TILTH cost-model eval $D/a.tld -m $D/m.tlm --again $D/again.tld --plot "
                 "$D/c.svg -q; grep -q '</svg>' $D/c.svg");
    expect_shell(
        0, "analytic, seed 1",
        "$TILTH cost-model eval $D/a.tld --split task --without machine,workload -m analytic -q");
    /* another machine orders otherwise */
    expect_shell(
        1, "differ",
        "for m in built-in $D/slow.txt; do sed '/^digest/d; s/^l1_line_cycles.*/l1_line_cycles = "
        "90/; "
        "s/^l3_line_cycles.*/l3_line_cycles = 90/' tuner/data/zen5.machine.txt >$D/slow.txt; "
        "$TILTH cost-model eval $D/a.tld --split task -m analytic --machine $m --json -q "
        ">$D/by-$(basename $m).json; done; cmp $D/by-built-in.json $D/by-slow.txt.json");
    expect(2, "none.txt",
           "cost-model eval $D/a.tld -m analytic --split task --machine $D/none.txt");
}

/* Several are as one, whose deviation has what they differ by in it. */
static void models_are_asked_together(void **state)
{
    (void)state;
    /* one twice is one */
    expect_shell(0, "within",
                 "for m in $D/m.tlm $D/m.tlm+$D/m.tlm; do $TILTH cost-model eval $D/a.tld -m $m "
                 "-q | grep -v 'a second of a core' | sed 's/ in [0-9.]* s$//' "
                 ">$D/$(echo $m | tr -dc +)x.txt; done; "
                 "cmp $D/x.txt $D/+x.txt && cat $D/x.txt");
    expect_shell(3, "the same rows; ",
                 "$TILTH cost-model train $D/a.tld -m mlp,hidden=16@tenset --epochs 1 -o $D/r.tlm "
                 "-q; $TILTH cost-model eval $D/a.tld -m $D/m.tlm+$D/r.tlm -q 2>&1; exit 3");
    expect(2, "none.tlm", "cost-model eval $D/a.tld -m $D/m.tlm+$D/none.tlm -q");
    expect(2, "--plot draws one model",
           "cost-model eval $D/a.tld -m $D/m.tlm -m analytic --split task --plot $D/p.svg -q");
}

/* Rows of much data take minutes: what cannot end well is told before. */
static void mistakes_are_told_before_rows_are_computed(void **state)
{
    (void)state;
    static const struct {
        const char *words, *command;
    } cases[] = {
        { "--split: 'half' is neither", "eval $D/a.tld -m analytic --split half" },
        { "--without: 'loops' is neither", "train $D/a.tld --without loops -o $D/x.tlm" },
        { "has no setting \"depth\"", "train $D/a.tld -m mlp,depth=3 -o $D/x.tlm" },
        { "'best' is no cost model", "eval $D/a.tld -m best --split task" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[256];
        snprintf(command, sizeof command,
                 "$TILTH cost-model %s >$D/early.txt 2>&1; c=$?; grep -q ^data $D/early.txt && "
                 "exit 99; cat $D/early.txt; exit $c",
                 cases[i].command);
        expect_shell(2, cases[i].words, command);
    }
    expect_shell(
        5, "cannot",
        "$TILTH cost-model train $D/a.tld -o $D/no/x.tlm >$D/early.txt 2>&1; c=$?; grep -q "
        "^data $D/early.txt && exit 99; cat $D/early.txt; exit $c");
}

/* A screener learns from points that nobody measured what a model says of their programs. */
static void a_model_teaches_another(void **state)
{
    (void)state;
    /* they are counted apart */
    expect_shell(0, "screener, seed 1",
                 "$TILTH cost-model train $D/a.tld -m screener --epochs 3 --split task -o "
                 "$D/taught.tlm --teacher $D/m.tlm --unmeasured 8 -q >$D/taught.txt; "
                 "$TILTH cost-model train $D/a.tld -m screener --epochs 3 --split task -o "
                 "$D/alone.tlm -q >$D/alone.txt; grep -q 'more that nobody measured' "
                 "$D/taught.txt; for f in taught alone; do sed -n "
                 "'s/; rows .*//; /^data/p; /to be judged on/p; /^screener/p' $D/$f.txt | sed "
                 "'s/, [0-9]* a second.*//' >$D/$f.counts; done; "
                 "cmp $D/taught.counts $D/alone.counts && cat $D/taught.txt");
    expect(
        2, "does not know these samples",
        "cost-model train $D/a.tld -m screener --teacher $D/m.tlm --without rows -o $D/x.tlm -q");
    expect(2, "none.tlm",
           "cost-model train $D/a.tld -m screener --teacher $D/none.tlm -o $D/x.tlm -q");
    expect(2, "--unmeasured: -1 is not",
           "cost-model train $D/a.tld -m screener --unmeasured -1 -o $D/x.tlm -q");
}

/* The same file, to the byte. */
static void the_same_seed_gives_the_same_model(void **state)
{
    (void)state;
    expect_shell(
        0, "written",
        "for i in 1 2; do $TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs 3 -j $i "
        "-o $D/s$i.tlm -q; done; cmp $D/s1.tlm $D/s2.tlm");
}

/* Killed in the middle, the same command goes on; what it comes to is what it would have come to. */
static void an_interrupted_training_goes_on(void **state)
{
    (void)state;
    expect_shell(0, "written",
                 "$TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs 400 --check 0 -o "
                 "$D/whole.tlm -q");
    expect_shell(130, "the same command goes on from",
                 "$TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs 400 --check 0 -o "
                 "$D/part.tlm & p=$!; "
                 "while ! test -e $D/part.tlm.checkpoint && kill -0 $p; do sleep 0.01; done; kill "
                 "-TERM $p; wait $p");
    expect_shell(
        0, "written",
        "! test -e $D/part.tlm && $TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs 400 "
        "--check 0 "
        "-o $D/part.tlm -q && cmp $D/whole.tlm $D/part.tlm && ! test -e $D/part.tlm.checkpoint");
}

/* Killed without a word, again and again, later each time: what is there goes on, and comes to the same. */
static void a_killed_training_goes_on(void **state)
{
    (void)state;
    expect_shell(
        0, "written",
        "$TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs 120 -o $D/unkilled.tlm -q");
    expect_shell(
        0, "written",
        "for i in 1 2 3 4 5 6 7 8; do $TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs "
        "120 -o "
        "$D/killed.tlm -q >/dev/null & p=$!; sleep 0.$((i * 6 + 10)); kill -KILL $p; wait $p; "
        "test -e $D/killed.tlm && cmp $D/unkilled.tlm $D/killed.tlm; done; "
        "$TILTH cost-model train $D/a.tld -m mlp,hidden=16 --epochs 120 -o $D/killed.tlm -q && "
        "cmp $D/unkilled.tlm $D/killed.tlm && ! test -e $D/killed.tlm.checkpoint");
}

static void an_update_learns_or_is_undone(void **state)
{
    (void)state;
    expect_shell(0, "written",
                 "$TILTH cost-model update $D/m.tlm $D/new.tld -o $D/u.tlm --guard $D/a.tld -q");
    /* poisoned records: refused, and the file is what it was */
    expect_shell(
        1, "they are of another machine or wrong, and nothing was learned",
        "cp $D/m.tlm $D/v.tlm; $TILTH cost-model update $D/v.tlm $D/poison.tld -q; code=$?; "
        "cmp $D/m.tlm $D/v.tlm && exit $code");
    /* what makes it worse on what it knew is undone */
    expect_shell(1, "rolled back: on ",
                 "$TILTH cost-model update $D/v.tlm $D/noise.tld --epochs 40 --rate 0.05 --guard "
                 "$D/a.tld -q; "
                 "code=$?; cmp $D/m.tlm $D/v.tlm && exit $code");
    expect_shell(0, "written",
                 "$TILTH cost-model update $D/m.tlm $D/poison.tld --force -o $D/w.tlm -q");
}

static void features_are_shown(void **state)
{
    (void)state;
    const char *const kinds[][2] = { { "tilth", "float_mad" },
                                     { "tenset", "arith_intensity_curve_9" },
                                     { "tokens", "profile.fma_per_cycle" } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tl_text line = { 0 };
        tl_text_format(&line, "$TILTH cost-model features models/kernels/gemm.tk --kind %s",
                       kinds[i][0]);
        expect_shell(0, kinds[i][1], tl_text_get(&line));
        tl_text_add(&line, " --json");
        expect_shell(0, "{\"record\":\"features\",\"kind\":\"", tl_text_get(&line));
        tl_text_free(&line);
    }
    expect_shell(
        0, "gemm.sketch",
        "echo gemm.sketch; $TILTH cost-model features models/kernels/gemm.tk --space plain "
        "--answers 'gemm.sketch=3 gemm.k.3=8' --kind tokens -v");
    expect_shell(0, "rows a second of a core",
                 "$TILTH cost-model features models/kernels/gemm.tk --rates");
}

static void what_is_refused(void **state)
{
    (void)state;
    expect(2, "'frob' is nothing it does", "cost-model frob");
    expect(2, "train needs data", "cost-model train");
    expect(2, "train needs -o FILE", "cost-model train $D/a.tld");
    expect(2, "eval needs models", "cost-model eval $D/a.tld");
    expect(2, "'frob' is no cost model", "cost-model eval $D/a.tld -m frob");
    expect(2, "rows are tilth or tenset", "cost-model eval $D/a.tld --split task -m mlp@frob");
    expect(2, "so needs something held out", "cost-model eval $D/a.tld -m mlp");
    expect(2, "--split: 'frob'", "cost-model eval $D/a.tld --split frob -m analytic");
    expect(2, "needs records of two machines",
           "cost-model eval $D/a.tld --split machine -m analytic");
    expect(2, "no machine of the records is called 'Frob'",
           "cost-model eval $D/a.tld $D/b.tld --machine-out Frob -m analytic");
    expect(2, "a split by model needs networks",
           "cost-model eval $D/a.tld --split model -m analytic");
    expect(2, "--share: 3 is not", "cost-model eval $D/a.tld --split task --share 3 -m analytic");
    expect(2, "--without: 'frob'",
           "cost-model eval $D/a.tld --split task --without frob -m analytic");
    expect(2, "update needs a model's file, and data", "cost-model update $D/m.tlm");
    expect(2, "none.tld: No such file", "cost-model eval $D/none.tld -m analytic --split task");
    expect(2, "none.tlm", "cost-model eval $D/a.tld -m $D/none.tlm");
    expect(2, "--kind: 'frob'", "cost-model features models/kernels/gemm.tk --kind frob");
    expect(2, "--answers: 'frob' is not NAME=NUMBER",
           "cost-model features models/kernels/gemm.tk --answers frob");
    expect(2, "no kernel with the lowering frob",
           "cost-model features models/kernels/gemm.tk --lowering frob");
    expect(2, "--epochs: -1", "cost-model train $D/a.tld -o $D/x.tlm --epochs -1");
}

/* A model that was changed and saved again: its digests are right, and it is still refused. */
static void change_model(const char *from, const char *name, void change(tl_cost_model *model))
{
    tl_cost_model *model;
    tl_diag diag = { 0 };
    need(tl_cost_model_load(in_folder(from), &model, &diag), &diag);
    change(model);
    need(tl_cost_model_save(model, in_folder(name), &diag), &diag);
    tl_cost_model_destroy(model);
}

static void other_features(tl_cost_model *model)
{
    model->shape.row.digest[0] ^= 1;
}

static void other_space(tl_cost_model *model)
{
    model->shape.decision.digest[0] ^= 1;
}

static void no_number(tl_cost_model *model)
{
    const tl_parameter *parameters;
    int count = tl_cost_model_parameters(model, &parameters);
    assert_true(count > 0);
    parameters[count - 1].value[0] = NAN;
}

static void bad_models_are_refused(void **state)
{
    (void)state;
    expect_shell(
        3, "is no sound cost model",
        "head -c 3000 $D/m.tlm >$D/cut.tlm; $TILTH cost-model eval $D/a.tld -m $D/cut.tlm -q");
    expect_shell(3, "is a cost model of version 9; this tilth reads 1",
                 "sed '1s/model 1/model 9/' $D/m.tlm >$D/v9.tlm; $TILTH cost-model eval $D/a.tld "
                 "-m $D/v9.tlm -q");
    expect_shell(3, "is no sound cost model", "$TILTH cost-model eval $D/a.tld -m $D/a.tld -q");
    change_model("m.tlm", "f.tlm", other_features);
    expect_shell(3, "of other features or another space than this tilth's",
                 "$TILTH cost-model eval $D/a.tld -m $D/f.tlm -q");
    expect_shell(0, "fits this tilth: no", "$TILTH cost-model info $D/f.tlm");
    expect_shell(3, "was trained with rows of features",
                 "$TILTH cost-model update $D/f.tlm $D/new.tld -q");
    expect_shell(0, "written",
                 "$TILTH cost-model train $D/a.tld -m screener --epochs 1 -o $D/screener.tlm -q");
    change_model("screener.tlm", "s.tlm", other_space);
    expect_shell(3, "was trained with decisions", "$TILTH cost-model eval $D/a.tld -m $D/s.tlm -q");
    change_model("m.tlm", "n.tlm", no_number);
    expect_shell(3, "no number", "$TILTH cost-model eval $D/a.tld -m $D/n.tlm -q");
    /* a search that is to ask such a model says so before it measures anything */
    static const struct {
        int code;
        const char *name, *why;
    } bad[] = { { 3, "cut", "is no sound cost model" },
                { 3, "v9", "is a cost model of version 9" },
                { 2, "f", "was trained with rows of features" },
                { 2, "s", "was trained with decisions" },
                { 3, "n", "no number" },
                { 2, "none", "No such file" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tl_text line = { 0 };
        tl_text_format(&line,
                       "$TILTH tune models/kernels/gemm.tk --trials 1 --db $D/bad.db -q "
                       "--cost-model $D/%s.tlm",
                       bad[i].name);
        expect_shell(bad[i].code, bad[i].why, tl_text_get(&line));
        tl_text_free(&line);
    }
    expect_shell(2, "there are more than 4 models",
                 "m=$D/m.tlm; $TILTH tune models/kernels/gemm.tk --trials 1 --db $D/bad.db -q "
                 "--cost-model default --cost-model $m --cost-model $m --cost-model $m "
                 "--cost-model $m");
    expect_shell(3, "this is no data set",
                 "$TILTH cost-model eval $D/m.tlm --split task -m analytic -q");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_trained_and_judged),
        cmocka_unit_test(a_model_teaches_another),
        cmocka_unit_test(models_are_asked_together),
        cmocka_unit_test(mistakes_are_told_before_rows_are_computed),
        cmocka_unit_test(the_same_seed_gives_the_same_model),
        cmocka_unit_test(an_interrupted_training_goes_on),
        cmocka_unit_test(a_killed_training_goes_on),
        cmocka_unit_test(an_update_learns_or_is_undone),
        cmocka_unit_test(features_are_shown),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(bad_models_are_refused),
    };
    return cmocka_run_group_tests_name("tilth cost-model", tests, set_up, cli_tear_down);
}

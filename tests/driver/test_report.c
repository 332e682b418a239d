/* tests/driver/test_report.c: the page of `tilth report` says what is in the records, and nothing in them reaches it as
 * markup. */
#include "driver/report/html.h"
#include "driver/report/report.h"
#include <math.h>
#include "tests/driver/cli_run.h"
#include "tests/driver/recorded.h"

static tl_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = tl_arena_create(0);
    rec_folder = temp_folder_make();
    rec_db = path_in(rec_folder, "records.db");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_arena_destroy(arena);
    free(rec_db);
    temp_folder_remove(rec_folder);
    return 0;
}

static const char hostile[] = "\"><script>alert('x')</script><img src=x onerror=y>&lt;\x01\x1b[31m"
                              "\xff\xc0\xaf\xed\xa0\x80</style></title><!--\\u003c";

/* No tag but those of the page itself, each closed in order; every attribute quoted. */
static void check_markup(const char *page)
{
    static const char *const voids[] = { "meta", "br", "rect", "line", "circle", "path", NULL };
    char stack[64][16];
    int depth = 0;
    for (const char *p = strchr(page, '<'); p != NULL; p = strchr(p + 1, '<')) {
        if (strncmp(p, "<!doctype", 9) == 0)
            continue;
        const char *end = strchr(p, '>');
        assert_non_null(end);
        bool closes = p[1] == '/', whole = end[-1] == '/';
        const char *name = p + 1 + closes;
        size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
        if (size == 0 || size > 15)
            fail_msg("no tag of ours: %.60s", p);
        int quotes = 0;
        for (const char *c = p; c < end; c++)
            quotes += *c == '"';
        assert_int_equal(quotes % 2, 0);
        bool is_void = whole;
        for (int i = 0; voids[i] != NULL; i++)
            is_void |=
                strlen(voids[i]) == size && strncmp(voids[i], name, size) == 0 && (whole || i < 2);
        if (closes) {
            assert_true(depth > 0);
            depth--;
            if (strlen(stack[depth]) != size || strncmp(stack[depth], name, size) != 0)
                fail_msg("<%s> is closed by </%.*s>: %.80s", stack[depth], (int)size, name, p);
        } else if (!is_void) {
            assert_true(depth < 64);
            snprintf(stack[depth++], sizeof stack[0], "%.*s", (int)size, name);
        }
    }
    assert_int_equal(depth, 0);
}

static tl_text page_of(const tl_query *query, tl_report *report)
{
    static const tl_query all;
    tl_text page = { 0 };
    tl_diag diag = { 0 };
    tl_records *store = recorded_open(TL_RECORDS_READ_ONLY);
    if (tl_report_collect(arena, store, query != NULL ? query : &all, report, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_report_page(report, &page);
    tl_records_close(store, NULL);
    assert_false(page.failed);
    return page;
}

/* Trial number n of a workload; ns 0: it crashed. */
static tl_record trial(const char *workload, int n, double ns)
{
    tl_record r = recorded_make(workload, n == 1 ? "direct" : "winograd_f2",
                                n == 1 ? "same\ndefault\n" : "same\ntuned\n", ns);
    r.sequence = n;
    r.created_us += n * 1000000;
    r.family = "conv_relu";
    if (ns == 0) {
        r.status = TL_RECORD_CRASH;
        r.reason = "died of signal 11 at 0x7ff";
        r.time_count = 0;
    }
    return r;
}

static void add_task(tl_records *store, const char *workload, const char *name)
{
    tl_diag diag = { 0 };
    const tl_workload_info info = { .workload = workload,
                                    .class_key = "c",
                                    .family = "conv_relu",
                                    .name = name,
                                    .program = "kernel",
                                    .flops = 2000000,
                                    .bytes = 50000 };
    if (tl_records_add_workload(store, &info, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static const char a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static int occurrences(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

static void what_the_page_says(void **state)
{
    (void)state;
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    add_task(store, a, "conv_relu_7");
    add_task(store, b, "conv_relu_9");
    static const double times[] = { 8000, 0, 12000, 5000, 4000, 4500 };
    for (int i = 5; i >= 0; i--) { /* stored in another order than they were made */
        tl_record r = trial(a, i + 1, times[i]);
        r.environment =
            "{\"cpu\":\"A & B\",\"peak_gflops\":1000,\"copy_gbs\":10,\"l2_bytes\":1048576}";
        recorded_add(store, r);
    }
    recorded_add(store, trial(b, 1, 1000));
    tl_record stale = trial(b, 2, 1);
    stale.revision = TL_CODEGEN_REVISION - 1;
    recorded_add(store, stale);
    tl_choice choice = recorded_choice("m", "x y\n");
    choice.untuned_ns = 2e6;
    choice.tuned_ns = 1e6;
    choice.ratio = 0.5;
    choice.ratio_low = 0.49;
    choice.ratio_high = 0.52;
    choice.created_us = 3;
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    choice.ratio = 0.9; /* older: the other one counts */
    choice.created_us = 2;
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    tl_records_close(store, NULL);

    tl_report r;
    tl_text page = page_of(NULL, &r);
    assert_int_equal(r.task_count, 2);
    assert_int_equal(r.trials, 7);
    assert_int_equal(r.stale, 1);
    assert_int_equal(r.by_status[TL_RECORD_CRASH], 1);
    assert_int_equal(r.choice_count, 1);
    assert_true(r.choices[0].ratio == 0.5);
    assert_string_equal(r.tasks[0].name, "conv_relu_7");
    assert_int_equal(r.tasks[0].failed, 1);
    assert_true(r.tasks[0].first.score_ns == 8000 && r.tasks[0].best.score_ns == 4000);
    assert_true(r.tasks[0].gain == 2 && r.tasks[1].gain == 1);
    assert_true(fabs(r.mean_gain - sqrt(2)) < 1e-9);
    assert_true(r.seconds == 5 && r.peak_gflops == 1000);
    for (int i = 1; i < r.tasks[0].count; i++)
        assert_true(r.tasks[0].trials[i].seconds > r.tasks[0].trials[i - 1].seconds);
    const char *text = tl_text_get(&page);
    check_markup(text);
    static const char *const parts[] = {
        "<b class=\"up\">2.00×</b>",
        "8.00 µs",
        "4.00 µs",
        "<div class=\"del\">- default</div>",
        "<div class=\"add\">+ tuned</div>",
        "<div>  same</div>",
        "winograd_f2 instead of direct",
        "died of signal N at N",
        "A &amp; B",
        "50.0 %",
        "peak 1000 GFLOP/s",
        "memory 10.0 GB/s",
        "net.onnx",
        "0.5000 (0.4900 to 0.5200)",
        "1 records of other revisions",
        "prefers-color-scheme:dark",
        "the default schedule, lowering direct, record",
        "conv_relu_7: 250.0 to 500.0 GFLOP/s",
        "name=\"viewport\"",
        "1 MiB",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("the page lacks '%s'", parts[i]);
    /* the curves of two tasks and of all: over trials and over seconds */
    assert_int_equal(occurrences(text, "class=\"best\""), 6);
    assert_int_equal(occurrences(text, "class=\"tuned\""), 2);
    /* 8000, 5000, 4000: the best so far makes two steps */
    assert_non_null(strstr(text, "seconds of the run"));
    static const char *const absent[] = { "http:",   "https:", "<script", "url(", "src=",
                                          "@import", "<link",  "0x7ff",   "nan",  "inf\"" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strstr(text, absent[i]) != NULL)
            fail_msg("the page has '%s'", absent[i]);
    tl_text_free(&page);

    page = page_of(&(tl_query){ .workload = b }, &r);
    assert_int_equal(r.task_count, 1);
    assert_int_equal(r.trials, 1);
    check_markup(tl_text_get(&page));
    tl_text_free(&page);
}

/* Every text of a record and of a choice is hostile; every number is extreme. */
static void hostile_records(void **state)
{
    (void)state;
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    add_task(store, hostile, hostile);
    for (int i = 0; i < 4; i++) {
        tl_record r = trial(hostile, i + 1, i == 3 ? 0 : 1e300 / (i + 1) / (i + 1));
        if (i == 1)
            r.score_ns = r.time_ns = 5e-324;
        r.family = r.target = r.numerics = r.lowering = r.session = r.environment = hostile;
        r.trace = hostile;
        r.reason = hostile;
        r.threads = -2147483647 - 1;
        r.created_us = i % 2 ? INT64_MAX : INT64_MIN;
        r.build_ns = 1e308;
        recorded_add(store, r);
    }
    tl_record with_json = trial(a, 1, 1);
    with_json.environment = "{\"<b>\":\"\\u003cscript\\u003e\",\"x\":1e308,\"y_bytes\":-5,\"z\":[[]"
                            "],\"peak_gflops\":-1}";
    recorded_add(store, with_json);
    const tl_choice choice = { .model = hostile,
                               .name = hostile,
                               .target = hostile,
                               .numerics = hostile,
                               .threads = -1,
                               .revision = 1 << 30,
                               .form = hostile,
                               .picks = hostile,
                               .ratio = -1e300,
                               .ratio_low = 1e300,
                               .ratio_high = -1e300,
                               .untuned_ns = -1,
                               .tuned_ns = 1e300,
                               .environment = hostile,
                               .session = hostile };
    assert_int_equal(tl_records_add_choice(store, &choice, NULL), TL_OK);
    tl_records_close(store, NULL);
    tl_report r;
    tl_text page = page_of(NULL, &r);
    const char *text = tl_text_get(&page);
    check_markup(text);
    assert_int_equal(r.task_count, 2);
    static const char *const absent[] = { "<script",  "<img",     "onerror=y>", "alert('x')",
                                          "<!--",     "\x1b",     "\x01",       "\xff",
                                          "\xc0\xaf", "\xed\xa0", "=\"nan",     "=\"inf",
                                          "=\"-nan" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strstr(text, absent[i]) != NULL)
            fail_msg("the page has '%s': %.80s", absent[i], strstr(text, absent[i]) - 30);
    assert_non_null(strstr(text, "&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)"));
    tl_text_free(&page);
}

static void escaping(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;" },
        { "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
        { "\xc3", "\xef\xbf\xbd" },                 /* cut off */
        { "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" }, /* cut off */
        { "\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd" }, /* '<' in too many bytes */
        { "\xe0\x80\xbc", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xf4\x90\x80\x80",
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* beyond Unicode */
        { "\x7f\x1b\x08", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "line\n\ttab", "line\n\ttab" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_text out = { 0 };
        tl_html_add(&out, cases[i][0]);
        assert_string_equal(tl_text_get(&out), cases[i][1]);
        tl_text_free(&out);
    }
}

static void nothing_right(void **state)
{
    (void)state;
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store, trial(a, 1, 0));
    tl_records_close(store, NULL);
    tl_report r;
    tl_text page = page_of(NULL, &r);
    check_markup(tl_text_get(&page));
    assert_non_null(strstr(tl_text_get(&page), "Nothing right was measured"));
    assert_true(r.mean_gain == 1);
    tl_text_free(&page);
}

static void the_verb(void **state)
{
    (void)state;
    tl_text line = { 0 };
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    recorded_add(store, trial(a, 1, 100));
    tl_records_close(store, NULL);
    cli_set_up(NULL);
    tl_text_format(&line, "cp %s $D/r.db", rec_db);
    expect_shell(0, "", tl_text_get(&line));
    tl_text_free(&line);
    expect(0, "-o report.html", "report --help");
    expect(2, "-o report.html", "report --db $D/r.db");
    expect(2, "no such file", "report --db $D/absent.db -o $D/r.html");
    expect(2, "there is nothing to report", "report --db $D/r.db --family none -o $D/r.html");
    expect_shell(1, "", "test -e $D/r.html");
    expect(0, "1 tasks, 1 trials", "report --db $D/r.db -o $D/r.html");
    expect(0, "\"tasks\":1,\"trials\":1,", "report --db $D/r.db -o $D/r.html --json");
    expect(5, "", "report --db $D/r.db -o $D/absent/r.html");
    expect_shell(0, "<!doctype html>", "head -1 $D/r.html");
    cli_tear_down(NULL);
}

#define REPORT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Sessions are named after their policy: with several, each has a curve of its own trials. */
static void policies_have_curves_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *session;
        double ns;
    } trials[] = { { "auto-1", 8000 },      { "auto-1", 4000 },      { "evolution-1", 9000 },
                   { "evolution-1", 3000 }, { "elsewhere-1", 2000 }, { "auto", 6000 } };
    tl_records *store = recorded_open(TL_RECORDS_CREATE);
    tl_report report;
    add_task(store, a, "conv_relu_7");
    for (int i = 0; i < 6; i++) {
        tl_record r = trial(a, i + 1, trials[i].ns);
        r.session = trials[i].session;
        recorded_add(store, r);
    }
    tl_records_close(store, NULL);
    tl_text page = page_of(NULL, &report);
    assert_int_equal(report.policy_count, 2);
    check_markup(tl_text_get(&page));
    assert_int_equal(occurrences(tl_text_get(&page), "All tasks: geometric mean"), 1);
    assert_int_equal(occurrences(tl_text_get(&page), "All tasks, policy auto: "), 1);
    assert_int_equal(occurrences(tl_text_get(&page), "All tasks, policy evolution: "), 1);
    int of[3] = { 0 };
    for (int i = 0; i < report.tasks[0].count; i++)
        of[1 + report.tasks[0].trials[i].policy]++;
    assert_true(of[0] == 2 && of[1] == 2 && of[2] == 2);
    /* gains are of a session: one in which the machine is faster gains nothing by that */
    assert_true(report.tasks[0].gain == 3);
    assert_true(report.tasks[0].first.score_ns == 9000 && report.tasks[0].best.score_ns == 3000);
    assert_true(report.tasks[0].trials[2].first->score_ns == 9000);
    tl_text_free(&page);
    /* of one policy alone there is nothing to compare */
    page = page_of(&(tl_query){ .session = "auto-1" }, &report);
    assert_int_equal(occurrences(tl_text_get(&page), "policy auto"), 0);
    tl_text_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escaping),
        REPORT_TEST(what_the_page_says),
        REPORT_TEST(hostile_records),
        REPORT_TEST(nothing_right),
        REPORT_TEST(policies_have_curves_of_their_own),
        REPORT_TEST(the_verb),
    };
    return cmocka_run_group_tests_name("driver report", tests, NULL, NULL);
}

/* tests/runtime/test_executable_saved.c: a small model is saved and loaded, or linked into a program; damage is found. */
#include <sys/stat.h>
#include "runtime/base/random.h"
#include "runtime/device/code_loader.h"
#include "runtime/executable/linked.h"
#include "tests/runtime/small_model.h"

static void save_and_load(const char *name, bool prepare_first)
{
    char *path = path_in(folder, name), *prepared = path_in(path, "prepared.bin");
    tl_executable *x = make(), *y;
    tl_diag diag = { 0 };

    if (prepare_first)
        assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    if (tl_executable_save(x, 0, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    tl_executable_destroy(x);
    assert_int_equal(access(prepared, F_OK), prepare_first ? 0 : -1);

    for (int round = 0; round < 2; round++) {
        if (tl_executable_load(path, &y, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(tl_executable_is_prepared(y), prepare_first || round == 1);
        assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
        assert_int_equal(access(prepared, F_OK), 0);
        check_all(y);
        const tl_executable_spec *spec = tl_executable_info(y);
        assert_string_equal(spec->note, "a note");
        assert_string_equal(spec->steps[0].workload, "w1");
        assert_int_equal(spec->steps[2].flops, 2 * N);
        assert_int_equal(spec->prepare_count, prepare_first ? 0 : 1);
        assert_int_equal(spec->kernel_count, prepare_first ? KERNELS - 1 : KERNELS);
        assert_string_equal(spec->inputs[0].name, "x");
        assert_int_equal(spec->inputs[0].rank, 2);
        tl_executable_destroy(y);
    }
    free(prepared);
    free(path);
}

static void saves_and_loads_prepared(void **state)
{
    (void)state;
    save_and_load("prepared", true);
}

static void saves_and_loads_unprepared(void **state)
{
    (void)state;
    save_and_load("unprepared", false);
}

/* A loaded executable can be saved again, elsewhere. */
static void saves_what_was_loaded(void **state)
{
    (void)state;
    char *first = path_in(folder, "first"), *second = path_in(folder, "second");
    tl_executable *x = make(), *y, *z;

    assert_int_equal(tl_executable_save(x, 0, first, NULL), TL_OK);
    assert_int_equal(tl_executable_load(first, &y, NULL), TL_OK);
    assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
    assert_int_equal(tl_executable_save(y, 0, second, NULL), TL_OK);
    tl_executable_destroy(y);
    assert_int_equal(tl_executable_load(second, &z, NULL), TL_OK);
    check_all(z);
    tl_executable_destroy(z);
    tl_executable_destroy(x);
    free(first);
    free(second);
}

static void windows_are_saved_too(void **state)
{
    (void)state;
    in_one_value();
    save_and_load("windows", true);
    in_one_value();
    save_and_load("windows_unprepared", false);
    tl_executable *x = make();
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    tl_runner *r = make_runner(x, 1);
    assert_in_range(tl_runner_memory(r).floor, m->spec.values[VALUES].size, 16 * N);
    tl_runner_destroy(r);
    tl_executable_destroy(x);
}

static void weights_stay_in_the_models_file(void **state)
{
    (void)state;
    need_object();
    char *weights = path_in(folder, "weights.bin"), *path = path_in(folder, "external");
    char *constants = path_in(path, "constants.bin"), *whole = path_in(folder, "whole");
    unsigned char *file = calloc(1, 12 + sizeof(float[N]));
    tl_executable *y;
    tl_diag diag = { 0 };
    struct stat info;

    memcpy(file + 12, m->w, sizeof(float[N]));
    assert_int_equal(tl_file_write(weights, file, 12 + sizeof(float[N]), NULL), TL_OK);
    m->values[V_W].file = weights;
    m->values[V_W].file_offset = 12;
    tl_executable *x = make();
    if (tl_executable_save(x, 0, path, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(stat(constants, &info), 0);
    assert_int_equal(info.st_size, sizeof(float[N])); /* C, not W */
    assert_int_equal(tl_executable_save(x, TL_SAVE_WHOLE, whole, &diag), TL_OK);
    tl_executable_destroy(x);

    if (tl_executable_load(path, &y, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
    check_all(y);
    assert_int_equal(tl_executable_measure(y).external_bytes, sizeof(float[N]));
    tl_executable_destroy(y);

    assert_int_equal(tl_file_write(weights, file, 12 + sizeof(float[N]), NULL), TL_OK);
    assert_int_equal(tl_executable_load(path, &y, &diag), TL_IO); /* another file now */
    unlink(weights);
    assert_int_equal(tl_executable_load(path, &y, &diag), TL_IO);
    assert_non_null(strstr(diag.text, "has changed"));
    if (tl_executable_load(whole, &y, &diag) != TL_OK) /* has them all */
        fail_msg("%s", diag.text);
    assert_int_equal(tl_executable_prepare(y, pool, 0, NULL), TL_OK);
    check_all(y);
    tl_executable_destroy(y);
    free(whole);
    free(file);
    free(weights);
    free(constants);
    free(path);
}

static void damage_file(const char *path, const tl_text *whole, tl_random *r)
{
    char *bytes = malloc(whole->size + 1);
    size_t size = whole->size;

    memcpy(bytes, whole->data, size);
    if (tl_random_below(r, 3) == 0)
        size = (size_t)tl_random_below(r, (int64_t)size);
    else
        bytes[tl_random_below(r, (int64_t)size)] ^= (char)(1 << tl_random_below(r, 8));
    assert_int_equal(tl_file_write(path, bytes, size, NULL), TL_OK);
    free(bytes);
}

/* Damage anywhere is a miss, or (padding between pieces) harmless. */
static void damage_is_found(void **state)
{
    static const char *const files[] = { "executable.json", "objects.bin", "constants.bin",
                                         "prepared.bin" };
    char *path = path_in(folder, "damaged");
    tl_executable *x = make();
    tl_random r = tl_random_make(21);
    int found = 0;

    (void)state;
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    assert_int_equal(tl_executable_save(x, 0, path, NULL), TL_OK);
    tl_executable_destroy(x);
    for (int i = 0; i < 4; i++) {
        char *file = path_in(path, files[i]);
        tl_text whole = { 0 };
        assert_int_equal(tl_file_read(file, &whole, NULL), TL_OK);
        for (int round = 0; round < 60; round++) {
            tl_diag diag = { 0 };
            damage_file(file, &whole, &r);
            tl_status status = tl_executable_load(path, &x, &diag);
            if (status == TL_OK) {
                check_all(x);
                tl_executable_destroy(x);
                continue;
            }
            found++;
            assert_int_equal(status, TL_IO);
            assert_non_null(strstr(diag.text, path));
        }
        unlink(file);
        assert_int_equal(tl_executable_load(path, &x, NULL), i == 0 ? TL_BAD_ARGUMENT : TL_IO);
        assert_int_equal(tl_file_write(file, whole.data, whole.size, NULL), TL_OK);
        tl_text_free(&whole);
        free(file);
    }
    assert_true(found > 200);
    assert_int_equal(tl_executable_load(path, &x, NULL), TL_OK);
    tl_executable_destroy(x);
    free(path);
}

static void a_bad_prepared_file_is_made_again(void **state)
{
    (void)state;
    char *path = path_in(folder, "stale"), *file = path_in(path, "prepared.bin");
    tl_executable *x = make();

    assert_int_equal(tl_executable_save(x, 0, path, NULL), TL_OK);
    tl_executable_destroy(x);
    assert_int_equal(tl_file_write(file, "rubbish", 7, NULL), TL_OK);
    assert_int_equal(tl_executable_load(path, &x, NULL), TL_OK);
    assert_false(tl_executable_is_prepared(x));
    assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    check_all(x);
    tl_executable_destroy(x);
    assert_int_equal(tl_executable_load(path, &x, NULL), TL_OK);
    assert_true(tl_executable_is_prepared(x));
    tl_executable_destroy(x);
    free(file);
    free(path);
}

/* The digit behind "version": in the first line of an executable's text. */
static char *find_version(char *text)
{
    static const char before[] = "\"version\":";
    char *found = strstr(text, before);
    assert_non_null(found);
    return found + sizeof before - 1;
}

/* What an older or a newer tilth saved is told from what is damaged. */
static void other_formats_are_refused(void **state)
{
    (void)state;
    char *path = path_in(folder, "aged"), *file = path_in(path, "executable.json");
    tl_executable *x = make();
    tl_text json = { 0 };

    assert_int_equal(tl_executable_save(x, 0, path, NULL), TL_OK);
    tl_executable_destroy(x);
    assert_int_equal(tl_file_read(file, &json, NULL), TL_OK);
    const char kept = *find_version(json.data);
    for (char version = '0'; version <= '9'; version++) {
        tl_diag diag = { 0 };
        char part[32];
        *find_version(json.data) = version;
        snprintf(part, sizeof part, "(format %c, this one", version);
        assert_int_equal(tl_file_write(file, json.data, json.size, NULL), TL_OK);
        tl_status status = tl_executable_load(path, &x, &diag);
        assert_int_equal(status, version == kept ? TL_OK : TL_IO);
        if (status == TL_OK)
            tl_executable_destroy(x);
        else if (strstr(diag.text, part) == NULL ||
                 strstr(diag.text, "compile the model again") == NULL)
            fail_msg("%s", diag.text);
    }
    tl_text_free(&json);
    free(file);
    free(path);
}

static void another_processors_code_is_refused(void **state)
{
    (void)state;
    char *path = path_in(folder, "foreign");
    tl_executable *x;
    tl_diag diag = { 0 };

    m->spec.cpu = (tl_cpu_features){ "x86_64", ~UINT64_C(0) };
    x = make();
    assert_int_equal(tl_executable_save(x, 0, path, NULL), TL_OK);
    tl_executable_destroy(x);
    assert_int_equal(tl_executable_load(path, &x, &diag), TL_UNSUPPORTED);
    assert_non_null(strstr(diag.text, "compiled for a x86_64 processor"));
    free(path);
}

/* A model as a linker would have put it into a program. */
typedef struct {
    tl_packed packed;
    tl_code *code;
    tl_linked_function *functions[2 * KERNELS];
    unsigned char *constants;
    struct tilth_linked linked;
} linked_model;

static void link_model(bool prepared, linked_model *out)
{
    tl_executable *x = make();
    tl_diag diag = { 0 };
    int count = 0;

    if (prepared)
        assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
    if (tl_executable_pack(x, true, &out->packed, &diag) != TL_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(tl_code_load(m->object.data, m->object.size, &out->code, NULL), TL_OK);
    assert_int_equal(out->packed.objects.count, prepared ? KERNELS - 1 : KERNELS);
    for (int i = 0; i < out->packed.objects.count; i++) {
        const tl_descriptor *d = out->packed.descriptors[i];
        for (int k = 0; k < tl_descriptor_function_count(d); k++) {
            void *address = tl_code_find(out->code, tl_descriptor_function(d, k).text);
            assert_non_null(address);
            memcpy(&out->functions[count++], &address, sizeof address);
        }
    }
    tl_piece *pieces = out->packed.constants.items;
    out->constants = aligned_alloc(64, 3 * 4096);
    for (int i = 0; i < out->packed.constants.count; i++)
        memcpy(out->constants + pieces[i].offset, pieces[i].data, (size_t)pieces[i].size);
    void *weights = prepared ? aligned_alloc(64, 4096) : NULL;
    if (prepared)
        memcpy(weights, out->packed.prepared, sizeof(float[N]));
    out->linked = (struct tilth_linked){
        .magic = TL_LINKED_MAGIC,
        .text_size = out->packed.text.size,
        .constants_size = (uint64_t)out->packed.constants.size,
        .prepared_size = (uint64_t)out->packed.prepared_size,
        .function_count = (uint64_t)count,
        .text = out->packed.text.data,
        .constants = out->constants,
        .prepared = weights,
        .functions = out->functions,
    };
    tl_executable_destroy(x);
}

static void unlink_model(linked_model *l)
{
    tl_packed_free(&l->packed);
    tl_code_unload(l->code);
    free(l->constants);
    free((void *)l->linked.prepared);
}

static void opens_what_is_linked(void **state)
{
    (void)state;
    for (int prepared = 0; prepared < 2; prepared++) {
        linked_model l = { 0 };
        tl_executable *x;
        tl_diag diag = { 0 };
        link_model(prepared != 0, &l);
        if (tl_executable_open_linked(&l.linked, &x, &diag) != TL_OK)
            fail_msg("%s", diag.text);
        assert_int_equal(tl_executable_is_prepared(x), prepared);
        assert_int_equal(tl_executable_prepare(x, pool, 0, NULL), TL_OK);
        check_all(x);
        assert_true(tl_executable_measure(x).code_bytes > 0);
        assert_string_equal(tl_executable_info(x)->steps[0].workload, "w1");
        tl_packed again; /* the code has no objects any more */
        assert_int_equal(tl_executable_pack(x, true, &again, &diag), TL_BAD_ARGUMENT);
        tl_executable_destroy(x);
        unlink_model(&l);
    }
}

static void expect_damaged(const struct tilth_linked *linked, const char *part)
{
    tl_executable *x;
    tl_diag diag = { 0 };

    assert_int_equal(tl_executable_open_linked(linked, &x, &diag), TL_IO);
    if (strstr(diag.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", diag.text, part);
}

static void refuses_what_is_not_linked_well(void **state)
{
    (void)state;
    linked_model l = { 0 };
    link_model(true, &l);

    struct tilth_linked bad = l.linked;
    bad.magic[7]++;
    expect_damaged(&bad, "of this version");
    char *text = memcpy(malloc(l.linked.text_size + 1), l.linked.text, l.linked.text_size);
    text[l.linked.text_size] = '\0';
    --*find_version(text);
    bad = l.linked;
    bad.text = text;
    expect_damaged(&bad, "another version of tilth (format ");
    free(text);
    bad = l.linked;
    bad.text_size--;
    expect_damaged(&bad, "checksum");
    bad = l.linked;
    bad.function_count--;
    expect_damaged(&bad, "not as many functions");
    bad = l.linked;
    bad.constants_size -= 64;
    expect_damaged(&bad, "constants");
    bad = l.linked;
    bad.prepared_size = 0;
    expect_damaged(&bad, "prepared constants are absent");
    unlink_model(&l);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)
int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(saves_and_loads_prepared),
        TEST(saves_and_loads_unprepared),
        TEST(saves_what_was_loaded),
        TEST(windows_are_saved_too),
        TEST(weights_stay_in_the_models_file),
        TEST(damage_is_found),
        TEST(a_bad_prepared_file_is_made_again),
        TEST(other_formats_are_refused),
        TEST(another_processors_code_is_refused),
        TEST(opens_what_is_linked),
        TEST(refuses_what_is_not_linked_well),
    };
    return cmocka_run_group_tests_name("executable_saved", tests, start, finish);
}

/* tests/frontend/test_onnx_tensors.c: the numbers of a tensor, from every place where ONNX may keep them, and from places
 * where it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "frontend/frontend.h"
#include "runtime/base/file.h"
#include "tests/frontend/onnx_text.h"

static char folder[] = "/tmp/tilth_tensors_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* A model whose one initializer is `tensor` (freed) and is its output; the sentence of a failure goes to `diag`. */
static tl_status read_tensor(tl_text *tensor, tl_arena *arena, tl_onnx **model,
                             const tl_value **out, tl_diag *diag)
{
    tl_text graph = { 0 };
    tl_graph *g;
    wire_string(tensor, 8, "w");
    wire_message(&graph, 5, tensor);
    tl_text bytes = text_model_with("opset 17; output w", &graph);
    memset(diag, 0, sizeof *diag);
    tl_status status =
        tl_onnx_read_memory(arena, bytes.data, bytes.size, folder, NULL, 0, model, &g, diag);
    *out = status == TL_OK ? g->outputs[0]->producer->inputs[0] : NULL;
    tl_text_free(&graph);
    tl_text_free(&bytes);
    return status;
}

static void expect_refusal(tl_text *tensor, tl_status status, const char *sentence)
{
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    const tl_value *v;
    tl_diag diag;
    tl_status got = read_tensor(tensor, arena, &model, &v, &diag);
    if (got != status || strstr(diag.text, sentence) == NULL)
        fail_msg("gives %d: %s\n not %d: %s", got, diag.text, status, sentence);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
}

static tl_text tensor_of(int data_type, int64_t extent)
{
    tl_text t = { 0 };
    wire_int(&t, 1, extent);
    wire_int(&t, 2, data_type);
    return t;
}

/* ---- typed fields ---- */

/* Each dtype from the field where it lives, packed and one by one. */
static void typed_fields_are_read(void **state)
{
    (void)state;
    static const struct {
        int type;
        unsigned field;
        const char *expect;
        int64_t values[3]; /* as they stand in the field; f32 and f64: bits */
    } cases[] = {
        { 6, 5, "i32", { -1, 2, 3 } },           { 3, 5, "i8", { -1, 127, -128 } },
        { 5, 5, "i16", { -1, 2, 32767 } },       { 2, 5, "u8", { 255, 2, 0 } },
        { 4, 5, "u16", { 65535, 2, 0 } },        { 9, 5, "bool", { 0, 1, 5 } },
        { 10, 5, "f16", { 0x3c00, 0, 0x8000 } }, { 16, 5, "bf16", { 0x3f80, 0, 0x7f80 } },
        { 7, 7, "i64", { -1, 2, INT64_MAX } },   { 12, 11, "u32", { 0xffffffff, 2, 3 } },
        { 13, 11, "u64", { -1, 2, 3 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int packed = 0; packed < 2; packed++) {
            tl_arena *arena = tl_arena_create(0);
            tl_onnx *model;
            const tl_value *v;
            tl_diag diag;
            tl_text t = tensor_of(cases[i].type, 3), list = { 0 };
            for (int k = 0; k < 3; k++) {
                if (packed)
                    wire_varint(&list, (uint64_t)cases[i].values[k]);
                else
                    wire_int(&t, cases[i].field, cases[i].values[k]);
            }
            if (packed)
                wire_message(&t, cases[i].field, &list);
            if (read_tensor(&t, arena, &model, &v, &diag) != TL_OK)
                fail_msg("%s: %s", cases[i].expect, diag.text);
            assert_string_equal(tl_dtype_infos[v->dtype].text, cases[i].expect);
            for (size_t k = 0; k < 3; k++) {
                tl_number got = tl_number_load(v->dtype, v->data, k);
                int64_t want = cases[i].values[k];
                if (cases[i].type == 9)
                    want = want != 0;
                if (cases[i].type == 10 || cases[i].type == 16)
                    assert_int_equal(((const uint16_t *)v->data)[k], want);
                else
                    assert_int_equal(got.i, want);
            }
            tl_onnx_close(model);
            tl_arena_destroy(arena);
        }
    }
}

static void floats_are_read(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    const tl_value *v;
    tl_diag diag;
    const float floats[] = { 1.5f, -2.25f };
    const double doubles[] = { 0.1, -0.2 };
    tl_text t = tensor_of(1, 2);
    wire_bytes(&t, 4, floats, sizeof floats);
    assert_int_equal(read_tensor(&t, arena, &model, &v, &diag), TL_OK);
    assert_memory_equal(v->data, floats, sizeof floats);
    tl_onnx_close(model);
    t = tensor_of(11, 2);
    wire_bytes(&t, 10, doubles, sizeof doubles);
    assert_int_equal(read_tensor(&t, arena, &model, &v, &diag), TL_OK);
    assert_memory_equal(v->data, doubles, sizeof doubles);
    tl_onnx_close(model);
    t = tensor_of(9, 3); /* raw bools are normalised */
    wire_bytes(&t, 9, "\x00\x02\xff", 3);
    assert_int_equal(read_tensor(&t, arena, &model, &v, &diag), TL_OK);
    assert_memory_equal(v->data, "\x00\x01\x01", 3);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
}

/* A large raw tensor is taken out of the unpacked model, not copied: it must survive that model. */
static void large_raw_data_survives(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_onnx *model;
    const tl_value *v;
    tl_diag diag;
    size_t size = 100000;
    unsigned char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7);
    tl_text t = tensor_of(2, (int64_t)size);
    wire_bytes(&t, 9, bytes, size);
    assert_int_equal(read_tensor(&t, arena, &model, &v, &diag), TL_OK);
    assert_memory_equal(v->data, bytes, size);
    free(bytes);
    tl_onnx_close(model);
    tl_arena_destroy(arena);
}

static void wrong_fields_are_refused(void **state)
{
    (void)state;
    tl_text t = tensor_of(1, 2);
    wire_bytes(&t, 4, "\0\0\0\0", 4);
    expect_refusal(&t, TL_BAD_MODEL, "has 1 numbers of its dtype, its shape needs 2");
    t = tensor_of(1, 2); /* the right count in the wrong field */
    wire_int(&t, 7, 1);
    wire_int(&t, 7, 2);
    expect_refusal(&t, TL_BAD_MODEL, "has 0 numbers of its dtype");
    t = tensor_of(7, 1);
    wire_int(&t, 7, 1);
    wire_int(&t, 5, 1);
    expect_refusal(&t, TL_BAD_MODEL, "numbers of its dtype");
    t = tensor_of(7, 1);
    wire_int(&t, 7, 1);
    wire_bytes(&t, 9, "12345678", 8);
    expect_refusal(&t, TL_BAD_MODEL, "more than one place");
    t = tensor_of(0, 1);
    expect_refusal(&t, TL_BAD_MODEL, "no data type");
    t = tensor_of(8, 1);
    wire_string(&t, 6, "text");
    expect_refusal(&t, TL_UNSUPPORTED, "data type string (8)");
    t = tensor_of(99, 1);
    expect_refusal(&t, TL_UNSUPPORTED, "data type unknown (99)");
    t = tensor_of(1, 1);
    wire_bytes(&t, 3, "", 0);
    expect_refusal(&t, TL_UNSUPPORTED, "segments");
    t = tensor_of(1, 1);
    wire_int(&t, 14, 1);
    expect_refusal(&t, TL_BAD_MODEL, "data location 1, but 0 entries");
    t = tensor_of(1, 0);
    for (int i = 0; i < 70; i++)
        wire_int(&t, 1, 1);
    expect_refusal(&t, TL_BAD_MODEL, "rank 71 is larger than 64");
}

/* ---- external data ---- */

/* f32[4] in an external file; NULL entries are left out. */
static tl_text external(const char *location, const char *offset, const char *length)
{
    static const char *const keys[] = { "location", "offset", "length" };
    const char *values[] = { location, offset, length };
    tl_text t = tensor_of(1, 4);
    wire_int(&t, 14, 1);
    for (int i = 0; i < 3; i++) {
        tl_text entry = { 0 };
        if (values[i] == NULL)
            continue;
        wire_string(&entry, 1, keys[i]);
        wire_string(&entry, 2, values[i]);
        wire_message(&t, 13, &entry);
    }
    return t;
}

static const float numbers[] = { 1, 2, 3, 4, 5, 6 };

static void write_numbers(const char *path)
{
    tl_diag diag = { 0 };
    if (tl_file_write(path, numbers, sizeof numbers, &diag) != TL_OK)
        fail_msg("%s", diag.text);
}

static void external_data_is_mapped(void **state)
{
    (void)state;
    const char *path = path_of("w.bin"), *inner = path_of("sub/w.bin");
    mkdir(path_of("sub"), 0700);
    write_numbers(path);
    write_numbers(inner);
    static const struct {
        const char *location, *offset, *length;
        int first;
    } cases[] = {
        { "w.bin", NULL, "16", 0 },    { "w.bin", "8", NULL, 2 },   { "w.bin", "4", "16", 1 },
        { "sub/w.bin", "8", "16", 2 }, { "./w.bin", "8", "16", 2 }, { "sub//w.bin", "8", "16", 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_arena *arena = tl_arena_create(0);
        tl_onnx *model;
        const tl_value *v;
        tl_diag diag;
        tl_text t = external(cases[i].location, cases[i].offset, cases[i].length);
        if (read_tensor(&t, arena, &model, &v, &diag) != TL_OK)
            fail_msg("%s: %s", cases[i].location, diag.text);
        assert_memory_equal(v->data, numbers + cases[i].first, 16);
        tl_onnx_close(model);
        tl_arena_destroy(arena);
    }
    unlink(path);
    unlink(inner);
    rmdir(path_of("sub"));
}

static void escapes_are_refused(void **state)
{
    (void)state;
    const char *path = path_of("w.bin"), *link_path = path_of("link.bin"), *up = path_of("up");
    const char *hard = path_of("hard.bin"), *hard_twin = path_of("twin.bin");
    const char *pipe_path = path_of("pipe");
    write_numbers(path);
    write_numbers(hard);
    assert_int_equal(symlink("w.bin", link_path), 0);
    assert_int_equal(symlink(".", up), 0);
    assert_int_equal(link(hard, hard_twin), 0);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    static const struct {
        const char *location, *offset, *length, *sentence;
    } cases[] = {
        { "/etc/passwd", NULL, NULL, "absolute" },
        { "", NULL, NULL, "the path is empty" },
        { "..\\w.bin", NULL, NULL, "backslash" },
        { "../w.bin", NULL, NULL, "leaves the model's folder" },
        { "sub/../../w.bin", NULL, NULL, "leaves the model's folder" },
        { "a/..", NULL, NULL, "leaves the model's folder" },
        { "missing.bin", NULL, "16", "No such file" },
        { "link.bin", "8", "16", "a link" },
        { "up/w.bin", "8", "16", "a link" },
        { "hard.bin", "8", "16", "hard links" },
        { "pipe", NULL, "16", "not a regular file" },
        { ".", NULL, "16", "not a regular file" },
        { NULL, NULL, "16", "without a location" },
        { "w.bin", "12", "16", "reaches beyond the end" },
        { "w.bin", "9223372036854775807", "16", "reaches beyond the end" },
        { "w.bin", "99999999999999999999", "16", "is no size" },
        { "w.bin", "-1", "16", "is no size" },
        { "w.bin", "0x8", "16", "is no size" },
        { "w.bin", "0", "12", "has 12 bytes of external data, its shape needs 16" },
        { "w.bin", "0", NULL, "has 24 bytes of external data, its shape needs 16" },
        { "w.bin", "100", NULL, "has 0 bytes of external data" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_text t = external(cases[i].location, cases[i].offset, cases[i].length);
        expect_refusal(&t, TL_BAD_MODEL, cases[i].sentence);
    }
    tl_text t = external("w.bin", "0", "16"), entry = { 0 };
    wire_string(&entry, 1, "permissions");
    wire_string(&entry, 2, "all");
    wire_message(&t, 13, &entry);
    expect_refusal(&t, TL_BAD_MODEL, "unknown or repeated key 'permissions'");
    const char *const made[] = { path, link_path, up, hard, hard_twin, pipe_path };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        unlink(made[i]);
}

/* A model from memory has no folder: nothing outside it is read. */
static void no_folder_no_files(void **state)
{
    (void)state;
    tl_arena *arena = tl_arena_create(0);
    tl_text t = external("w.bin", NULL, NULL), graph = { 0 };
    tl_onnx *model;
    tl_graph *g;
    tl_diag diag = { 0 };
    wire_string(&t, 8, "w");
    wire_message(&graph, 5, &t);
    tl_text bytes = text_model_with("opset 17; output w", &graph);
    assert_int_equal(tl_onnx_read_memory(arena, bytes.data, bytes.size, NULL, NULL, 0, &model, &g,
                                         &diag),
                     TL_BAD_MODEL);
    assert_non_null(strstr(diag.text, "without a folder"));
    tl_text_free(&graph);
    tl_text_free(&bytes);
    tl_arena_destroy(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(typed_fields_are_read),   cmocka_unit_test(floats_are_read),
        cmocka_unit_test(large_raw_data_survives), cmocka_unit_test(wrong_fields_are_refused),
        cmocka_unit_test(external_data_is_mapped), cmocka_unit_test(escapes_are_refused),
        cmocka_unit_test(no_folder_no_files),
    };
    return cmocka_run_group_tests_name("onnx tensors", tests, make_folder, remove_folder);
}

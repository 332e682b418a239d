/* runtime/tensor/npy.c: reads and writes NumPy's array files.
 *
 *     "\x93NUMPY" major minor  header size (2 bytes little-endian in version 1, 4 afterwards)
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  spaces, and a newline
 *     the elements
 *
 * The header is a Python dictionary; of Python this file knows what a dictionary of a string, a
 * truth value and a tuple of integers may look like. */
#include "runtime/tensor/npy.h"
#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include "runtime/base/checked.h"
#include "runtime/base/file.h"

static const unsigned char magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
enum { MAX_HEADER = 1 << 20, MAX_WORD = 64, DATA_ALIGNMENT = 64 };

typedef struct {
    const char *at, *end, *name; /* the rest of the header; the file's name for messages */
    tl_diag *diag;
} cursor;

typedef struct {
    bool has_descr, has_order, has_shape;
    bool swapped, fortran;
    tl_dtype dtype;
    int rank;
    int64_t shape[TL_TENSOR_MAX_RANK];
} header;

static tl_status malformed(const cursor *c, const char *what)
{
    return tl_fail(c->diag, TL_BAD_ARGUMENT, "%s: the .npy header has %s", c->name, what);
}

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_string(cursor *c, char out[MAX_WORD])
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    size_t size = 0;
    while (c->at < c->end && *c->at != quote && size + 1 < MAX_WORD)
        out[size++] = *c->at++;
    if (c->at == c->end || *c->at != quote)
        return false;
    c->at++;
    out[size] = '\0';
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t size = strlen(word);

    skip_space(c);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0)
        return false;
    c->at += size;
    return true;
}

static bool take_count(cursor *c, int64_t *out)
{
    int64_t value = 0;
    const char *start;

    skip_space(c);
    for (start = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (tl_mul_overflows(value, 10, &value) || tl_add_overflows(value, *c->at - '0', &value))
            return false;
    if (c->at == start)
        return false;
    if (c->at < c->end && *c->at == 'L') /* Python 2 wrote 3L */
        c->at++;
    *out = value;
    return true;
}

/* '<f4': byte order, kind, bytes. The table of dtypes has the little-endian spellings. */
static tl_status read_descr(cursor *c, header *h)
{
    char text[MAX_WORD];

    if (!take_string(c, text))
        return malformed(c, "a dtype that is not a plain one (records are not supported)");
    char order = text[0];
    bool known = order != '\0' && strchr("<>|=", order) != NULL;
    for (int i = 0; known && i < TL_DTYPE_COUNT; i++) {
        if (strcmp(tl_dtype_infos[i].npy + 1, text + 1) != 0)
            continue;
        h->dtype = (tl_dtype)i;
        h->swapped = order == '>' && tl_dtype_infos[i].bits > 8;
        h->has_descr = true;
        return TL_OK;
    }
    return tl_fail(c->diag, TL_BAD_ARGUMENT, "%s: arrays of dtype \"%s\" are not supported",
                   c->name, text);
}

static tl_status read_shape(cursor *c, header *h)
{
    if (!take(c, '('))
        return malformed(c, "a shape that is not a tuple");
    while (!take(c, ')')) {
        if (h->rank == TL_TENSOR_MAX_RANK)
            return tl_fail(c->diag, TL_BAD_ARGUMENT, "%s: the array has more than %d axes", c->name,
                           TL_TENSOR_MAX_RANK);
        if (!take_count(c, &h->shape[h->rank]))
            return malformed(c, "a shape whose extents are not counts");
        h->rank++;
        if (!take(c, ',') && !(c->at < c->end && *c->at == ')'))
            return malformed(c, "a shape that does not end");
    }
    h->has_shape = true;
    return TL_OK;
}

static tl_status read_item(cursor *c, header *h)
{
    char key[MAX_WORD];

    if (!take_string(c, key) || !take(c, ':'))
        return malformed(c, "something other than \"key: value\" in it");
    if (strcmp(key, "descr") == 0 && !h->has_descr)
        return read_descr(c, h);
    if (strcmp(key, "shape") == 0 && !h->has_shape)
        return read_shape(c, h);
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
        h->fortran = take_word(c, "True");
        if (!h->fortran && !take_word(c, "False"))
            return malformed(c, "a fortran_order that is neither True nor False");
        h->has_order = true;
        return TL_OK;
    }
    return malformed(c, "an unknown key, or one twice");
}

static tl_status read_header(cursor *c, header *h)
{
    if (!take(c, '{'))
        return malformed(c, "no dictionary in it");
    while (!take(c, '}')) {
        TL_TRY(read_item(c, h));
        if (!take(c, ',')) {
            if (!take(c, '}'))
                return malformed(c, "a dictionary that does not end");
            break;
        }
    }
    skip_space(c);
    if (c->at != c->end)
        return malformed(c, "something after its dictionary");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return malformed(c, "no descr, fortran_order or shape");
    return TL_OK;
}

static void swap_bytes(unsigned char *data, int64_t elements, size_t size)
{
    for (int64_t i = 0; i < elements; i++, data += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char kept = data[a];
            data[a] = data[b];
            data[b] = kept;
        }
}

/* Column-major elements into row-major places: the index of the source counts its first axis
 * fastest. */
static void from_fortran(tl_tensor *t, const unsigned char *from)
{
    assert(t->rank >= 0 && t->rank <= TL_TENSOR_MAX_RANK);
    size_t size = tl_dtype_size(t->dtype);
    int64_t elements = tl_tensor_elements(t), index[TL_TENSOR_MAX_RANK] = { 0 };

    for (int64_t i = 0; i < elements; i++) {
        int64_t to = 0;
        for (int axis = 0; axis < t->rank; axis++)
            to = to * t->shape[axis] + index[axis];
        memcpy((unsigned char *)t->data + (size_t)to * size, from + (size_t)i * size, size);
        for (int axis = 0; axis < t->rank && ++index[axis] == t->shape[axis]; axis++)
            index[axis] = 0;
    }
}

/* Finds the header; `*data` is where the elements begin. */
static tl_status find_header(const unsigned char *bytes, size_t size, cursor *c, size_t *data)
{
    if (size < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return tl_fail(c->diag, TL_BAD_ARGUMENT, "%s: not a .npy file", c->name);
    unsigned version = bytes[6];
    size_t start = version == 1 ? 10 : 12;
    if (version < 1 || version > 3 || size < start)
        return tl_fail(c->diag, TL_BAD_ARGUMENT,
                       "%s: version %u of the .npy format is not supported", c->name, version);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > MAX_HEADER || length > size - start)
        return tl_fail(c->diag, TL_BAD_ARGUMENT,
                       "%s: the .npy header of %zu bytes is longer than the file or %d bytes",
                       c->name, length, MAX_HEADER);
    c->at = (const char *)bytes + start;
    c->end = c->at + length;
    *data = start + length;
    return TL_OK;
}

tl_status tl_npy_parse(const void *bytes, size_t size, const char *name, tl_tensor *out,
                       tl_diag *diag)
{
    cursor c = { .name = name, .diag = diag };
    header h = { 0 };
    size_t start = 0;
    int64_t want = 0;

    TL_TRY(find_header(bytes, size, &c, &start));
    TL_TRY(read_header(&c, &h));
    tl_status status = tl_tensor_bytes(h.dtype, h.rank, h.shape, &want, diag);
    if (status != TL_OK) {
        tl_context(diag, "the file %s", name);
        return status;
    }
    /* Checked before anything of that size is allocated: the file itself bounds our memory. */
    if ((uint64_t)want != size - start)
        return tl_fail(diag, TL_BAD_ARGUMENT,
                       "%s: its header asks for %lld bytes of elements, but %zu follow", name,
                       (long long)want, size - start);

    tl_tensor t;
    TL_TRY(tl_tensor_create(h.dtype, h.rank, h.shape, &t, diag));
    const unsigned char *from = (const unsigned char *)bytes + start;
    if (h.fortran && h.rank > 1)
        from_fortran(&t, from);
    else if (want > 0)
        memcpy(t.data, from, (size_t)want);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    h.swapped = !h.swapped && tl_dtype_infos[h.dtype].bits > 8;
#endif
    if (h.swapped)
        swap_bytes(t.data, tl_tensor_elements(&t), tl_dtype_size(h.dtype));
    if (h.dtype == TL_BOOL) /* any other byte than 0 and 1 would not be a bool to compiled code */
        for (int64_t i = 0; i < t.size; i++)
            ((unsigned char *)t.data)[i] = ((unsigned char *)t.data)[i] != 0;
    *out = t;
    return TL_OK;
}

tl_status tl_npy_read(const char *path, tl_tensor *out, tl_diag *diag)
{
    tl_mapping mapping;

    TL_TRY(tl_file_map(path, &mapping, diag));
    tl_status status =
        tl_npy_parse(mapping.data != NULL ? mapping.data : "", mapping.size, path, out, diag);
    tl_file_unmap(&mapping);
    return status;
}

static void print_header(const tl_tensor *tensor, tl_text *out)
{
    tl_text_format(out, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   tl_dtype_infos[tensor->dtype].npy);
    for (int i = 0; i < tensor->rank; i++)
        tl_text_format(out, "%lld%s", (long long)tensor->shape[i],
                       tensor->rank == 1 || i + 1 < tensor->rank ? "," : "");
    tl_text_add(out, "), }");
    size_t used = sizeof magic + 4 + out->size + 1;
    tl_text_indent(out, (int)((DATA_ALIGNMENT - used % DATA_ALIGNMENT) % DATA_ALIGNMENT));
    tl_text_add(out, "\n");
}

tl_status tl_npy_write(const char *path, const tl_tensor *tensor, tl_diag *diag)
{
    tl_text text = { 0 };
    tl_file *file;

    print_header(tensor, &text);
    if (text.failed) {
        tl_text_free(&text);
        return tl_fail(diag, TL_NO_MEMORY, "%s: no memory for the .npy header", path);
    }
    unsigned char start[10] = {
        [6] = 1, [8] = (unsigned char)(text.size & 0xff), [9] = (unsigned char)(text.size >> 8)
    };
    memcpy(start, magic, sizeof magic);

    tl_status status = tl_file_create(path, &file, diag);
    if (status == TL_OK) {
        status = tl_file_append(file, start, sizeof start, diag);
        if (status == TL_OK)
            status = tl_file_append(file, text.data, text.size, diag);
        if (status == TL_OK && tensor->size > 0)
            status = tl_file_append(file, tensor->data, (size_t)tensor->size, diag);
        if (status == TL_OK)
            status = tl_file_commit(file, diag);
        else
            tl_file_abandon(file);
    }
    tl_text_free(&text);
    return status;
}

/* tests/frontend/onnx_text.h: ONNX models for tests from one line of text each, encoded by hand so that
 * broken ones can be made too.
 *
 *     "opset 6; input a f32 2,3; init b f32 3 = 1,2,3; node Add a,b -> y axis=1 broadcast=1; output y"
 *
 * Attributes: k=1 int, k=1.5 float, k=[1,2] ints, k=[1.5,2] floats, k=['a','b'] strings, k='word' string, k=<1,2> an i64
 * tensor, k=<f32 2,1 = 1,2> any tensor, k={node Neg x -> y; output y} a graph. An input's dimension that is a word is
 * symbolic; an output may be followed by its dtype and extents, as an input is. `-` stands for an input that is not given;
 * `function D.F x -> y` ... `end` is a local function, `node D.F` calls it. */
#ifndef TL_TESTS_FRONTEND_ONNX_TEXT_H
#define TL_TESTS_FRONTEND_ONNX_TEXT_H
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/dtype.h"
#include "runtime/base/text.h"

/* ---- the wire format ---- */

static inline void wire_varint(tl_text *out, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        tl_text_add_bytes(out, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static inline void wire_int(tl_text *out, unsigned field, int64_t value)
{
    wire_varint(out, field << 3);
    wire_varint(out, (uint64_t)value);
}

static inline void wire_bytes(tl_text *out, unsigned field, const void *bytes, size_t size)
{
    wire_varint(out, field << 3 | 2);
    wire_varint(out, size);
    tl_text_add_bytes(out, bytes, size);
}

static inline void wire_string(tl_text *out, unsigned field, const char *s)
{
    wire_bytes(out, field, s, strlen(s));
}

static inline void wire_float(tl_text *out, unsigned field, float value)
{
    wire_varint(out, field << 3 | 5);
    tl_text_add_bytes(out, &value, 4);
}

/* Adds the message and frees it. */
static inline void wire_message(tl_text *out, unsigned field, tl_text *message)
{
    wire_bytes(out, field, tl_text_get(message), message->size);
    tl_text_free(message);
}

/* ---- words ---- */

static inline bool take(const char **at, const char *word)
{
    size_t size = strlen(word);
    *at += strspn(*at, " ");
    if (strncmp(*at, word, size) != 0)
        return false;
    *at += size;
    return true;
}

/* Of a statement. */
static inline bool is_end(char c)
{
    return c == ';' || c == '}' || c == '\0';
}

static inline void take_word(const char **at, char out[128])
{
    *at += strspn(*at, " ");
    size_t size = strcspn(*at, " ;,=>}");
    size = size > 127 ? 127 : size;
    memcpy(out, *at, size);
    out[size] = '\0';
    *at += size;
}

/* A list of words between commas, each as a string field. */
static inline void take_names(const char **at, tl_text *out, unsigned field)
{
    char word[128];
    *at += strspn(*at, " ");
    while (!is_end(**at) && strncmp(*at, "->", 2) != 0) {
        take_word(at, word);
        wire_string(out, field, strcmp(word, "-") == 0 ? "" : word);
        if (!take(at, ","))
            return;
    }
}

/* ---- parts of a model ---- */

/* What stands in [ ]: ints, floats when one has a point, strings in quotes. */
static inline void take_list(const char **at, tl_text *a)
{
    size_t size = strcspn(*at, "]");
    bool are_words = (*at)[1] == '\'', are_floats = memchr(*at, '.', size) != NULL;
    (*at)++;
    while (**at != ']' && **at != '\0') {
        char *end = (char *)(uintptr_t)*at;
        if (are_words) {
            size_t length = strcspn(++end, "'");
            wire_bytes(a, 9, end, length);
            end += length + 1;
        } else if (are_floats) {
            wire_float(a, 7, strtof(*at, &end));
        } else {
            wire_int(a, 8, strtoll(*at, &end, 10));
        }
        *at = end + (*end == ',');
    }
    (*at)++;
    wire_int(a, 20, are_words ? 8 : are_floats ? 6 : 7);
}

/* Up to the end of a tensor in < >: i64. */
static inline tl_text text_ints(const char **at)
{
    tl_text t = { 0 }, raw = { 0 };
    int64_t count = 0;
    while (**at != '>' && **at != '\0') {
        char *end;
        int64_t value = strtoll(*at, &end, 10);
        tl_text_add_bytes(&raw, &value, 8);
        count++;
        *at = end + (*end == ',');
    }
    wire_int(&t, 1, count);
    wire_int(&t, 2, 7);
    wire_message(&t, 9, &raw);
    return t;
}

/* A tensor's dtype, extents, and numbers behind `=`. */
static inline tl_text text_tensor_data(const char **at, tl_text t)
{
    tl_text raw = { 0 };
    char word[128];
    tl_dtype dtype = TL_F32;
    int64_t count = 0;
    take_word(at, word);
    tl_dtype_from_text(word, &dtype);
    bool packed = tl_dtype_is_int(dtype) && tl_dtype_infos[dtype].digits == 4;
    wire_int(&t, 2, tl_dtype_infos[dtype].onnx);
    for (*at += strspn(*at, " "); isdigit((unsigned char)**at) || **at == '-';) {
        take_word(at, word);
        wire_int(&t, 1, strtoll(word, NULL, 10));
        if (!take(at, ","))
            break;
    }
    take(at, "=");
    for (*at += strspn(*at, " "); **at != '\0' && strchr(";>}", **at) == NULL; count++) {
        unsigned char cell[8];
        take_word(at, word);
        tl_number n = { .i = (int64_t)strtoull(word, NULL, 10) };
        if (tl_dtype_is_float(dtype))
            n.f = strtod(word, NULL);
        tl_number_store(dtype, cell, 0, n);
        if (packed && count % 2 == 1)
            raw.data[raw.size - 1] |= (char)((cell[0] & 15) << 4);
        else if (packed)
            tl_text_add_bytes(&raw, (unsigned char[]){ cell[0] & 15 }, 1);
        else
            tl_text_add_bytes(&raw, cell, tl_dtype_size(dtype));
        if (!take(at, ","))
            break;
    }
    wire_message(&t, 9, &raw);
    return t;
}

/* Lines up to the end or to a brace; what belongs to the model, and not to its graph, goes to `tail`. */
static inline void text_graph(const char **at, tl_text *graph, tl_text *tail);

static inline tl_text text_attribute(const char **at)
{
    tl_text a = { 0 };
    char name[128];
    take_word(at, name);
    wire_string(&a, 1, name);
    (*at)++; /* = */
    if (**at == '\'') {
        size_t size = strcspn(*at + 1, "'");
        wire_bytes(&a, 4, *at + 1, size);
        wire_int(&a, 20, 3);
        *at += size + 2;
    } else if (**at == '[') {
        take_list(at, &a);
    } else if (**at == '<') {
        tl_text t;
        (*at)++;
        t = islower((unsigned char)**at) ? text_tensor_data(at, (tl_text){ 0 }) : text_ints(at);
        *at += **at == '>';
        wire_message(&a, 5, &t);
        wire_int(&a, 20, 4);
    } else if (**at == '{') {
        tl_text g = { 0 };
        (*at)++;
        text_graph(at, &g, NULL);
        *at += **at == '}';
        wire_string(&g, 2, name);
        wire_message(&a, 6, &g);
        wire_int(&a, 20, 5);
    } else {
        size_t size = strcspn(*at, " ;}");
        if (memchr(*at, '.', size) != NULL) {
            wire_float(&a, 2, strtof(*at, NULL));
            wire_int(&a, 20, 1);
        } else {
            wire_int(&a, 3, strtoll(*at, NULL, 10));
            wire_int(&a, 20, 2);
        }
        *at += size;
    }
    return a;
}

static inline tl_text text_node(const char **at)
{
    tl_text n = { 0 };
    char op[128];
    take_word(at, op);
    char *dot = strrchr(op, '.');
    if (dot != NULL) {
        *dot = '\0';
        wire_string(&n, 7, op);
    }
    wire_string(&n, 4, dot != NULL ? dot + 1 : op);
    take_names(at, &n, 1);
    take(at, "->");
    take_names(at, &n, 2);
    for (*at += strspn(*at, " "); !is_end(**at); *at += strspn(*at, " ")) {
        tl_text a = text_attribute(at);
        wire_message(&n, 5, &a);
    }
    return n;
}

static inline tl_text text_value_info(const char **at)
{
    tl_text v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    char name[128], word[128];
    tl_dtype dtype;
    take_word(at, name);
    wire_string(&v, 1, name);
    take_word(at, word);
    if (word[0] == '\0') /* an output of which no more is said */
        return v;
    if (tl_dtype_from_text(word, &dtype))
        wire_int(&tensor, 1, tl_dtype_infos[dtype].onnx);
    else
        wire_int(&tensor, 1, atoi(word)); /* a number of the format */
    *at += strspn(*at, " ");
    while (!is_end(**at)) {
        tl_text d = { 0 };
        take_word(at, word);
        if (!isdigit((unsigned char)word[0]) && word[0] != '-')
            wire_string(&d, 2, word);
        else
            wire_int(&d, 1, strtoll(word, NULL, 10));
        wire_message(&shape, 1, &d);
        if (!take(at, ","))
            break;
    }
    wire_message(&tensor, 2, &shape);
    wire_message(&type, 1, &tensor);
    wire_message(&v, 2, &type);
    return v;
}

static inline tl_text text_tensor(const char **at)
{
    tl_text t = { 0 };
    char word[128];
    take_word(at, word);
    wire_string(&t, 8, word);
    return text_tensor_data(at, t);
}

static inline tl_text text_function(const char **at)
{
    tl_text f = { 0 }, opset = { 0 }, part;
    char name[128];
    take_word(at, name);
    char *dot = strrchr(name, '.');
    *dot = '\0';
    wire_string(&f, 10, name);
    wire_string(&f, 1, dot + 1);
    take_names(at, &f, 4);
    take(at, "->");
    take_names(at, &f, 5);
    wire_string(&opset, 1, "");
    wire_int(&opset, 2, 17);
    wire_message(&f, 9, &opset);
    wire_string(&opset, 1, name);
    wire_int(&opset, 2, 1);
    wire_message(&f, 9, &opset);
    while (take(at, ";") && !take(at, "end")) {
        if (take(at, "node")) {
            part = text_node(at);
            wire_message(&f, 7, &part);
        } else {
            *at += strcspn(*at, ";");
        }
    }
    return f;
}

static inline tl_text text_opset(const char **at)
{
    tl_text part = { 0 };
    char word[128];
    take_word(at, word);
    char *dot = strrchr(word, '.');
    if (dot != NULL)
        *dot = '\0';
    wire_string(&part, 1, dot != NULL ? word : "");
    wire_int(&part, 2, atoi(dot != NULL ? dot + 1 : word));
    return part;
}

static inline void text_graph(const char **at, tl_text *graph, tl_text *tail)
{
    static const struct {
        const char *word;
        tl_text (*part)(const char **at);
        unsigned field;
        bool of_model;
    } parts[] = {
        { "opset", text_opset, 8, true },         { "input", text_value_info, 11, false },
        { "output", text_value_info, 12, false }, { "init", text_tensor, 5, false },
        { "node", text_node, 1, false },          { "function", text_function, 25, true },
    };
    while (*at += strspn(*at, " \n"), **at != '\0' && **at != '}') {
        size_t i = 0, count = sizeof parts / sizeof *parts;
        while (i < count && !take(at, parts[i].word))
            i++;
        tl_text part = i < count ? parts[i].part(at) : (tl_text){ 0 };
        if (i == count)
            *at += strcspn(*at, ";");
        else if (!parts[i].of_model || tail != NULL)
            wire_message(parts[i].of_model ? tail : graph, parts[i].field, &part);
        tl_text_free(&part);
        *at += **at == ';';
    }
}

/* The whole model, as bytes; `extra` is appended to the graph. Free it with tl_text_free. */
static inline tl_text text_model_with(const char *at, const tl_text *extra)
{
    tl_text model = { 0 }, graph = { 0 }, tail = { 0 };
    wire_int(&model, 1, 8);
    text_graph(&at, &graph, &tail);
    if (extra != NULL)
        tl_text_add_bytes(&graph, tl_text_get(extra), extra->size);
    wire_string(&graph, 2, "test");
    wire_message(&model, 7, &graph);
    tl_text_add_bytes(&model, tl_text_get(&tail), tail.size);
    tl_text_free(&tail);
    return model;
}

static inline tl_text text_model(const char *text)
{
    return text_model_with(text, NULL);
}

#endif

/* tests/frontend/onnx_text.h: ONNX models for tests from one line of text each, encoded by hand so that
 * broken ones can be made too.
 *
 *     "opset 6; input a f32 2,3; init b f32 3 = 1,2,3; node Add a,b -> y axis=1 broadcast=1; output y"
 *
 * Attributes: k=1 int, k=1.5 float, k=[1,2] ints, k='word' string, k=<1,2> an i64 tensor. An input's dimension that is a
 * word is symbolic; k={input ...; node ...; output ...} is a graph. `-` stands for an input that is not given;
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
    size_t size = strcspn(*at, " ;,=}");
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

static inline void take_statement(const char **at, tl_text *graph);

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
        (*at)++;
        while (**at != ']') {
            char *end;
            wire_int(&a, 8, strtoll(*at, &end, 10));
            *at = end + (*end == ',');
        }
        (*at)++;
        wire_int(&a, 20, 7);
    } else if (**at == '<') {
        tl_text t = { 0 }, raw = { 0 };
        int64_t count = 0;
        (*at)++;
        while (**at != '>') {
            char *end;
            int64_t value = strtoll(*at, &end, 10);
            tl_text_add_bytes(&raw, &value, 8);
            count++;
            *at = end + (*end == ',');
        }
        (*at)++;
        wire_int(&t, 1, count);
        wire_int(&t, 2, 7);
        wire_message(&t, 9, &raw);
        wire_message(&a, 5, &t);
        wire_int(&a, 20, 4);
    } else if (**at == '{') {
        tl_text g = { 0 };
        (*at)++;
        while (!take(at, "}")) {
            take_statement(at, &g);
            take(at, ";");
        }
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
    tl_text t = { 0 }, raw = { 0 };
    char word[128];
    tl_dtype dtype = TL_F32;
    take_word(at, word);
    wire_string(&t, 8, word);
    take_word(at, word);
    tl_dtype_from_text(word, &dtype);
    wire_int(&t, 2, tl_dtype_infos[dtype].onnx);
    for (*at += strspn(*at, " "); isdigit((unsigned char)**at) || **at == '-';) {
        take_word(at, word);
        wire_int(&t, 1, strtoll(word, NULL, 10));
        if (!take(at, ","))
            break;
    }
    take(at, "=");
    for (*at += strspn(*at, " "); !is_end(**at);) {
        unsigned char cell[8];
        take_word(at, word);
        tl_number n = { .i = strtoll(word, NULL, 10) };
        if (tl_dtype_is_float(dtype))
            n.f = strtod(word, NULL);
        tl_number_store(dtype, cell, 0, n);
        tl_text_add_bytes(&raw, cell, tl_dtype_size(dtype));
        if (!take(at, ","))
            break;
    }
    wire_message(&t, 9, &raw);
    return t;
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

/* A statement that graphs of any kind have; others are passed over. */
static inline void take_statement(const char **at, tl_text *graph)
{
    tl_text part;
    if (take(at, "input")) {
        part = text_value_info(at);
        wire_message(graph, 11, &part);
    } else if (take(at, "output")) {
        part = (tl_text){ 0 };
        char word[128];
        take_word(at, word);
        wire_string(&part, 1, word);
        wire_message(graph, 12, &part);
    } else if (take(at, "init")) {
        part = text_tensor(at);
        wire_message(graph, 5, &part);
    } else if (take(at, "node")) {
        part = text_node(at);
        wire_message(graph, 1, &part);
    } else {
        *at += strcspn(*at, ";}");
    }
}

/* The whole model, as bytes; `extra` is appended to the graph. Free it with tl_text_free. */
static inline tl_text text_model_with(const char *at, const tl_text *extra)
{
    tl_text model = { 0 }, graph = { 0 }, tail = { 0 }, part;
    wire_int(&model, 1, 8);
    while (*at != '\0') {
        if (take(&at, "opset")) {
            char word[128];
            part = (tl_text){ 0 };
            take_word(&at, word);
            char *dot = strrchr(word, '.');
            if (dot != NULL)
                *dot = '\0';
            wire_string(&part, 1, dot != NULL ? word : "");
            wire_int(&part, 2, atoi(dot != NULL ? dot + 1 : word));
            wire_message(&tail, 8, &part);
        } else if (take(&at, "function")) {
            part = text_function(&at);
            wire_message(&tail, 25, &part);
        } else {
            take_statement(&at, &graph);
        }
        at += *at == ';';
    }
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

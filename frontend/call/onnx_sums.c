/* frontend/call/onnx_sums.c: numbers that a run computes, as sums with bounds. */
#include "frontend/call/onnx_sums.h"
#include <math.h>
#include <string.h>
#include "frontend/node/shape_rules.h"
#include "frontend/call/onnx_emit.h"
#include "frontend/call/onnx_counts.h"
#include "frontend/call/onnx_scope.h"
#include "runtime/base/checked.h"

enum {
    MOST_STEPS = 2048,  /* of one walk back through the graph: what is farther is not known */
    MOST_DEEP = 64,     /* nodes one behind another */
    MOST_ELEMENTS = 64, /* of a value of which all elements are asked */
};

typedef struct {
    tl_import *im;
    int steps, depth;
} walk;

static tl_onnx_sum form_of(walk *w, tl_value *v, int64_t element);
static tl_onnx_bounds bounds_of(walk *w, tl_value *v, int64_t element);

/* ---- what is known ---- */

static const tl_onnx_bounds any = { -INFINITY, INFINITY };

void tl_set_bounds(tl_import *im, const tl_value *v, double least, double most)
{
    if (im->bounds == NULL)
        im->bounds = tl_map_create(im->arena);
    const char *key = tl_value_key(im, v);
    tl_onnx_bounds *known = tl_map_find(im->bounds, key);
    if (known == NULL) {
        known = TL_NEW(im->arena, tl_onnx_bounds);
        *known = any;
        tl_map_put(im->bounds, key, known);
    }
    known->least = fmax(known->least, least);
    known->most = fmin(known->most, most);
}

static const tl_onnx_bounds *said_of(const walk *w, const tl_value *v)
{
    return w->im->bounds != NULL ? tl_map_find(w->im->bounds, tl_value_key(w->im, v)) : NULL;
}

static bool is_whole(const tl_value *v)
{
    return v->dtype_known && tl_dtype_is_int(v->dtype);
}

/* The element of an operand that broadcasts to what the element is of; -1 where that is not plain to see. */
static int64_t element_of(const tl_value *operand, const tl_value *result, int64_t element)
{
    int64_t count = tl_shape_elements(&operand->shape);
    return count == 1 ? 0 : count == tl_shape_elements(&result->shape) ? element : -1;
}

/* ---- sums ---- */

tl_onnx_sum tl_sum_constant(int64_t constant)
{
    return (tl_onnx_sum){ .constant = constant };
}

tl_onnx_sum tl_sum_of_extent(tl_import *im, const tl_value *v, int axis)
{
    tl_value *count = tl_count_at(im, v, axis);
    return count != NULL ? tl_sum_of(im, count, 0) : tl_sum_constant(v->shape.dims[axis].extent);
}

bool tl_sum_is_constant(const tl_onnx_sum *n)
{
    return n->count == 0;
}

static tl_onnx_sum term_of(tl_value *v, int64_t element)
{
    return (tl_onnx_sum){ .count = 1, .terms = { { 1, v, element } } };
}

static bool same_attributes(const tl_node *a, const tl_node *b)
{
    if (a->attr_count != b->attr_count)
        return false;
    for (int i = 0; i < a->attr_count; i++) {
        const tl_attr *x = &a->attrs[i], *y = &b->attrs[i];
        if (strcmp(x->name, y->name) != 0 || x->type != y->type || x->i != y->i ||
            memcmp(&x->f, &y->f, sizeof x->f) != 0 || x->count != y->count ||
            (x->s != NULL) != (y->s != NULL) || (x->s != NULL && strcmp(x->s, y->s) != 0) ||
            (x->ints != NULL) != (y->ints != NULL) || x->floats != NULL || y->floats != NULL ||
            (x->ints != NULL && memcmp(x->ints, y->ints, sizeof *x->ints * (size_t)x->count) != 0))
            return false;
    }
    return true;
}

static bool same_constants(const tl_value *a, const tl_value *b)
{
    int64_t count = tl_shape_elements(&a->shape);
    return a->data != NULL && b->data != NULL && a->dtype == b->dtype &&
           tl_shape_equal(&a->shape, &b->shape) && count <= TL_DECIDING_ELEMENTS &&
           memcmp(a->data, b->data, (size_t)count * tl_dtype_size(a->dtype)) == 0;
}

/* Whether two values are computed alike, node by node. */
static bool are_alike(walk *w, const tl_value *a, const tl_value *b)
{
    if (a == b || a == NULL || b == NULL || same_constants(a, b))
        return a == b || (a != NULL && b != NULL);
    const tl_node *n = a->producer, *m = b->producer;
    if (n == NULL || m == NULL || n->op != m->op || n->input_count != m->input_count ||
        n->output_count != 1 || m->output_count != 1 || tl_op_bodies(n->op) > 0 ||
        w->depth >= MOST_DEEP || --w->steps < 0 || !same_attributes(n, m))
        return false;
    bool alike = true;
    w->depth++;
    for (int k = 0; alike && k < n->input_count; k++)
        alike = are_alike(w, n->inputs[k], m->inputs[k]);
    w->depth--;
    return alike;
}

/* a + factor * b; false where it has too many terms or numbers that are too large. */
static bool add_times(walk *w, tl_onnx_sum *a, const tl_onnx_sum *b, int64_t factor)
{
    tl_onnx_sum sum = *a;
    int64_t product;
    if (tl_mul_overflows(b->constant, factor, &product) ||
        tl_add_overflows(sum.constant, product, &sum.constant))
        return false;
    for (int i = 0; i < b->count; i++) {
        const tl_sum_term *t = &b->terms[i];
        int at = 0;
        while (at < sum.count && (sum.terms[at].element != t->element ||
                                  !are_alike(w, sum.terms[at].value, t->value)))
            at++;
        if (at == TL_MOST_TERMS || tl_mul_overflows(t->factor, factor, &product))
            return false;
        if (at == sum.count)
            sum.terms[sum.count++] = (tl_sum_term){ 0, t->value, t->element };
        if (tl_add_overflows(sum.terms[at].factor, product, &sum.terms[at].factor))
            return false;
        if (sum.terms[at].factor == 0)
            sum.terms[at] = sum.terms[--sum.count];
    }
    *a = sum;
    return true;
}

/* ---- from which node an element comes ---- */

static bool is_list(const tl_value *v)
{
    return v->shape.rank == 1 && tl_shape_is_static(&v->shape);
}

/* A node that hands elements on as they are: of which value this one was, and which. */
static bool find_source(walk *w, const tl_node *n, int64_t element, tl_value **source, int64_t *at)
{
    tl_value *x = tl_node_input(n, 0), *y = n->outputs[0];
    *source = x;
    *at = element;
    if (x == NULL || n->output_count != 1)
        return false;
    if (n->op == TL_OP_RESHAPE || n->op == TL_OP_SQUEEZE || n->op == TL_OP_UNSQUEEZE ||
        n->op == TL_OP_FLATTEN || n->op == TL_OP_IDENTITY)
        return tl_shape_elements(&x->shape) == tl_shape_elements(&y->shape);
    if (n->op == TL_OP_CAST)
        return is_whole(x) && is_whole(y) && tl_dtype_size(y->dtype) >= 4;
    if (n->op == TL_OP_EXPAND)
        return tl_shape_elements(&x->shape) == 1 && (*at = 0, true);
    if (n->op == TL_OP_CONCAT && is_list(y)) {
        for (int i = 0; i < n->input_count; i++) {
            int64_t extent = tl_shape_elements(&n->inputs[i]->shape);
            *source = n->inputs[i];
            if (*at < extent)
                return true;
            *at -= extent;
        }
        return false;
    }
    if (n->op == TL_OP_GATHER && is_list(x)) {
        const int64_t *index;
        int count = tl_constant_i64(w->im->arena, n->inputs[1], &index);
        int64_t extent = x->shape.dims[0].extent;
        if (count < 1 || element >= count)
            return false;
        *at = index[element] + (index[element] < 0 ? extent : 0);
        return *at >= 0 && *at < extent;
    }
    if (n->op == TL_OP_SLICE && is_list(x)) {
        static const char *const names[] = { "starts", "ends", "axes", "steps" };
        int64_t of[4] = { 0, 0, 0, 1 }, extent = x->shape.dims[0].extent;
        for (int k = 0; k < 4; k++) {
            const int64_t *list;
            int count = tl_attr_ints(n, names[k], &list);
            if (count < 0 && tl_node_input(n, k + 1) != NULL) {
                count = tl_constant_i64(w->im->arena, n->inputs[k + 1], &list);
                if (count < 0)
                    return false;
            }
            if (count == 1)
                of[k] = list[0];
        }
        int64_t start = of[0] < 0 ? of[0] + extent : of[0];
        if (of[3] < 1 || start < 0)
            return false;
        *at = start + element * of[3];
        return *at < extent;
    }
    return false;
}

/* ---- the sum of an element ---- */

static tl_onnx_bounds bounds_of_form(walk *w, const tl_onnx_sum *n)
{
    tl_onnx_bounds b = { (double)n->constant, (double)n->constant };
    for (int i = 0; i < n->count; i++) {
        const tl_sum_term *t = &n->terms[i];
        tl_onnx_bounds own = bounds_of(w, t->value, t->element);
        double factor = (double)t->factor;
        b.least += factor * (factor > 0 ? own.least : own.most);
        b.most += factor * (factor > 0 ? own.most : own.least);
    }
    return b;
}

static bool sum_of_node(walk *w, tl_value *v, int64_t element, tl_onnx_sum *out)
{
    const tl_node *n = v->producer;
    tl_value *source;
    int64_t at;
    if (find_source(w, n, element, &source, &at)) {
        *out = form_of(w, source, at);
        return true;
    }
    bool is_sum = n->op == TL_OP_ADD || n->op == TL_OP_SUB;
    if (!is_whole(v) || (!is_sum && n->op != TL_OP_MUL && n->op != TL_OP_NEG))
        return false;
    tl_onnx_sum parts[2] = { { 0 }, { 0 } };
    for (int i = 0; i < n->input_count; i++) {
        at = element_of(n->inputs[i], v, element);
        if (at < 0)
            return false;
        parts[i] = form_of(w, n->inputs[i], at);
    }
    *out = tl_sum_constant(0);
    if (n->op == TL_OP_NEG)
        return add_times(w, out, &parts[0], -1);
    if (is_sum)
        return add_times(w, out, &parts[0], 1) &&
               add_times(w, out, &parts[1], n->op == TL_OP_ADD ? 1 : -1);
    int constant = tl_sum_is_constant(&parts[0]) ? 0 : 1;
    return tl_sum_is_constant(&parts[constant]) &&
           add_times(w, out, &parts[1 - constant], parts[constant].constant);
}

static tl_onnx_sum form_of(walk *w, tl_value *v, int64_t element)
{
    tl_onnx_sum form;
    if (v->data != NULL && is_whole(v))
        return tl_sum_constant(tl_number_load(v->dtype, v->data, (size_t)element).i);
    if (v->data != NULL || v->producer == NULL || w->depth >= MOST_DEEP || --w->steps < 0)
        return term_of(v, element);
    w->depth++;
    bool is_sum = sum_of_node(w, v, element, &form);
    const tl_onnx_bounds *said = is_sum ? said_of(w, v) : NULL;
    if (said != NULL) { /* more is known of it than of its parts */
        tl_onnx_bounds own = bounds_of_form(w, &form);
        is_sum = own.least >= said->least && own.most <= said->most;
    }
    w->depth--;
    return is_sum ? form : term_of(v, element);
}

/* ---- bounds ---- */

static double times(double a, double b)
{
    return a == 0 || b == 0 ? 0 : a * b;
}

static tl_onnx_bounds hull(tl_onnx_bounds a, tl_onnx_bounds b)
{
    return (tl_onnx_bounds){ fmin(a.least, b.least), fmax(a.most, b.most) };
}

static tl_onnx_bounds product(tl_onnx_bounds a, tl_onnx_bounds b)
{
    double p = times(a.least, b.least), q = times(a.least, b.most), r = times(a.most, b.least),
           s = times(a.most, b.most);
    return (tl_onnx_bounds){ fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)) };
}

static tl_onnx_bounds quotient(tl_onnx_bounds a, tl_onnx_bounds b, bool whole)
{
    if (b.least <= 0 && b.most >= 0)
        return any;
    tl_onnx_bounds y = product(a, (tl_onnx_bounds){ 1 / b.most, 1 / b.least });
    if (whole) /* of quotients that were themselves rounded: a little more than may be */
        y = (tl_onnx_bounds){ trunc(y.least - 1e-6 * fabs(y.least)),
                              trunc(y.most + 1e-6 * fabs(y.most)) };
    return y;
}

static tl_onnx_bounds bounds_of_operand(walk *w, const tl_node *n, int input, int64_t element)
{
    tl_value *x = tl_node_input(n, input);
    int64_t at = x != NULL ? element_of(x, n->outputs[0], element) : -1;
    return at < 0 ? any : bounds_of(w, x, at);
}

/* Of all elements together, which are not many. */
static tl_onnx_bounds bounds_of_all(walk *w, tl_value *x, tl_op op)
{
    int64_t count = tl_shape_elements(&x->shape);
    if (count < 1 || count > MOST_ELEMENTS)
        return any;
    tl_onnx_bounds all = bounds_of(w, x, 0);
    for (int64_t i = 1; i < count; i++) {
        tl_onnx_bounds b = bounds_of(w, x, i);
        all = op == TL_OP_REDUCE_SUM    ? (tl_onnx_bounds){ all.least + b.least, all.most + b.most }
              : op == TL_OP_REDUCE_PROD ? product(all, b)
              : op == TL_OP_REDUCE_MAX
                  ? (tl_onnx_bounds){ fmax(all.least, b.least), fmax(all.most, b.most) }
              : op == TL_OP_REDUCE_MIN
                  ? (tl_onnx_bounds){ fmin(all.least, b.least), fmin(all.most, b.most) }
                  : hull(all, b);
    }
    return all;
}

/* What each operator makes of bounds; those that are not here may make any number. */
static tl_onnx_bounds bounds_of_node(walk *w, tl_value *v, int64_t element)
{
    const tl_node *n = v->producer;
    tl_value *source;
    int64_t at;
    if (find_source(w, n, element, &source, &at))
        return bounds_of(w, source, at);
    if (n->output_count != 1)
        return any;
    if (n->op == TL_OP_GATHER)
        return bounds_of_all(w, n->inputs[0], n->op);
    if (n->op == TL_OP_REDUCE_SUM || n->op == TL_OP_REDUCE_PROD || n->op == TL_OP_REDUCE_MAX ||
        n->op == TL_OP_REDUCE_MIN)
        return tl_shape_elements(&v->shape) == 1 ? bounds_of_all(w, n->inputs[0], n->op) : any;
    if (!tl_is_elementwise(n))
        return any;
    tl_onnx_bounds a = bounds_of_operand(w, n, 0, element);
    tl_onnx_bounds b = n->input_count > 1 ? bounds_of_operand(w, n, 1, element) : any;
    if (n->op == TL_OP_ADD)
        return (tl_onnx_bounds){ a.least + b.least, a.most + b.most };
    if (n->op == TL_OP_SUB)
        return (tl_onnx_bounds){ a.least - b.most, a.most - b.least };
    if (n->op == TL_OP_MUL)
        return product(a, b);
    if (n->op == TL_OP_DIV)
        return quotient(a, b, is_whole(v));
    if (n->op == TL_OP_MIN)
        return (tl_onnx_bounds){ fmin(a.least, b.least), fmin(a.most, b.most) };
    if (n->op == TL_OP_MAX)
        return (tl_onnx_bounds){ fmax(a.least, b.least), fmax(a.most, b.most) };
    if (n->op == TL_OP_WHERE)
        return hull(b, bounds_of_operand(w, n, 2, element));
    if (n->op == TL_OP_CLIP) {
        if (tl_node_input(n, 1) != NULL)
            a = (tl_onnx_bounds){ fmax(a.least, b.least), fmax(a.most, b.most) };
        b = tl_node_input(n, 2) != NULL ? bounds_of_operand(w, n, 2, element) : any;
        return (tl_onnx_bounds){ fmin(a.least, b.least), fmin(a.most, b.most) };
    }
    if (n->op == TL_OP_CAST)
        return is_whole(v) ? (tl_onnx_bounds){ trunc(a.least), trunc(a.most) } : a;
    if (n->op == TL_OP_FLOOR || n->op == TL_OP_CEIL || n->op == TL_OP_ROUND)
        return (tl_onnx_bounds){ floor(a.least), ceil(a.most) };
    if (n->op == TL_OP_NEG)
        return (tl_onnx_bounds){ -a.most, -a.least };
    if (n->op == TL_OP_RELU)
        return (tl_onnx_bounds){ fmax(a.least, 0), fmax(a.most, 0) };
    return any;
}

static tl_onnx_bounds bounds_of(walk *w, tl_value *v, int64_t element)
{
    tl_onnx_bounds b = any;
    if (!v->dtype_known)
        return any;
    if (v->dtype == TL_BOOL)
        return (tl_onnx_bounds){ 0, 1 };
    if (v->data != NULL) {
        tl_number n = tl_number_load(v->dtype, v->data, (size_t)element);
        double number = tl_dtype_is_float(v->dtype) ? n.f : (double)n.i;
        return isnan(number) ? any : (tl_onnx_bounds){ number, number };
    }
    const tl_onnx_bounds *said = said_of(w, v);
    if (v->producer != NULL && w->depth < MOST_DEEP && --w->steps >= 0) {
        tl_onnx_sum form;
        w->depth++;
        b = sum_of_node(w, v, element, &form) ? bounds_of_form(w, &form)
                                              : bounds_of_node(w, v, element);
        w->depth--;
    }
    if (isnan(b.least) || isnan(b.most)) /* infinity less infinity */
        b = any;
    if (said != NULL)
        b = (tl_onnx_bounds){ fmax(b.least, said->least), fmin(b.most, said->most) };
    if (tl_dtype_is_int(v->dtype) && tl_dtype_size(v->dtype) < 4)
        b = (tl_onnx_bounds){ fmax(b.least, (double)tl_dtype_infos[v->dtype].least),
                              fmin(b.most, (double)tl_dtype_infos[v->dtype].largest) };
    return b;
}

/* ---- for everybody ---- */

static walk begin_walk(tl_import *im)
{
    return (walk){ .im = im, .steps = MOST_STEPS };
}

tl_onnx_sum tl_sum_of(tl_import *im, tl_value *v, int64_t element)
{
    walk w = begin_walk(im);
    return form_of(&w, v, element);
}

tl_onnx_bounds tl_sum_bounds(tl_import *im, const tl_onnx_sum *n)
{
    walk w = begin_walk(im);
    tl_onnx_bounds b = bounds_of_form(&w, n);
    return isnan(b.least) || isnan(b.most) ? any : b;
}

bool tl_sums_are_equal(tl_import *im, const tl_onnx_sum *a, const tl_onnx_sum *b)
{
    walk w = begin_walk(im);
    tl_onnx_sum difference = *a;
    return add_times(&w, &difference, b, -1) && difference.count == 0 && difference.constant == 0;
}

static bool has_bounds(walk *w, tl_value *v)
{
    if (v->data != NULL)
        return false;
    if (said_of(w, v) != NULL)
        return true;
    bool has = false;
    if (v->producer == NULL || w->depth >= MOST_DEEP || tl_op_bodies(v->producer->op) > 0 ||
        tl_shape_elements(&v->shape) > TL_DECIDING_ELEMENTS)
        return false;
    w->depth++;
    for (int i = 0; !has && i < v->producer->input_count && --w->steps >= 0; i++)
        has = v->producer->inputs[i] != NULL && has_bounds(w, v->producer->inputs[i]);
    w->depth--;
    return has;
}

bool tl_sum_is_bounded(tl_import *im, tl_value *v, int64_t element)
{
    walk w = begin_walk(im);
    tl_onnx_sum n = form_of(&w, v, element);
    bool bounded = false;
    for (int i = 0; !bounded && i < n.count; i++)
        bounded = has_bounds(&w, n.terms[i].value);
    return bounded;
}

/* Whether the value is behind what computes `v`. */
static bool reaches(walk *w, const tl_value *v, const tl_value *target)
{
    if (v == target)
        return true;
    bool found = false;
    if (v->producer == NULL || v->data != NULL)
        return false;
    if (w->depth >= MOST_DEEP)
        return true; /* it may be */
    w->depth++;
    for (int i = 0; !found && i < v->producer->input_count; i++)
        found = --w->steps < 0 ||
                (v->producer->inputs[i] != NULL && reaches(w, v->producer->inputs[i], target));
    w->depth--;
    return found;
}

bool tl_sum_factor(tl_import *im, const tl_onnx_sum *n, const tl_value *v, bool anywhere,
                   int64_t *factor, tl_onnx_sum *rest)
{
    walk w = begin_walk(im);
    *factor = 0;
    *rest = tl_sum_constant(n->constant);
    for (int i = 0; i < n->count; i++) {
        const tl_sum_term *t = &n->terms[i];
        if (t->value == v)
            *factor = t->factor;
        else if (!anywhere && reaches(&w, t->value, v))
            return false;
        else
            rest->terms[rest->count++] = *t;
    }
    return true;
}

/* ---- arithmetic ---- */

static tl_onnx_sum sum_of_value(tl_onnx_call *c, tl_value *v)
{
    return tl_sum_of(c->import, v, 0);
}

tl_value *tl_onnx_emit_sum(tl_onnx_call *c, const tl_onnx_sum *n)
{
    tl_value *sum = NULL;
    c->import->plain_nodes++;
    for (int i = 0; i < n->count; i++) {
        const tl_sum_term *t = &n->terms[i];
        tl_value *v = t->value;
        int64_t elements = tl_shape_elements(&v->shape);
        if (elements != 1)
            v = tl_onnx_emit_slice(c, tl_onnx_emit_reshape(c, v, &elements, 1), 0, t->element, 1);
        if (v->shape.rank != 0)
            v = tl_onnx_emit_reshape(c, v, NULL, 0);
        v = tl_onnx_emit_cast(c, v, TL_I64);
        if (t->factor != 1)
            v = tl_onnx_emit_with(c, TL_OP_MUL, v, (double)t->factor);
        sum = sum != NULL ? tl_emit2(c, TL_OP_ADD, sum, v) : v;
    }
    if (sum == NULL || n->constant != 0) {
        tl_value *constant = tl_onnx_emit_scalar(c, TL_I64, 0);
        *(int64_t *)(uintptr_t)constant->data = n->constant;
        sum = sum != NULL ? tl_emit2(c, TL_OP_ADD, sum, constant) : constant;
    }
    c->import->plain_nodes--;
    return sum;
}

/* op(a, b) as a node. */
static tl_onnx_sum emit(tl_onnx_call *c, tl_op op, const tl_onnx_sum *a, const tl_onnx_sum *b)
{
    c->import->plain_nodes++;
    tl_value *y = tl_emit2(c, op, tl_onnx_emit_sum(c, a), tl_onnx_emit_sum(c, b));
    c->import->plain_nodes--;
    return sum_of_value(c, y);
}

static tl_onnx_sum add(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b, int64_t factor)
{
    walk w = begin_walk(c->import);
    tl_onnx_sum sum = a;
    if (add_times(&w, &sum, &b, factor))
        return sum;
    return emit(c, factor > 0 ? TL_OP_ADD : TL_OP_SUB, &a, &b);
}

tl_onnx_sum tl_sum_plus(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b)
{
    return add(c, a, b, 1);
}

tl_onnx_sum tl_sum_minus(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b)
{
    return add(c, a, b, -1);
}

tl_onnx_sum tl_sum_times(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b)
{
    walk w = begin_walk(c->import);
    tl_onnx_sum y = tl_sum_constant(0);
    if (tl_sum_is_constant(&b) && add_times(&w, &y, &a, b.constant))
        return y;
    if (tl_sum_is_constant(&a) && add_times(&w, &y, &b, a.constant))
        return y;
    return emit(c, TL_OP_MUL, &a, &b);
}

tl_onnx_sum tl_sum_quotient(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b)
{
    if (tl_sum_is_constant(&b) && b.constant > 0) {
        bool divides = a.constant % b.constant == 0;
        for (int i = 0; i < a.count; i++)
            divides &= a.terms[i].factor % b.constant == 0;
        if (divides) {
            a.constant /= b.constant;
            for (int i = 0; i < a.count; i++)
                a.terms[i].factor /= b.constant;
            return a;
        }
    }
    if (tl_sum_is_constant(&a) && tl_sum_is_constant(&b) && b.constant > 0)
        return tl_sum_constant(tl_floordiv(a.constant, b.constant));
    return emit(c, TL_OP_DIV, &a, &b);
}

/* The smaller one, or the larger. */
static tl_onnx_sum choose(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b, tl_op op)
{
    tl_onnx_sum difference = tl_sum_minus(c, a, b);
    tl_onnx_bounds d = tl_sum_bounds(c->import, &difference);
    if (d.most <= 0)
        return op == TL_OP_MIN ? a : b;
    if (d.least >= 0)
        return op == TL_OP_MIN ? b : a;
    return emit(c, op, &a, &b);
}

tl_onnx_sum tl_sum_min(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b)
{
    return choose(c, a, b, TL_OP_MIN);
}

tl_onnx_sum tl_sum_max(tl_onnx_call *c, tl_onnx_sum a, tl_onnx_sum b)
{
    return choose(c, a, b, TL_OP_MAX);
}

tl_onnx_sum tl_sum_where(tl_onnx_call *c, tl_value *condition, tl_onnx_sum yes, tl_onnx_sum no)
{
    if (tl_sums_are_equal(c->import, &yes, &no))
        return yes;
    c->import->plain_nodes++;
    tl_value *y = tl_onnx_emit_where(c, tl_onnx_emit_reshape(c, condition, NULL, 0),
                                     tl_onnx_emit_sum(c, &yes), tl_onnx_emit_sum(c, &no));
    c->import->plain_nodes--;
    return sum_of_value(c, y);
}

/* schedule/trace_parse.c: the text of a trace.
 *
 *     trace  :=  [ "lowering" "(" word ")" ]  step*           a step ends with its line
 *     step   :=  [ name { "," name } "=" ] primitive "(" [ arg { "," arg } ] ")"
 *     arg    :=  by the letters of primitives.def: a name, a call that gives one loop, a number,
 *                "[" factor { "," factor } "]" with "_" for the inferred one, "(...) -> (...)"
 *     number :=  sums, differences, products and quotients of digits, V and cores
 *
 * "#" starts a comment; line ends inside brackets do not count. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/array.h"
#include "runtime/base/checked.h"
#include "schedule/schedule_private.h"

enum { MAX_NESTING = 32 };

typedef struct {
    const char *name;
    int32_t number;
} loop_name;

typedef struct {
    tl_arena *arena;
    const char *file, *at, *line_start;
    int line, depth; /* depth: of brackets, where line ends do not count */
    const tl_target *target;
    tl_trace *trace;
    int name_count, name_capacity;
    loop_name *names;
    int value_count, value_capacity; /* what sampling steps gave */
    tl_arg *values;
    int32_t numbers;
    tl_diag *diag;
} parser;

static tl_status fail_at(const parser *p, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tl_status fail_at(const parser *p, const char *at, const char *format, ...)
{
    if (p->diag == NULL)
        return TL_BAD_TEXT;
    va_list args;
    va_start(args, format);
    const char *sentence = tl_arena_vformat(p->arena, format, args);
    va_end(args);
    int column = at >= p->line_start ? (int)(at - p->line_start) + 1 : 1;
    return tl_fail(p->diag, TL_BAD_TEXT, "%s:%d:%d: %.1200s", p->file, p->line, column, sentence);
}

/* Characters. */

static void skip_blanks(parser *p)
{
    for (;;) {
        if (*p->at == '#') {
            while (*p->at && *p->at != '\n')
                p->at++;
        } else if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') {
            p->at++;
        } else if (*p->at == '\n' && p->depth > 0) {
            p->at++;
            p->line++;
            p->line_start = p->at;
        } else {
            return;
        }
    }
}

static char peek(parser *p)
{
    skip_blanks(p);
    return *p->at;
}

static bool accept(parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    p->depth += c == '(' || c == '[';
    p->depth -= (c == ')' || c == ']') && p->depth > 0;
    return true;
}

static const char *found_text(parser *p)
{
    char c = peek(p);
    if (c == 0)
        return "the end of the text";
    if (c == '\n')
        return "the end of the line";
    return tl_arena_format(p->arena, "'%c'", c);
}

static tl_status expect(parser *p, char c)
{
    if (accept(p, c))
        return TL_OK;
    return fail_at(p, p->at, "expected '%c', found %s", c, found_text(p));
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '.';
}

static tl_status parse_word(parser *p, const char *what, const char **out)
{
    if (!is_letter(peek(p)))
        return fail_at(p, p->at, "expected %s, found %s", what, found_text(p));
    const char *start = p->at;
    while (is_word(*p->at))
        p->at++;
    *out = tl_arena_strndup(p->arena, start, (size_t)(p->at - start));
    return TL_OK;
}

/* Names of loops. */

static loop_name *find_name(parser *p, const char *name)
{
    for (int i = 0; i < p->name_count; i++)
        if (strcmp(p->names[i].name, name) == 0)
            return &p->names[i];
    return NULL;
}

/* The number of a result: a name that was given before keeps its number. */
static int32_t define_name(parser *p, const char *name)
{
    loop_name *known = strcmp(name, "_") == 0 ? NULL : find_name(p, name);
    if (known)
        return known->number;
    if (strcmp(name, "_") == 0)
        return ++p->numbers;
    TL_ROOM(p->arena, p->names, p->name_count, p->name_capacity);
    p->names[p->name_count++] = (loop_name){ name, ++p->numbers };
    return p->numbers;
}

/* Names of numbers and lists of factors. */

static void define_value(parser *p, const tl_arg *value)
{
    TL_ROOM(p->arena, p->values, p->value_count, p->value_capacity);
    p->values[p->value_count++] = *value;
}

/* The value of that kind that the word here names, its size; NULL: none. */
static const tl_arg *find_value(parser *p, tl_arg_kind kind, size_t *size)
{
    if (!is_letter(peek(p)))
        return NULL;
    for (*size = 0; is_word(p->at[*size]);)
        (*size)++;
    for (int i = p->value_count - 1; i >= 0; i--) {
        const tl_arg *value = &p->values[i];
        if (value->kind == kind && strlen(value->word) == *size &&
            memcmp(value->word, p->at, *size) == 0)
            return value;
    }
    return NULL;
}

static bool accept_value(parser *p, tl_arg_kind kind, tl_arg *out)
{
    size_t size;
    const tl_arg *value = find_value(p, kind, &size);
    if (value == NULL)
        return false;
    *out = (tl_arg){ .kind = kind, .word = value->word };
    p->at += size;
    return true;
}

/* Numbers. */

static tl_status parse_number(parser *p, int depth, int64_t *out);

static tl_status parse_named_number(parser *p, int64_t *out)
{
    const char *start = p->at, *word;
    TL_TRY(parse_word(p, "a number", &word));
    bool lanes = strcmp(word, "V") == 0;
    if (!lanes && strcmp(word, "cores") != 0)
        return fail_at(p, start, "%s is not a number; V and cores are the named ones", word);
    if (p->target == NULL)
        return fail_at(p, start, "%s has no value here: no target was given", word);
    *out = lanes ? tl_target_lanes(p->target, TL_F32) : p->target->cores;
    return TL_OK;
}

static tl_status parse_atom(parser *p, int depth, int64_t *out)
{
    if (depth > MAX_NESTING)
        return fail_at(p, p->at, "the number is nested deeper than %d", MAX_NESTING);
    if (accept(p, '(')) {
        TL_TRY(parse_number(p, depth + 1, out));
        return expect(p, ')');
    }
    if (accept(p, '-')) {
        TL_TRY(parse_atom(p, depth + 1, out));
        if (tl_mul_overflows(*out, -1, out))
            return fail_at(p, p->at, "the number does not fit 64 bits");
        return TL_OK;
    }
    if (!is_digit(peek(p)))
        return parse_named_number(p, out);
    const char *start = p->at;
    *out = 0;
    for (; is_digit(*p->at); p->at++)
        if (tl_mul_overflows(*out, 10, out) || tl_add_overflows(*out, *p->at - '0', out))
            return fail_at(p, start, "the number does not fit 64 bits");
    return TL_OK;
}

static tl_status parse_product(parser *p, int depth, int64_t *out)
{
    TL_TRY(parse_atom(p, depth, out));
    for (;;) {
        const char *start = (skip_blanks(p), p->at);
        int64_t right;
        if (accept(p, '*')) {
            TL_TRY(parse_atom(p, depth, &right));
            if (tl_mul_overflows(*out, right, out))
                return fail_at(p, start, "the product does not fit 64 bits");
        } else if (accept(p, '/')) {
            TL_TRY(parse_atom(p, depth, &right));
            if (right <= 0 || *out % right != 0)
                return fail_at(p, start, "%lld is not divisible by %lld", (long long)*out,
                               (long long)right);
            *out /= right;
        } else {
            return TL_OK;
        }
    }
}

static tl_status parse_number(parser *p, int depth, int64_t *out)
{
    TL_TRY(parse_product(p, depth, out));
    for (;;) {
        const char *start = (skip_blanks(p), p->at);
        int64_t right;
        bool minus = peek(p) == '-';
        if (!accept(p, '+') && !accept(p, '-'))
            return TL_OK;
        TL_TRY(parse_product(p, depth, &right));
        if ((minus && tl_mul_overflows(right, -1, &right)) || tl_add_overflows(*out, right, out))
            return fail_at(p, start, "the sum does not fit 64 bits");
    }
}

/* Arguments. */

static tl_status parse_factors(parser *p, tl_arg *out)
{
    int64_t factors[TL_MAX_ARGS];
    int count = 0;
    if (accept_value(p, TL_ARG_FACTORS, out))
        return TL_OK;
    if (!accept(p, '['))
        return fail_at(p, p->at, "expected a list of factors like [_, 8], found %s", found_text(p));
    do {
        const char *start = (skip_blanks(p), p->at);
        if (count == TL_MAX_ARGS)
            return fail_at(p, start, "more than %d factors", TL_MAX_ARGS);
        if (*start == '_' && !is_word(start[1])) {
            p->at++;
            factors[count++] = 0;
            continue;
        }
        TL_TRY(parse_number(p, 0, &factors[count]));
        if (factors[count] < 1)
            return fail_at(p, start, "the factor %lld is not at least 1",
                           (long long)factors[count]);
        count++;
    } while (accept(p, ','));
    TL_TRY(expect(p, ']'));
    *out = (tl_arg){ .kind = TL_ARG_FACTORS, .count = count };
    out->factors =
        tl_arena_copy(p->arena, factors, sizeof(int64_t) * (size_t)count, _Alignof(int64_t));
    return TL_OK;
}

/* One "( ... )" of a map, its text taken over as it is; expressions inside are the primitive's business. */
static tl_status skip_tuple(parser *p)
{
    TL_TRY(expect(p, '('));
    for (int open = 1; open > 0;) {
        char c = *p->at;
        if (c == 0 || c == '\n')
            return fail_at(p, p->at, "expected ')', found %s",
                           c ? "the end of the line" : "the end of the text");
        open += (c == '(') - (c == ')');
        p->at++;
    }
    p->depth--;
    return TL_OK;
}

/* The text of a map with the named numbers written out: V stands for lanes there too. */
static tl_status write_out_numbers(parser *p, const char *start, const char *end, const char **out)
{
    const char *text = "", *done = start, *after = p->at;
    for (const char *at = start; at < end;) {
        size_t size = 0;
        while (at + size < end && is_word(at[size]))
            size++;
        bool named = (size == 1 && *at == 'V') || (size == 5 && memcmp(at, "cores", 5) == 0);
        if (named) {
            int64_t value;
            p->at = at;
            TL_TRY(parse_named_number(p, &value));
            text = tl_arena_format(p->arena, "%s%.*s%lld", text, (int)(at - done), done,
                                   (long long)value);
            done = at + size;
        }
        at += size > 0 ? size : 1;
    }
    p->at = after;
    *out = tl_arena_format(p->arena, "%s%.*s", text, (int)(end - done), done);
    return TL_OK;
}

static tl_status parse_map(parser *p, tl_arg *out)
{
    const char *start = (skip_blanks(p), p->at);
    TL_TRY(skip_tuple(p));
    skip_blanks(p);
    if (p->at[0] != '-' || p->at[1] != '>')
        return fail_at(p, p->at, "expected '->' in a map like (i, j) -> (j, i), found %s",
                       found_text(p));
    p->at += 2;
    TL_TRY(skip_tuple(p));
    *out = (tl_arg){ .kind = TL_ARG_MAP };
    return write_out_numbers(p, start, p->at, &out->word);
}

static tl_status parse_call(parser *p, const char *word, const char *word_at, const tl_arg *outs,
                            int out_count, int nesting, tl_step **step);

/* A call in the place of a loop: it becomes a step of its own, before. */
static tl_status parse_nested(parser *p, const char *word, const char *word_at, int nesting,
                              tl_arg *out)
{
    if (nesting >= MAX_NESTING)
        return fail_at(p, word_at, "calls are nested deeper than %d", MAX_NESTING);
    tl_step *step;
    TL_TRY(parse_call(p, word, word_at, NULL, 0, nesting + 1, &step));
    if (strcmp(tl_prim_infos[step->prim].out, "L") != 0)
        return fail_at(p, word_at, "%s does not give one loop: it cannot stand in a loop's place",
                       word);
    const char *name = step->args[0].word;
    for (int i = 1; i < step->arg_count; i++)
        name = tl_arena_format(p->arena, "%s_%s", name, step->args[i].word);
    const char *base = name;
    for (int i = 1; find_name(p, name); i++)
        name = tl_arena_format(p->arena, "%s_%d", base, i);
    *out = (tl_arg){ .kind = TL_ARG_LOOP, .word = name };
    out->loop.id = define_name(p, name);
    step->outs = tl_arena_copy(p->arena, out, sizeof *out, _Alignof(tl_arg));
    step->out_count = 1;
    return TL_OK;
}

static tl_status no_such_loop(const parser *p, const char *at, const char *word)
{
    const char *names =
        p->name_count == 0 ? "; `i, j = loops(BLOCK)` gives a block's" : "; they give ";
    for (int i = 0; i < p->name_count && p->diag != NULL; i++)
        names = tl_arena_format(p->arena, "%s%s%s", names, i ? ", " : "", p->names[i].name);
    return fail_at(p, at, "no step above gives a loop %s%.600s", word, names);
}

static tl_status parse_loop(parser *p, int nesting, tl_arg *out)
{
    const char *start = (skip_blanks(p), p->at), *word;
    TL_TRY(parse_word(p, "a loop", &word));
    if (peek(p) == '(')
        return parse_nested(p, word, start, nesting, out);
    loop_name *known = find_name(p, word);
    if (known == NULL)
        return no_such_loop(p, start, word);
    *out = (tl_arg){ .kind = TL_ARG_LOOP, .word = known->name };
    out->loop.id = known->number;
    return TL_OK;
}

static tl_status parse_arg(parser *p, char letter, int nesting, tl_arg *out)
{
    switch (letter) {
    case 'L':
        return parse_loop(p, nesting, out);
    case 'F':
        return parse_factors(p, out);
    case 'M':
        return parse_map(p, out);
    case 'i':
        if (accept_value(p, TL_ARG_INT, out))
            return TL_OK;
        *out = (tl_arg){ .kind = TL_ARG_INT };
        return parse_number(p, 0, &out->value);
    case 'B':
        *out = (tl_arg){ .kind = TL_ARG_BLOCK };
        return parse_word(p, "a block", &out->word);
    default:
        *out = (tl_arg){ .kind = TL_ARG_WORD };
        return parse_word(p, letter == 'b' ? "a buffer" : "a word", &out->word);
    }
}

/* Steps. */

static tl_status no_such_prim(const parser *p, const char *at, const char *word)
{
    const char *nearest = NULL, *names = "";
    size_t least = 3;
    for (int i = 0; i < TL_PRIM_COUNT && p->diag != NULL; i++) {
        const char *name = tl_prim_infos[i].name;
        size_t edits = tl_text_edits(word, name);
        if (edits < least) {
            least = edits;
            nearest = name;
        }
        names = tl_arena_format(p->arena, "%s%s%s", names, i ? ", " : "", name);
    }
    if (nearest != NULL)
        return fail_at(p, at, "there is no primitive %s: did you mean %s?", word, nearest);
    return fail_at(p, at, "there is no primitive %s; there are %s", word, names);
}

static tl_status find_prim(const parser *p, const char *word, const char *at, tl_prim *out)
{
    for (int i = 0; i < TL_PRIM_COUNT; i++) {
        if (strcmp(tl_prim_infos[i].name, word) == 0) {
            *out = (tl_prim)i;
            return TL_OK;
        }
    }
    return no_such_prim(p, at, word);
}

/* "(args)" after the primitive's name; appends the step. */
static tl_status parse_call(parser *p, const char *word, const char *word_at, const tl_arg *outs,
                            int out_count, int nesting, tl_step **step)
{
    tl_prim prim = TL_PRIM_loops;
    TL_TRY(find_prim(p, word, word_at, &prim));
    TL_TRY(expect(p, '('));
    tl_arg args[TL_MAX_ARGS];
    int count = 0;
    const char *letter = tl_prim_infos[prim].in;
    while (*letter) {
        bool many = letter[1] == '*', optional = letter[1] == '?';
        if (peek(p) == ')') {
            if (!optional && !(many && letter[2] == 0 && count > 0))
                return fail_at(p, p->at, "%s takes more arguments than %d", word, count);
            break;
        }
        if (count > 0)
            TL_TRY(expect(p, ','));
        if (count == TL_MAX_ARGS)
            return fail_at(p, p->at, "more than %d arguments", TL_MAX_ARGS);
        size_t size;
        if (many && count > 0 && letter[2] == 'F' &&
            (peek(p) == '[' || find_value(p, TL_ARG_FACTORS, &size))) {
            letter += 2; /* tile(i, j, [8, 8]): the loops end where the list begins */
            many = false;
        }
        TL_TRY(parse_arg(p, *letter, nesting, &args[count++]));
        if (!many)
            letter += 1 + optional;
    }
    if (peek(p) == ',')
        return fail_at(p, p->at, "%s takes %d arguments, not more", word, count);
    TL_TRY(expect(p, ')'));
    *step = tl_trace_append(p->arena, p->trace, prim, args, count, outs, out_count);
    return TL_OK;
}

static tl_status check_out_count(const parser *p, const char *at, tl_prim prim, int count)
{
    assert(prim < TL_PRIM_COUNT && count >= 0);
    const char *out = tl_prim_infos[prim].out;
    bool many = out[0] && out[1] == '*';
    int most = (int)strlen(out);
    if (!many && count != most)
        return fail_at(p, at, "%s gives %d results and %d are named", tl_prim_infos[prim].name,
                       most, count);
    return TL_OK;
}

static tl_status parse_results(parser *p, const char *first, tl_arg *outs, int *count)
{
    assert(*count >= 0 && *count < TL_MAX_ARGS);
    outs[(*count)++] = (tl_arg){ .word = first };
    while (accept(p, ',')) {
        if (*count == TL_MAX_ARGS)
            return fail_at(p, p->at, "more than %d results", TL_MAX_ARGS);
        TL_TRY(parse_word(p, "a name", &outs[*count].word));
        outs[*count] = (tl_arg){ .word = outs[*count].word };
        (*count)++;
    }
    return expect(p, '=');
}

static tl_status parse_step(parser *p)
{
    tl_arg outs[TL_MAX_ARGS];
    int out_count = 0;
    const char *start = p->at, *word;
    TL_TRY(parse_word(p, "a primitive", &word));
    if (peek(p) != '(') {
        const char *first = word;
        TL_TRY(parse_results(p, first, outs, &out_count));
        start = (skip_blanks(p), p->at);
        TL_TRY(parse_word(p, "a primitive", &word));
    } else if (strcmp(word, "lowering") == 0) {
        if (p->trace->count || p->trace->lowering)
            return fail_at(p, start, "lowering stands on the first line, once");
        TL_TRY(expect(p, '('));
        TL_TRY(parse_word(p, "a lowering", &p->trace->lowering));
        return expect(p, ')');
    }
    tl_prim prim = TL_PRIM_loops;
    TL_TRY(find_prim(p, word, start, &prim));
    tl_step *step;
    /* the results are defined after the arguments are read: i = fuse(i, j) names the new one */
    TL_TRY(parse_call(p, word, start, NULL, 0, 0, &step));
    if (out_count == 0)
        return TL_OK;
    TL_TRY(check_out_count(p, start, prim, out_count));
    for (int i = 0; i < out_count; i++) {
        char letter = tl_prim_infos[prim].out[0];
        outs[i].kind = letter == 'B'   ? TL_ARG_BLOCK
                       : letter == 'F' ? TL_ARG_FACTORS
                       : letter == 'i' ? TL_ARG_INT
                                       : TL_ARG_LOOP;
        if (outs[i].kind == TL_ARG_LOOP)
            outs[i].loop.id = define_name(p, outs[i].word);
        if (outs[i].kind == TL_ARG_FACTORS || outs[i].kind == TL_ARG_INT)
            define_value(p, &outs[i]);
    }
    step->outs =
        tl_arena_copy(p->arena, outs, sizeof(tl_arg) * (size_t)out_count, _Alignof(tl_arg));
    step->out_count = out_count;
    return TL_OK;
}

tl_status tl_trace_parse(tl_arena *arena, const char *text, const char *file,
                         const tl_target *target, tl_trace **out, tl_diag *diag)
{
    tl_trace *trace = TL_NEW(arena, tl_trace);
    parser p = { .arena = arena,
                 .file = file ? file : "trace",
                 .at = text,
                 .line_start = text,
                 .line = 1,
                 .target = target,
                 .trace = trace,
                 .diag = diag };
    while (peek(&p)) {
        if (*p.at != '\n') {
            TL_TRY(parse_step(&p));
            if (peek(&p) && *p.at != '\n')
                return fail_at(&p, p.at, "expected the end of the line, found %s", found_text(&p));
        }
        if (*p.at == '\n') {
            p.at++;
            p.line++;
            p.line_start = p.at;
        }
    }
    *out = trace;
    return TL_OK;
}

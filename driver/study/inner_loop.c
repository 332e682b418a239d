/* driver/study/inner_loop.c: finds jumps back in an assembly text, whatever the machine: a label is a line that ends in ':'
 * and a jump an instruction that names one. */
#include "driver/study/inner_loop.h"
#include <string.h>
#include "runtime/base/map.h"
#include "runtime/base/text.h"

typedef struct {
    const char *text;
    size_t size;
    int arithmetic;
} line;

typedef struct {
    int begin, end; /* lines; the label, and the jump */
} span;

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$';
}

static size_t label_size(const line *l)
{
    size_t n = 0;
    while (n < l->size && is_name(l->text[n]))
        n++;
    return n > 0 && n < l->size && l->text[n] == ':' ? n : 0;
}

static bool is_instruction(const line *l)
{
    size_t n = strspn(l->text, " \t");
    return n > 0 && n < l->size && is_name(l->text[n]) && l->text[n] != '.';
}

/* Multiply-adds, products and sums of floating-point numbers and dot products, by their mnemonics. */
static int arithmetic_of(const line *l)
{
    static const char *const words[] = {
        "fma", "fmla", "mul", "dot", "vpdp", "mma", "vadd", "add."
    };
    char mnemonic[16] = "";
    size_t at = strspn(l->text, " \t"), n = 0;
    while (at + n < l->size && is_name(l->text[at + n]) && n < sizeof mnemonic - 1) {
        mnemonic[n] = l->text[at + n];
        n++;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(mnemonic, words[i]) != NULL)
            return 1;
    return 0;
}

static int split(tl_arena *arena, const char *text, line **out)
{
    int count = 1, used = 0;
    for (const char *p = text; *p != '\0'; p++)
        count += *p == '\n';
    line *lines = TL_NEW_ARRAY(arena, line, count);
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        lines[used] = (line){ .text = text, .size = size };
        if (is_instruction(&lines[used]))
            lines[used].arithmetic = arithmetic_of(&lines[used]);
        used++;
        text += size + (text[size] == '\n');
    }
    *out = lines;
    return used;
}

/* Where the comment of an instruction begins, or its end: "# ..." or "// ..." (and "#4" is a number). */
static size_t code_size(const line *l)
{
    size_t n = 0;
    for (; n < l->size; n++) {
        const char *p = l->text + n;
        bool more = n + 1 < l->size, blank = n > 0 && (p[-1] == ' ' || p[-1] == '\t');
        if (blank && more && ((p[0] == '#' && p[1] == ' ') || (p[0] == '/' && p[1] == '/')))
            break;
    }
    while (n > 0 && (l->text[n - 1] == ' ' || l->text[n - 1] == '\t'))
        n--;
    return n;
}

/* The label above line `at` that its last operand names; -1: none. */
static int jump_target(tl_arena *arena, tl_map *labels, const line *lines, int at)
{
    const line *l = &lines[at];
    size_t end = code_size(l), begin;
    while (end > 0 && !is_name(l->text[end - 1]))
        end--;
    for (begin = end; begin > 0 && is_name(l->text[begin - 1]); begin--)
        ;
    const char *name = tl_arena_strndup(arena, l->text + begin, end - begin);
    const int *found = tl_map_find(labels, name);
    return found != NULL ? *found : -1;
}

const char *tl_inner_loop(tl_arena *arena, const char *assembly)
{
    line *lines;
    int count = split(arena, assembly, &lines), span_count = 0, best = -1;
    int best_score = -1, best_size = 0;
    span *spans = TL_NEW_ARRAY(arena, span, count + 1);
    tl_map *labels = tl_map_create(arena);
    for (int i = 0; i < count; i++) {
        size_t n = label_size(&lines[i]);
        if (n > 0) {
            int *at = TL_NEW(arena, int);
            *at = i;
            tl_map_put(labels, tl_arena_strndup(arena, lines[i].text, n), at);
        } else if (is_instruction(&lines[i])) {
            int target = jump_target(arena, labels, lines, i);
            if (target >= 0)
                spans[span_count++] = (span){ target, i };
        }
    }
    for (int s = 0; s < span_count; s++) {
        bool innermost = true;
        int score = 0;
        for (int o = 0; o < span_count && innermost; o++)
            innermost = o == s || spans[o].begin < spans[s].begin || spans[o].end > spans[s].end ||
                        (spans[o].begin == spans[s].begin && spans[o].end > spans[s].end);
        for (int i = spans[s].begin; i <= spans[s].end; i++)
            score += lines[i].arithmetic;
        int size = spans[s].end - spans[s].begin;
        if (innermost && (score > best_score || (score == best_score && size > best_size))) {
            best = s;
            best_score = score;
            best_size = size;
        }
    }
    tl_text out = { 0 };
    for (int i = best >= 0 ? spans[best].begin : count; best >= 0 && i <= spans[best].end; i++) {
        if (label_size(&lines[i]) == 0 && !is_instruction(&lines[i]))
            continue;
        tl_text_add_bytes(&out, lines[i].text, code_size(&lines[i]));
        tl_text_add(&out, "\n");
    }
    const char *copy = tl_arena_strdup(arena, tl_text_get(&out));
    tl_text_free(&out);
    return copy;
}

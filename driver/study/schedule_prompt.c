/* driver/study/schedule_prompt.c: tilth schedule -i: steps typed one at a time. What was typed so far is the text of a trace;
 * every command looks at the schedule that this text makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver/cli/line_edit.h"
#include "driver/study/schedule_verb.h"
#include "runtime/base/file.h"
#include "schedule/legal_steps.h"

typedef struct {
    tl_study *study;
    const char *file;
    double seconds;
    const char *text; /* of the trace, every line ended */
    tl_script script;
    tl_walk walk;
    bool quit;
} prompt;

static void say(const tl_diag *diag)
{
    tl_print_styled(stdout, TL_STYLE_RED, "%s", diag->text);
    printf("\n");
}

/* Makes `text` the trace; when it does not apply the old one stays. */
static bool take(prompt *p, const char *text)
{
    tl_diag diag = { 0 };
    tl_script script;
    tl_status status = tl_script_parse(p->study, p->file, text, &script, &diag);
    tl_script *kept = TL_NEW(p->study->arena, tl_script);
    *kept = script;
    if (status == TL_OK) {
        tl_walk walk = tl_walk_start(p->study, kept);
        status = tl_walk_to_end(&walk, &diag);
        if (status == TL_OK) {
            p->text = text;
            p->script = script;
            p->walk = walk;
        }
    }
    if (status != TL_OK)
        say(&diag);
    return status == TL_OK;
}

static void show_change(prompt *p, const tl_program *before)
{
    tl_line_diff diff = tl_program_diff(p->study->arena, before, tl_walk_program(&p->walk));
    if (diff.removed + diff.added > 0)
        tl_line_diff_print(&diff, 2, "", stdout);
}

/* A line of the trace: "i, j = loops(C)", "unroll(i)", or a comment. */
static void add_line(prompt *p, const char *line)
{
    const tl_program *before = tl_walk_program(&p->walk);
    if (take(p, tl_arena_format(p->study->arena, "%s%s\n", p->text, line)))
        show_change(p, before);
}

/* Commands. */

static void undo(prompt *p, const char *argument)
{
    int count = p->script.count, back = *argument != '\0' ? atoi(argument) : 1;
    const tl_program *before = tl_walk_program(&p->walk);
    if (back < 1 || back > count) {
        printf("undo: the trace has %d line%s\n", count, count == 1 ? "" : "s");
        return;
    }
    size_t size = back < count ? p->script.lines[count - back - 1].text_end + 1 : 0;
    for (int i = count - back; i < count; i++)
        printf("- %s\n", p->script.lines[i].text);
    if (take(p, tl_arena_strndup(p->study->arena, p->text, size)))
        show_change(p, before);
}

static void show(prompt *p, const char *argument)
{
    tl_diag diag = { 0 };
    if (tl_show(p->study, &p->walk, *argument != '\0' ? argument : "program", false, &diag) !=
        TL_OK)
        say(&diag);
}

static void list(prompt *p, const char *argument)
{
    (void)argument;
    fputs(p->text, stdout);
}

static void look(prompt *p, bool bench, bool verify)
{
    tl_findings findings;
    tl_findings_make(p->study, tl_walk_program(&p->walk), bench, verify, p->seconds, &findings);
    tl_findings_print(&findings, "", stdout);
}

static void bench(prompt *p, const char *argument)
{
    (void)argument;
    look(p, true, false);
}

static void verify(prompt *p, const char *argument)
{
    (void)argument;
    look(p, false, true);
}

typedef struct {
    const char *name;
    const tl_stmt *found;
    tl_text names;
} loop_search;

static bool find_loop(const tl_stmt *stmt, void *context)
{
    loop_search *search = context;
    if (stmt->kind != TL_STMT_LOOP)
        return true;
    tl_text_format(&search->names, "%s%s", search->names.size ? ", " : "", stmt->u.loop.var->name);
    if (search->found == NULL && strcmp(stmt->u.loop.var->name, search->name) == 0)
        search->found = stmt;
    return true;
}

/* A loop by the trace's name for it, else by the program's. */
static void why(prompt *p, const char *argument)
{
    const tl_program *program = tl_walk_program(&p->walk);
    loop_search search = { .name = argument };
    tl_stmt_visit(program->body, find_loop, &search);
    if (program->prepare != NULL)
        tl_stmt_visit(program->prepare, find_loop, &search);
    const tl_stmt *loop =
        tl_schedule_get_loop(p->walk.schedule, tl_replay_loop(p->walk.replay, argument));
    loop = loop != NULL ? loop : search.found;
    if (loop == NULL) {
        printf("why: there is no loop '%s'; the loops are %s\n", argument,
               tl_text_get(&search.names));
    } else {
        tl_text out = { 0 };
        tl_schedule_why(p->walk.schedule, p->walk.replay, loop, &out);
        fputs(tl_text_get(&out), stdout);
        tl_text_free(&out);
    }
    tl_text_free(&search.names);
}

static void save(prompt *p, const char *argument)
{
    tl_diag diag = { 0 };
    if (*argument == '\0')
        printf("save: into which file?\n");
    else if (tl_file_write(argument, p->text, strlen(p->text), &diag) != TL_OK)
        say(&diag);
    else
        printf("%d lines saved in %s\n", p->script.count, argument);
}

static void quit(prompt *p, const char *argument)
{
    (void)argument;
    p->quit = true;
}

static void help(prompt *p, const char *argument);

static const struct {
    const char *name, *argument, *what;
    void (*run)(prompt *p, const char *argument);
} commands[] = {
    { "show", "[FORM,..]", "the program, or trace, footprint, passes, llvm, asm, loop", show },
    { "list", "", "the lines of the trace, as typed", list },
    { "undo", "[N]", "take the last line back, or the last N", undo },
    { "why", "LOOP", "what a loop drives, which primitives apply to it, and why others do not",
      why },
    { "bench", "", "how fast it is now", bench },
    { "verify", "", "whether it still computes the same", verify },
    { "save", "FILE", "write the trace", save },
    { "help", "", "this", help },
    { "quit", "", "leave (or Ctrl-D)", quit },
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* "split(loop, [factor, ..])" from the letters. */
static void print_primitive(const char *name, const char *letters)
{
    printf("  %s(", name);
    for (const char *l = letters; *l != '\0'; l++) {
        static const struct {
            char letter;
            const char *text;
        } texts[] = { { 'L', "loop" },
                      { 'B', "block" },
                      { 'b', "buffer" },
                      { 'i', "number" },
                      { 's', "word" },
                      { 'F', "[factor, ..]" },
                      { 'M', "(i, ..) -> (..)" },
                      { '*', ", .." },
                      { '?', " or nothing" } };
        bool follows = strchr("*?", *l) != NULL;
        printf("%s", l > letters && !follows ? ", " : "");
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (texts[i].letter == *l)
                printf("%s", texts[i].text);
    }
    printf(")\n");
}

static void help(prompt *p, const char *argument)
{
    (void)p;
    (void)argument;
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("  %-7s%-10s %s\n", commands[i].name, commands[i].argument, commands[i].what);
    printf("and lines of a trace, like  i, j, k = loops(C)  or  i0, i1 = split(i, [_, 8]):\n");
    for (int i = 0; tl_prim_name(i) != NULL; i++)
        print_primitive(tl_prim_name(i), tl_prim_arguments(i));
}

/* Completion. */

typedef struct {
    int wanted;
    const char *found;
} word_search;

static bool find_block(const tl_stmt *stmt, void *context)
{
    word_search *search = context;
    if (stmt->kind == TL_STMT_BLOCK && search->wanted-- == 0)
        search->found = stmt->u.block->name;
    else if (stmt->kind == TL_STMT_ALLOC && search->wanted-- == 0)
        search->found = stmt->u.alloc.buffer->name;
    return search->found == NULL;
}

static const char *loop_word(const prompt *p, int n)
{
    for (int s = 0; s < p->script.trace->count; s++) {
        const tl_step *step = &p->script.trace->steps[s];
        for (int o = 0; o < step->out_count; o++)
            if (step->outs[o].kind == TL_ARG_LOOP && n-- == 0)
                return step->outs[o].word;
    }
    return NULL;
}

static int loop_word_count(const prompt *p)
{
    int n = 0;
    while (loop_word(p, n) != NULL)
        n++;
    return n;
}

/* At the beginning commands and primitives; inside of a step the trace's loops, parameters, blocks and local buffers,
 * and primitives for nested calls and what stands after "=". */
static const char *word(void *user, const char *before, int n)
{
    const prompt *p = user;
    before += strspn(before, " \t");
    if (strncmp(before, "show", 4) == 0)
        return tl_show_item(n);
    if (strncmp(before, "why", 3) == 0)
        return loop_word(p, n);
    if (*before == '\0') {
        if (n < COMMAND_COUNT)
            return commands[n].name;
        return tl_prim_name(n - COMMAND_COUNT);
    }
    for (int i = 0; tl_prim_name(i) != NULL; i++)
        if (n-- == 0)
            return tl_prim_name(i);
    if (n < loop_word_count(p))
        return loop_word(p, n);
    n -= loop_word_count(p);
    const tl_program *program = tl_walk_program(&p->walk);
    for (int i = 0; i < program->param_count; i++)
        if (n-- == 0)
            return program->params[i]->name;
    word_search search = { n, NULL };
    tl_stmt_visit(program->body, find_block, &search);
    return search.found;
}

/* The loop. */

static void execute(prompt *p, const char *line)
{
    line += strspn(line, " \t");
    size_t size = strcspn(line, " \t"), end = strlen(line);
    if (*line == '\0')
        return;
    const char *argument = line + size + strspn(line + size, " \t");
    while (end > 0 && strchr(" \t", line[end - 1]) != NULL)
        end--;
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strlen(commands[i].name) == size && strncmp(line, commands[i].name, size) == 0) {
            size_t length = line + end > argument ? (size_t)(line + end - argument) : 0;
            commands[i].run(p, tl_arena_strndup(p->study->arena, argument, length));
            return;
        }
    if (*line == '#' || strpbrk(line, "(=") != NULL)
        add_line(p, line);
    else
        printf("'%.*s' is neither a command nor a step like unroll(i): try help\n", (int)size,
               line);
}

tl_status tl_schedule_prompt(tl_study *study, const char *file, const char *text, double seconds,
                             tl_diag *diag)
{
    prompt p = { .study = study, .file = *file == '<' ? "line" : file, .seconds = seconds };
    size_t size = strlen(text);
    bool ended = size == 0 || text[size - 1] == '\n';
    text = tl_arena_format(study->arena, "%s%s", text, ended ? "" : "\n");
    TL_TRY(tl_script_parse(study, p.file, text, &p.script, diag));
    tl_script *kept = TL_NEW(study->arena, tl_script);
    *kept = p.script;
    p.walk = tl_walk_start(study, kept);
    TL_TRY(tl_walk_to_end(&p.walk, diag));
    p.text = text;

    const char *name = tl_arena_format(study->arena, "%s> ", study->naive->name);
    tl_line_editor *editor = tl_line_editor_open(name, word, &p);
    if (editor == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "the terminal cannot be used");
    if (tl_line_editor_is_terminal(editor))
        printf("%s\n`help` lists what can be typed here; Tab completes.\n",
               tl_program_text(study->arena, tl_walk_program(&p.walk)));
    const char *line;
    while (!p.quit && (line = tl_line_editor_read(editor)) != NULL) {
        execute(&p, line);
        fflush(stdout);
    }
    if (!p.quit && tl_line_editor_is_terminal(editor))
        putchar('\n');
    tl_line_editor_close(editor);
    return TL_OK;
}

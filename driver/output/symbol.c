/* driver/output/symbol.c: names for C that a compiled model is linked by. */
#include "driver/output/symbol.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "driver/output/output.h"

/* What the header that declares the model would not compile with, in C up to C23 and in C++ up to C++23, and the macros of
 * the headers that it includes. */
static const char *const words[] = {
    "alignas",     "alignof",
    "and",         "and_eq",
    "asm",         "auto",
    "bitand",      "bitor",
    "bool",        "break",
    "case",        "catch",
    "char",        "char16_t",
    "char32_t",    "char8_t",
    "class",       "co_await",
    "co_return",   "co_yield",
    "compl",       "concept",
    "const",       "const_cast",
    "consteval",   "constexpr",
    "constinit",   "continue",
    "decltype",    "default",
    "delete",      "do",
    "double",      "dynamic_cast",
    "else",        "enum",
    "explicit",    "export",
    "extern",      "false",
    "float",       "for",
    "friend",      "goto",
    "if",          "inline",
    "int",         "linux",
    "long",        "mutable",
    "namespace",   "new",
    "noexcept",    "not",
    "not_eq",      "nullptr",
    "operator",    "or",
    "or_eq",       "private",
    "protected",   "public",
    "register",    "reinterpret_cast",
    "requires",    "restrict",
    "return",      "short",
    "signed",      "sizeof",
    "static",      "static_assert",
    "static_cast", "struct",
    "switch",      "template",
    "this",        "thread_local",
    "throw",       "true",
    "try",         "typedef",
    "typeid",      "typename",
    "typeof",      "typeof_unqual",
    "union",       "unix",
    "unsigned",    "using",
    "virtual",     "void",
    "volatile",    "wchar_t",
    "while",       "xor",
    "xor_eq",      "NULL",
    "errno",       "offsetof",
};

static bool is_in_c(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool begins(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static bool is_word(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

/* A model by the name of a function that every program has would take its place. */
static bool is_in_library(const char *name)
{
    static const char *const libraries[] = { "libc.so.6", "libm.so.6" };
    bool found = false;

    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !found; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) {
            found = dlsym(library, name) != NULL;
            dlclose(library);
        }
    }
    return found;
}

/* Why the name cannot be had; NULL: it can. */
static const char *objection(const char *name)
{
    size_t size = strlen(name);

    if (is_word(name))
        return "a word of C or C++, or a macro";
    if (name[0] == '_' || (size > 2 && strcmp(name + size - 2, "_t") == 0))
        return "reserved in C: it begins with _ or ends with _t";
    if (strcmp(name, "main") == 0 || is_in_library(name))
        return "taken: every program has one";
    if (begins(name, "tilth_") || begins(name, "TILTH_") || begins(name, "tl_"))
        return "taken: such names are tilth's own";
    return NULL;
}

tl_status tl_symbol_check(const char *name, size_t size, tl_diag *diag)
{
    bool good = name[0] != '\0' && !isdigit((unsigned char)name[0]) && strlen(name) < size;

    for (const char *p = name; *p != '\0'; p++)
        good = good && is_in_c(*p);
    if (!good)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--symbol: '%.300s' is no name in C", name);
    const char *why = objection(name);
    if (why != NULL)
        return tl_fail(diag, TL_BAD_ARGUMENT, "--symbol: '%s' is %s", name, why);
    return TL_OK;
}

void tl_symbol_of_path(const char *path, char *out, size_t size)
{
    const char *base = tl_output_base(path);

    snprintf(out, size - 1, "model_%.*s", (int)strcspn(base, "."), base);
    for (char *p = out; *p != '\0'; p++)
        *p = is_in_c(*p) ? *p : '_';
    if (objection(out) != NULL) /* model_t */
        strcat(out, "_");
}

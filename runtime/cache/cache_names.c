/* runtime/cache/cache_names.c: the names that the cache gives. Nothing of another form is ever looked into, counted, renewed or
 * removed, wherever it lies. */
#include <string.h>
#include "runtime/cache/cache_private.h"
#include "runtime/executable/executable.h"

bool tl_cache_is_key(const char *name)
{
    return strlen(name) == TL_CACHE_KEY && strspn(name, "0123456789abcdef") == TL_CACHE_KEY;
}

/* ".PROCESS-NUMBER", what follows the name of a file in the making where the file system has no nameless files
 * (runtime/base/file.c), or nothing. */
static bool is_end(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t process, number;

    if (*text == '\0')
        return true;
    process = *text == '.' ? strspn(text + 1, digits) : 0;
    if (process < 1 || process > 8 || text[1 + process] != '-')
        return false;
    text += 1 + process + 1;
    number = strspn(text, digits);
    return number >= 1 && number <= 8 && text[number] == '\0';
}

static bool begins(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

bool tl_cache_is_object_name(const char *name)
{
    char key[TL_CACHE_KEY + 1];

    if (strlen(name) < TL_CACHE_KEY)
        return false;
    memcpy(key, name, TL_CACHE_KEY);
    key[TL_CACHE_KEY] = '\0';
    name += TL_CACHE_KEY;
    return tl_cache_is_key(key) && begins(name, ".obj") && is_end(name + strlen(".obj"));
}

bool tl_cache_is_model_name(const char *name)
{
    for (int i = 0; tl_executable_files[i] != NULL; i++)
        if (begins(name, tl_executable_files[i]) && is_end(name + strlen(tl_executable_files[i])))
            return true;
    return false;
}

bool tl_cache_is_tag_name(const char *name)
{
    return begins(name, TL_CACHE_TAG) && is_end(name + strlen(TL_CACHE_TAG));
}

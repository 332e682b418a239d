/* runtime/device/device.c: devices by name. */
#include "runtime/device/device.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/text.h"

static const tl_device_type *const types[] = {
#define DEVICE(name, text) &tl_device_type_##name,
#include "runtime/device/devices.def"
#undef DEVICE
};
enum { TYPE_COUNT = sizeof types / sizeof *types, MOST_ADDED = 4 };

/* Rows of programs that have more than a runtime. Once added, a row stays. */
static const tl_device_type *_Atomic added[MOST_ADDED];

const tl_device_type *tl_device_type_at(int index)
{
    if (index < 0 || index >= TYPE_COUNT + MOST_ADDED)
        return NULL;
    return index < TYPE_COUNT ? types[index] : added[index - TYPE_COUNT];
}

void tl_device_type_add(const tl_device_type *type)
{
    for (int i = 0; i < MOST_ADDED; i++) {
        const tl_device_type *none = NULL;
        if (atomic_compare_exchange_strong(&added[i], &none, type) || none == type)
            return;
    }
}

const tl_device_type *tl_device_type_named(const char *name)
{
    size_t size = strcspn(name, ":");
    const tl_device_type *type;
    for (int i = 0; (type = tl_device_type_at(i)) != NULL; i++)
        if (strlen(type->name) == size && memcmp(type->name, name, size) == 0)
            return type;
    return NULL;
}

static bool read_number(const char *name, int *out)
{
    const char *colon = strchr(name, ':');
    char *end;

    *out = 0;
    if (colon == NULL)
        return true;
    if (colon[1] < '0' || colon[1] > '9')
        return false;
    long number = strtol(colon + 1, &end, 10);
    *out = (int)number;
    return *end == '\0' && number < 1024;
}

tl_status tl_device_open(const char *name, tl_device **out, tl_diag *diag)
{
    const tl_device_type *type = tl_device_type_named(name);
    int number, count;

    if (type == NULL || !read_number(name, &number)) {
        tl_text known = { 0 };
        for (int i = 0; tl_device_type_at(i) != NULL; i++)
            tl_text_format(&known, "%s%s", i > 0 ? ", " : "", tl_device_type_at(i)->name);
        tl_status status = tl_fail(diag, TL_BAD_ARGUMENT,
                                   "there is no device %.40s; known are %s, with a number behind "
                                   "a colon",
                                   name, tl_text_get(&known));
        tl_text_free(&known);
        return status;
    }
    TL_TRY(type->count(&count, diag));
    if (number >= count)
        return tl_fail(diag, TL_DEVICE, "there is no device %.40s: this machine has %d, %s:0%s",
                       name, count, type->name, count > 1 ? " and on" : "");
    return type->open(number, out, diag);
}

void tl_device_close(tl_device *device)
{
    if (device != NULL)
        device->type->close(device);
}

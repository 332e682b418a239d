/* codegen/object/write_object.h: kernels' objects and data put together as one relocatable ELF object, without an
 * assembler or a linker. Bulk goes from where it lies to the file; nothing of it is copied in memory. */
#ifndef TL_CODEGEN_OBJECT_WRITE_OBJECT_H
#define TL_CODEGEN_OBJECT_WRITE_OBJECT_H
#include "runtime/base/pieces.h"

typedef enum {
    TL_OBJECT_TEXT,     /* read-only data */
    TL_OBJECT_BULK,     /* a lot of it, from a page's beginning on */
    TL_OBJECT_LARGE,    /* more of it than code reaches across: out of its way */
    TL_OBJECT_POINTERS, /* read-only once the loader has filled its pointers in */
    TL_OBJECT_DATA_COUNT
} tl_object_data;

typedef struct {
    tl_object_data kind;
    const char *name; /* of its symbol, which is local */
    tl_pieces pieces;
} tl_object_section;

/* 8 bytes that get an address. */
typedef struct {
    int section; /* where, */
    int64_t offset;
    int target;           /* the address of this section's beginning, */
    const char *function; /* or, when not NULL, of this function of object `target`, */
    int64_t addend;       /* and this much */
} tl_object_pointer;

/* A global name for the beginning of a section. */
typedef struct {
    const char *name;
    int section;
} tl_object_export;

typedef struct {
    tl_pieces code; /* relocatable objects, one a piece; their functions become local */
    int section_count, pointer_count, export_count;
    const tl_object_section *sections;
    const tl_object_pointer *pointers;
    const tl_object_export *exports;
} tl_object_parts;

/* TL_UNSUPPORTED for objects that are not for x86-64; TL_BAD_ARGUMENT for one that is damaged, has data other than
 * constants, or lacks a function that a pointer names. */
tl_status tl_object_write(const tl_object_parts *parts, tl_file *file, tl_diag *diag);

#endif

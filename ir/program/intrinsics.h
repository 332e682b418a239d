/* ir/program/intrinsics.h: what an opaque or tensorized block may call (ir/program/intrinsics.def), and what each call
 * computes. The functions here are the meaning: the interpreter runs them, code generation must agree. */
#ifndef TL_IR_PROGRAM_INTRINSICS_H
#define TL_IR_PROGRAM_INTRINSICS_H
#include <stdbool.h>
#include <stdint.h>
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

typedef enum {
#define INTRINSIC(name, reads, writes, scalars) TL_INTRINSIC_##name,
#include "ir/program/intrinsics.def"
#undef INTRINSIC
    TL_INTRINSIC_COUNT
} tl_intrinsic;

/* One region of a call, packed row-major. */
typedef struct {
    tl_dtype dtype;
    int rank;
    const int64_t *extents;
    void *data;
} tl_operand;

/* Checks dtypes and extents of the operands (TL_BAD_IR says which does not fit), then computes the write
 * operands from the read operands. An operand that is read and written is passed twice, with different memory. */
typedef tl_status tl_intrinsic_run(const tl_operand *reads, const tl_operand *writes,
                                   const int64_t *scalars, tl_diag *diag);

typedef struct {
    const char *name;
    int read_count, write_count, scalar_count;
    tl_intrinsic_run *run;
} tl_intrinsic_info;
extern const tl_intrinsic_info tl_intrinsic_infos[TL_INTRINSIC_COUNT];

/* Whether it takes its operands as tf32 (ir/program/warp_products.def, warpgroup_products.def). */
bool tl_intrinsic_rounds(const char *name);
/* Whether a warp of a GPU computes it (ir/program/warp_products.def). */
bool tl_intrinsic_of_warp(const char *name);
/* Whether a warpgroup of a GPU computes it (ir/program/warpgroup_products.def). */
bool tl_intrinsic_of_group(const char *name);
/* Whether its regions may go beyond their buffers: zeroes are read there, and what is written there is dropped. */
bool tl_intrinsic_goes_outside(tl_intrinsic which);
bool tl_intrinsic_from_name(const char *name, tl_intrinsic *out);

#endif

/* ir/program/machine.h: what was measured of a machine, as the analytic model and what learns from records see it.
 *
 * A profile is no part of what a target is: it enters no target's text or fingerprint and no key of an object. It is a text
 * of lines KEY = VALUE, with a section for each instruction set:
 *
 *     tilth machine profile 1
 *     cpu = AMD EPYC
 *     caches = 48K 1M 32M
 *     cores = 2
 *     date = 2026-11-24
 *     clock_ghz = 3.7              # GHz, of one core that is busy
 *     [x86-64-v4]
 *     fma_per_cycle = 2            # multiply-adds of whole vectors
 *     digest = 5f0c...             of the rounded values: the same for the same machine, whatever the date
 *
 * A value that is not in the text is that of the built-in profile. */
#ifndef TL_IR_PROGRAM_MACHINE_H
#define TL_IR_PROGRAM_MACHINE_H
#include "ir/program/target.h"

typedef struct {
#define MACHINE_UNIT(name, ...) double name;
#include "ir/program/machine.def"
#undef MACHINE_UNIT
} tl_machine_unit;

/* What the vectors of an instruction set do, and what they all meet. */
struct tl_machine {
    char cpu[96];    /* the processor's own name; "": none, the built-in profile */
    char caches[64]; /* "48K 1M 32M": L1 and L2 of a core, L3 */
    int cores;       /* that could be used when it was measured */
    char date[32];
    char digest[33]; /* of everything but the date; tl_machine_seal */
#define MACHINE(name, ...) double name;
#include "ir/program/machine.def"
#undef MACHINE
    tl_machine_unit units[TL_ISA_COUNT];
};

/* What the analytic model assumed before anything was measured: a core of Skylake to Ice Lake or Zen 3 to 5. */
extern const tl_machine tl_machine_built_in;

/* The target's profile, or the built-in one; and what it says of the target's vectors. */
const tl_machine *tl_machine_of(const tl_target *target);
const tl_machine_unit *tl_machine_unit_of(const tl_target *target);

/* Rounds every value, brings it into its bounds, and fills `digest`. A value that is 0 or no number was not measured: it
 * becomes the built-in one. `before` (NULL: none) is an earlier profile of the same machine: what lies within three
 * quarters of a step of its value keeps it, so that values at the edge between two steps do not go to and fro. */
void tl_machine_seal(tl_machine *machine, const tl_machine *before);
/* Digest of the values that the analytic model asks for: profiles of the same stamp lead to the same default schedules. */
void tl_machine_stamp(const tl_machine *machine, char out[33]);

void tl_machine_print(const tl_machine *machine, tl_text *out);
/* TL_BAD_TEXT: what is wrong, and in which line. */
tl_status tl_machine_parse(const char *text, size_t size, tl_machine *out, tl_diag *diag);

/* "48K 1M 32M" of a target, as in a profile. */
void tl_machine_caches(const tl_target *target, char out[64]);

/* Each value: once a machine (isa TL_ISA_COUNT) and once an instruction set. */
typedef void tl_machine_visitor(void *user, tl_isa isa, const char *name, double value,
                                const char *unit, const char *words);
void tl_machine_visit(const tl_machine *machine, tl_machine_visitor *visit, void *user);

#endif

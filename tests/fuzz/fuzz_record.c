/* tests/fuzz/fuzz_record.c: a line of an exported database: a record, a workload or a choice. */
#include "tests/fuzz/fuzz.h"
#include "tuner/records/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tl_arena *arena = tl_arena_create(0);
    tl_diag diag = { 0 };
    tl_record record;
    tl_workload_info workload;
    tl_choice choice;
    if (TL_ARENA_GUARD(arena) == 0) {
        const char *text = fuzz_text(arena, bytes, size);
        fuzz_check_refusal(tl_record_parse(arena, text, &record, &diag), &diag);
        fuzz_check_refusal(tl_workload_parse(arena, text, &workload, &diag), &diag);
        fuzz_check_refusal(tl_choice_parse(arena, text, &choice, &diag), &diag);
    }
    tl_arena_destroy(arena);
    return 0;
}

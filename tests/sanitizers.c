/* tests/sanitizers.c: what the sanitizers of VARIANT=asan and VARIANT=tsan are told, linked into every program of such a
 * build, so that it holds whoever starts it. A suppression is for other people's libraries only, and says why. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__tsan_default_suppressions(void);

/* A size that no allocator has is answered with NULL, as malloc does, not with the end of the program. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* None of these is built with the sanitizer, which therefore sees neither LLVM's atomic operations nor the barriers of
 * OpenMP, which order what XGBoost's threads do. */
const char *__tsan_default_suppressions(void)
{
    return "race:libLLVM\n"
           "race:libxgboost\n";
}

/* tests/tuner/test_verdict.c: what decides whether a tuned model is kept, without a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "tuner/model/sieve.h"
#include "tuner/model/verdict_private.h"

/* Median, low and high of the ratio of the whole and of the kernels that differ; whether that is faster beyond doubt. */
static void what_is_faster_beyond_doubt(void **state)
{
    (void)state;
    static const struct {
        tl_interval whole, part;
        bool faster;
    } cases[] = {
        { { 0.98, 0.97, 0.99 }, { 0.95, 0.94, 0.96 }, true },
        { { 0.98, 0.97, 0.99 }, { 0.99, 0.97, 1.01 }, true },  /* the whole is enough */
        { { 0.99, 0.97, 1.01 }, { 0.96, 0.95, 0.97 }, true },  /* hidden by what is the same */
        { { 0.99, 0.97, 1.01 }, { 0.98, 0.95, 1.01 }, false }, /* neither is sure */
        { { 1.01, 0.99, 1.03 }, { 0.96, 0.95, 0.97 }, false }, /* the others pay for it */
        { { 1.02, 1.01, 1.03 }, { 1.05, 1.04, 1.06 }, false },
        { { NAN, -INFINITY, INFINITY }, { NAN, -INFINITY, INFINITY }, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tl_verdict_is_faster(&(tl_verdict_comparison){
                .ratio = cases[i].whole, .part = cases[i].part }) != cases[i].faster)
            fail_msg("case %zu", i);
}

/* Some are wrong whatever is beside them, one pair only together. */
typedef struct {
    unsigned wrong;
    int one, other; /* of the pair */
    int judged;
    bool has_time;
} sifted;

static bool is_over(void *user)
{
    const sifted *s = user;
    return !s->has_time;
}

static tl_status judge(void *user, const int *members, int count, bool *right, tl_diag *diag)
{
    (void)diag;
    sifted *s = user;
    int of_pair = 0;
    *right = true;
    for (int i = 0; i < count; i++) {
        *right &= !(s->wrong >> members[i] & 1);
        of_pair += members[i] == s->one || members[i] == s->other;
    }
    *right &= of_pair < 2;
    s->judged++;
    return TL_OK;
}

static void what_is_wrong_is_sifted_out(void **state)
{
    (void)state;
    static const struct {
        int count;
        sifted things;
        unsigned left;
        int most;
    } cases[] = {
        { 1, { 1, -1, -1, 0, true }, 0, 0 }, /* known already */
        { 2, { 2, -1, -1, 0, true }, 1, 2 },
        { 32, { 1U << 3, -1, -1, 0, true }, ~(1U << 3), 10 },
        { 32, { 1U << 3 | 1U << 17, -1, -1, 0, true }, ~(1U << 3 | 1U << 17), 20 },
        { 32, { 0, 5, 30, 0, true }, ~(1U << 30), 10 }, /* the first of a pair stays */
        { 31, { ~0U, -1, -1, 0, true }, 0, 60 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int members[32];
        sifted things = cases[i].things;
        tl_sieve sieve = {
            .judge = judge, .is_over = is_over, .user = &things, .members = members
        };
        assert_int_equal(tl_sieve_sift(&sieve, cases[i].count, NULL), TL_OK);
        unsigned left = 0;
        for (int m = 0; m < sieve.member_count; m++)
            left |= 1U << members[m];
        assert_int_equal(left, cases[i].left);
        assert_in_range(things.judged, 0, cases[i].most);
        things.judged = 0;
        things.has_time = false;
        assert_int_equal(tl_sieve_sift(&sieve, cases[i].count, NULL), TL_OK);
        assert_int_equal(sieve.member_count, 0);
        assert_int_equal(things.judged, 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_faster_beyond_doubt),
        cmocka_unit_test(what_is_wrong_is_sifted_out),
    };
    return cmocka_run_group_tests_name("tuner verdict", tests, NULL, NULL);
}

/* tuner/measure/witness.c: a peak loop, a small matrix product in L2 and a copy through L3: on a quiet machine each runs at its
 * best again and again. Another tenant that takes cycles, or a core, shows in the first (it runs on as many threads as are
 * measured), one that takes cache or memory in the others. One that has another hyperthread of our core shows in none of
 * them, for two multiply-adds a cycle leave room beside them; but kernels lose up to half of their speed. It shows in plain
 * additions, of which a core alone begins as many as it can. Best means: of the last samples, so that a machine that
 * became slower for good is believed in the end. */
#include "tuner/measure/witness.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/clock.h"
#include "runtime/device/peak.h"

enum {
    SIDE = 128,
    COPY_BYTES = 4 << 20,
    KEPT = 32,
    ADDITIONS = 7000,
    CHAIN = 1000,
    FIRST_LOOKS = 50
};
#define FIRST_NAP_NS 1000000
#define NEAR_BEST    0.85

typedef enum { PEAK, PRODUCT, COPY, WITNESS_COUNT } witness_kind;

struct tl_witness {
    double kept[WITNESS_COUNT][KEPT], best[WITNESS_COUNT];
    int count;
    int64_t sampled_ns;
    bool is_calm;
    double least_crowding; /* with the core to itself */
    float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    char *from, *to;
};

tl_witness *tl_witness_create(void)
{
    tl_witness *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->from = calloc(2, COPY_BYTES);
    if (w->from == NULL) {
        free(w);
        return NULL;
    }
    w->to = w->from + COPY_BYTES;
    for (int i = 0; i < SIDE * SIDE; i++)
        w->a[i] = w->b[i] = 1.0f / SIDE;
    return w;
}

/* Plain loops on vectors that every machine has: it is compared with itself only. */
typedef float vector __attribute__((vector_size(16), aligned(4)));

static double run_product(tl_witness *w)
{
    int64_t start = tl_clock_ns();
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j += 16) {
            vector sum[4] = { { 0 } };
            for (int k = 0; k < SIDE; k++) {
                const vector *row = (const vector *)&w->b[k * SIDE + j];
                float x = w->a[i * SIDE + k];
                for (int v = 0; v < 4; v++)
                    sum[v] += row[v] * x;
            }
            memcpy(&w->c[i * SIDE + j], sum, sizeof sum);
        }
    int64_t ns = tl_clock_ns() - start;
    return 2.0 * SIDE * SIDE * SIDE / (double)(ns > 0 ? ns : 1);
}

static double run_copy(tl_witness *w)
{
    int64_t start = tl_clock_ns();
    memcpy(w->to, w->from, COPY_BYTES);
    __asm__ volatile("" : : "r"(w->to) : "memory");
    int64_t ns = tl_clock_ns() - start;
    return 2.0 * COPY_BYTES / (double)(ns > 0 ? ns : 1);
}

/* Additions that need not wait for each other, as many a cycle as the core begins. Variables of their own: an array is kept
 * in memory, and takes ten times as long whoever is on the core. */
static double run_additions(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    int64_t start = tl_clock_ns();
    for (int i = 0; i < ADDITIONS; i++) {
        a += 3;
        b += 3;
        c += 3;
        d += 3;
        e += 3;
        f += 3;
        g += 3;
        h += 3;
        __asm__ volatile(""
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
    return (double)(tl_clock_ns() - start);
}

/* Products each of which waits for the one before: they leave so much of the core idle that company takes nothing from them,
 * and tell how long a cycle is. (A chain of additions becomes slower.) */
static double run_chain(void)
{
    uint64_t a = 3;
    int64_t start = tl_clock_ns();
    for (int i = 0; i < CHAIN; i++) {
        a *= a;
        __asm__ volatile("" : "+r"(a));
    }
    return (double)(tl_clock_ns() - start);
}

/* In cycles and not in nanoseconds, for the clock of a core falls by a fifth where kernels use wide vectors and rises again
 * while it waits. An interruption of the chain would look like solitude: the shorter of two chains counts. */
static double crowding(void)
{
    double before = run_chain(), now = run_additions();
    double after = run_chain(), cycles = before < after ? before : after;
    return now / (cycles > 0 ? cycles : 1);
}

bool tl_witness_is_alone(tl_witness *w)
{
    if (w == NULL)
        return true;
    double now = crowding();
    if (w->least_crowding == 0 || now < w->least_crowding)
        w->least_crowding = now;
    return now * NEAR_BEST <= w->least_crowding;
}

void tl_witness_learn_solitude(tl_witness *w, double least)
{
    if (w != NULL && least > 0)
        w->least_crowding = least;
    for (int i = 0; w != NULL && least <= 0 && i < FIRST_LOOKS; i++) {
        tl_witness_is_alone(w);
        tl_clock_sleep_ns(FIRST_NAP_NS);
    }
}

double tl_witness_solitude(const tl_witness *w)
{
    return w != NULL ? w->least_crowding : 0;
}

static void sample(tl_witness *w, tl_pool *pool)
{
    double now[WITNESS_COUNT] = { tl_peak_gflops(pool, 0, 0, 0.0005) };
    for (int i = 0; i < 2; i++) {
        double product = run_product(w), copy = run_copy(w);
        now[PRODUCT] = product > now[PRODUCT] ? product : now[PRODUCT];
        now[COPY] = copy > now[COPY] ? copy : now[COPY];
    }
    w->is_calm = true;
    for (int k = 0; k < WITNESS_COUNT; k++) {
        w->kept[k][w->count % KEPT] = now[k];
        w->best[k] = 0;
        for (int i = 0; i < KEPT; i++)
            w->best[k] = w->kept[k][i] > w->best[k] ? w->kept[k][i] : w->best[k];
        if (now[k] < NEAR_BEST * w->best[k])
            w->is_calm = false;
    }
    w->count++;
    w->sampled_ns = tl_clock_ns();
}

bool tl_witness_is_calm(tl_witness *w, tl_pool *pool, int64_t age_ns)
{
    if (w == NULL)
        return true;
    if (w->count == 0 || tl_clock_ns() - w->sampled_ns >= age_ns)
        sample(w, pool);
    return w->is_calm;
}

void tl_witness_accept(tl_witness *w)
{
    if (w == NULL || w->count == 0)
        return;
    int last = (w->count - 1) % KEPT;
    for (int k = 0; k < WITNESS_COUNT; k++) {
        double now = w->kept[k][last];
        memset(w->kept[k], 0, sizeof w->kept[k]);
        w->kept[k][last] = now;
    }
    w->is_calm = true;
}

void tl_witness_best(const tl_witness *w, double *peak_gflops, double *l2_gflops, double *copy_gbs)
{
    *peak_gflops = w != NULL ? w->best[PEAK] : 0;
    *l2_gflops = w != NULL ? w->best[PRODUCT] : 0;
    *copy_gbs = w != NULL ? w->best[COPY] : 0;
}

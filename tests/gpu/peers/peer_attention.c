/* tests/gpu/peers/peer_attention.c: attention as tilth's own lowering `fragments` writes it (frontend/lower), for any sizes that
 * it takes: what a network gets on a Hopper. The text is that of the lowering, its numbers replaced by letters. */
#include "tests/gpu/peers/peer_attention.h"
#include <math.h>

/* @I images, @H heads, @M rows and keys, @K features of a head, @C of all; @R blocks of 64 rows, @B of @J keys, @X tiles of 8
 * in one; @T the dtype, @S the scale. */
static const char *const lines[] = {
    "(q: @T[@I, @M, @C], k: @T[@I, @M, @C], v: @T[@I, @M, @C], out y: @T[@I, @M, @C])\n",
    "  alloc a: f32[@I, @H, @M, @K]\n",
    "  for b in 0..@I\n",
    "    for h in 0..@H\n",
    "      for r in 0..@R\n",
    "        alloc l: f32[@I, @H, @M, 4]\n",
    "        alloc m: f32[@I, @H, @M, 4]\n",
    "        alloc acc: f32[@I, @H, @M, @K]\n",
    "        alloc g: f32[@I, @H, @M, 4]\n",
    "        for i in 0..64\n",
    "          for f in 0..4\n",
    "            block start_top\n",
    "              spatial b, h\n",
    "              spatial i_1 in 0..@M = r*64 + i\n",
    "              spatial f\n",
    "              m[b, h, i_1, f] = -3.4028235e+38\n",
    "        for i in 0..64\n",
    "          for f in 0..4\n",
    "            block start_sum\n",
    "              spatial b, h\n",
    "              spatial i_1 in 0..@M = r*64 + i\n",
    "              spatial f\n",
    "              l[b, h, i_1, f] = 0.0\n",
    "        for i in 0..64\n",
    "          for e in 0..@K\n",
    "            block start_mix\n",
    "              spatial b, h\n",
    "              spatial i_1 in 0..@M = r*64 + i\n",
    "              spatial e\n",
    "              acc[b, h, i_1, e] = 0.0\n",
    "        for t in 0..@B\n",
    "          alloc s: f32[@I, @H, @M, @M]\n",
    "          alloc z: f32[@I, @H, @M, @M]\n",
    "          alloc n: f32[@I, @H, @B, @M, 4]\n",
    "          alloc u: f32[@I, @H, @B, @M, 4]\n",
    "          alloc c: f32[@I, @H, @B, @M, 4]\n",
    "          alloc p: @T[@I, @H, @M, @M]\n",
    "          alloc w: f32[@I, @H, @B, @M, 4]\n",
    "          for i in 0..64\n",
    "            for j in 0..@J\n",
    "              for d in 0..@K\n",
    "                block scores\n",
    "                  spatial b, h\n",
    "                  spatial i_1 in 0..@M = r*64 + i\n",
    "                  spatial j_1 in 0..@M = t*@J + j\n",
    "                  reduce d\n",
    "                  s[b, h, i_1, j_1] = sum(f32(q[b, i_1, h*@K + d])*f32(k[b, j_1, h*@K + "
    "d]))\n",
    "          for i in 0..64\n",
    "            for j in 0..@J\n",
    "              block masked\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                spatial j_1 in 0..@M = t*@J + j\n",
    "                z[b, h, i_1, j_1] = s[b, h, i_1, j_1]*@S\n",
    "          for i in 0..64\n",
    "            for f in 0..4\n",
    "              for x in 0..@X\n",
    "                for e in 0..2\n",
    "                  block most\n",
    "                    spatial b, h\n",
    "                    spatial i_1 in 0..@M = r*64 + i\n",
    "                    spatial t, f\n",
    "                    reduce x, e\n",
    "                    n[b, h, t, i_1, f] = max(z[b, h, i_1, t*@J + x*8 + f*2 + e])\n",
    "          for i in 0..64\n",
    "            for f in 0..4\n",
    "              for x in 0..4\n",
    "                block top\n",
    "                  spatial b, h\n",
    "                  spatial i_1 in 0..@M = r*64 + i\n",
    "                  spatial t, f\n",
    "                  reduce x\n",
    "                  u[b, h, t, i_1, f] = max(n[b, h, t, i_1, x])\n",
    "          for i in 0..64\n",
    "            for f in 0..4\n",
    "              block shrink\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                spatial t, f\n",
    "                c[b, h, t, i_1, f] = exp(m[b, h, i_1, f] - max(m[b, h, i_1, f], u[b, h, t, "
    "i_1, f]))\n",
    "          for i in 0..64\n",
    "            for f in 0..4\n",
    "              block raise\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                ordered t\n",
    "                spatial f\n",
    "                m[b, h, i_1, f] = max(m[b, h, i_1, f], u[b, h, t, i_1, f])\n",
    "          for i in 0..64\n",
    "            for j in 0..@J\n",
    "              block exp\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                spatial j_1 in 0..@M = t*@J + j\n",
    "                p[b, h, i_1, j_1] = @T(exp(z[b, h, i_1, j_1] - m[b, h, i_1, j_1//2 % 4]))\n",
    "          for i in 0..64\n",
    "            for f in 0..4\n",
    "              for x in 0..@X\n",
    "                for e in 0..2\n",
    "                  block part\n",
    "                    spatial b, h\n",
    "                    spatial i_1 in 0..@M = r*64 + i\n",
    "                    spatial t, f\n",
    "                    reduce x, e\n",
    "                    w[b, h, t, i_1, f] = sum(f32(p[b, h, i_1, t*@J + x*8 + f*2 + e]))\n",
    "          for i in 0..64\n",
    "            for f in 0..4\n",
    "              block sum\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                ordered t\n",
    "                spatial f\n",
    "                l[b, h, i_1, f] = l[b, h, i_1, f]*c[b, h, t, i_1, f] + w[b, h, t, i_1, f]\n",
    "          for i in 0..64\n",
    "            for e in 0..@K\n",
    "              block mix\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                ordered t\n",
    "                spatial e\n",
    "                acc[b, h, i_1, e] = acc[b, h, i_1, e]*c[b, h, t, i_1, e//2 % 4]\n",
    "          for i in 0..64\n",
    "            for e in 0..@K\n",
    "              for j in 0..@J\n",
    "                block attend\n",
    "                  spatial b, h\n",
    "                  spatial i_1 in 0..@M = r*64 + i\n",
    "                  spatial e\n",
    "                  reduce j_1 in 0..@M = t*@J + j\n",
    "                  acc[b, h, i_1, e] sum= f32(p[b, h, i_1, j_1])*f32(v[b, j_1, h*@K + e])\n",
    "        for i in 0..64\n",
    "          for f in 0..4\n",
    "            for x in 0..4\n",
    "              block whole\n",
    "                spatial b, h\n",
    "                spatial i_1 in 0..@M = r*64 + i\n",
    "                spatial f\n",
    "                reduce x\n",
    "                g[b, h, i_1, f] = sum(l[b, h, i_1, x])\n",
    "        for i in 0..64\n",
    "          for e in 0..@K\n",
    "            block mean\n",
    "              spatial b, h\n",
    "              spatial i_1 in 0..@M = r*64 + i\n",
    "              spatial e\n",
    "              a[b, h, i_1, e] = acc[b, h, i_1, e]*(1.0/g[b, h, i_1, e//2 % 4])\n",
    "  for b in 0..@I\n",
    "    for i in 0..@M\n",
    "      for h in 0..@H\n",
    "        for e in 0..@K\n",
    "          block epilogue\n",
    "            spatial b, i, h, e\n",
    "            y[b, i, h*@K + e] = @T(a[b, h, i, e])\n",
};

enum { ROWS = 64, KEYS = 128, TILE = 8 };

static int64_t block_of_keys(int64_t keys)
{
    for (int64_t block = KEYS; block >= KEYS / 4; block /= 2)
        if (keys % block == 0 && keys / block > 1)
            return block;
    return 0;
}

bool peer_attention_fits(int64_t rows, int64_t features)
{
    return rows % ROWS == 0 && block_of_keys(rows) > 0 && features % 32 == 0 && features <= 128;
}

void peer_attention_text(const char *dtype, int64_t images, int64_t heads, int64_t rows,
                         int64_t features, tl_text *out)
{
    int64_t block = block_of_keys(rows);
    const struct {
        char letter;
        int64_t number;
    } numbers[] = {
        { 'I', images },           { 'H', heads },       { 'M', rows },         { 'K', features },
        { 'C', heads * features }, { 'R', rows / ROWS }, { 'B', rows / block }, { 'J', block },
        { 'X', block / TILE },
    };
    for (size_t line = 0; line < sizeof lines / sizeof lines[0]; line++)
        for (const char *at = lines[line]; *at != '\0'; at++) {
            if (*at != '@') {
                tl_text_format(out, "%c", *at);
                continue;
            }
            at++;
            for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
                if (numbers[i].letter == *at)
                    tl_text_format(out, "%lld", (long long)numbers[i].number);
            if (*at == 'T')
                tl_text_add(out, dtype);
            if (*at == 'S')
                tl_text_format(out, "%.9g", 1 / sqrt((double)features));
        }
}

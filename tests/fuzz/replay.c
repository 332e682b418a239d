/* tests/fuzz/replay.c: a target without libFuzzer: goes through its corpus, and, for so many seconds, through inputs that
 * differ from those of the corpus in some bytes.
 *
 *     replay_NAME [FOLDER [SECONDS FILE]]     FILE: holds each input while it is tried, so that it is there when it fails */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_INPUTS = 4096, LARGEST = 1 << 16, LONGEST_SECONDS = 10 };

static tl_text inputs[MOST_INPUTS];
static int input_count;

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_corpus(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char path[1024];
        tl_diag diag = { 0 };
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && input_count < MOST_INPUTS) {
            if (tl_file_read(path, &inputs[input_count], &diag) != TL_OK)
                fuzz_fail(path, &diag);
            input_count++;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static void try(const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size); /* so that a sanitizer sees where it ends */
    if (copy == NULL && size > 0)
        abort();
    if (size > 0)
        memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t below(tl_random *random, size_t n)
{
    return (size_t)tl_random_below(random, (int64_t)n);
}

/* Some bytes replaced, a part left out, doubled, or taken from another input. */
static size_t mutate(tl_random *random, uint8_t *bytes, size_t size)
{
    for (size_t left = 1 + below(random, 6); left > 0 && size > 0; left--) {
        size_t at = below(random, size), rest = size - at,
               count = 1 + below(random, rest < 64 ? rest : 64);
        const tl_text *other = &inputs[below(random, (size_t)input_count)];
        switch (below(random, 5)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << below(random, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)below(random, 256);
            break;
        case 2:
            memmove(bytes + at, bytes + at + count, rest - count);
            size -= count;
            break;
        case 3:
            if (size + count <= LARGEST) {
                memmove(bytes + at + count, bytes + at, rest);
                size += count;
            }
            break;
        default:
            if (other->size > count)
                memcpy(bytes + at, tl_text_get(other) + below(random, other->size - count), count);
        }
    }
    return size;
}

static void write_last(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(bytes, 1, size, f) != size)
        abort();
    fclose(f);
}

static long fuzz(double seconds, const char *last)
{
    static uint8_t bytes[LARGEST];
    tl_random random = tl_random_make(1);
    long tried = 0;
    time_t end = time(NULL) + (time_t)seconds;
    for (; input_count > 0 && time(NULL) < end; tried++) {
        const tl_text *from = &inputs[below(&random, (size_t)input_count)];
        size_t size = from->size < LARGEST ? from->size : LARGEST;
        memcpy(bytes, tl_text_get(from), size);
        size = mutate(&random, bytes, size);
        write_last(last, bytes, size);
        alarm(LONGEST_SECONDS); /* ends the program */
        try(bytes, size);
    }
    alarm(0);
    remove(last);
    return tried;
}

int main(int count, char **words)
{
    char folder[256];
    const char *name = strrchr(words[0], '_');
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name != NULL ? name + 1 : "");
    read_corpus(count > 1 ? words[1] : folder);
    if (input_count == 0) {
        fprintf(stderr, "%s: no inputs\n", count > 1 ? words[1] : folder);
        return 1;
    }
    try(NULL, 0);
    for (int i = 0; i < input_count; i++)
        try(tl_text_get(&inputs[i]), inputs[i].size);
    printf("[       OK ] %d_inputs\n", input_count);
    if (count > 3)
        printf("%ld inputs tried\n", fuzz(strtod(words[2], NULL), words[3]));
    for (int i = 0; i < input_count; i++)
        tl_text_free(&inputs[i]);
    return 0;
}

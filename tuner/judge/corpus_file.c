/* tuner/judge/corpus_file.c: rows that took long, in a file of the cache's:
 *
 *     "TLROWS1\n"   key (32 digits)   lost   u64 sizes of the sections   u64 checksums of them   a sentence
 *     u64 checksum of this header       the sections, each from a multiple of 64 on
 *
 * What is damaged, or of another key, is not there: the rows are computed again. The newest few files stay. */
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "tuner/judge/corpus_private.h"

enum { ALIGNMENT = 64, KEPT_FILES = 4, NAME_DIGITS = 32 };
static const char magic[8] = "TLROWS1\n";
static const char ending[] = ".rows";

typedef struct {
    char magic[8], key[32];
    int64_t lost;
    uint64_t size[TL_SECTION_COUNT], checksum[TL_SECTION_COUNT];
    char why[304];
    uint64_t own; /* checksum of what is before */
} header;

/* --- the key ------------------------------------------------------------------------------------------------------ */

static void add_text(tl_digest *d, const char *text)
{
    tl_digest_add(d, text, strlen(text) + 1);
}

static void add_record(tl_digest *d, const tl_data_record *r)
{
    const int64_t whole[] = { r->sampler, r->kind, r->space, r->status, r->lowering, r->program };
    const double real[] = { r->ratio, r->ratio_error };
    tl_digest_add(d, whole, sizeof whole);
    tl_digest_add(d, real, sizeof real);
    for (int i = 0; i < r->answer_count; i++) {
        add_text(d, r->answers[i].name);
        tl_digest_add(d, &r->answers[i].value, sizeof r->answers[i].value);
    }
}

static void add_series(tl_digest *d, const tl_data_series *s)
{
    const int64_t whole[] = { s->threads, s->cores, s->count };
    add_text(d, s->task->workload);
    for (int i = 0; i < s->task->lowering_count; i++) {
        add_text(d, s->task->lowerings[i]);
        add_text(d, s->task->programs[i]);
    }
    add_text(d, s->target);
    add_text(d, s->machine);
    tl_digest_add(d, whole, sizeof whole);
    for (int i = 0; i < s->count; i++)
        add_record(d, &s->records[i]);
}

void tl_corpus_key(const tl_dataset *set, const tl_corpus_options *options, char out[33])
{
    tl_digest d;
    tl_digest_start(&d);
    add_text(&d, options->build != NULL ? options->build : "");
    tl_digest_add(&d, &options->unmeasured, sizeof options->unmeasured);
    for (int k = 0; k < TL_ROWS_COUNT; k++) {
        tl_sample_shape shape = tl_rows_shape((tl_rows)k);
        add_text(&d, shape.row.digest);
        add_text(&d, shape.decision.digest);
        add_text(&d, shape.workload.digest);
        add_text(&d, shape.machine.digest);
    }
    for (size_t i = 0; i < tl_map_count(set->series); i++)
        add_series(&d, tl_map_at(set->series, i).value);
    tl_digest_text(&d, out);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void name_file(const char *folder, const char *key, tl_text *out)
{
    tl_text_format(out, "%s/%s%s", folder, key, ending);
}

static size_t align(size_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_sound(const tl_mapping *file, const char *key, header *h)
{
    if (file->size < sizeof *h)
        return false;
    memcpy(h, file->data, sizeof *h);
    size_t at = sizeof *h;
    if (memcmp(h->magic, magic, sizeof magic) != 0 || memcmp(h->key, key, sizeof h->key) != 0 ||
        h->own != tl_checksum(h, offsetof(header, own)) || h->why[sizeof h->why - 1] != '\0')
        return false;
    for (int k = 0; k < TL_SECTION_COUNT; k++) {
        at = align(at);
        if (at > file->size || h->size[k] > file->size - at ||
            h->checksum[k] != tl_checksum_mapped((const char *)file->data + at, h->size[k]))
            return false;
        at += h->size[k];
    }
    return at == file->size;
}

bool tl_sections_find(const char *folder, const char *key, tl_sections *out)
{
    tl_text path = { 0 };
    tl_mapping file = { 0 };
    header h;
    name_file(folder, key, &path);
    bool found = !path.failed && tl_file_map(tl_text_get(&path), &file, NULL) == TL_OK;
    *out = (tl_sections){ 0 };
    if (found && !is_sound(&file, key, &h)) {
        tl_file_unmap(&file);
        found = false;
    }
    if (found) {
        size_t at = sizeof h;
        out->maps[0] = (void *)(uintptr_t)file.data;
        out->map_sizes[0] = file.size;
        for (int k = 0; k < TL_SECTION_COUNT; k++) {
            at = align(at);
            out->data[k] = h.size[k] > 0 ? (const char *)file.data + at : NULL;
            out->size[k] = h.size[k];
            at += h.size[k];
        }
        out->lost = h.lost;
        memcpy(out->why, h.why, sizeof out->why);
    }
    tl_text_free(&path);
    return found;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

static bool is_ours(const char *name)
{
    return strspn(name, "0123456789abcdef") == NAME_DIGITS &&
           strcmp(name + NAME_DIGITS, ending) == 0;
}

typedef struct {
    char name[NAME_DIGITS + sizeof ending];
    int64_t written_ns;
} kept_file;

static int by_age(const void *x, const void *y)
{
    const kept_file *a = x, *b = y;
    return a->written_ns != b->written_ns ? (a->written_ns < b->written_ns ? 1 : -1)
                                          : strcmp(a->name, b->name);
}

/* Removes all but the newest. */
static void trim(const char *folder)
{
    enum { MOST = 64 };
    kept_file files[MOST];
    int count = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (struct dirent *entry; count < MOST && (entry = readdir(dir)) != NULL;) {
        struct stat info;
        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        memcpy(files[count].name, entry->d_name, sizeof files[count].name);
        files[count++].written_ns = info.st_mtim.tv_sec * 1000000000LL + info.st_mtim.tv_nsec;
    }
    qsort(files, (size_t)count, sizeof *files, by_age);
    for (int i = KEPT_FILES; i < count; i++)
        unlinkat(dirfd(dir), files[i].name, 0);
    closedir(dir);
}

static tl_status append_sections(tl_file *file, const header *h, const tl_sections *sections)
{
    static const char zeros[ALIGNMENT];
    size_t at = sizeof *h;
    TL_TRY(tl_file_append(file, h, sizeof *h, NULL));
    for (int k = 0; k < TL_SECTION_COUNT; k++) {
        TL_TRY(tl_file_append(file, zeros, align(at) - at, NULL));
        TL_TRY(tl_file_append(file, sections->data[k], sections->size[k], NULL));
        at = align(at) + sections->size[k];
    }
    return TL_OK;
}

/* What cannot be kept is computed again the next time. */
void tl_sections_keep(const char *folder, const char *key, const tl_sections *sections)
{
    header h;
    tl_text path = { 0 };
    tl_file *file = NULL;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.key, key, sizeof h.key);
    h.lost = sections->lost;
    memcpy(h.why, sections->why, sizeof sections->why);
    for (int k = 0; k < TL_SECTION_COUNT; k++) {
        h.size[k] = sections->size[k];
        h.checksum[k] = tl_checksum(sections->data[k], sections->size[k]);
    }
    h.own = tl_checksum(&h, offsetof(header, own));
    name_file(folder, key, &path);
    if (!path.failed && tl_folder_make(folder, NULL) == TL_OK &&
        tl_file_create_private(tl_text_get(&path), &file, NULL) == TL_OK) {
        if (append_sections(file, &h, sections) == TL_OK) {
            if (tl_file_commit_unsynced(file, NULL) == TL_OK)
                trim(folder);
        } else {
            tl_file_abandon(file);
        }
    }
    tl_text_free(&path);
}

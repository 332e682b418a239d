/* driver/bench/bench_history.c: measurements of one machine over time, one line each in a file of the user's. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include <errno.h>
#include "driver/bench/bench.h"
#include "driver/bench/bench_private.h"
#include "runtime/base/file.h"
#include "runtime/device/topology.h"

enum { SHOWN = 5 };
#define THRESHOLD 0.02

static void print_record(const json_t *record, const tl_timing *t, bool json)
{
    tl_change c = tl_record_compare(record, t, THRESHOLD);
    const char *commit = json_string_value(json_object_get(record, "commit"));
    double min_ms = json_number_value(json_object_get(record, "min_ns")) * 1e-6;
    time_t when = (time_t)json_integer_value(json_object_get(record, "time_s"));
    char date[32] = "";
    struct tm local;
    if (localtime_r(&when, &local) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
    if (json) {
        printf("{\"record\":\"change\",\"against\":");
        tl_print_json_text(commit ? commit : "");
        printf(
            ",\"min_ratio\":%.4f,\"median_ratio\":%.4f,\"p\":%.3g,\"slower\":%s,\"faster\":%s}\n",
            c.min_ratio, c.median_ratio, c.p, c.slower ? "true" : "false",
            c.faster ? "true" : "false");
        return;
    }
    printf("  %s  %-12.12s min %10.3f ms  now %+6.1f %%%s\n", date, commit ? commit : "", min_ms,
           100 * (c.min_ratio - 1),
           c.slower   ? "  slower"
           : c.faster ? "  faster"
                      : "");
}

static tl_status append(const char *path, const tl_text *line, tl_diag *diag)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return tl_fail(diag, TL_IO, "--history %s: %s", path, strerror(errno));
    flock(fd, LOCK_EX);
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t n = write(fd, line->data, line->size);
    int error = n < 0 ? errno : ENOSPC;
    tl_status status = TL_OK;
    if (n != (ssize_t)line->size) { /* no half a line */
        status = tl_fail(diag, TL_IO, "--history %s: cannot write: %s", path, strerror(error));
        if (end >= 0 && n > 0 && ftruncate(fd, end) != 0)
            tl_context(diag, "removing what was written of the line");
    }
    close(fd);
    return status;
}

tl_status tl_bench_history(const char *path, const char *commit, const tl_subject *subject,
                           const tl_runner *runner, const tl_timing *t, bool json, tl_diag *diag)
{
    const char *cpu = tl_topology_get()->cpu_name;
    json_t *before[SHOWN];
    int count = 0;
    tl_text line = { 0 };
    tl_mapping file;
    tl_status status = TL_OK;
    if (access(path, F_OK) == 0) {
        TL_TRY(tl_file_map(path, &file, diag));
        count = tl_records_find(file.data ? file.data : "", file.size, cpu, subject, runner, before,
                                SHOWN);
        tl_file_unmap(&file);
    }
    tl_bench_record(subject, runner, t, commit, &line);
    if (line.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "no memory for a record");
    else
        status = append(path, &line, diag);
    if (status == TL_OK && !json)
        printf("history: %s\n",
               count ? "the last measurements on this CPU" : "the first measurement on this CPU");
    for (int i = 0; i < count; i++) {
        if (status == TL_OK)
            print_record(before[i], t, json);
        json_decref(before[i]);
    }
    tl_text_free(&line);
    return status;
}

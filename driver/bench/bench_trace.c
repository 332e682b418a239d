/* driver/bench/bench_trace.c: a timeline by thread: the "trace event" JSON that chrome://tracing and ui.perfetto.dev open. */
#include <stdlib.h>
#include "driver/bench/bench.h"
#include "runtime/base/file.h"

enum { RUNS = 3 };

static void add_thread(tl_text *out, int thread)
{
    tl_text_format(out,
                   "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,"
                   "\"args\":{\"name\":\"thread %d\"}},\n",
                   thread, thread);
}

static void add_event(tl_text *out, const tl_executable_spec *spec, const tl_run_event *e, int run,
                      int64_t start)
{
    const tl_executable_step *s = &spec->steps[e->step];
    tl_text_add(out, ",\n{\"ph\":\"X\",\"pid\":1,\"cat\":\"kernel\",\"name\":");
    tl_json_add_text(out, s->name);
    tl_text_format(out,
                   ",\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"run\":%d,\"step\":%d,"
                   "\"phase\":%d,\"flops\":%lld,\"bytes\":%lld}}",
                   e->thread, (double)(e->begin_ns - start) * 1e-3,
                   (double)(e->end_ns - e->begin_ns) * 1e-3, run, e->step, e->phase,
                   (long long)s->flops, (long long)s->bytes);
}

tl_status tl_bench_trace(const char *path, const tl_subject *subject, tl_runner *runner,
                         const tl_bindings *bindings, tl_diag *diag)
{
    const tl_executable_spec *spec = tl_executable_info(subject->executable);
    int limit = tl_runner_event_limit(runner);
    tl_run_event *events = calloc((size_t)limit + 1, sizeof *events);
    if (events == NULL)
        return tl_fail(diag, TL_NO_MEMORY, "no memory for a timeline of %d events", limit);
    tl_text out = { 0 };
    tl_status status = TL_OK;
    int64_t start = 0;
    tl_text_add(&out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (int t = 0; t < tl_runner_threads(runner); t++)
        add_thread(&out, t);
    tl_text_add(&out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":");
    tl_json_add_text(&out, subject->name);
    tl_text_add(&out, "}}");
    for (int run = 0; run < RUNS && status == TL_OK; run++) {
        int count = 0;
        status = tl_runner_run_traced(runner, bindings->in, bindings->out, events, &count, diag);
        if (run == 0 && count > 0) {
            start = events[0].begin_ns;
            for (int i = 1; i < count; i++)
                start = events[i].begin_ns < start ? events[i].begin_ns : start;
        }
        for (int i = 0; i < count; i++)
            add_event(&out, spec, &events[i], run, start);
    }
    tl_text_add(&out, "\n]}\n");
    if (status == TL_OK && out.failed)
        status = tl_fail(diag, TL_NO_MEMORY, "no memory for the timeline");
    if (status == TL_OK)
        status = tl_file_write(path, out.data, out.size, diag);
    tl_text_free(&out);
    free(events);
    return status;
}

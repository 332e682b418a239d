/* tests/gpu/fake_cuda/graphs.c: a stream's work, captured to be launched again. */
#include "tests/gpu/fake_cuda/fake_private.h"
#include <stdlib.h>

struct cu_graph_body {
    fake_work work;
};

struct cu_graph_exec_body {
    fake_work work;
};

EXPORT(cuStreamBeginCapture_v2, (cu_stream s, int mode))
{
    (void)mode;
    BEGIN
    result = s->is_capturing ? INVALID_VALUE : fake_run(s);
    s->is_capturing = result == CU_SUCCESS;
    END;
}

EXPORT(cuStreamEndCapture, (cu_stream s, cu_graph *out))
{
    BEGIN
    if (!s->is_capturing) {
        result = INVALID_VALUE;
        goto end;
    }
    s->is_capturing = false;
    *out = fake_make(sizeof **out);
    fake_append_copy(&(*out)->work, &s->work);
    fake_forget(&s->work);
    END;
}

EXPORT(cuGraphInstantiateWithFlags, (cu_graph_exec * out, cu_graph graph, unsigned long long flags))
{
    (void)flags;
    BEGIN
    *out = fake_make(sizeof **out);
    fake_append_copy(&(*out)->work, &graph->work);
    END;
}

EXPORT(cuGraphLaunch, (cu_graph_exec exec, cu_stream s))
{
    BEGIN
    fake.count.graph_launches++;
    fake_append_copy(&s->work, &exec->work);
    END;
}

EXPORT(cuGraphExecDestroy, (cu_graph_exec exec))
{
    BEGIN
    fake_forget(&exec->work);
    fake_drop(exec);
    END;
}

EXPORT(cuGraphDestroy, (cu_graph graph))
{
    BEGIN
    fake_forget(&graph->work);
    fake_drop(graph);
    END;
}

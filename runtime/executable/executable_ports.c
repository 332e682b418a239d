/* runtime/executable/executable_ports.c: how large an input or output is. */
#include "runtime/executable/executable.h"

size_t tl_port_size(const tl_port *port)
{
    int64_t bytes = 0;
    return tl_tensor_bytes(port->dtype, port->rank, port->shape, &bytes, NULL) == TL_OK
               ? (size_t)bytes
               : 0;
}

bool tl_port_at(const tl_port *port, int dim_count, const int64_t *dims, int64_t *shape,
                size_t *size)
{
    int64_t bytes;

    for (int a = 0; a < port->rank; a++) {
        shape[a] = port->shape[a];
        if (port->varying != NULL &&
            (!tl_varying_at(&port->varying[a], dim_count, dims, &shape[a]) || shape[a] < 0))
            return false;
    }
    if (tl_tensor_bytes(port->dtype, port->rank, shape, &bytes, NULL) != TL_OK)
        return false;
    *size = (size_t)bytes;
    return true;
}

bool tl_ports_at(const tl_port *ports, int count, int dim_count, const int64_t *dims, tl_port *out)
{
    size_t size;

    for (int i = 0; i < count; i++) {
        out[i] = ports[i];
        out[i].varying = NULL;
        if (!tl_port_at(&ports[i], dim_count, dims, out[i].shape, &size))
            return false;
    }
    return true;
}

/* tuner/cost/default_model.c: the cost model that comes with tilth. tuner/data/cost.model is in the program itself (the Makefile
 * makes default_model_bytes.c). */
#include "tuner/cost/cost_model.h"

extern const unsigned char tl_default_model_bytes[];
extern const size_t tl_default_model_size;

tl_status tl_cost_model_default(tl_cost_model **out)
{
    *out = NULL;
    if (tl_default_model_size == 0)
        return TL_OK;
    return tl_cost_model_unpack("the cost model that comes with tilth", tl_default_model_bytes,
                                tl_default_model_size, out, NULL);
}

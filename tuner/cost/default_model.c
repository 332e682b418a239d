/* tuner/cost/default_model.c: the cost models that come with tilth. tuner/data/cost.model and screener.model are in the program
 * itself (the Makefile makes default_model_bytes.c and default_screener_bytes.c). */
#include "tuner/cost/cost_model.h"

extern const unsigned char tl_default_model_bytes[], tl_default_screener_bytes[];
extern const size_t tl_default_model_size, tl_default_screener_size;

static const struct {
    const char *words;
    const unsigned char *bytes;
    const size_t *size;
} defaults[TL_DEFAULT_COUNT] = {
    [TL_DEFAULT_MODEL] = { "the cost model that comes with tilth", tl_default_model_bytes,
                           &tl_default_model_size },
    [TL_DEFAULT_SCREENER] = { "the screener that comes with tilth", tl_default_screener_bytes,
                              &tl_default_screener_size },
};

tl_status tl_cost_model_default(tl_default_model which, tl_cost_model **out)
{
    *out = NULL;
    if (*defaults[which].size == 0)
        return TL_OK;
    return tl_cost_model_unpack(defaults[which].words, defaults[which].bytes, *defaults[which].size,
                                out, NULL);
}

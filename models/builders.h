/* models/builders.h: the builders that zoo.def names. */
#ifndef TL_MODELS_BUILDERS_H
#define TL_MODELS_BUILDERS_H
#include "models/zoo.h"

tl_zoo_builder tl_zoo_resnet, tl_zoo_vgg, tl_zoo_mobilenet, tl_zoo_efficientnet, tl_zoo_squeezenet,
    tl_zoo_densenet, tl_zoo_unet, tl_zoo_vit, tl_zoo_bert, tl_zoo_gpt2, tl_zoo_lstm;

#endif

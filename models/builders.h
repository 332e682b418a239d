/* models/builders.h: the builders that zoo.def names. */
#ifndef TL_MODELS_BUILDERS_H
#define TL_MODELS_BUILDERS_H
#include "models/zoo.h"

tl_zoo_builder tl_zoo_resnet, tl_zoo_bert;

#endif

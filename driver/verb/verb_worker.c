/* driver/verb/verb_worker.c: tilth worker: what the tuner starts to build and time candidates. Not for people. */
#include "codegen/emulate/emulated_device.h"
#include "driver/verb/verbs.h"
#include "tuner/measure/measure.h"

int tl_verb_worker(int argc, char **argv)
{
    tl_emulated_device_add();
    return tl_worker_main(argc, argv, NULL);
}

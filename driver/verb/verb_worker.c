/* driver/verb/verb_worker.c: tilth worker: what the tuner starts to build and time candidates. Not for people. */
#include "driver/verb/verbs.h"
#include "tuner/measure/measure.h"

int tl_verb_worker(int argc, char **argv)
{
    return tl_worker_main(argc, argv, NULL);
}

#!/bin/sh
# Runs targets for so many seconds each, one for each processor at a time, from their corpus in the tree; what is new goes below
# build/corpus, an input that ends a target below build/failures. Exit 1 when there is one.
#
#     tests/fuzz/run.sh SECONDS build/fuzz/fuzz_NAME ...
if [ "$1" != --one ]; then
    seconds=$1
    shift
    printf '%s\n' "$@" | xargs -n 1 -P "${JOBS:-$(nproc)}" "$0" --one "$seconds" || exit 1
    exit 0
fi
seconds=$2 program=$3 name=${3##*_}
mkdir -p "build/corpus/$name" build/failures
case $program in
*/fuzz_*) set -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=8192 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build/failures/$name-" "build/corpus/$name" "tests/fuzz/corpus/$name" ;;
*) set -- "tests/fuzz/corpus/$name" "$seconds" "build/failures/$name-last"
    export ASAN_OPTIONS="hard_rss_limit_mb=2048:$ASAN_OPTIONS" ;;
esac
if "$program" "$@" >"build/corpus/$name.log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p; s/^\([0-9]* inputs\).*/\1/p' "build/corpus/$name.log" |
        tail -1) executed"
else
    echo "$name: FAILED"
    tail -40 "build/corpus/$name.log"
    exit 1
fi

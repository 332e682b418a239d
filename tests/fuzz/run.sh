#!/bin/sh
# Runs targets for so many seconds each, one for each processor at a time, from their corpus in the tree; what is new goes below
# build/corpus, an input that ends a target below build/failures. Says how many inputs ran and, from libFuzzer, how many edges
# of the target's program they covered. Exit 1 when an input ended a target.
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
*/fuzz_*) set -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=8192 -print_funcs=0 \
    -print_final_stats=1 -artifact_prefix="build/failures/$name-" "build/corpus/$name" "tests/fuzz/corpus/$name" ;;
*) set -- "tests/fuzz/corpus/$name" "$seconds" "build/failures/$name-last"
    export ASAN_OPTIONS="hard_rss_limit_mb=2048:$ASAN_OPTIONS" ;;
esac
log=build/corpus/$name.log
if "$program" "$@" >"$log" 2>&1; then
    edges=$(sed -n 's/^INFO: Loaded .* (\([0-9]*\) inline 8-bit counters).*/\1/p' "$log" | head -1)
    covered=$(sed -n 's/^#[0-9]*.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p; s/^\([0-9]* inputs\).*/\1/p' "$log" |
        tail -1) executed${covered:+, $covered of $edges edges covered}"
else
    echo "$name: FAILED"
    tail -40 "$log"
    exit 1
fi

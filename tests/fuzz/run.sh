#!/bin/sh
# Runs targets for so many seconds each, from their corpus in the tree; what is new goes below build/corpus, an input that
# ends a target below build/failures. Exit 1 when there is one.
#
#     tests/fuzz/run.sh SECONDS build/fuzz/fuzz_NAME ...
seconds=$1 status=0
shift
for program in "$@"; do
    name=${program##*_}
    mkdir -p "build/corpus/$name" build/failures
    case $program in
    */fuzz_*) set -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=8192 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="build/failures/$name-" "build/corpus/$name" "tests/fuzz/corpus/$name" ;;
    *) set -- "tests/fuzz/corpus/$name" "$seconds" "build/failures/$name-last" ;;
    esac
    if "$program" "$@" >"build/corpus/$name.log" 2>&1; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p; s/^\([0-9]* inputs\).*/\1/p' "build/corpus/$name.log" |
            tail -1) executed"
    else
        status=1
        echo "$name: FAILED"
        tail -40 "build/corpus/$name.log"
    fi
done
exit $status

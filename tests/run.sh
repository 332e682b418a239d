#!/bin/sh
# Runs test programs one after another; prints a line a program, the output of those that fail, what was skipped
# and why, and last the sums. Exit 1 when any failed.
passed=0 failed=0 skipped=0
log=$(mktemp) reports=$(mktemp -d)
trap 'rm -rf "$log" "$reports"' EXIT

# A process may end as its parent expects it to, or have an output that nobody reads: what a sanitizer has to say of it is
# a file, and is a failure, unless it is only that a size cannot be had.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$reports/report
UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}log_path=$reports/report
TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}log_path=$reports/report
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS

# What failed or was skipped stands in the log twice: where it ran, and in the list at the end.
count_named() {
    grep "^\[$1\] [A-Za-z0-9_]*\$" "$log" | sort -u | wc -l
}

for program in "$@"; do
    start=$(date +%s%N)
    timeout "${TEST_SECONDS:-600}" "$program" >"$log" 2>&1
    status=$? ended="exit $?"
    if cat "$reports"/* 2>/dev/null | grep -qv 'Sanitizer failed to allocate'; then
        status=1 ended="$ended, with reports of a sanitizer"
        cat "$reports"/* >>"$log"
    fi
    rm -f "$reports"/*
    ms=$(( ($(date +%s%N) - start) / 1000000 ))
    p=$(grep -c '^\[       OK \]' "$log") f=$(count_named '  FAILED  ') s=$(count_named '  SKIPPED ')
    passed=$((passed + p)) skipped=$((skipped + s))
    if [ $status -eq 0 ]; then
        printf '%-40s %4d passed, %d skipped, %d ms\n' "${program#build/*/tests/}" "$p" "$s" "$ms"
        grep -h '^skip: ' "$log"
    else
        [ "$f" -gt 0 ] || f=1
        failed=$((failed + f))
        printf '%-40s FAILED (%s)\n' "${program#build/*/tests/}" "$ended"
        cat "$log"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

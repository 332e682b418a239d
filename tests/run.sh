#!/bin/sh
# Runs test programs one after another; prints a line a program, the output of those that fail, what was skipped
# and why, and last the sums. Exit 1 when any failed.
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What failed or was skipped stands in the log twice: where it ran, and in the list at the end.
count_named() {
    grep "^\[$1\] [A-Za-z0-9_]*\$" "$log" | sort -u | wc -l
}

for program in "$@"; do
    start=$(date +%s%N)
    timeout "${TEST_SECONDS:-600}" "$program" >"$log" 2>&1
    status=$?
    ms=$(( ($(date +%s%N) - start) / 1000000 ))
    p=$(grep -c '^\[       OK \]' "$log") f=$(count_named '  FAILED  ') s=$(count_named '  SKIPPED ')
    passed=$((passed + p)) skipped=$((skipped + s))
    if [ $status -eq 0 ]; then
        printf '%-40s %4d passed, %d skipped, %d ms\n' "${program#build/*/tests/}" "$p" "$s" "$ms"
        grep -h '^skip: ' "$log"
    else
        [ "$f" -gt 0 ] || f=1
        failed=$((failed + f))
        printf '%-40s FAILED (exit %d)\n' "${program#build/*/tests/}" "$status"
        cat "$log"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

#!/bin/sh
# What `make bench` measures beside the kernels' claims: kernels and models through `tilth bench`, each appended to a
# history of the user's choice and shown beside the last measurements of the same CPU.
# Usage: tests/bench/history.sh TILTH HISTORY [MODEL.onnx or a name of the zoo ...]; THREADS and SECONDS from outside.
tilth=$1 history=$2
shift 2
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
git diff --quiet HEAD 2>/dev/null || commit=$commit+
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

measure() {
    echo "== $(basename "$1")"
    "$tilth" bench "$@" --threads "${THREADS:-1}" --seconds "${SECONDS_EACH:-1}" --history "$history" --commit "$commit" \
        --top 1 >"$work/out" || { cat "$work/out"; exit 1; }
    sed -n '/^latency/p; /^work/p; /^warning/p; /^history/,$p' "$work/out"
}

for kernel in models/kernels/*.tk; do
    trace=${kernel%.tk}.tr
    [ -f "$trace" ] || trace=
    measure "$kernel" ${trace:+"$trace"}
done
for model in "${@:-bert_tiny}"; do
    file=$model
    if [ ! -f "$file" ]; then
        file=$work/$model.onnx
        "$tilth" model "$model" -o "$file" >"$work/out" || exit 1
    fi
    measure "$file"
done

#!/bin/sh
# tests/gpu/check.sh: all that is to be known of a machine with a GPU, riskiest first, in at most MINUTES (8), as one JSON
# object a line; what it has when it is cut off stays. Needs a tilth and a driver, nothing else.
#
# usage: check.sh TILTH [-o FILE] [-m MINUTES] [-s TIMES] [-k FOLDER of kernels] [-g TEST of warpgroups] [MODEL ...]
#
# -s: a step may take so many times as long as on a GPU (1), for what stands in for one (rehearse.sh).
#
# Each line is {"record":"check","step":...,"exit":...,"seconds":...} behind what the step printed. Exit status: 0 when every
# step was right; 1 when one was not; 5 when there is no GPU.
tilth=$1
shift
out=gpu-check.jsonl minutes=8 times=1 kernels= group=
while getopts o:m:s:k:g: option; do
    case $option in
    o) out=$OPTARG ;;
    m) minutes=$OPTARG ;;
    s) times=$OPTARG ;;
    k) kernels=$OPTARG ;;
    g) group=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
models=${*:-bert_tiny resnet18 mobilenet_v2 squeezenet1_1 gpt2_tiny vit_tiny16 resnet50 bert_base}
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-check-XXXXXX") || exit 4
trap 'rm -rf "$work"' EXIT INT TERM
export XDG_CACHE_HOME="$work/cache" XDG_DATA_HOME="$work/data"
begun=$(date +%s) failed=0
: >"$out" || exit 5

left() {
    echo $((begun + minutes * 60 - $(date +%s)))
}

# step NAME LIMIT COMMAND...: runs it, at most LIMIT seconds and no longer than there is time; its JSON lines go into the file,
# its last sentence behind them when it failed.
step() {
    name=$1 limit=$(($2 * times)) start=$(date +%s)
    shift 2
    remaining=$(left)
    [ "$remaining" -gt 0 ] || { printf '{"record":"check","step":"%s","skipped":true}\n' "$name" >>"$out"; return 0; }
    [ "$limit" -le "$remaining" ] || limit=$remaining
    timeout "$limit" "$@" >"$work/stdout" 2>"$work/stderr"
    code=$?
    grep '^{' "$work/stdout" >>"$out"
    said=
    [ $code -eq 0 ] || said=$(tail -n 1 "$work/stderr" | tr -d '"\\' | tr '\n\t' '  ')
    printf '{"record":"check","step":"%s","exit":%d,"seconds":%d,"said":"%s"}\n' \
        "$name" $code $(($(date +%s) - start)) "$said" >>"$out"
    [ $code -eq 0 ] && echo "ok    $name" || { echo "FAILED $name: $said"; failed=1; }
    return $code
}

step info 30 "$tilth" info --quick --json
grep -q '"present":true' "$out" || { echo "no GPU: $(sed -n 's/.*"why":"\([^"]*\)".*/\1/p' "$out")"; exit 5; }

# A small model first: if that is wrong, the rest need not be looked at.
first=1
for model in $models; do
    "$tilth" model "$model" -o "$work/$model.onnx" -q >/dev/null 2>&1 || { echo "FAILED model $model"; failed=1; continue; }
    step "verify $model" 120 "$tilth" verify "$work/$model.onnx" --target cuda --json
    [ $? -eq 0 ] || [ $first -eq 0 ] || { echo "the first model is wrong: nothing else is looked at"; exit 1; }
    first=0
    step "bench $model" 60 "$tilth" bench "$work/$model.onnx" --target cuda --seconds 2 --json
done
for kernel in ${kernels:+"$kernels"/*.tk}; do
    step "kernel $(basename "$kernel")" 60 "$tilth" tune "$kernel" --target cuda --trials 2 --no-db --json \
        --candidate $((10 * times))
done
# What the hardware of Hopper does by itself: right on the device, then timed at the size that others publish.
if [ -n "$group" ] && grep -q '"arch":"sm_90' "$out"; then
    step "warpgroups" 120 env TILTH_TEST_DEVICE=cuda "$group"
fi
for kernel in ${kernels:+"$kernels"/large/*.tk}; do
    [ -e "$kernel" ] || continue
    name=$(basename "$kernel" .tk)
    case $name in *_hopper) grep -q '"arch":"sm_90' "$out" || continue ;; esac
    step "bench $name 4096" 60 "$tilth" bench "$kernel" "$kernels/$name.tr" --target cuda --no-db --seconds 1 --json
done
set -- $models
step "tune $1" 90 "$tilth" tune "$work/$1.onnx" --target cuda --budget 60s --candidate $((10 * times)) --json
echo "$(grep -c '"exit":0' "$out") steps right, $(grep -c '"exit":[1-9]' "$out") wrong: $out"
exit $failed

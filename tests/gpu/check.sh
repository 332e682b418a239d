#!/bin/sh
# tests/gpu/check.sh: all that is to be known of a machine with a GPU, riskiest first, in at most MINUTES (8), as one JSON
# object a line; what it has when it is cut off stays. Needs a tilth and a driver, nothing else.
#
# usage: check.sh TILTH [-o FILE] [-m MINUTES] [-s TIMES] [-k FOLDER of kernels] [-g TEST of warpgroups] [-p PEERS]
#                 [-y networks.py] [-n FOLDER of networks] [-f FILL] [MODEL ...]
#
#   1. a small network, against results of others, and the kernels, against the processor
#   2. kernels beside cuBLAS, cuBLASLt, cuDNN and the driver (peers/peers.c), networks beside PyTorch (peers/networks.py)
#   3. tuning runs, of a network and of a product; half a minute of data for learning, which come beside FILE as a data set (.tld)
#   4. every other network verified, several at a time where there are processors for that, and timed, while there is time
#
# -s: a step may take so many times as long as on a GPU (1), for what stands in for one (rehearse.sh): sizes are divided by as
# much. -n: networks as graphs with recipes of their weights, which FILL writes; others are of tilth's own zoo.
#
# Each line of a step is {"record":"check","step":...,"exit":...,"seconds":...} behind what it printed; where it has something to
# stand beside, {"record":"comparison",...} follows: how many times as fast as the peer ours is. A part whose libraries are not
# there is skipped with a sentence. Exit status: 0 when every step was right; 1 when one was not; 5 when there is no GPU.
THREADS_OF_A_JOB=4
TUNED=gemm_f32 # of peer_cases.def
tilth=$1
shift
out=gpu-check.jsonl minutes=8 times=1 kernels= group= peers= pytorch= networks= fill=
while getopts o:m:s:k:g:p:y:n:f: option; do
    case $option in
    o) out=$OPTARG ;;
    m) minutes=$OPTARG ;;
    s) times=$OPTARG ;;
    k) kernels=$OPTARG ;;
    g) group=$OPTARG ;;
    p) peers=$OPTARG ;;
    y) pytorch=$OPTARG ;;
    n) networks=$OPTARG ;;
    f) fill=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# The first is looked at first; PyTorch has those of networks.py.
if [ -n "$networks" ]; then
    models=${*:-bert_tiny_128 resnet50 bert_base_128 resnet18 mobilenet_v2 squeezenet1_1 mnasnet1_0 mobilenet_v3 efficientnet_b0
        gpt2_64 googlenet resnext50 mobilebert_128 inception_v3 bert_base_256 mobilebert_256 efficientnet_b4 alexnet vgg16}
else
    models=${*:-bert_tiny resnet50 bert_base resnet18 mobilenet_v2 squeezenet1_1 gpt2_tiny vit_tiny16 efficientnet_b0 densenet121}
fi
beside='bert_tiny bert_tiny_128 resnet18 resnet50 bert_base bert_base_128 mobilenet_v2'
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-check-XXXXXX") || exit 4
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
said_in=$work/last # what a step printed: .stdout, .stderr
processors=$(grep -c '^processor' /proc/cpuinfo)
jobs=$((processors / THREADS_OF_A_JOB))
[ "$jobs" -ge 1 ] || jobs=1
export XDG_CACHE_HOME="$work/cache" XDG_DATA_HOME="$work/data"
begun=$(date +%s)
: >"$out" || exit 5

left() {
    echo $((begun + minutes * 60 - $(date +%s)))
}

# skip NAME SENTENCE
skip() {
    printf '{"record":"check","step":"%s","skipped":"%s"}\n' "$1" "$2" >>"$out"
    echo "skip  $1: $2"
}

# step NAME LIMIT COMMAND...: runs it, at most LIMIT seconds and no longer than there is time; its JSON lines go into the file,
# its last sentence behind them when it failed.
step() {
    name=$1 limit=$(($2 * times)) start=$(date +%s)
    shift 2
    : >"$said_in.stdout"
    remaining=$(left)
    [ "$remaining" -gt 0 ] || { skip "$name" "no time is left"; return 0; }
    [ "$limit" -le "$remaining" ] || limit=$remaining
    timeout -k 5 "$limit" "$@" >"$said_in.stdout" 2>"$said_in.stderr"
    code=$?
    grep '^{' "$said_in.stdout" >>"$out"
    said=
    [ $code -eq 0 ] || said=$(tail -n 1 "$said_in.stderr" | tr -d '"\\' | tr '\n\t' '  ')
    [ $code -ne 124 ] || said="it took longer than $limit s"
    printf '{"record":"check","step":"%s","exit":%d,"seconds":%d,"said":"%s"}\n' \
        "$name" $code $(($(date +%s) - start)) "$said" >>"$out"
    [ $code -eq 0 ] && echo "ok    $name" || echo "FAILED $name: $said"
    return $code
}

# number FIELD FILE: of the first record in $work/FILE that has it.
number() {
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" "$work/$2" | sed -n 1p
}

# compare KEY NAME OURS FILE [WAY]: OURS nanoseconds, got by that WAY, beside each peer's in the records of FILE for NAME.
compare() {
    grep "\"$1\":\"$2\"" "$4" | grep '"min_ns"' | grep -v '"ok":false' | while read -r line; do
        theirs=$(echo "$line" | sed 's/.*"min_ns":\([0-9]*\).*/\1/')
        peer=$(echo "$line" | sed 's/.*"peer":"\([^"]*\)".*/\1/')
        way=$(echo "$line" | sed -n 's/.*"way":"\([^"]*\)".*/ \1/p')
        [ "${3:-0}" -gt 0 ] && [ "$theirs" -gt 0 ] || continue
        thousandths=$((theirs * 1000 / $3))
        times_as_fast=$((thousandths / 1000)).$(printf '%03d' $((thousandths % 1000)))
        printf '{"record":"comparison","%s":"%s",%s"ours_ns":%d,"peer":"%s%s","peer_ns":%d,"times_as_fast":%s}\n' \
            "$1" "$2" "${5:+\"ours\":\"$5\",}" "$3" "$peer" "$way" "$theirs" $times_as_fast >>"$out"
        printf '      %-24s %10d ns, %s%s %10d ns: %s times as fast\n' "$2${5:+, $5}" "$3" "$peer" "$way" "$theirs" $times_as_fast
    done
}

# The model's file in $file. Weights of networks are large: drop gives their room back.
make_model() {
    file=$work/$1.onnx recipe=$networks/$1/$1.weights.txt
    if [ -n "$networks" ] && [ -e "$recipe" ]; then
        file=$work/$1/$1.onnx
        mkdir -p "$work/$1" && cat "$networks/$1/$1.onnx" >"$file" &&
            for tensor in "$networks/$1"/*.npy; do
                [ ! -e "$tensor" ] || cat "$tensor" >"$work/$1/${tensor##*/}"
            done &&
            { [ -e "$work/$1/$1.weights" ] || "$fill" "$recipe" "$work/$1/$1.weights" >/dev/null; } && return 0
    elif [ -e "$file" ] || "$tilth" model "$1" -o "$file" -q >/dev/null 2>&1; then
        return 0
    fi
    printf '{"record":"check","step":"model %s","exit":1}\n' "$1" >>"$out"
    echo "FAILED model $1"
    return 1
}
drop_model() {
    rm -rf "${work:?}/$1" "$work/$1.onnx" "$work/$1.data"
}

has_results() {
    for tensor in "$work/$1"/output_*.npy; do
        [ -e "$tensor" ] && return 0
    done
    return 1
}
# verify MODEL [THREADS]: its results beside those that lie with it; where there are none, or they differ, every kernel beside its
# naive program.
verify() {
    if has_results "$1"; then
        step "verify $1" 60 "$tilth" verify "$file" --data "$work/$1" --target cuda --json ${2:+--threads "$2"} && return 0
        step "kernels of $1" 120 "$tilth" verify "$file" --target cuda --json ${2:+--threads "$2"}
        return 1
    fi
    step "verify $1" 120 "$tilth" verify "$file" --target cuda --json ${2:+--threads "$2"}
}
# verify_all MODEL...: as many at a time as there are jobs.
verify_all() {
    waiting=0
    for model in "$@"; do
        [ "$(left)" -gt 0 ] || { skip "verify $model" "no time is left"; continue; }
        (
            said_in=$work/of_$model
            make_model "$model" && verify "$model" $((processors / jobs))
        ) &
        waiting=$((waiting + 1))
        [ $waiting -lt "$jobs" ] || { wait; waiting=0; }
    done
    wait
}
bench() { # MODEL
    step "bench $1" 60 "$tilth" bench "$file" --target cuda --seconds 2 --json
}

step info 30 "$tilth" info --quick --json
grep -q '"present":true' "$out" || { echo "no GPU: $(sed -n 's/.*"why":"\([^"]*\)".*/\1/p' "$out")"; exit 5; }
is_hopper=0
grep -q '"arch":"sm_90' "$out" && is_hopper=1

# A small model first: if that is wrong, the rest need not be looked at.
set -- $models
first=$1
make_model "$first" || exit 1
verify "$first" || { echo "the first model is wrong: nothing else is looked at"; exit 1; }
bench "$first"

# Kernels by their default schedules; then what the hardware of Hopper does by itself, by traces.
trials=2 tuning_trials=400
[ "$times" -eq 1 ] || trials=1 tuning_trials=2
for kernel in ${kernels:+"$kernels"/*.tk}; do
    step "kernel $(basename "$kernel")" 30 "$tilth" tune "$kernel" --target cuda --trials $trials --no-db --json \
        --candidate $((10 * times))
done
if [ -n "$group" ] && [ $is_hopper -eq 1 ]; then
    step "warpgroups" 120 env TILTH_TEST_DEVICE=cuda "$group"
fi
for kernel in ${kernels:+"$kernels"/large/*.tk}; do
    [ -e "$kernel" ] || continue
    name=$(basename "$kernel" .tk)
    case $name in *_hopper) [ $is_hopper -eq 1 ] || continue ;; esac
    step "bench $name 4096" 60 "$tilth" bench "$kernel" "$kernels/$name.tr" --target cuda --no-db --seconds 1 --json
done

# Kernels beside other people's, from PyPI's wheels and the system's folders.
if [ -z "$TILTH_PEERS" ]; then
    TILTH_PEERS=$(python3 -c 'import glob, sys
print(":".join(folder for path in sys.path for folder in glob.glob(path + "/nvidia/*/lib")))' 2>/dev/null)
    for folder in /usr/local/cuda*/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64; do
        [ ! -d "$folder" ] || TILTH_PEERS=$TILTH_PEERS:$folder
    done
    export TILTH_PEERS
fi
if [ -n "$peers" ]; then
    for case in $("$peers" -l); do
        "$peers" -k -d "$times" "$case" >"$work/$case.tk"
        step "ours $case" 30 "$tilth" bench "$work/$case.tk" --target cuda --no-db --seconds 1 --json
        ours=$(grep '"record":"kernel"' "$said_in.stdout" >"$work/kernel"; number min_ns kernel)
        step "peers $case" 20 "$peers" -d "$times" -s 0.3 "$case"
        compare kernel "$case" "$ours" "$said_in.stdout"
        cp "$said_in.stdout" "$work/$case.peers"
    done
else
    skip peers "there is no program for them (-p)"
fi

# Networks beside PyTorch's. Ours are measured first: what takes long there may be cut off.
if [ -n "$pytorch" ] && command -v python3 >/dev/null; then
    shown=
    for model in $models; do
        case " $beside " in *" $model "*) ;; *) continue ;; esac
        shown="$shown $model"
    done
    verify_all $(echo "$shown" | tr ' ' '\n' | grep -vx "$first")
    for model in $shown; do
        [ "$model" = "$first" ] || { make_model "$model" && bench "$model"; }
    done
    [ -z "$shown" ] || step "pytorch" 120 python3 -B "$pytorch" --only-if-there --seconds 1 --within 110 $shown
    cat "$said_in.stdout" >"$work/pytorch"
    for model in $shown; do
        ours=$(grep '"record":"model"' "$out" | grep "/$model.onnx\"" >"$work/model"; number min_ns model)
        compare model "$model" "$ours" "$work/pytorch"
    done
else
    skip pytorch "there is no python3"
fi

make_model "$first"
step "tune $first" 60 "$tilth" tune "$file" --target cuda --budget 40s --candidate $((10 * times)) --json
if [ -s "$work/$TUNED.peers" ]; then
    step "tune $TUNED" 75 "$tilth" tune "$work/$TUNED.tk" --target cuda --budget 45s --trials $tuning_trials --no-db --json \
        --candidate $((10 * times))
    grep '"record":"task"' "$said_in.stdout" >"$work/kernel"
    ours=$(number best_ns kernel)
    compare kernel "$TUNED" "${ours%.*}" "$work/$TUNED.peers" tuned
fi
data=${out%.jsonl}.tld
step "data" 60 "$tilth" dataset collect "$file" ${kernels:+"$kernels"/*.tk} --target cuda --budget 30s --per-task 16 \
    --db "$work/points.db" --json -q
[ ! -e "$work/points.db" ] || step "data set" 20 "$tilth" dataset export --db "$work/points.db" -o "$data" --json -q

others=
for model in $models; do
    grep -q "\"step\":\"bench $model\",\"exit\"" "$out" || others="$others $model"
done
verify_all $others
for model in $others; do
    grep -q "\"step\":\"verify $model\",\"exit\":0" "$out" && make_model "$model" && bench "$model"
    drop_model "$model"
done
count() {
    grep -c "$1" "$out"
}
echo "$(count '"exit":0') steps right, $(count '"exit":[1-9]') wrong, $(count '"record":"comparison"') comparisons," \
    "$(($(date +%s) - begun)) s: $out"
! grep -q '"exit":[1-9]' "$out"

#!/bin/sh
# tests/models.sh [--small] [--target T] TILTH FOLDER [NAME...]: the networks of ../shared/models, or those named, give their
# recorded outputs, on two threads and on one (which takes what the first left in the cache), compiled for this machine or
# for T. Weights are made under FOLDER by the shared fill.c where they are not there yet; --small leaves out networks with
# more than 130 MB of them. Prints a line a network and the sums; exit 1 when any failed.
# tests/models.sh --make FOLDER NAME...: only lays out those networks that ../shared/models has.
small=0 only='' target=cpu
[ "$1" = --small ] && small=1 && shift
[ "$1" = --target ] && target=$2 && shift 2
if [ "$1" = --make ]; then
    tilth='' folder=$2 only=1
else
    tilth=$1 folder=$2
fi
shift 2
shared=../shared/models
passed=0 failed=0 skipped=0

if [ -n "$only" ] && [ ! -f $shared/fill.c ]; then
    exit 0
elif [ ! -f $shared/fill.c ]; then
    echo "skip: the models of $shared are not here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
mkdir -p "$folder" || exit 1
cache=$(mktemp -d) || exit 1
trap 'rm -rf "$cache" "$partial"' EXIT
trap 'exit 130' INT TERM

# Two right float programs differ more on this one than on the others: ONNX Runtime with and without its optimiser by 7e-5.
tolerance_of() {
    case $1 in
    efficientnet_b0) echo 2e-4 ;;
    *) echo 2e-5 ;;
    esac
}

# NAME SIZE: its folder, complete, under $folder.
make_model() {
    to=$folder/$1
    weights=$to/$1.weights
    mkdir -p "$to" && cp -u $shared/"$1"/* "$to"/ || return 1
    [ -f "$weights" ] && [ "$(stat -c %s "$weights")" = "$2" ] && return 0
    if [ ! -x "$folder/fill" ]; then
        ${CC:-cc} -O2 -ffp-contract=off -o "$folder/fill" $shared/fill.c || return 1
    fi
    partial=$weights.partial
    "$folder/fill" $shared/"$1"/"$1".weights.txt "$partial" >/dev/null || return 1
    sum=$(sha256sum "$partial")
    if ! grep -q "^${sum%% *}  $1.weights\$" $shared/WEIGHTS.sha256; then
        echo "$1: its weights are not what WEIGHTS.sha256 lists"
        return 1
    fi
    mv "$partial" "$weights"
}

if [ -n "$only" ]; then
    for name in "$@"; do
        list=$shared/$name/$name.weights.txt
        if [ -f "$list" ] && ! make_model "$name" "$(sed -n 's/^# total //p' "$list")"; then
            exit 1
        fi
    done
    exit 0
fi

for list in $shared/*/*.weights.txt; do
    name=$(basename "$(dirname "$list")")
    size=$(sed -n 's/^# total //p' "$list")
    if [ $small = 1 ] && [ "$size" -gt 130000000 ]; then
        continue # make test-models runs it
    fi
    case " ${*:-$name} " in
    *" $name "*) ;;
    *) continue ;;
    esac
    start=$(date +%s%N)
    result=ok
    if make_model "$name" "$size"; then
        for threads in 2 1; do
            if ! said=$("$tilth" verify "$folder/$name/$name.onnx" --data "$folder/$name" --rtol 1e-4 \
                --tolerance "$(tolerance_of "$name")" --threads $threads --target "$target" --cache "$cache" --quiet \
                2>&1); then
                result="FAILED on $threads threads"
                break
            fi
        done
    else
        result="FAILED to make it" said=
    fi
    ms=$(( ($(date +%s%N) - start) / 1000000 ))
    printf '%-40s %s, %d ms\n' "models/$name$([ "$target" = cpu ] || echo " for $target")" "$result" $ms
    if [ "$result" = ok ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        [ -n "$said" ] && echo "$said"
    fi
    rm -rf "${cache:?}"/*
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

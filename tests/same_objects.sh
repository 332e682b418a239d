#!/bin/sh
# tests/same_objects.sh BASE TILTH FOLDER [NAME...]: whether two builds of tilth compile the networks of ../shared/models, or those
# named, to the same objects, byte for byte, for each of TARGETS (x86-64-v3 and x86-64-v4). BASE is the older build; weights
# are made under FOLDER where they are not there yet. Both compile anew, untuned, without a cache. Prints a line a network; where
# objects differ, how the assembly does is under FOLDER/different. Exit 1 when any differ or do not compile.
base=$1 tilth=$2 folder=$3
[ -x "$base" ] && [ -x "$tilth" ] && [ -n "$folder" ] || { sed -n 's/^# //p' "$0" | head -4; exit 2; }
shift 3
shared=../shared/models
same=0 differ=0
[ -f $shared/fill.c ] || { echo "skip: the models of $shared are not here"; exit 0; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
rm -rf "$folder/different"

# PROGRAM OUT OPTIONS...: compiles $model for $target.
compile() {
    program=$1 out=$2
    shift 2
    "$program" compile "$model" -o "$out" --target "$target" --no-db --no-cache -q "$@" >/dev/null
}

for list in $shared/*/*.weights.txt; do
    name=$(basename "$(dirname "$list")")
    case " ${*:-$name} " in
    *" $name "*) ;;
    *) continue ;;
    esac
    tests/models.sh --make "$folder" "$name" || exit 1
    model=$folder/$name/$name.onnx
    for target in ${TARGETS:-x86-64-v3 x86-64-v4}; do
        rm -rf "$work"/*
        if ! compile "$base" "$work/base.tilth" --prepare later || ! compile "$tilth" "$work/new.tilth" --prepare later; then
            result='does not compile'
        elif cmp -s "$work/base.tilth/objects.bin" "$work/new.tilth/objects.bin"; then
            result="same, $(stat -c %s "$work/new.tilth/objects.bin") bytes"
        else
            result=differ
            mkdir -p "$folder/different"
            compile "$base" "$work/base.s" && compile "$tilth" "$work/new.s" &&
                diff "$work/base.s" "$work/new.s" >"$folder/different/$name.$target.diff"
        fi
        case $result in
        same*) same=$((same + 1)) ;;
        *) differ=$((differ + 1)) ;;
        esac
        printf '%-16s %-10s %s\n' "$name" "$target" "$result"
    done
done
echo "$same same, $differ different"
[ $differ -eq 0 ]

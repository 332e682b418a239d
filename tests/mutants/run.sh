#!/bin/sh
# Breaks the checks of tests/mutants/schedule.txt and codegen.txt one at a time in a scratch copy below build/mutants, and
# sees whether a property test notices: TL_COUNT (2,000) random schedules from TL_SEED (1) on, and no golden. Prints a line
# a mutant; of those that are caught how many schedules it took, how it showed, and the reduced steps. All output of the
# tests is build/mutants/NAME.log. Exit 1 when one survives.
# Usage: tests/mutants/run.sh [NAME...]      those whose names begin so ("split ": with a blank, that word alone)
cd "$(dirname "$0")/../.." || exit 2
out=$PWD/build/mutants source=$PWD/build/mutants/source
first=${TL_SEED:-1} count=${TL_COUNT:-2000}
caught=0 survived=0 broken=0

test_of() { # file: the property test of what is broken there
    case $1 in
    schedule/*) echo schedule/test_meaning ;;
    codegen/lower/kernel_plan.c) echo codegen/test_meaning ;;
    codegen/lower/gpu_plan.c | codegen/lower/overlap_copies.c) echo codegen/test_gpu_meaning ;;
    codegen/lower/await_products.c | codegen/lower/await_bulk_copies.c | codegen/lower/specialize_warps.c)
        echo codegen/test_gpu_group ;;
    codegen/lower/*) echo codegen/test_lower_passes ;;
    esac
}

build() { # the property test and what it tests, nothing else
    make -s -C "$source" BUILD=build CC="${CC:-gcc}" \
        CFLAGS="-std=c11 -D_GNU_SOURCE -I. -Ibuild -O2 -w -DNDEBUG -ffp-contract=off" \
        "build/tests/$test" >"$out/build.log" 2>&1
}

is_wanted() { # name, prefixes
    name=$1
    shift
    [ $# -eq 0 ] && return 0
    for prefix in "$@"; do
        case "$name " in "$prefix"*) return 0 ;; esac
    done
    return 1
}

runs() { # the test finds nothing
    (cd "$source" && TL_SEED=$first TL_COUNT=$count TL_FAILURES=1 timeout 600 "build/tests/$test") >"$log" 2>&1
}

check() { # folder, name, file, text, replacement: one mutant
    name=$2 file=$1/$3 test=$(test_of "$1/$3") log="$out/$(echo "$2" | tr ' ' _).log"
    if ! TEXT=$4 WITH=$5 awk -f tests/mutants/apply.awk "$file" >"$source/$file" || ! build; then
        printf 'BROKEN    %-32s not in %s, or does not compile\n' "$name" "$file"
        broken=$((broken + 1))
    elif runs; then
        printf 'survived  %-32s %d schedules\n' "$name" "$count"
        survived=$((survived + 1))
    else
        seed=$(sed -n 's/.*TL_SEED=\([0-9]*\).*/\1/p' "$log" | head -1)
        how=$(sed -n '/TL_SEED=/{n;p;q;}' "$log" | cut -c1-110)
        how=${how:-$(grep -m1 -E 'signal|ERROR' "$log" | cut -c1-110)}
        printf 'caught    %-32s after %s: %s\n' "$name" "$((${seed:-$first} - first + 1))" "$how"
        sed -n '/^trace$/,/^tilth schedule/p' "$log" | sed -n '/^trace$/d; /^tilth/d; /./s/^/            /p'
        caught=$((caught + 1))
    fi
    cp -p "$file" "$source/$file"
    rm -f "$source/build/${file%.c}.o"
}

mkdir -p "$source"
rm -rf "$source/schedule" "$source/codegen" "$source/ir" "$source/runtime" "$source/tests"
git ls-files Makefile driver/install.mk tests/rules.mk runtime ir schedule codegen \
    tests/support tests/schedule tests/codegen models/kernels/gpu tests/golden/proof ':!tests/support/long_models.*' |
    xargs cp --parents -p -t "$source"
for folder in schedule codegen; do
    while IFS='|' read -r name file text; do
        case $name in '' | '#'*) continue ;; esac
        name=$(echo $name) file=$(echo $file)
        is_wanted "$name" "$@" || continue
        text=${text# } with=
        case $text in *' => '*) with=${text#* => } text=${text%% => *} ;; esac
        check "$folder" "$name" "$file" "$text" "$with" </dev/null
    done <tests/mutants/$folder.txt
done
echo "$caught caught, $survived survived, $broken broken"
[ $((survived + broken)) -eq 0 ]

#!/bin/sh
# Checks what a compiler does not: floors (an include only points down), names of files and types that occur twice, headers that
# compile alone, formatting, who loads code, lines that are too wide, manuals (their length, that the files they name are
# there, and that they tell every row of some tables), what lies at the top. Usage: tests/lint.sh CC CFLAGS...
failed=0

# folder or room: what it may include, as a pattern. A room is a sub-folder; rooms stand in the order in which they build on each
# other. What lies in a folder beside its rooms is its door, or what all of them share.
floors="
runtime/base:runtime/base/
runtime/tensor:runtime/(tensor|base)/
runtime/abi:runtime/(abi|base)/
runtime/device:runtime/(device|abi|base)/
runtime/cuda:runtime/(cuda|device|abi|base)/
runtime/executable:runtime/(executable|device|tensor|abi|base)/
runtime/cache:runtime/(cache|executable|device|tensor|abi|base)/
runtime/api:runtime/
ir/expr:ir/expr/|runtime/base/
ir/graph:ir/graph/|runtime/base/
ir/program:ir/(program|expr)/|runtime/base/
ir/text:ir/(text|program|expr)/|runtime/base/
ir/interpret:ir/(interpret|program|expr)/|runtime/base/
frontend:frontend/(frontend|operators|value_notes)\.|ir/|runtime/base/
frontend/lower:frontend/(lower/|(frontend|operators|value_notes)\.)|ir/|runtime/base/
frontend/node:frontend/(node/|lower/|(frontend|operators|value_notes)\.)|ir/|runtime/base/
frontend/graph:frontend/(graph/|node/|lower/|(frontend|operators|value_notes)\.)|ir/|runtime/base/
frontend/call:frontend/(call/|onnx\.pb-c\.h|node/|lower/|(frontend|operators|value_notes)\.)|ir/|runtime/base/
frontend/import:frontend/(import/|call/|onnx\.pb-c\.h|node/|lower/|(frontend|operators|value_notes)\.)|ir/|runtime/base/
frontend/onnx:frontend/(onnx/|import/|call/|onnx\.pb-c\.h|node/|lower/|(frontend|operators|value_notes)\.)|ir/|runtime/base/
schedule:schedule/[a-z_]*\.(h|def)|ir/|runtime/base/
schedule/prim:schedule/(prim/|[a-z_]*\.)|ir/|runtime/base/
schedule/sketch:schedule/(sketch/|[a-z_]*\.)|ir/|runtime/base/
codegen/lower:codegen/lower/|ir/|runtime/base/
codegen/math:codegen/math/|ir/|runtime/base/
codegen/emit:codegen/(emit|math|lower)/|ir/|runtime/base/
codegen/llvm:codegen/(llvm/|codegen\.h)|ir/|runtime/(base|abi)/
codegen/object:codegen/(object/|llvm/|codegen\.h)|ir/|runtime/(base|abi)/
codegen/emulate:codegen/(emulate/|llvm/|codegen\.h)|ir/|runtime/(base|abi|device)/
codegen:codegen/|ir/|runtime/(base|abi)/
tuner/records:tuner/records/|codegen/|schedule/|ir/|runtime/
tuner/measure:tuner/(measure|records)/|codegen/|schedule/|ir/|runtime/
tuner/learn:tuner/learn/|runtime/base/
tuner/cost:tuner/(cost|learn)/|codegen/|schedule/|ir/|runtime/
tuner/search:tuner/(search|cost|measure|records)/|codegen/|schedule/|ir/|runtime/
tuner/transfer:tuner/(transfer|search|cost|measure|records)/|codegen/|schedule/|ir/|runtime/
tuner/run:tuner/(run|transfer|search|cost|measure|records)/|codegen/|schedule/|ir/|runtime/
tuner/dataset:tuner/(dataset|run|transfer|search|cost|measure|records)/|codegen/|schedule/|ir/|runtime/
tuner/judge:tuner/(judge|dataset|run|transfer|search|cost|learn|measure|records)/|codegen/|schedule/|ir/|runtime/
tuner/model:tuner/|codegen/|schedule/|ir/|runtime/
models:models/|frontend/|ir/|runtime/base/
driver/pipeline:driver/pipeline/|tuner/(records|model)/|codegen/|schedule/|frontend/|ir/|runtime/
driver/probe:driver/probe/|codegen/|schedule/|ir/|runtime/
driver/api:driver/(api|pipeline)/|runtime/
driver/cli:driver/(cli|pipeline)/|codegen/|frontend/|ir/|runtime/
driver/output:driver/(output|cli|pipeline)/|codegen/|ir/|runtime/
driver/verify:driver/(verify|cli|pipeline)/|codegen/|ir/|runtime/
driver/conformance:driver/(conformance|cli|pipeline)/|frontend/|runtime/
driver/reduce:driver/(reduce|output|cli|pipeline)/|frontend/|ir/|runtime/
driver/inspect:driver/(inspect|cli|pipeline)/|codegen/codegen\.h|frontend/|tuner/search/|schedule/|ir/|runtime/
driver/bench:driver/(bench|cli|pipeline)/|codegen/|schedule/|frontend/|ir/|runtime/
driver/study:driver/(study|cli|pipeline)/|codegen/|schedule/|frontend/|ir/|runtime/
driver/report:driver/(report|cli)/|tuner/|runtime/
driver/tune:driver/(tune|bench|study|cli|pipeline)/|tuner/|codegen/|schedule/|frontend/|ir/|runtime/
driver/dataset:driver/(dataset|tune|bench|study|cli|pipeline)/|models/|tuner/|codegen/|schedule/|frontend/|ir/|runtime/
driver/cost:driver/(cost|dataset|tune|bench|study|cli|pipeline)/|models/|tuner/|codegen/|schedule/|frontend/|ir/|runtime/
driver/verb:[a-z]+/
driver:driver/verb/verbs\.h|codegen/codegen\.h|runtime/"
for rule in $floors; do
    folder=${rule%%:*} allowed=${rule#*:}
    found=$(grep -n '^#include "' "$folder"/*.c "$folder"/*.h "$folder"/*.def 2>/dev/null | grep -Ev "#include \"($allowed)")
    [ -z "$found" ] || { echo "floors: $folder/ may include $allowed only:"; echo "$found"; failed=1; }
done
for folder in $(git ls-files 'runtime/*.[ch]' 'ir/*.[ch]' 'frontend/*.[ch]' 'schedule/*.[ch]' 'codegen/*.[ch]' 'tuner/*.[ch]' 'driver/*.[ch]' |
    grep -v '^driver/examples/' | sed 's,/[^/]*$,,' | sort -u); do
    case "$floors" in
    *"
$folder:"*) ;;
    *) echo "floors: $folder/ has none"; failed=1 ;;
    esac
done
again=$(git ls-files 'runtime/*.[ch]' 'ir/*.[ch]' 'frontend/*.[ch]' 'schedule/*.[ch]' 'codegen/*.[ch]' 'tuner/*.[ch]' 'driver/*.[ch]' |
    grep -v '^driver/examples/' | sed 's,.*/,,' | sort | uniq -d)
[ -z "$again" ] || { echo "names: files of two places have one name: $again"; failed=1; }

types=$(git ls-files 'runtime/*.[ch]' 'ir/*.[ch]' 'frontend/*.[ch]' 'schedule/*.[ch]' 'codegen/*.[ch]' 'tuner/*.[ch]' 'driver/*.[ch]' 'models/*.[ch]' |
    grep -v '^driver/examples/' | xargs awk '
        /^typedef (struct|enum|union) tl_[a-z0-9_]+ tl_[a-z0-9_]+;/ { next } # a declaration; its definition has a body
        /^typedef / && match($0, /tl_[a-z0-9_]+;$/) { print substr($0, RSTART, RLENGTH - 1) }
        /^\} tl_[a-z0-9_]+;$/ { print substr($2, 1, length($2) - 1) }' | sort | uniq -d)
[ -z "$types" ] || { echo "names: types that are defined twice: $types"; failed=1; }

for header in $(git ls-files '*.h'); do
    "$@" -fsyntax-only -x c "$header" || { echo "headers: $header does not compile alone"; failed=1; }
done

if command -v clang-format >/dev/null; then
    for file in $(git ls-files '*.c' '*.h'); do
        clang-format --dry-run --Werror "$file" >/dev/null 2>&1 || { echo "format: $file (make format)"; failed=1; }
    done
else
    echo "format: skipped, clang-format is not installed (make deps)"
fi

loaders=$(git grep -l 'runtime/device/code_loader\.h' -- '*.[ch]' ':!runtime' ':!tests')
[ -z "$loaders" ] || { echo "loaders: what is timed is loaded as what is run, by ORC: $loaders"; failed=1; }
casts=$(git ls-files '*.c' '*.h' | xargs grep -nE 'switch \(\((int|unsigned|long|size_t|u?int[0-9]+_t)\)')
[ -z "$casts" ] || { echo "switches: -Wswitch cannot check one that casts its value:"; echo "$casts"; failed=1; }

alone=$(git ls-files '*.c' '*.h' | xargs grep -nE '^ +(const )?(bool|int|double|float|char|void|u?int[0-9]+_t|size_t|tl_[a-z_]+) ?\**$')
[ -z "$alone" ] || { echo "declarations: a type stands alone on its line; put the comment above:"; echo "$alone"; failed=1; }
wide=$(git ls-files '*.c' '*.h' '*.def' | xargs awk 'length($0) > 130 { print FILENAME ":" FNR }' | head)
[ -z "$wide" ] || { echo "width: lines of more than 130 columns:"; echo "$wide"; failed=1; }
pages=$(git ls-files '*.md')
for page in $pages; do
    case "$page" in *README.md) [ "$(wc -l <"$page")" -le 150 ] || { echo "manuals: $page has more than 150 lines"; failed=1; } ;; esac
done
wide=$(LC_ALL=C.UTF-8 grep -nE '^.{121,}' $pages | cut -d: -f1,2)
[ -z "$wide" ] || { echo "manuals: lines of more than 120 columns:"; echo "$wide"; failed=1; }
# What a page names in `..` or links to is there: from the top, beside the page or, without a folder, anywhere; NAME and other
# words in capitals stand for any word, as * does. What is in build/ is made.
there=$(git ls-files; git ls-files | grep / | sed 's,/[^/]*$,,' | sort -u; git ls-files | sed -nE 's,^(([^/]+/){2}).*/.*,\1,p' | sed 's,/$,,' | sort -u)
for page in $pages; do
    beside=$(dirname "$page")
    for name in $(grep -oE '`[A-Za-z0-9_./*-]+\.(c|h|def|sh|py|md|mk|map|awk|proto|svg|tk|tr)`|`(runtime|ir|frontend|schedule|codegen|tuner|models|driver|tests)/[A-Za-z0-9_./*-]*`|\]\([A-Za-z0-9_./-]+' "$page" |
        sed -E 's/^(`|\]\()//; s/`$//; s,/$,,' | sort -u); do
        case "$name" in build/*|/*) continue ;; esac
        beside_it=$(realpath -m --relative-to=. "$beside/$name")
        any=$(printf '%s\n' "$name" "$beside_it" | sed -E '/\.md$/!s/[A-Z]{4,}/*/g; s/\./\\./g; s,\*+,[^/]*,g' | paste -sd'|')
        case "$name" in */*) ;; *) any="$any|.*/(${any%%|*})" ;; esac
        echo "$there" | grep -qxE "$any" || { echo "manuals: $page names $name, which is not there"; failed=1; }
    done
done

# Tables whose rows a page tells one by one.
told() { # TABLE MACRO PAGE
    sed -nE "s/^$2\\( *([a-z0-9_]+),.*/\\1/p" "$1" | while read -r name; do
        grep -qE "\`$name[\`(]" "$3" || echo "manuals: $3 does not tell $name of $1"
    done
}
untold=$(told schedule/primitives.def PRIMITIVE schedule/PRIMITIVES.md; told codegen/lower/lower_passes.def PASS codegen/README.md)
[ -z "$untold" ] || { echo "$untold"; failed=1; }

extra=$(git ls-files | sed 's,/.*,,' | sort -u | grep -vxE 'Makefile|README\.md|frontend|ir|schedule|codegen|tuner|runtime|models|tests|driver|\..*')
[ -z "$extra" ] || { echo "top level: $extra does not belong there"; failed=1; }
[ $failed -eq 0 ] && echo "lint: ok"
exit $failed

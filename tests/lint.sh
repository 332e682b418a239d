#!/bin/sh
# Checks what a compiler does not: floors (an include points down, ARCHITECTURE: "Arrows only point down"), headers that
# compile alone, formatting, longest files. Usage: tests/lint.sh CC CFLAGS...
failed=0

# folder: what it may include, as a pattern
floors="
runtime/base:runtime/base/
runtime:runtime/
ir:ir/|runtime/base/
frontend:frontend/|ir/|runtime/base/
schedule:schedule/|ir/|runtime/base/
codegen:codegen/|ir/|runtime/base/|runtime/kernel_abi|runtime/descriptor
tuner:tuner/|codegen/|schedule/|frontend/|ir/|runtime/
models:models/|frontend/|ir/|runtime/base/
driver:[a-z]+/"
for rule in $floors; do
    folder=${rule%%:*} allowed=${rule#*:}
    found=$(grep -n '^#include "' "$folder"/*.c "$folder"/*.h "$folder"/*.def 2>/dev/null | grep -Ev "#include \"($allowed)")
    [ -z "$found" ] || { echo "floors: $folder/ may include $allowed only:"; echo "$found"; failed=1; }
done

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

wide=$(git ls-files '*.c' '*.h' '*.def' | xargs awk 'length($0) > 130 { print FILENAME ":" FNR }' | head)
[ -z "$wide" ] || { echo "width: lines of more than 130 columns:"; echo "$wide"; failed=1; }
extra=$(git ls-files | sed 's,/.*,,' | sort -u | grep -vxE 'Makefile|README\.md|frontend|ir|schedule|codegen|tuner|runtime|models|tests|driver|\..*')
[ -z "$extra" ] || { echo "top level: $extra does not belong there"; failed=1; }
[ $failed -eq 0 ] && echo "lint: ok"
exit $failed

#!/bin/sh
# Prints the fingerprint of the sources that decide the code of a scheduled program: codegen/ (but for emulate/, which runs
# code and keeps none) and all that its floor lets it include (tests/lint.sh), the tables (.def) too, so that nothing else
# can have a say. schedule/ is above: what it does is in the program, whose text has its own place in the key. Comments and
# empty lines do not count.
# Usage, from the top of the tree: codegen/fingerprint.sh CC
set -e
export LC_ALL=C

files=$(find codegen ir runtime/base runtime/abi \
    -type f \( -name '*.[ch]' -o -name '*.def' \) -not -path 'codegen/emulate/*')
files=$(printf '%s\n' $files | sort)
join() { awk 'FNR == 1 { print "file", FILENAME } { print }' $files; }

# A compiler that cannot leave out comments alone (clang) leaves them in: then they count, which is as safe.
text=$(join | "$@" -w -fpreprocessed -dD -E -P -x c - 2>/dev/null) || text=$(join)
[ -n "$text" ] || { echo "fingerprint: nothing of the sources could be read" >&2; exit 1; }
printf '%s\n' "$text" | sha256sum | cut -c 1-32

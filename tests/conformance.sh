#!/bin/sh
# tests/conformance.sh [--write] TILTH: the ONNX test cases of ../shared; what tests/conformance/expected-NAME.txt lists has to pass.
# --write: lists what passes now. Prints a line a tree, and the cases that no longer pass.
write=0
[ "$1" = --write ] && write=1 && shift
tilth=$1 failed=0
for tree in ../shared/onnx-node-tests ../shared/onnx-node-tests-stretch; do
    name=${tree##*/}
    list=tests/conformance/expected-$name.txt
    if [ ! -f $tree/MANIFEST.csv ]; then
        echo "skip: the cases of $tree are not here"
        continue
    fi
    said=
    if [ $write = 1 ]; then
        said=$("$tilth" conformance $tree --quiet --time-limit 600 --write-expected "$list")
        result=written
    elif said=$("$tilth" conformance $tree --quiet --time-limit 600 --expected "$list" 2>&1); then
        result=ok
    else
        result=FAILED
    fi
    printf '%-40s %s, %s\n' "conformance/$name" "$result" "$(echo "$said" | tail -n 1)"
    echo "$said" | grep '^of '
    if [ "$result" = FAILED ]; then
        failed=1
        echo "$said" | grep -E '^(failed |skipped |no longer |tilth |  )'
    fi
done
exit $failed

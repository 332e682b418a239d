#!/bin/sh
# make demo: the main job on a real network, from nothing: write ResNet-18, look at it, compile and run it, check every
# kernel against its naive program, measure it; then tune it for thirty seconds, and measure and check it again. Usage:
# tests/demo.sh TILTH FOLDER
set -e
tilth=$1 folder=$2
mkdir -p "$folder"

show() {
    printf '\n$ tilth %s\n' "$*"
    "$tilth" "$@"
}

show info
show model resnet18 -o "$folder/resnet18.onnx"
show inspect "$folder/resnet18.onnx"
show run "$folder/resnet18.onnx"
show verify "$folder/resnet18.onnx" --per-node
show bench "$folder/resnet18.onnx" --seconds 2 --threads 1 --no-db --top 8
show tune "$folder/resnet18.onnx" --budget 30s --threads 1 --db "$folder/records.db"
show bench "$folder/resnet18.onnx" --seconds 2 --threads 1 --db "$folder/records.db" --top 8
show verify "$folder/resnet18.onnx" --threads 1 --db "$folder/records.db" --per-node
if "$tilth" info --quick --json | grep -q '"present":true'; then
    show verify "$folder/resnet18.onnx" --target cuda
    show bench "$folder/resnet18.onnx" --target cuda --seconds 2 --top 8
else
    printf '\nNo GPU: %s\n' "$("$tilth" info --quick | sed -n 's/^gpu *none for //p')"
fi

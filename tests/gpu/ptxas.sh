#!/bin/sh
# tests/gpu/ptxas.sh: what ptxas makes of the kernels that tilth compiles networks to, without a GPU: a line a kernel with its
# registers, bytes of shared memory that it declares, of stack and of spills, then one a network.
#
# usage: ptxas.sh TILTH [-a ARCH] [-n NUMERICS] MODEL.onnx ...
#
# Exit status: 0; 1 when a network does not compile or a kernel with more than 64 registers spills (what a call of a division's
# slow path saves counts as spilled, and with few registers that is all it can be); 5 when there is no ptxas.
tilth=$1
shift
arch=sm_90 numerics=
while getopts a:n: option; do
    case $option in
    a) arch=$OPTARG ;;
    n) numerics=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
PATH=$PATH:/usr/local/cuda/bin
command -v ptxas >/dev/null || { echo "no ptxas"; exit 5; }
work=$(mktemp -d "${TMPDIR:-/tmp}/ptxas-XXXXXX") || exit 4
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
for model in "$@"; do
    name=$(basename "$model" .onnx)
    "$tilth" compile "$model" --target "cuda,$arch" ${numerics:+--numerics "$numerics"} -o "$work/$name.ptx" --no-db -q \
        >/dev/null 2>"$work/said" || { echo "FAILED $name: $(tail -n 1 "$work/said")"; failed=1; continue; }
    ptxas -v -arch="$arch" "$work/$name.ptx" -o /dev/null 2>"$work/said" ||
        { echo "FAILED $name: $(grep -m 1 -i error "$work/said")"; failed=1; continue; }
    awk -v network="$name" '
        /Compiling entry function/ { split($0, part, "\x27"); kernel = part[2] }
        /bytes stack frame/ { match($0, /[0-9]+ bytes stack/); stack = substr($0, RSTART) + 0
                              match($0, /[0-9]+ bytes spill stores/); spill = substr($0, RSTART) + 0
                              match($0, /[0-9]+ bytes spill loads/); spill += substr($0, RSTART) + 0 }
        /Used [0-9]+ registers/ {
            match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5) + 0
            shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
            printf "%-18s %-60s %4d registers %6d shared %5d stack %5d spilled\n", network, kernel, registers, shared, stack, spill
            count++
            if (registers > most) most = registers
            if (spill > 0 && registers > 64) bad++
        }
        END { printf "%-18s %d kernels, at most %d registers, %d of them spill\n", network, count, most, bad; exit bad > 0 }
    ' "$work/said" || failed=1
done
exit $failed

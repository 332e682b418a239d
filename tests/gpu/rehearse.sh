#!/bin/sh
# tests/gpu/rehearse.sh: check.sh as it will run on a machine with a GPU, where there is none: every step, on the driver that
# executes kernels in the emulator (emulated_driver.c), with the smallest network, small sizes of the kernels, and libraries of
# other people that are none (peers/fake_libraries.c). An archive of bundle.sh runs in a root of its own: a shell, the tools that
# check.sh calls, a driver, nothing else.
#
# usage: rehearse.sh DRIVER FOLDER-OF-LIBRARIES TILTH PEERS [TEST of warpgroups]
#        rehearse.sh DRIVER FOLDER-OF-LIBRARIES ARCHIVE.tar.xz          as root, for chroot
driver=$1 libraries=$2 what=$3 peers=$4 group=$5
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-rehearse-XXXXXX") || exit 4
trap 'umount "$work/root/proc" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# By the clock of the device a launch takes long: what is measured is not repeated until that clock has advanced.
export TILTH_PTX_WITH_IR=1 FAKE_CUDA=sm=90,slow-launch=50
MINUTES=${MINUTES:-60} MODELS=${MODELS:-bert_tiny} SLOWER=20

# The kernels at sizes that their traces still fit: whole tiles, steps enough for every pipeline.
shrink() { # folder
    mkdir -p "$1/large"
    cp "$here"/models/kernels/gpu/*.tr "$1/"
    for file in "$here"/models/kernels/gpu/*.tk; do
        sed -e 's/\b512\b/256/g' "$file" >"$1/$(basename "$file")"
    done
    for file in "$here"/models/kernels/gpu/large/*.tk; do
        cp "$1/$(basename "$file")" "$1/large/"
    done
}

case $what in
*.tar.xz)
    root=$work/root
    mkdir -p "$root/bin" "$root/tmp" "$root/proc" "$root/dev" "$root/usr/lib64"
    tar -C "$root" -xJf "$what" || exit 4
    for tool in sh date mktemp rm mkdir cat timeout grep sed tail tr basename dirname env; do
        path=$(command -v "$tool") || exit 4
        cp -L "$path" "$root/bin/$tool"
        ldd "$path" | grep -oE '/[^ ]+' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -Ln "$library" "$root$library"
        done
    done
    cp -L "$driver" "$root/usr/lib64/libcuda.so.1"
    cp -L "$libraries"/lib* "$root/usr/lib64/"
    mknod -m 666 "$root/dev/null" c 1 3
    mount --bind /proc "$root/proc" 2>/dev/null
    shrink "$root/tilth-gpu/kernels"
    chroot "$root" /bin/env -i PATH=/bin TMPDIR=/tmp TILTH_PTX_WITH_IR=1 FAKE_CUDA=$FAKE_CUDA /bin/sh /tilth-gpu/check \
        -o /check.jsonl -m "$MINUTES" -s $SLOWER $MODELS
    code=$?
    cp "$root/check.jsonl" "${JSON:-build/gpu-rehearsal.jsonl}"
    ;;
*)
    shrink "$work/kernels"
    export TILTH_CUDA_LIBRARY=$driver TILTH_PEERS=$libraries
    "$here/tests/gpu/check.sh" "$what" -o "${JSON:-build/gpu-rehearsal.jsonl}" -m "$MINUTES" -s $SLOWER -k "$work/kernels" \
        -p "$peers" -y "$here/tests/gpu/peers/networks.py" ${group:+-g "$group"} $MODELS
    code=$?
    ;;
esac
exit $code

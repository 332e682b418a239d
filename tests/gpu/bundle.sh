#!/bin/sh
# tests/gpu/bundle.sh: tilth and all that it needs as one archive, for a machine with a GPU that has a driver and nothing else.
#
# usage: bundle.sh BUILD FILE.tar.xz
#
#     tilth-gpu/check          runs tests/gpu/check.sh with all that is here: tilth-gpu/check [-o FILE] [-m MINUTES] [MODEL ...]
#     tilth-gpu/run, peers, group, fill     run tilth and what else check.sh needs, with the libraries beside them
#     tilth-gpu/bin, lib       the programs; their libraries, and LLVM with the parts for x86, NVPTX and AArch64 alone
#     tilth-gpu/kernels        models/kernels/gpu
#     tilth-gpu/networks       graphs of ../shared/models, recipes of their weights, results of others, where that is
#     tilth-gpu/networks.py    the same networks in PyTorch (peers/networks.py)
#
# LLVM is linked anew from its archives, with what code generation calls (llvm_link.h) and what that needs: a fifth of the whole.
set -e
build=$1 archive=$2
config=${LLVM_CONFIG:-llvm-config-19}
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-bundle-XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
to=$work/tilth-gpu
mkdir -p "$to/bin" "$to/lib"

strip -o "$to/bin/tilth" "$build/tilth"
strip -o "$to/bin/peers" "$build/tests/gpu/peers/peers"
[ ! -e "$build/tests/codegen/test_gpu_group" ] || strip -o "$to/bin/group" "$build/tests/codegen/test_gpu_group"
[ ! -e "$build/tests/gpu/fill" ] || strip -o "$to/bin/fill" "$build/tests/gpu/fill"
ldd "$to"/bin/* | awk '$2 == "=>" { print $3 } $1 ~ /^\/.*[^:]$/ { print $1 }' | sort -u | while read -r library; do
    cp -L "$library" "$to/lib/"
done

header=$build/codegen/llvm/llvm_link.h
soname=$(sed -n 's/^#define LLVM_SONAME *"\(.*\)"/\1/p' "$header")
functions=$(grep -oE 'LLVM[A-Z][A-Za-z0-9_]*' "$header" | grep -vE '^LLVM_' | sort -u)
printf '{ global: %s local: *; };\n' "$(for f in $functions; do printf '%s; ' "$f"; done)" >"$work/map"
# -lzstd as a file: its development package need not be there.
system_libraries() {
    for word in $($config --link-static --system-libs); do
        case $word in
        -l*) file=$(ldconfig -p | awk -v name="lib${word#-l}.so" '$1 ~ "^" name { print $NF; exit }')
            echo "${file:-$word}" ;;
        *) echo "$word" ;;
        esac
    done
}
# shellcheck disable=SC2046
c++ -shared -o "$work/llvm.so" -Wl,-soname,"$soname" -Wl,--version-script,"$work/map" -Wl,--gc-sections -Wl,--as-needed -Wl,-z,defs \
    $(for f in $functions; do printf -- '-Wl,-u,%s ' "$f"; done) \
    -L"$($config --libdir)" -Wl,--start-group $($config --link-static --libs x86 nvptx aarch64 orcjit passes irreader linker) \
    -Wl,--end-group $(system_libraries)
strip -o "$to/lib/$soname" "$work/llvm.so"
ldd "$work/llvm.so" | awk '$2 == "=>" { print $3 }' | while read -r library; do
    [ -e "$to/lib/$(basename "$library")" ] || cp -L "$library" "$to/lib/"
done

cp tests/gpu/check.sh "$to/"
cp -r models/kernels/gpu "$to/kernels"
mkdir -p "$to/models/kernels" # where the test of warpgroups looks
cp -r models/kernels/gpu "$to/models/kernels/"
cp tests/gpu/peers/networks.py "$to/"
shared=../shared/models
for recipe in "$shared"/*/*.weights.txt; do
    [ -e "$recipe" ] || continue
    name=$(basename "$recipe" .weights.txt)
    mkdir -p "$to/networks/$name"
    cp "$recipe" "$shared/$name/$name.onnx" "$shared/$name"/*.npy "$to/networks/$name/"
done
for program in tilth peers group fill; do
    [ -e "$to/bin/$program" ] || continue
    name=$program
    [ $program != tilth ] || name=run
    enter=
    [ $program != group ] || enter='cd "$here" || exit 4'
    cat >"$to/$name" <<RUN
#!/bin/sh
here=\$(CDPATH= cd -- "\$(dirname -- "\$0")" && pwd)
$enter
export TILTH_PROGRAM="\$here/run" # its workers need the same libraries
exec "\$here/lib/ld-linux-x86-64.so.2" --library-path "\$here/lib:/usr/local/nvidia/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib64" \\
    "\$here/bin/$program" "\$@"
RUN
    chmod +x "$to/$name"
done
cat >"$to/check" <<'CHECK'
#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
[ ! -e "$here/fill" ] || set -- -n "$here/networks" -f "$here/fill" "$@"
[ ! -e "$here/group" ] || set -- -g "$here/group" "$@"
exec "$here/check.sh" "$here/run" -k "$here/kernels" -p "$here/peers" -y "$here/networks.py" "$@"
CHECK
chmod +x "$to/check" "$to/check.sh"
tar -C "$work" -cJf "$archive" tilth-gpu
size=$(wc -c <"$archive")
echo "$archive: $((size / 1024 / 1024)) MiB"
[ "$size" -le $((45 * 1024 * 1024)) ] || { echo "$archive: larger than 45 MiB"; exit 1; }

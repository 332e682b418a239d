#!/bin/sh
# Prints build/.../codegen/llvm/llvm_link.h for codegen/llvm/load_llvm.c: the library of LLVM that this build is for, and the functions
# of it that the objects and that file call. Usage: codegen/llvm/link.sh LIBDIR VERSION OBJECT...
set -e
export LC_ALL=C
library=$1/libLLVM-${2%%.*}.so version=$2
shift 2
soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
printf '/* Made by codegen/llvm/link.sh. */\n'
printf '#define LLVM_FILE "%s"\n#define LLVM_SONAME "%s"\n' "$(realpath "$library")" "$soname"
printf '#define LLVM_BUILT_FOR "%s"\n' "$version"
printf '#define LLVM_FILE_SIZE %s\n#define LLVM_FILE_TIME %s\n' $(stat -Lc '%s %Y' "$library")
printf '#define LLVM_FUNCTIONS(FUNCTION)'
{ echo LLVMGetVersion; nm -u "$@" | sed -n 's/^ *U \(LLVM[A-Za-z0-9]*\)$/\1/p'; } | sort -u | awk '{ printf " \\\n    FUNCTION(%d, %s)", NR - 1, $1 }'
printf '\n'

#!/bin/sh
# Installs the Debian packages that tilth needs, and those that are named, if one is missing. Needs root (or sudo) only
# then.
packages="gcc make pkg-config git llvm-19-dev libhwloc-dev libprotobuf-c-dev protobuf-c-compiler libsqlite3-dev zlib1g-dev libxgboost-dev
          libopenblas-dev libjansson-dev libcmocka-dev libedit-dev clang-format"
missing=""
for package in $packages "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "these packages are missing and need root:$missing" >&2; exit 1; }
    as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
    { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null; }

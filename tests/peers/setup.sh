#!/bin/sh
# tests/peers/setup.sh [FOLDER]: the Python environment of this folder's programs, outside the tree: FOLDER, by default
# $XDG_CACHE_HOME/tilth-peers. Makes it when something is missing (0.4 GB, PyPI) and prints where it is. PYTHON chooses the
# interpreter; PACKAGES, names under which they are imported too, adds to what is installed.
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tilth-peers}
wanted="numpy onnx onnxruntime openvino $PACKAGES"
# shellcheck disable=SC2086
works() {
    "$folder/bin/python" -c 'import importlib.util, sys
import numpy, onnx, onnxruntime, openvino
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
sys.exit(f"peers: not installed: {missing}" if missing else 0)' $wanted
}

case $folder in
/*) ;;
*) folder=$PWD/$folder ;;
esac
if ! works 2>/dev/null; then
    ${PYTHON:-python3} -m venv "$folder" >&2 || {
        echo "peers: no virtual environment in $folder: Python 3 with its venv module is needed (Debian: python3-venv)" >&2
        exit 1
    }
    # shellcheck disable=SC2086
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $wanted >&2 || exit 1
    works || exit 1
fi
echo "$folder"

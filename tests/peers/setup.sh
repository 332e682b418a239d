#!/bin/sh
# tests/peers/setup.sh [FOLDER]: the Python environment of this folder's programs, outside the tree: FOLDER, by default
# $XDG_CACHE_HOME/tilth-peers. Makes it when something is missing (0.4 GB, PyPI) and prints where it is. PYTHON chooses the
# interpreter; PACKAGES adds to what is installed.
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tilth-peers}
works() { "$folder/bin/python" -c 'import numpy, onnx, onnxruntime, openvino' 2>/dev/null; }

case $folder in
/*) ;;
*) folder=$PWD/$folder ;;
esac
if ! works || [ -n "$PACKAGES" ]; then
    ${PYTHON:-python3} -m venv "$folder" >&2 || {
        echo "peers: no virtual environment in $folder: Python 3 with its venv module is needed (Debian: python3-venv)" >&2
        exit 1
    }
    # shellcheck disable=SC2086
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check numpy onnx onnxruntime openvino $PACKAGES >&2 ||
        exit 1
    works || { "$folder/bin/python" -c 'import numpy, onnx, onnxruntime, openvino'; exit 1; }
fi
echo "$folder"

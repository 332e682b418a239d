#!/usr/bin/env python3
"""Lays out lists of networks for compare.py, and says under which names.

    networks.py FOLDER TILTH NAME...

`trained` stands for the trained networks of ../shared/models/trained.py, the name of one (`magika`) for all of its calls:
FOLDER/NAME, FOLDER/NAME@1, ..., each with the network, inputs, what ONNX Runtime makes of them, and names.txt. They come out of
Python packages (PyPI), which are downloaded once. `second` stands for the second list (second.py), which export.py writes. What is
there already stays; other names pass as they are. Prints the names, a blank between."""

import importlib.util
import os
import subprocess
import sys

sys.dont_write_bytecode = True
SHARED = os.path.join("..", "shared", "models", "trained.py")


def load():
    """trained.py as a module; None where it is not."""
    if not os.path.exists(SHARED):
        return None
    spec = importlib.util.spec_from_file_location("trained", SHARED)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def folders_of(module, name):
    """A folder for each of its calls."""
    return [name if k == 0 else f"{name}@{k}" for k in range(len(module.MODELS[name][2]))]


def expand(module, name):
    """The calls that a name stands for; empty: none of trained.py's."""
    models = module.MODELS if module is not None else {}
    if name == "trained":
        if module is None:
            sys.exit(f"networks.py: {SHARED} is not here")
        return [folder for each in models for folder in folders_of(module, each)]
    if name in models:
        return folders_of(module, name)
    base = name.split("@")[0]
    return [name] if base in models and name in folders_of(module, base) else []


def second(folder, tilth):
    """Writes the second list; the names of what there is of it."""
    export = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "export.py")]
    names = subprocess.run([*export, "--list", "second"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    subprocess.run([*export, folder, "second", "--tilth", tilth], check=False, stdout=sys.stderr)
    return [name for name in names if os.path.exists(os.path.join(folder, name, "sums"))]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder, tilth, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    module, shown = load(), []
    for name in names:
        if name == "second":
            shown += second(folder, tilth)
            continue
        calls = expand(module, name)
        missing = {c.split("@")[0] for c in calls if not os.path.exists(os.path.join(folder, c, "names.txt"))}
        if missing:
            out = os.dup(1)  # what is laid out is told on stderr: stdout is for the names
            os.dup2(2, 1)
            module.lay_out(module.MODELS, folder, [m for m in module.MODELS if m in missing])
            sys.stdout.flush()
            os.dup2(out, 1)
        shown += calls or [name]
    print(" ".join(dict.fromkeys(shown)))


if __name__ == "__main__":
    main()

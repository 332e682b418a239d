#!/usr/bin/env python3
"""Lays out the trained networks of ../shared/models/trained.py for compare.py, and says under which names.

    networks.py FOLDER NAME...

`trained` stands for all of them, the name of one (`magika`) for all of its calls: FOLDER/NAME, FOLDER/NAME@1, ..., each with the
network, inputs, what ONNX Runtime makes of them, and names.txt. What is there already stays; other names pass as they are. Prints
the names, a blank between. Networks come out of Python packages (PyPI), which are downloaded once."""

import importlib.util
import os
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


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:]
    module, shown = load(), []
    for name in names:
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

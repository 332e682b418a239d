#!/usr/bin/env python3
"""Every model that `tilth model` writes: ONNX's checker and ONNX Runtime accept it, and ONNX Runtime agrees with tilth.

    python3 -m venv VENV && VENV/bin/pip install numpy onnx onnxruntime
    VENV/bin/python tests/peers/zoo.py build/release/tilth [MODEL...] [--threads N] [--seed S]
                                   [--tolerance T] [--only default|shaped]

Each model is written twice: as it is, and with another batch and another image size or length (--shape). For each file:

    checker   onnx.checker with full_check: the format, every operator's rules, and shape inference against the shapes
              that the file declares
    peer      ONNX Runtime with graph optimisation off runs it on two random inputs: all numbers are finite, no output is
              constant, and other inputs give other outputs
    tilth     `tilth run` on the first of them, its outputs beside the peer's: the largest difference is at most T (2e-5) of the
              largest magnitude

Prints a row a file; the exit status is 1 if a row is wrong. Everything is written to a temporary folder (0.6 GB at most at a
time). All models take some minutes, most of them for the large ones: vgg11, vgg16, vit_b16, bert_base, gpt2.
"""
import argparse, os, subprocess, sys, tempfile, time
import numpy as np
import onnx
import onnxruntime as ort

# Another shape for each kind of input, by rank: [batch, channels, height, width], [batch, steps, features], [batch, tokens].
SHAPED = {4: lambda d: [2, d[1], 64, 96], 3: lambda d: [3, 5, d[2]], 2: lambda d: [2, 33]}


def inputs_of(session, rng):
    """Images and features normal, tokens of any vocabulary here, masks that hide the last quarter."""
    feeds = {}
    for i in session.get_inputs():
        if i.type == "tensor(float)":
            feeds[i.name] = rng.standard_normal(i.shape).astype(np.float32)
        elif "mask" in i.name:
            feeds[i.name] = np.ones(i.shape, np.int64)
            feeds[i.name][:, -(i.shape[1] // 4) or i.shape[1]:] = 0
        else:
            feeds[i.name] = rng.integers(0, 30000, i.shape)
    return feeds


def peer_session(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])} exits with {done.returncode}: {done.stderr.strip()[-600:]}")


def sane(name, first, second):
    if not np.isfinite(first).all():
        raise RuntimeError(f"{name} has numbers that are not finite")
    scale = np.abs(first).max()
    if first.size > 1 and np.ptp(first) < 1e-3 * scale or np.abs(first - second).max() < 1e-3 * scale:
        raise RuntimeError(f"{name} is constant")


def check_file(tilth, path, folder, arguments):
    """The largest error of all outputs, the largest magnitude, seconds of `tilth run` (compiling included)."""
    onnx.checker.check_model(path, full_check=True)
    session = peer_session(path, arguments.threads)
    rng = np.random.default_rng(arguments.seed)
    feeds, other = inputs_of(session, rng), inputs_of(session, rng)
    for name, value in feeds.items():
        np.save(os.path.join(folder, f"input_{name}.npy"), value)
    names = [o.name for o in session.get_outputs()]
    expected = session.run(None, feeds)
    for name, first, second in zip(names, expected, session.run(None, other)):
        sane(name, first, second)
    del session
    start = time.perf_counter()
    call([tilth, "run", path, "--data", folder, "-o", folder, "--threads", str(arguments.threads), "--no-cache", "-q"])
    seconds = time.perf_counter() - start
    worst = magnitude = 0.0
    for name, right in zip(names, expected):
        ours = np.load(os.path.join(folder, f"output_{name}.npy"))
        if ours.shape != right.shape or ours.dtype != right.dtype:
            raise RuntimeError(f"{name} is {ours.dtype}{ours.shape}, not {right.dtype}{right.shape}")
        error = np.abs(ours.astype(np.float64) - right).max() / np.abs(right).max()
        worst = max(worst, float(error) if np.isfinite(error) else np.inf)
        magnitude = max(magnitude, float(np.abs(right).max()))
    return worst, magnitude, seconds


def check_model(tilth, name, shaped, arguments):
    with tempfile.TemporaryDirectory(prefix="tilth_zoo_") as folder:
        path = os.path.join(folder, f"{name}.onnx")
        command = [tilth, "model", name, "-o", path, "--seed", str(arguments.seed)]
        shape = "default"
        if shaped:
            # the first input's own shape, from a file without its weights
            call(command + ["--external"])
            first = onnx.load(path, load_external_data=False).graph.input[0]
            dims = [d.dim_value for d in first.type.tensor_type.shape.dim]
            dims = SHAPED[len(dims)](dims)
            os.remove(path)
            os.remove(path[: -len("onnx")] + "weights")
            shape = "x".join(map(str, dims))
            command += ["--shape", f"{first.name}={','.join(map(str, dims))}"]
        call(command)
        size = os.path.getsize(path) * 1e-6
        worst, magnitude, seconds = check_file(tilth, path, folder, arguments)
    good = worst <= arguments.tolerance
    print(f"{name:16} {shape:12} {size:7.1f} MB  {worst:9.1e} of {magnitude:8.3g}  {seconds:6.1f} s  "
          f"{'good' if good else f'WRONG: more than {arguments.tolerance:g}'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilth")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=2e-5)
    parser.add_argument("--only", choices=["default", "shaped"])
    arguments = parser.parse_args()
    listed = subprocess.run([arguments.tilth, "model", "--list"], check=True, capture_output=True, text=True).stdout
    models = arguments.models or [line.split()[0] for line in listed.splitlines()]
    ort.set_default_logger_severity(3)
    print(f"onnx {onnx.__version__}, onnxruntime {ort.__version__}, seed {arguments.seed}; largest difference over largest "
          f"magnitude, and seconds to compile and run once")
    wrong = 0
    for name in models:
        for shaped in (False, True):
            if arguments.only and shaped != (arguments.only == "shaped"):
                continue
            try:
                wrong += not check_model(arguments.tilth, name, shaped, arguments)
            except Exception as problem:  # one bad model must not hide the others
                print(f"{name:16} {'shaped' if shaped else 'default':12} WRONG: {problem}", flush=True)
                wrong += 1
    print(f"{wrong} wrong" if wrong else "all good")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

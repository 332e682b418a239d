#!/usr/bin/env python3
"""How far tilth, ONNX Runtime and OpenVINO are from double precision, on the same f32 weights and inputs.

    VENV=$(tests/peers/setup.sh)
    $VENV/bin/python tests/peers/accuracy.py build/release/tilth resnet18 bert_base_128 [--json FILE]

A model is what it is to compare.py. The error of a side is the largest |y - r| of an output over its largest |r|, of the worst output,
where r is what evaluate.py computes in f64; --draws N makes it the geometric mean over the model's inputs and N - 1 more, their
numbers in another order. Prints a table in Markdown; tests/peers/README.md tells how to read it. Exit status: 1 when a model has no
reference, or neither tilth nor a peer gives an error for it.
"""
import argparse, hashlib, importlib.metadata, json, math, os, shutil, sys, tempfile, time
sys.dont_write_bytecode = True
import numpy as np
import onnx

from compare import HERE, PEERS, Failure, Worker, call, cpu_name, find_model, geometric_mean

# side: the column's title, and what tilth run is told beside the model and its inputs
TILTH = {
    "relaxed": ("tilth", []),
    "direct": ("no Winograd", []),  # by the binary of --without-winograd
    "strict": ("strict", ["--numerics", "strict"]),
    "v2": ("x86-64-v2", ["--target", "x86-64-v2"]),
    "v3": ("x86-64-v3", ["--target", "x86-64-v3"]),
    "v4": ("x86-64-v4", ["--target", "x86-64-v4"]),
}
TITLES = {**{side: title for side, (title, _) in TILTH.items()}, "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}

LEAST = 1e-17  # an error of nothing has no logarithm


def add_file(sum, path):
    sum.update(os.path.basename(path).encode() + b"\0" + str(os.path.getsize(path)).encode() + b"\0")
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            sum.update(block)


def key_of(path, data):
    """Of everything that a reference depends on: the model with its weights, the inputs, and the evaluator."""
    sum = hashlib.sha256()
    network = onnx.load(path, load_external_data=False)
    weights = {e.value for t in network.graph.initializer for e in t.external_data if e.key == "location"}
    add_file(sum, path)
    for file in sorted(weights):
        add_file(sum, os.path.join(os.path.dirname(path), file))
    for file in sorted(os.listdir(data)):
        add_file(sum, os.path.join(data, file))
    add_file(sum, os.path.join(HERE, "evaluate.py"))
    return sum.hexdigest()[:32]


def reference(options, path, data, name):
    """The folder of the outputs in f64: from the cache, or evaluated now."""
    folder = os.path.join(options.references, key_of(path, data))
    if not os.path.isdir(folder):
        os.makedirs(options.references, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="partial_", dir=options.references) as work:
            start = time.perf_counter()
            whole = os.path.join(work, "whole")
            os.mkdir(whole)
            call([sys.executable, os.path.join(HERE, "evaluate.py"), path, data, whole])
            print(f"{name}: in f64 in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
            os.rename(whole, folder)
    return folder


def error_of(folder, right):
    """The largest difference of all outputs, each over its largest magnitude."""
    worst = 0.0
    for file in sorted(f for f in os.listdir(right) if f.endswith(".npy")):
        ours, exact = np.load(os.path.join(folder, file)), np.load(os.path.join(right, file))
        if ours.shape != exact.shape:
            raise Failure(f"output {file[:-4]} is {list(ours.shape)}, not {list(exact.shape)}")
        if exact.size > 0:
            error = np.abs(ours.astype(np.float64) - exact).max() / max(np.abs(exact).max(), 1e-300)
            worst = max(worst, float(error) if np.isfinite(error) else math.inf)
    return worst


def redraw(data, to, seed):
    """The inputs of a folder with their numbers in another order, an input of equal ones (a mask) as it is."""
    os.mkdir(to)
    rng = np.random.default_rng(seed)
    for file in sorted(os.listdir(data)):
        if file.endswith(".npy"):
            value = np.load(os.path.join(data, file))
            np.save(os.path.join(to, file), rng.permutation(value.ravel()).reshape(value.shape))
        else:
            shutil.copy(os.path.join(data, file), to)


def run_tilth(options, side, path, data, ports, work, cache):
    binary = options.without_winograd if side == "direct" else options.tilth
    shapes = [f"--shape={p['name']}={','.join(map(str, p['shape']))}" for p in ports["inputs"] if not p["fixed"]]
    call([binary, "run", path, "--data", data, "-o", work, "--threads", str(options.threads), "--cache", cache, "--no-db", "-q",
          *shapes, *TILTH[side][1]])
    for index, name in enumerate(ports["outputs"]):
        file = "".join("_" if c in "/:" or c < "!" else c for c in name)
        os.rename(os.path.join(work, f"output_{file}.npy"), os.path.join(work, f"{index}.npy"))


def run_peer(options, peer, path, data, work):
    worker = Worker(peer, path, data, options.threads)
    try:
        worker.ask(outputs=work)
    finally:
        worker.stop()


def peer_error(options, peer, path, data, right, work):
    """A peer's error does not change with tilth: it stands beside the reference, by version, threads and processor."""
    kept = os.path.join(right, "errors.json")
    known = json.load(open(kept)) if os.path.exists(kept) else {}
    key = f"{peer} {importlib.metadata.version(peer)}, {options.threads} threads, {cpu_name()}"
    if key not in known or options.again:
        run_peer(options, peer, path, data, work)
        known[key] = error_of(work, right)
        with open(kept + ".partial", "w") as file:
            json.dump(known, file, indent=1)
        os.rename(kept + ".partial", kept)
    return known[key]


def side_error(options, side, path, data, right, ports, work):
    """Of one side on one draw."""
    outputs = os.path.join(work, "outputs")
    os.mkdir(outputs)
    try:
        if side in PEERS:
            return peer_error(options, side, path, data, right, outputs)
        # what is compiled for one draw serves the next; the two binaries do not share
        run_tilth(options, side, path, data, ports, outputs, os.path.join(work, "cache_direct" if side == "direct" else "cache"))
        return error_of(outputs, right)
    finally:
        shutil.rmtree(outputs)


def measure(options, given):
    """{"model", "sides": {side: {"error", "draws"} or {"refused"}}} or {"model", "failed"}."""
    name = os.path.splitext(os.path.basename(given))[0]
    result = {"model": name, "sides": {}}
    with tempfile.TemporaryDirectory(prefix="tilth_accuracy_") as work:
        try:
            path, beside = find_model(options.tilth, given, options.models, work)
            data = [os.path.join(work, f"data_{draw}") for draw in range(options.draws)]
            os.mkdir(data[0])
            described = Worker("inputs", path, beside, data[0])
            described.stop()
            for draw in range(1, options.draws):
                redraw(data[0], data[draw], draw)
            right = [reference(options, path, folder, name) for folder in data]
        except (Failure, OSError) as failure:
            print(f"{name}: {failure}", file=sys.stderr, flush=True)
            return {**result, "failed": str(failure)}
        for side in options.sides:
            try:
                errors = [side_error(options, side, path, folder, exact, described.hello, work) for folder, exact in zip(data, right)]
                result["sides"][side] = {"error": geometric_mean([max(e, LEAST) for e in errors]), "draws": errors}
            except (Failure, OSError) as failure:
                result["sides"][side] = {"refused": str(failure)}
                print(f"{name}: {side}: {failure}", file=sys.stderr, flush=True)
    said = "  ".join(f"{side} {facts['error']:.1e}" for side, facts in result["sides"].items() if "error" in facts)
    print(f"{name}: {said}", file=sys.stderr, flush=True)
    return result


# ---- the report

def errors_of(result):
    return {side: facts["error"] for side, facts in result["sides"].items() if "error" in facts}


def ratios(results, side, choose):
    """Of the side's errors to the peers' worse (max) or better (min), by network."""
    found = {}
    for result in results:
        errors = errors_of(result)
        theirs = [errors[peer] for peer in PEERS if peer in errors]
        if side in errors and theirs:
            found[result["model"]] = errors[side] / choose(theirs)
    return found


def judged_side(sides):
    """Whose ratios the last columns have: Winograd's error is judged by its own bound."""
    return next(side for side in ("direct", "relaxed", *TILTH) if side in sides)


def table(results, sides):
    ours = [side for side in sides if side not in PEERS]
    judged = judged_side(sides) if ours else None
    worse, better = [ratios(results, judged, choose) if ours else {} for choose in (max, min)]
    rows = [["network", *[TITLES[side] for side in sides], "to the worse", "to the better"]]
    for result in results:
        cells = [f"{facts['error']:.1e}" if "error" in facts else "refused" for facts in
                 (result["sides"].get(side, {}) for side in sides)]
        more = [f"{ratio[name]:.2f}" if (name := result["model"]) in ratio else "-" for ratio in (worse, better)]
        if worse.get(result["model"], 0) > 1:
            more[0] = f"**{more[0]}**"
        rows.append([result["model"], *cells, *more])
    for title, choose in (("geometric mean to the worse peer", max), ("geometric mean to the better peer", min)):
        means = [geometric_mean(list(ratios(results, side, choose).values())) if side not in PEERS else None for side in sides]
        rows.append([title, *["" if mean is None else f"{mean:.2f}" for mean in means], "", ""])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilth", help="the binary")
    parser.add_argument("names", nargs="+", metavar="MODEL")
    parser.add_argument("--without-winograd", metavar="TILTH", help="a binary that takes no Winograd (make accuracy builds it)")
    parser.add_argument("--sides", help=f"of {','.join([*TILTH, *PEERS])} those to measure (all)")
    parser.add_argument("--draws", type=int, default=1, help="inputs of each network (1: those beside it)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", default="build/models", help="holds NAME/NAME.onnx (build/models)")
    parser.add_argument("--references", default="build/accuracy", help="keeps outputs in f64 and the peers' errors (build/accuracy)")
    parser.add_argument("--again", action="store_true", help="the peers too, though their errors are kept")
    parser.add_argument("--json", help="everything in a file")
    options = parser.parse_args()
    every = [side for side in [*TILTH, *PEERS] if side != "direct" or options.without_winograd]
    options.sides = options.sides.split(",") if options.sides else every
    unknown = [side for side in options.sides if side not in every]
    if unknown:
        parser.error(f"--sides: {', '.join(unknown)} is none of {', '.join(every)} (direct takes --without-winograd)")
    if min(options.threads, options.draws) < 1:
        parser.error("--threads and --draws are above 0")
    try:
        if options.json:
            open(options.json, "a").close()  # what would fail after the measuring fails before it
        versions = {"tilth": call([options.tilth, "--version"]).split("\n")[0].split()[-1],
                    **{peer: importlib.metadata.version(peer) for peer in PEERS}}
    except (Failure, OSError) as failure:
        sys.exit(f"accuracy.py: {failure}")
    results = [measure(options, name) for name in options.names]
    print(f"{cpu_name()}, {options.threads} thread(s), {options.draws} input(s) each; " + ", ".join(f"{name} {version}" for name, version in versions.items())
          + "\n\n" + table(results, options.sides), flush=True)
    for result in results:
        for what in [result.get("failed"), *[f"{side}: {facts['refused']}" for side, facts in result["sides"].items() if "refused" in facts]]:
            if what:
                print(f"{result['model']}: {what}")
    if options.json:
        ours = [side for side in options.sides if side not in PEERS]
        report = {"record": "accuracy", "cpu": cpu_name(), "threads": options.threads, "draws": options.draws,
                  "versions": versions, "time_s": int(time.time()),
                  "geomean_to_worse": {s: geometric_mean(list(ratios(results, s, max).values())) for s in ours},
                  "geomean_to_better": {s: geometric_mean(list(ratios(results, s, min).values())) for s in ours}, "models": results}
        with open(options.json, "w") as file:
            file.write(json.dumps(report, indent=1) + "\n")
    sys.exit(any("failed" in r or not errors_of(r) for r in results))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

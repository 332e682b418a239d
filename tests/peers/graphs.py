#!/usr/bin/env python3
"""Random graphs of tests/structural beside others: ONNX's checker, its reference, ONNX Runtime.

    graphs.py GRAPHS [--seed S] [--count N] [--family NAME] [--keep FOLDER] [--sides checker,onnxruntime,reference]

GRAPHS is the program build/release/tests/structural/graphs, which writes models, inputs, what its oracle makes of them and how
far off others may be. The checker has to take every model. A side that lacks an operator, or a type of it, is counted as
`lacks`; one that gives other numbers, as `differs`, and the graphs are listed: then one of the two is wrong. Where a side is
known to differ from ONNX, KNOWN says so. Ends with 1 when the checker refused one, or a side differs and nobody knows why."""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx

# What others are known to do in another way than ONNX says: (side, operator): why.
KNOWN = {
    ("onnxruntime", "DynamicQuantizeLSTM"): "rounds what it multiplies with the weights to 8 bits, step by step",
    ("onnxruntime", "DFT"): "rounds its twiddle factors to f32",
    ("onnxruntime", "GroupNormalization"): "computes f64 in f32 (stash_type)",
    ("onnxruntime", "Attention"): "computes f64 in f32",
}


def read_array(path, tensor_type):
    """An array of NumPy's; bf16 and numbers of four bits as ONNX's reference has them."""
    array = np.load(path, allow_pickle=False)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor_type)
    if array.dtype.kind == "V":
        return array.view(dtype)
    return array.astype(dtype) if array.dtype != dtype else array


class Case:
    """A graph as the program wrote it."""

    def __init__(self, folder):
        self.folder = folder
        self.model = onnx.load(os.path.join(folder, "model.onnx"))
        graph = self.model.graph
        self.inputs = {
            value.name: read_array(os.path.join(folder, f"input_{i}.npy"), value.type.tensor_type.elem_type)
            for i, value in enumerate(graph.input)
        }
        self.outputs = []
        allowed = [float(line) for line in open(os.path.join(folder, "allowed.txt"))]
        for i, value in enumerate(graph.output):
            loose = os.path.join(folder, f"loose_{i}.npy")
            self.outputs.append(
                (
                    value.name,
                    read_array(os.path.join(folder, f"output_{i}.npy"), value.type.tensor_type.elem_type),
                    allowed[i],
                    np.load(loose) if os.path.exists(loose) else None,
                )
            )

    def operators(self):
        return sorted({node.op_type for node in self.model.graph.node})

    def compare(self, results):
        """None, or what differs."""
        for (name, expected, allowed, loose), got in zip(self.outputs, results):
            got = np.asarray(got)
            if got.shape != expected.shape:
                return f"{name} is of shape {list(got.shape)}, not {list(expected.shape)}"
            if got.dtype != expected.dtype:
                return f"{name} is of {got.dtype}, not {expected.dtype}"
            a, e = got.astype(np.float64), expected.astype(np.float64)
            with np.errstate(invalid="ignore"):
                right = (np.abs(a - e) <= allowed) | (a == e) | (np.isnan(a) & np.isnan(e))
            if loose is not None:
                right |= loose
            if not right.all():
                at = int(np.argmin(right))
                return (
                    f"{name}: {int((~right).sum())} of {right.size}, element {at} is {a.flat[at]:.9g}, the oracle's is "
                    f"{e.flat[at]:.9g}, off by {abs(a.flat[at] - e.flat[at]):.3g}, {allowed:.3g} is allowed"
                )
        return None


def run_checker(case):
    onnx.checker.check_model(case.model, full_check=True)
    return None


def run_reference(case):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(case.model).run(None, case.inputs)


def run_onnxruntime(case):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: case.inputs[i.name] for i in session.get_inputs()})


SIDES = {"checker": run_checker, "reference": run_reference, "onnxruntime": run_onnxruntime}


def known(side, case):
    for operator in case.operators():
        if (side, operator) in KNOWN:
            return KNOWN[side, operator]
    return None


def check(side, case):
    """What became of a graph, and a sentence."""
    try:
        results = SIDES[side](case)
    except Exception as error:  # pylint: disable=broad-except
        return ("refuses" if side == "checker" else "lacks"), " ".join(str(error).split())[:300]
    difference = case.compare(results) if results is not None else None
    if difference is None:
        return "agrees", ""
    why = known(side, case)
    return ("known", why) if why else ("differs", difference)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--family")
    parser.add_argument("--keep", metavar="FOLDER", help="where the graphs stay (default: nowhere)")
    parser.add_argument("--sides", default="checker,onnxruntime", help="checker,onnxruntime; reference: ONNX's own evaluator, slow")
    parser.add_argument("--reasons", type=int, default=0, metavar="N", help="the N most frequent reasons why a side lacks a graph")
    options = parser.parse_args()
    np.seterr(all="ignore")
    counts = {side: collections.Counter() for side in options.sides.split(",")}
    reasons = {side: collections.Counter() for side in counts}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        command = [options.graphs, "--seed", str(options.seed), "--count", str(options.count)]
        command += ["--family", options.family] if options.family else []
        subprocess.run(command + ["--write", folder], check=False)
        for seed in range(options.seed, options.seed + options.count):
            path = os.path.join(folder, str(seed))
            if not os.path.exists(os.path.join(path, "allowed.txt")):
                continue
            case = Case(path)
            for side, count in counts.items():
                verdict, sentence = check(side, case)
                count[verdict] += 1
                if verdict == "lacks":
                    reasons[side][re.sub(r"[0-9]+", "N", sentence)[:200]] += 1
                if verdict in ("differs", "refuses"):
                    print(f"seed {seed}, {side} {verdict}: {sentence}  [{' '.join(case.operators())}]", flush=True)
    bad = 0
    for side, sentences in reasons.items():
        for sentence, n in sentences.most_common(options.reasons):
            print(f"{side} lacks, {n} times: {sentence}")
    for side, count in counts.items():
        print(f"{side}: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(count.items())))
        bad += count["differs"] + count["refuses"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

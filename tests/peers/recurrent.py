#!/usr/bin/env python3
"""Recurrent networks of usual sizes as .onnx files, for compare.py: models/zoo.def has none with the operators themselves.

    $VENV/bin/python tests/peers/recurrent.py build/recurrent lstm_128x256_t64_b1 gru_128x256_t64_b8_bi_2l ...
    $VENV/bin/python tests/peers/recurrent.py --check build/release/tilth [MODELS [SEED]]

--check: nodes with random attributes, operands and sizes, one after the other through tilth and ONNX Runtime; exit status 1
when a result differs by more than 1e-4 of its largest.

A name says what the model is: the cell (lstm, gru, gruz, rnn; gruz has linear_before_reset 0), inputs x hidden, steps (t), batch (b), and after
these `bi` for both directions and `Nl` for N layers. Weights are seeded; the last layer's output and final states are the model's.
"""
import os, random, re, subprocess, sys, tempfile
import numpy
from onnx import TensorProto, checker, helper, numpy_helper, save

CELLS = {"lstm": ("LSTM", 4, {}), "gru": ("GRU", 3, {"linear_before_reset": 1}), "gruz": ("GRU", 3, {}), "rnn": ("RNN", 1, {})}
NAME = re.compile(r"(lstm|gruz|gru|rnn)_(\d+)x(\d+)_t(\d+)_b(\d+)(_bi)?(?:_(\d+)l)?")


def build(name):
    parts = NAME.fullmatch(name)
    if not parts:
        sys.exit(f"'{name}' names no model: lstm_128x256_t64_b1_bi_2l is one")
    operator, gates, attributes = CELLS[parts[1]]
    inputs, hidden, steps, batch = (int(parts[i]) for i in range(2, 6))
    directions, layers = 2 if parts[6] else 1, int(parts[7] or 1)
    random = numpy.random.default_rng(1)
    weights, nodes, value, width = [], [], "input", inputs

    def constant(what, *shape):
        weights.append(numpy_helper.from_array((random.uniform(-1, 1, shape) / hidden**0.5).astype(numpy.float32), what))
        return what

    for layer in range(layers):
        last = layer == layers - 1
        operands = [value, constant(f"w{layer}", directions, gates * hidden, width),
                    constant(f"r{layer}", directions, gates * hidden, hidden), constant(f"b{layer}", directions, 2 * gates * hidden)]
        results = [f"y{layer}"] + (["h_n"] + (["c_n"] if operator == "LSTM" else []) if last else [])
        nodes.append(helper.make_node(operator, operands, results, hidden_size=hidden, **attributes,
                                      direction="bidirectional" if directions == 2 else "forward"))
        # [steps, directions, batch, hidden] as the next layer's [steps, batch, directions*hidden]
        nodes.append(helper.make_node("Transpose", [f"y{layer}"], [f"t{layer}"], perm=[0, 2, 1, 3]))
        value = "output" if last else f"x{layer + 1}"
        nodes.append(helper.make_node("Reshape", [f"t{layer}", "shape"], [value]))
        width = directions * hidden
    weights.append(numpy_helper.from_array(numpy.array([0, 0, -1], numpy.int64), "shape"))
    state = [directions, batch, hidden]
    results = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [steps, batch, width])]
    results += [helper.make_tensor_value_info(s, TensorProto.FLOAT, state) for s in (["h_n", "c_n"] if operator == "LSTM" else ["h_n"])]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("input", TensorProto.FLOAT, [steps, batch, inputs])],
                              results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tilth")
    checker.check_model(model)
    return model


ACTIVATIONS = ["Tanh", "Sigmoid", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
               "Softsign", "Softplus"]
WITH_ALPHA, WITH_BETA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}, {"Affine", "ScaledTanh", "HardSigmoid"}


def random_node(choose):
    """A node's model, its inputs, and the text that says what it is. Time comes first: ONNX Runtime knows no other layout."""
    operator, gates, functions = choose.choice([("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 1)])
    direction = choose.choice(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    steps, batch, inputs, hidden = (choose.choice(sizes) for sizes in ((1, 2, 7), (1, 3, 8), (1, 5, 16), (1, 4, 16, 33)))
    attributes = {"direction": direction, "hidden_size": hidden}
    if choose.random() < 0.4:
        names = choose.choices(ACTIVATIONS, k=functions)
        if choose.random() < 0.5:  # ONNX Runtime wants the same number of alphas for both directions
            names = names * directions
        else:
            names = choose.choices(names, k=functions * directions)
        attributes["activations"] = names
        # given: ONNX Runtime's defaults are not those of the operators
        for key, those in ("activation_alpha", WITH_ALPHA), ("activation_beta", WITH_BETA):
            if those.intersection(names):
                attributes[key] = [choose.choice([0.2, 0.6, 1.1]) for name in names if name in those]
    if choose.random() < 0.3:
        attributes["clip"] = choose.choice([0.3, 1.0])
    if operator == "LSTM" and choose.random() < 0.3:
        attributes["input_forget"] = 1
    if operator == "GRU":
        attributes["linear_before_reset"] = choose.randrange(2)
    numbers = numpy.random.default_rng(choose.randrange(1 << 30))

    def floats(*shape):
        return numbers.uniform(-0.7, 0.7, shape).astype(numpy.float32)

    operands = {"X": floats(steps, batch, inputs), "W": floats(directions, gates * hidden, inputs),
                "R": floats(directions, gates * hidden, hidden)}
    optional = {"B": floats(directions, 2 * gates * hidden), "sequence_lens": numbers.integers(1, steps + 1, batch, numpy.int32),
                "initial_h": floats(directions, batch, hidden)}
    if operator == "LSTM":
        optional.update(initial_c=floats(directions, batch, hidden), P=floats(directions, 3 * hidden))
    given = [name for name in optional if choose.random() < 0.5]
    names = list(operands) + [name if name in given else "" for name in optional]
    operands.update({name: optional[name] for name in given})
    results = ["Y", "Y_h"] + (["Y_c"] if operator == "LSTM" and choose.random() < 0.5 else [])
    constant = [name for name in ("W", "R", "B", "P") if name in operands and choose.random() < 0.7]
    typed = {name: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for name, v in operands.items() if name not in constant}
    states = {"Y": [steps, directions, batch, hidden], "Y_h": [directions, batch, hidden], "Y_c": [directions, batch, hidden]}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, states[name]) for name in results]
    graph = helper.make_graph([helper.make_node(operator, names, results, name="node", **attributes)], "node", list(typed.values()),
                              outputs, [numpy_helper.from_array(operands[name], name) for name in constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8, producer_name="tilth")
    text = f"{operator} T={steps} B={batch} I={inputs} H={hidden} {attributes} given {given} constant {constant} -> {results}"
    return model, {name: operands[name] for name in typed}, text


def check(tilth, count, seed):
    import onnxruntime
    wrong = 0
    for number in range(seed, seed + count):
        model, inputs, text = random_node(random.Random(number))
        with tempfile.TemporaryDirectory() as folder:
            path, arguments = os.path.join(folder, "node.onnx"), []
            save(model, path)
            try:
                wanted = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)
            except Exception as refusal:  # what it does not do says nothing of us
                print(f"{number}: left out, {str(refusal).splitlines()[0][:120]}")
                continue
            for name, value in inputs.items():
                numpy.save(os.path.join(folder, f"{name}.npy"), value)
                arguments += ["--input", f"{name}={folder}/{name}.npy"]
            ran = subprocess.run([tilth, "run", path, "--no-db", "--no-cache", "--quiet", "--output", folder, *arguments],
                                 capture_output=True, text=True)
            bad = ran.stderr.strip() if ran.returncode else ""
            for output, value in zip(model.graph.output, wanted):
                if not bad:
                    got = numpy.load(os.path.join(folder, f"output_{output.name}.npy"))
                    far = numpy.abs(got - value).max() / max(numpy.abs(value).max(), 1e-6)
                    if not far <= 1e-4:
                        bad = f"{output.name} differs by {far:.1e}"
        if bad:
            wrong += 1
            print(f"{number}: {bad}\n    {text}")
    print(f"{count} nodes, {wrong} wrong")
    return wrong > 0


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--check":
        sys.exit(check(sys.argv[2], *(int(n) for n in (sys.argv[3:] + ["100", "1"][len(sys.argv) - 3:]))))
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in sys.argv[2:]:
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder, exist_ok=True)
        save(build(name), os.path.join(folder, name + ".onnx"))


if __name__ == "__main__":
    main()

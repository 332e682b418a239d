#!/usr/bin/env python3
"""Networks that were exported for a batch of 1, rewritten for N: the same network, N samples in one run.

    batch.py FOLDER MODEL.onnx DATA N     writes FOLDER/MODEL.onnx, its inputs and what ONNX Runtime makes of each sample alone,
                                          with a names.txt (for compare.py, and for tilth verify --data FOLDER)
    batch.py --check                      holds the rewriting to the single samples on small graphs, one for each rule

DATA holds the inputs of the first sample ("-": random ones, as worker.py makes them); the others have its numbers in another
order, and masks that end earlier: sentences of several lengths, padded. A network's leading axes are multiplied by N:

    an input                            [1, 3, 224, 224]            ->  [4, 3, 224, 224]
    Reshape by a constant               [1, 128, -1, 64]            ->  [4, 128, -1, 64]        (where its data have the batch)
    Gather, GatherND of a sample's      indices i                   ->  i + sample * extent     (a mask by position)
    values by indices that have none
    Concat with a constant              [1, 1, 192]                 ->  the same for each sample

All else broadcasts. What has no such rule differs from the single samples and is refused.
"""
import argparse, os, shutil, sys, tempfile
sys.dont_write_bytecode = True
import numpy as np
import onnx
from onnx import external_data_helper, helper, numpy_helper

import worker

SAME = 1e-3     # of two right programs in f32, relative to the largest magnitude
SMALL = 0.1     # and to what distinguishes the samples, which could be less than that
SHAPES_OF = {"Shape", "Size"}  # their results have no batch, whatever they look at
GRAPHS_IN = {"If", "Loop", "Scan"}


class Unbatched(Exception):
    pass


# ---- the network

class Rewriting:
    """A network on its way from one sample to `count`."""

    def __init__(self, model, folder, count):
        self.graph, self.folder, self.count = model.graph, folder, count
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = node.attribute[0].t
        known = onnx.shape_inference.infer_shapes(model).graph
        self.shapes = {port.name: [d.dim_value for d in port.type.tensor_type.shape.dim]
                       for port in [*known.input, *known.value_info, *known.output]}
        self.shapes.update((name, list(tensor.dims)) for name, tensor in self.constants.items())
        self.batched, self.moved, self.nodes = set(), {}, []  # values with the batch; indices, and what took their place

    def constant(self, value, like):
        """A new one, named for what it belongs to."""
        tensor = numpy_helper.from_array(value, f"{like}_of_{self.count}_{len(self.graph.initializer)}")
        self.graph.initializer.append(tensor)
        return tensor.name

    def value_of(self, name):
        tensor = self.constants.get(name)
        if tensor is None:
            return None
        if external_data_helper.uses_external_data(tensor):
            copy = onnx.TensorProto()
            copy.CopyFrom(tensor)
            external_data_helper.load_external_data_for_tensor(copy, self.folder)
            tensor = copy
        return numpy_helper.to_array(tensor)

    def reshape(self, node):
        target = self.value_of(node.input[1])
        if target is None or target.size == 0 or target[0] <= 0:
            return  # computed from shapes, or by what is left
        target = target.copy()
        target[0] *= self.count
        node.input[1] = self.constant(target, node.output[0])

    def gather(self, node, axes):
        """Indices into one sample's values; the batch is the first of `axes` axes that they choose from."""
        data, indices = node.input[0], node.input[1]
        extents, shape = self.shapes.get(data), self.shapes.get(indices)
        if not extents or not extents[0] or not shape or shape[0] != 1:
            raise Unbatched(f"{node.op_type} {node.output[0]}: indices of shape {shape} from values of shape {extents}")
        first = np.zeros([self.count] + [1] * (len(shape) - 1 - (axes > 0)) + [axes] * (axes > 0), np.int64)
        first.reshape(self.count, -1)[:, 0] = np.arange(self.count) * extents[0]
        moved = f"{indices}_of_{self.count}_by_{extents[0]}"
        if moved not in self.shapes:
            self.nodes.append(helper.make_node("Add", [indices, self.constant(first, node.output[0])], [moved], name=moved))
            self.shapes[moved] = [self.count, *shape[1:]]
        self.moved[indices] = node.input[1] = moved

    def concat(self, node):
        for i, name in enumerate(node.input):
            if name not in self.batched:
                shape = self.shapes.get(name)
                if not shape or shape[0] != 1:
                    raise Unbatched(f"Concat {node.output[0]}: {name} of shape {shape} has no batch")
                spread = f"{name}_of_{self.count}"
                if spread not in self.shapes:
                    repeats = self.constant(np.array([self.count] + [1] * (len(shape) - 1), np.int64), spread)
                    self.nodes.append(helper.make_node("Tile", [name, repeats], [spread], name=spread))
                    self.shapes[spread] = [self.count, *shape[1:]]
                node.input[i] = spread

    def node(self, node):
        if node.op_type in GRAPHS_IN:
            raise Unbatched(f"{node.op_type} {node.output[0]}: graphs in nodes are not rewritten")
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        has = [name in self.batched for name in node.input]
        if node.op_type in SHAPES_OF:
            if node.input[0] in self.moved:  # what the indices were is what their readers reshape by
                node.input[0] = self.moved[node.input[0]]
        elif any(has):
            if node.op_type == "Reshape":
                self.reshape(node)
            elif node.op_type == "Gather" and has == [True, False] and attributes.get("axis", 0) == 0:
                self.gather(node, 0)
            elif node.op_type == "GatherND" and has == [True, False] and attributes.get("batch_dims", 0) == 0:
                self.gather(node, self.shapes[node.input[1]][-1])
            elif node.op_type == "Concat":
                self.concat(node)
            self.batched.update(node.output)
        self.nodes.append(node)

    def run(self):
        stored = {tensor.name for tensor in self.graph.initializer}
        for port in self.graph.input:
            if port.name not in stored:
                self.batched.add(port.name)
                self.widen(port)
        for node in list(self.graph.node):
            self.node(node)
        for port in self.graph.output:
            if port.name not in self.batched:
                raise Unbatched(f"output {port.name} depends on no input")
            self.widen(port)
        del self.graph.node[:], self.graph.value_info[:]
        self.graph.node.extend(self.nodes)

    def widen(self, port):
        dims = port.type.tensor_type.shape.dim
        if not dims:
            raise Unbatched(f"{port.name} is a scalar")
        if dims[0].dim_value > 0:
            dims[0].dim_value *= self.count


def rewrite(model, folder, count):
    """Changes the model, whose large tensors are in `folder`."""
    Rewriting(model, folder, count).run()


# ---- its inputs and outputs

def samples_of(feeds, count):
    """Inputs of each sample; the first's are those given."""
    rng = np.random.default_rng(1)
    samples = [feeds]
    for k in range(1, count):
        other = {}
        for name, value in feeds.items():
            if "mask" in name and value.ndim > 0:
                other[name] = value.copy()
                other[name][..., max(value.shape[-1] - 3 * k, 1):] = 0
            else:
                other[name] = rng.permutation(value.ravel()).reshape(value.shape)
        samples.append(other)
    return samples


def session_of(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def outputs_of(path, feeds):
    session = session_of(path)
    names = [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(names, each))) for each in feeds]


def compare(alone, together):
    """Raises where a sample has not what it has alone."""
    for name, got in together.items():
        right = np.concatenate([each[name] for each in alone]).astype(np.float64)
        if got.shape != right.shape:
            raise Unbatched(f"output {name} is {list(got.shape)}, and of all samples {list(right.shape)}")
        rows = right.reshape(len(alone), -1)
        largest, spread = np.abs(right).max(initial=0), np.abs(rows - rows[0]).max(initial=0)
        error = np.abs(got - right).max(initial=0)
        if not (error <= SAME * largest and error <= max(SMALL * spread, 1e-6 * largest)):
            raise Unbatched(f"output {name} is off by {error / max(largest, 1e-30):.1e} of its magnitude from the single samples; they "
                            f"differ by {spread / max(largest, 1e-30):.1e}")


def write(folder, path, data, count):
    os.makedirs(folder, exist_ok=True)
    source = os.path.dirname(os.path.abspath(path))
    with tempfile.TemporaryDirectory(prefix="tilth_batch_") as one:
        worker.write_inputs(path, data, one)
        feeds = {name: np.load(file) for (_, name), file in worker.names_of(one).items()}
    model = onnx.load(path, load_external_data=False)
    beside = {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}
    rewrite(model, source, count)
    to = os.path.join(folder, os.path.basename(path))
    onnx.save(model, to)
    for name in beside:
        if not os.path.exists(os.path.join(folder, name)):
            shutil.copyfile(os.path.join(source, name), os.path.join(folder, name))  # tilth takes no links for weights
    samples = samples_of(feeds, count)
    together = {name: np.concatenate([each[name] for each in samples]) for name in feeds}
    alone = outputs_of(path, samples)
    compare(alone, outputs_of(to, [together])[0])
    with open(os.path.join(folder, "names.txt"), "w") as names:
        for kind, values in (("input", together), ("output", {name: np.concatenate([each[name] for each in alone]) for name in alone[0]})):
            for i, (name, value) in enumerate(values.items()):
                np.save(os.path.join(folder, f"{kind}_{i}.npy"), value)
                names.write(f"{kind} {name} {kind}_{i}.npy\n")


# ---- small graphs, a rule each

CASES = {
    "broadcast": "(float[1, 6] x) => (float[1, 6] y) <float[6] b = {1, 2, 3, 4, 5, 6}> { y = Add(x, b) }",
    "reshape": "(float[1, 6] x) => (float[1, 3, 2] y) <int64[3] s = {1, -1, 2}> { y = Reshape(x, s) }",
    "reshape to rows": "(float[1, 2, 3] x) => (float[2, 3] y) <int64[2] s = {2, 3}> { y = Reshape(x, s) }",
    "reshape by the rest": "(float[1, 2, 3] x) => (float[2, 3] y) <int64[2] s = {-1, 3}> { y = Reshape(x, s) }",
    "reshape of a constant too": """(float[1, 6] x) => (float[1, 6] y) <int64[2] s = {1, 6}, float[6] b = {1, 2, 3, 4, 5, 6}> {
        r = Reshape(b, s) z = Reshape(x, s) y = Add(r, z) }""",
    "gather by position": """(float[1, 4] x) => (float[1, 1, 3] y) <int64[1, 1, 3] i = {3, 0, 2}> {
        f = Flatten <axis = 2> (x) g = Gather(f, i) n = Shape(i) y = Reshape(g, n) }""",
    "gather pairs": "(float[1, 4] x) => (float[1, 3] y) <int64[1, 3, 2] i = {0, 3, 0, 0, 0, 2}> { y = GatherND(x, i) }",
    "gather embeddings": """(int64[1, 4] x) => (float[1, 4, 2] y) <float[3, 2] w = {0, 1, 2, 3, 4, 5}, int64 n = {3}> {
        i = Mod(x, n) y = Gather(w, i) }""",
    "concat with a token": "(float[1, 2, 2] x) => (float[1, 3, 2] y) <float[1, 1, 2] t = {7, 8}> { y = Concat <axis = 1> (t, x) }",
}
REFUSED = {
    "a sum over samples": "(float[1, 6] x) => (float[1, 6] y) <int64[1] a = {0}> { m = ReduceMean(x, a) y = Sub(x, m) }",
    "samples as channels": "(float[1, 4] x) => (float[4] y) { t = Transpose <perm = [1, 0]> (x) n = Softmax <axis = 1> (t) s = Flatten <axis = 0> (n) y = Squeeze(s) }",
    "no input": "(float[1, 4] x) => (float[4] y) <float[4] b = {1, 2, 3, 4}> { z = Relu(x) y = Relu(b) }",
}


def check_case(name, text, is_right):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    with tempfile.TemporaryDirectory(prefix="tilth_batch_") as folder:
        path = os.path.join(folder, "case.onnx")
        onnx.save(model, path)
        try:
            for count in (2, 3):
                write(os.path.join(folder, str(count)), path, "-", count)
            said = "" if is_right else "not refused"
        except Unbatched as refused:
            said = str(refused) if is_right else ""
        except Exception as problem:  # ONNX Runtime refuses what makes no sense: a refusal, too
            said = f"{type(problem).__name__}: {problem}" if is_right else ""
    print(f"{name:28} {'ok' if not said else 'WRONG: ' + said}")
    return not said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="FOLDER MODEL DATA N")
    parser.add_argument("--check", action="store_true", help="small graphs, one for each rule, and some that are refused")
    options = parser.parse_args()
    if options.check:
        good = [check_case(name, text, True) for name, text in CASES.items()]
        good += [check_case(name, text, False) for name, text in REFUSED.items()]
        sys.exit(not all(good))
    if len(options.words) != 4 or not options.words[3].isdecimal() or int(options.words[3]) < 1:
        parser.error("FOLDER MODEL.onnx DATA N, N from 1")
    try:
        write(options.words[0], options.words[1], options.words[2], int(options.words[3]))
    except Exception as problem:  # whatever a library raises
        sys.exit(f"batch.py: {options.words[1]}: {'' if isinstance(problem, Unbatched) else type(problem).__name__ + ': '}{problem}")


if __name__ == "__main__":
    main()

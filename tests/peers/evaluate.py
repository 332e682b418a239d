#!/usr/bin/env python3
"""A network in double precision, operator by operator, in numpy: what accuracy.py holds everyone's f32 against.

    evaluate.py MODEL.onnx DATA TO     evaluates the model on the inputs that DATA/names.txt lists and writes its outputs as
                                       TO/INDEX.npy; all floats are f64
    evaluate.py --check                the table below against ONNX's own cases for these operators

Weights, constants and inputs are the file's f32 numbers; every operation on floats is one of f64, sums of products by BLAS. Types that
mean less than f32 and operators that the table lacks are refused by name.
"""
import math, os, sys
from itertools import product as tuples
sys.dont_write_bytecode = True
import numpy as np
import onnx
from onnx import numpy_helper

FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE}
erf = np.frompyfunc(math.erf, 1, 1)


class Unsupported(Exception):
    pass


def widened(array):
    """A tensor of the file or an input: floats become f64."""
    if array.dtype in (np.float16,) or "float8" in str(array.dtype) or "bfloat" in str(array.dtype):
        raise Unsupported(f"tensors of {array.dtype} are")
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array


# ---- operators: f(node, inputs), an absent input is None; what they return is one array or a list

TABLE = {}


def operator(*names):
    def enter(function):
        TABLE.update({name: function for name in names})
        return function
    return enter


class Node:
    """A node with its attributes as Python values."""

    def __init__(self, proto, opset, values=None):
        self.op, self.opset, self.name = proto.op_type, opset, proto.name
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        self.domain = proto.domain

    def get(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def axes(self, x, position=1):
        """Axes of an attribute or, in newer opsets, of an input: sorted, or None."""
        given = self.get("axes")
        if given is None and len(x) > position and x[position] is not None:
            given = x[position].tolist()
        return given


UNARY = {
    "Abs": np.abs, "Neg": np.negative, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Reciprocal": lambda a: 1 / a, "Tanh": np.tanh,
    "Sin": np.sin, "Cos": np.cos, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign, "Not": np.logical_not,
    "Erf": lambda a: erf(a).astype(np.float64), "Relu": lambda a: np.maximum(a, 0), "Identity": lambda a: a,
    "Sigmoid": lambda a: sigmoid(a), "Softplus": lambda a: np.logaddexp(a, 0), "HardSwish": lambda a: a * np.clip(a / 6 + 0.5, 0, 1),
    "Mish": lambda a: a * np.tanh(np.logaddexp(a, 0)), "Softsign": lambda a: a / (1 + np.abs(a)), "IsNaN": np.isnan,
}
BINARY = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal,
    "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
    "PRelu": lambda a, slope: np.where(a < 0, a * slope, a), "MatMul": np.matmul,
}


def sigmoid(a):
    small = np.exp(-np.abs(a))  # never overflows
    return np.where(a < 0, small, 1) / (1 + small)


for name, function in UNARY.items():
    TABLE[name] = lambda node, x, function=function: function(x[0])
for name, function in BINARY.items():
    TABLE[name] = lambda node, x, function=function: function(x[0], x[1])
TABLE["Min"] = lambda node, x: _fold(np.minimum, x)
TABLE["Max"] = lambda node, x: _fold(np.maximum, x)
TABLE["Sum"] = lambda node, x: _fold(np.add, x)


def _fold(function, x):
    result = x[0]
    for other in x[1:]:
        result = function(result, other)
    return result


@operator("Div")
def divide(node, x):
    if np.issubdtype(x[0].dtype, np.floating):
        return x[0] / x[1]
    quotient = np.abs(x[0]) // np.abs(x[1])  # rounds toward zero, and numpy's does not
    return (quotient * np.sign(x[0]) * np.sign(x[1])).astype(x[0].dtype)


@operator("Mod")
def modulo(node, x):
    return np.fmod(x[0], x[1]) if node.get("fmod", 0) else np.mod(x[0], x[1])


@operator("Pow")
def power(node, x):
    return np.power(x[0], x[1].astype(x[0].dtype))


@operator("Clip")
def clip(node, x):
    least, most = (node.get("min"), node.get("max")) if node.opset < 11 else (x[1:] + [None, None])[:2]
    return np.minimum(np.maximum(x[0], -np.inf if least is None else least), np.inf if most is None else most).astype(x[0].dtype)


@operator("LeakyRelu")
def leaky_relu(node, x):
    return np.where(x[0] < 0, x[0] * node.get("alpha", 0.01), x[0])


@operator("Elu")
def elu(node, x):
    return np.where(x[0] < 0, node.get("alpha", 1.0) * np.expm1(np.minimum(x[0], 0)), x[0])


@operator("HardSigmoid")
def hard_sigmoid(node, x):
    return np.clip(node.get("alpha", 0.2) * x[0] + node.get("beta", 0.5), 0, 1)


@operator("Gelu")
def gelu(node, x):
    a = x[0]
    if node.get("approximate", "none") == "tanh":
        return 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    return 0.5 * a * (1 + erf(a / math.sqrt(2)).astype(np.float64))


@operator("Where")
def where(node, x):
    return np.where(*x)


# ---- types and shapes

@operator("Cast")
def cast(node, x):
    to = node.get("to")
    if to in FLOATS:
        return x[0].astype(np.float64)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(to)
    if not (np.issubdtype(dtype, np.integer) or dtype == np.bool_):
        raise Unsupported(f"a Cast to {dtype} is")
    return x[0].astype(dtype)


@operator("Constant")
def constant(node, x):
    for name, value in node.attributes.items():
        if name == "value":
            return widened(numpy_helper.to_array(value))
        if name in ("value_float", "value_floats"):
            return np.array(value, np.float64)
        if name in ("value_int", "value_ints"):
            return np.array(value, np.int64)
    raise Unsupported(f"a Constant of {', '.join(node.attributes)} is")


@operator("ConstantOfShape")
def constant_of_shape(node, x):
    value = node.get("value")
    value = np.zeros(1, np.float64) if value is None else widened(numpy_helper.to_array(value))
    return np.full(x[0].tolist(), value[0], value.dtype)


@operator("Shape")
def shape(node, x):
    return np.array(x[0].shape[node.get("start", 0):node.get("end")], np.int64)


@operator("Size")
def size(node, x):
    return np.array(x[0].size, np.int64)


@operator("Range")
def number_range(node, x):
    return np.arange(x[0].item(), x[1].item(), x[2].item()).astype(x[0].dtype)


@operator("Reshape")
def reshape(node, x):
    dims = x[1].tolist()
    if not node.get("allowzero", 0):
        dims = [x[0].shape[i] if d == 0 else d for i, d in enumerate(dims)]
    return x[0].reshape(dims)


@operator("Flatten")
def flatten(node, x):
    axis = node.get("axis", 1)
    axis += x[0].ndim if axis < 0 else 0
    return x[0].reshape(math.prod(x[0].shape[:axis]), -1)


@operator("Squeeze")
def squeeze(node, x):
    axes = node.axes(x)
    return np.squeeze(x[0], None if axes is None else tuple(axes))


@operator("Unsqueeze")
def unsqueeze(node, x):
    return np.expand_dims(x[0], tuple(node.axes(x)))


@operator("Transpose")
def transpose(node, x):
    return np.transpose(x[0], node.get("perm"))


@operator("Expand")
def expand(node, x):
    return np.broadcast_to(x[0], np.broadcast_shapes(x[0].shape, tuple(x[1].tolist())))


@operator("Tile")
def tile(node, x):
    return np.tile(x[0], x[1].tolist())


@operator("Concat")
def concat(node, x):
    return np.concatenate(x, node.get("axis"))


@operator("Split")
def split(node, x):
    axis = node.get("axis", 0)
    sizes = node.get("split") if node.opset < 13 else x[1].tolist() if len(x) > 1 and x[1] is not None else None
    if sizes is None:
        count = len(node.outputs)
        each = -(-x[0].shape[axis] // count)
        sizes = [each] * (count - 1) + [x[0].shape[axis] - each * (count - 1)]
    return np.split(x[0], np.cumsum(sizes)[:-1], axis)


@operator("Slice")
def cut(node, x):
    if node.opset < 10:
        starts, ends, axes, steps = node.get("starts"), node.get("ends"), node.get("axes"), None
    else:
        starts, ends, axes, steps = [None if v is None else v.tolist() for v in (x[1:] + [None, None])[:4]]
    axes = range(len(starts)) if axes is None else axes
    where = [slice(None)] * x[0].ndim
    for i, axis in enumerate(axes):
        step, extent = steps[i] if steps else 1, x[0].shape[axis]
        low, high = (0, extent) if step > 0 else (-1, extent - 1)
        start, end = [min(max(v + extent if v < 0 else v, low), high) for v in (starts[i], ends[i])]
        if step < 0:
            start, end = max(start, 0), None if end < 0 else end
        where[axis] = slice(start, end, step)
    return x[0][tuple(where)]


@operator("Gather")
def gather(node, x):
    return np.take(x[0], x[1], node.get("axis", 0))


@operator("GatherElements")
def gather_elements(node, x):
    axis = node.get("axis", 0)
    return np.take_along_axis(x[0], np.where(x[1] < 0, x[1] + x[0].shape[axis], x[1]), axis)


@operator("GatherND")
def gather_nd(node, x):
    batch = node.get("batch_dims", 0)
    rows = math.prod(x[0].shape[:batch])
    data = x[0].reshape((rows,) + x[0].shape[batch:])
    index = x[1].reshape((rows,) + x[1].shape[batch:])
    picked = [data[r][tuple(np.moveaxis(index[r], -1, 0))] for r in range(rows)]
    return np.stack(picked).reshape(x[1].shape[:-1] + x[0].shape[batch + x[1].shape[-1]:])


@operator("Pad")
def pad(node, x):
    pads = x[1].tolist() if node.opset >= 11 else node.get("pads")
    value = node.get("value", 0.0) if node.opset < 11 else x[2].item() if len(x) > 2 and x[2] is not None else 0
    rank, mode = x[0].ndim, node.get("mode", "constant")
    axes = x[3].tolist() if len(x) > 3 and x[3] is not None else range(rank)
    around = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        around[axis] = (pads[i], pads[i + len(axes)])
    if min(map(min, around)) < 0 or mode not in ("constant", "reflect", "edge"):
        raise Unsupported(f"a Pad that cuts, or its mode {mode}, is")
    return np.pad(x[0], around, mode, **({"constant_values": value} if mode == "constant" else {}))


@operator("DepthToSpace")
def depth_to_space(node, x):
    n, c, h, w = x[0].shape
    b = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        return x[0].reshape(n, b, b, c // b // b, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b // b, h * b, w * b)
    return x[0].reshape(n, c // b // b, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // b // b, h * b, w * b)


@operator("Dropout")
def dropout(node, x):
    if len(x) > 2 and x[2] is not None and x[2].item():
        raise Unsupported("a Dropout in training is")
    return [x[0], np.ones(x[0].shape, np.bool_)][:len(node.outputs)]


# ---- sums

REDUCTIONS = {
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    "ReduceL1": lambda a, **k: np.abs(a).sum(**k), "ReduceL2": lambda a, **k: np.sqrt((a * a).sum(**k)),
    "ReduceSumSquare": lambda a, **k: (a * a).sum(**k), "ReduceLogSum": lambda a, **k: np.log(a.sum(**k)),
}


@operator(*REDUCTIONS)
def reduce(node, x):
    axes = node.axes(x)
    if not axes and node.get("noop_with_empty_axes", 0):
        return x[0]
    if x[0].size == 0:
        raise Unsupported(f"a {node.op} of nothing is")
    return REDUCTIONS[node.op](x[0], axis=tuple(axes) if axes else None, keepdims=bool(node.get("keepdims", 1)))


@operator("ArgMax", "ArgMin")
def arg_reduce(node, x):
    if node.get("select_last_index", 0):
        raise Unsupported("an ArgMax that takes the last one is")
    find = np.argmax if node.op == "ArgMax" else np.argmin
    return find(x[0], axis=node.get("axis", 0), keepdims=bool(node.get("keepdims", 1)))


@operator("Softmax", "LogSoftmax")
def softmax(node, x):
    a, axis = x[0], node.get("axis", 1 if node.opset < 13 else -1)
    if node.opset < 13:
        axis += a.ndim if axis < 0 else 0
        a, axis = a.reshape(math.prod(a.shape[:axis]), -1), 1
    shifted = a - a.max(axis, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(axis, keepdims=True)
    return (e / total if node.op == "Softmax" else shifted - np.log(total)).reshape(x[0].shape)


def normalized(a, axes, epsilon):
    centred = a - a.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + epsilon)


def over_channels(v, rank):
    return v.reshape((-1,) + (1,) * (rank - 2))


@operator("LayerNormalization")
def layer_norm(node, x):
    first, epsilon = node.get("axis", -1) % x[0].ndim, node.get("epsilon", 1e-5)
    axes = tuple(range(first, x[0].ndim))
    y = normalized(x[0], axes, epsilon) * x[1]
    more = [x[0].mean(axes, keepdims=True), 1 / np.sqrt(x[0].var(axes, keepdims=True) + epsilon)][:len(node.outputs) - 1]
    return [y + x[2] if len(x) > 2 and x[2] is not None else y, *more]


@operator("InstanceNormalization")
def instance_norm(node, x):
    rank = x[0].ndim
    y = normalized(x[0], tuple(range(2, rank)), node.get("epsilon", 1e-5))
    return y * over_channels(x[1], rank) + over_channels(x[2], rank)


@operator("GroupNormalization")
def group_norm(node, x):
    groups, shape = node.get("num_groups"), x[0].shape
    y = normalized(x[0].reshape(shape[0], groups, -1), (2,), node.get("epsilon", 1e-5)).reshape(shape)
    scale, shift = [v if v.size == shape[1] else np.repeat(v, shape[1] // groups) for v in x[1:3]]
    return y * over_channels(scale, len(shape)) + over_channels(shift, len(shape))


@operator("BatchNormalization")
def batch_norm(node, x):
    if node.get("training_mode", 0):
        raise Unsupported("a BatchNormalization in training is")
    scale, shift, mean, variance = [over_channels(v, x[0].ndim) for v in x[1:5]]
    return (x[0] - mean) / np.sqrt(variance + node.get("epsilon", 1e-5)) * scale + shift


# ---- products

@operator("Gemm")
def gemm(node, x):
    a = x[0].T if node.get("transA", 0) else x[0]
    b = x[1].T if node.get("transB", 0) else x[1]
    y = node.get("alpha", 1.0) * (a @ b)
    return y + node.get("beta", 1.0) * x[2] if len(x) > 2 and x[2] is not None else y


@operator("Einsum")
def einsum(node, x):
    return np.einsum(node.get("equation"), *x, optimize=True)


class Window:
    """Where the windows of a convolution or pool lie: `padded` for an input and `at` for each position in the window."""

    def __init__(self, node, spatial, kernel):
        rank = len(spatial)
        self.kernel, self.strides = kernel, node.get("strides") or [1] * rank
        self.dilations = node.get("dilations") or [1] * rank
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations)]
        how = node.get("auto_pad", "NOTSET")
        if how in ("SAME_UPPER", "SAME_LOWER"):
            total = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(spatial, self.strides, reach)]
            less, more = [t // 2 for t in total], [t - t // 2 for t in total]
            self.before, self.after = (less, more) if how == "SAME_UPPER" else (more, less)
        else:
            pads = node.get("pads") if how == "NOTSET" else None
            pads = pads or [0] * (2 * rank)
            self.before, self.after = list(pads[:rank]), list(pads[rank:])
        self.out, self.beyond = [], []
        for i, n in enumerate(spatial):
            span = n + self.before[i] + self.after[i] - reach[i]
            count = (-(-span // self.strides[i]) if node.get("ceil_mode", 0) else span // self.strides[i]) + 1
            if node.get("ceil_mode", 0) and (count - 1) * self.strides[i] >= n + self.before[i]:
                count -= 1  # a window that begins in the padding behind
            self.out.append(count)
            self.beyond.append(max((count - 1) * self.strides[i] + reach[i] - n - self.before[i] - self.after[i], 0))

    def padded(self, x, value=0.0, beyond=None):
        """x with its padding, and what a last window reaches beyond it (of the value `beyond`)."""
        y = np.pad(x, [(0, 0), (0, 0), *zip(self.before, self.after)], constant_values=value)
        return np.pad(y, [(0, 0), (0, 0), *[(0, b) for b in self.beyond]], constant_values=value if beyond is None else beyond)

    def positions(self):
        return tuples(*map(range, self.kernel))

    def at(self, padded, position):
        return padded[(slice(None), slice(None), *[slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in
                                                   zip(position, self.dilations, self.out, self.strides)])]


@operator("Conv")
def conv(node, x):
    weight, groups = x[1], node.get("group", 1)
    window = Window(node, x[0].shape[2:], weight.shape[2:])
    padded = window.padded(x[0])
    n, (k, c) = x[0].shape[0], weight.shape[:2]
    y = np.zeros((n, groups, k // groups, math.prod(window.out)))
    for position in window.positions():
        part = window.at(padded, position).reshape(n, groups, c, -1)
        w = weight[(slice(None), slice(None), *position)].reshape(groups, k // groups, c)
        y += w * part if c == 1 else np.matmul(w, part)
    y = y.reshape(n, k, *window.out)
    return y + over_channels(x[2], y.ndim) if len(x) > 2 and x[2] is not None else y


@operator("ConvTranspose")
def conv_transpose(node, x):
    weight, groups, spatial = x[1], node.get("group", 1), x[0].shape[2:]
    rank = len(spatial)
    if node.get("auto_pad", "NOTSET") != "NOTSET" or node.get("output_shape") is not None:
        raise Unsupported("a ConvTranspose whose padding follows from its output is")
    strides, dilations = [node.get(name) or [1] * rank for name in ("strides", "dilations")]
    pads, more = node.get("pads") or [0] * (2 * rank), node.get("output_padding") or [0] * rank
    n, c = x[0].shape[0], x[0].shape[1] // groups
    k = weight.shape[1]
    full = [(s - 1) * t + (e - 1) * d + 1 + o for s, t, e, d, o in zip(spatial, strides, weight.shape[2:], dilations, more)]
    y = np.zeros((n, groups * k, *full))
    a = x[0].reshape(n, groups, c, -1)
    for position in tuples(*map(range, weight.shape[2:])):
        w = weight[(slice(None), slice(None), *position)].reshape(groups, c, k).transpose(0, 2, 1)
        y[(slice(None), slice(None), *[slice(p * d, p * d + (s - 1) * t + 1, t) for p, d, s, t in
                                       zip(position, dilations, spatial, strides)])] += np.matmul(w, a).reshape(n, groups * k, *spatial)
    y = y[(slice(None), slice(None), *[slice(b, f - e) for b, e, f in zip(pads[:rank], pads[rank:], full)])]
    return y + over_channels(x[2], y.ndim) if len(x) > 2 and x[2] is not None else y


@operator("MaxPool")
def max_pool(node, x):
    if len(node.outputs) > 1:
        raise Unsupported("a MaxPool that gives positions is")
    window = Window(node, x[0].shape[2:], node.get("kernel_shape"))
    padded = window.padded(x[0], -np.inf if np.issubdtype(x[0].dtype, np.floating) else np.iinfo(x[0].dtype).min)
    return _fold(np.maximum, [window.at(padded, p) for p in window.positions()])


@operator("AveragePool")
def average_pool(node, x):
    window = Window(node, x[0].shape[2:], node.get("kernel_shape"))
    padded = window.padded(x[0])
    counted = window.padded(np.ones((1, 1) + x[0].shape[2:]), float(node.get("count_include_pad", 0)), 0.0)
    total = _fold(np.add, [window.at(padded, p) for p in window.positions()])
    return total / _fold(np.add, [window.at(counted, p) for p in window.positions()])


@operator("GlobalAveragePool")
def global_average(node, x):
    return x[0].mean(tuple(range(2, x[0].ndim)), keepdims=True)


@operator("GlobalMaxPool")
def global_max(node, x):
    return x[0].max(tuple(range(2, x[0].ndim)), keepdims=True)


# ---- a network

def apply(node, inputs, table=TABLE):
    if node.domain not in ("", "ai.onnx") or node.op not in table:
        raise Unsupported(f"operator {node.domain + '.' if node.domain else ''}{node.op} (node '{node.name}') is")
    given = table[node.op](node, inputs)
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    given = [np.asarray(v) for v in given]
    for value in given:
        if np.issubdtype(value.dtype, np.floating) and value.dtype != np.float64:
            raise AssertionError(f"{node.op} computed in {value.dtype}")
    return given


def evaluate(model, feeds, wanted=None, table=TABLE, seen=None):
    """The wanted values (all outputs) of a loaded model on inputs by name. `table` may replace operators, and `seen(node, inputs,
    outputs)` is told of each node."""
    graph = model.graph
    opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=1)
    stored = {t.name: t for t in graph.initializer}
    wanted = [o.name for o in graph.output] if wanted is None else wanted
    nodes = [Node(n, opset) for n in graph.node]
    last = {name: i for i, node in enumerate(nodes) for name in node.inputs}
    values, kept = {name: widened(value) for name, value in feeds.items()}, {}

    def value_of(name):
        if name == "":
            return None
        if name in values:
            return values[name]
        return widened(numpy_helper.to_array(stored[name]))  # made again at each use: two copies of all weights are too many

    for i, node in enumerate(nodes):
        inputs = [value_of(name) for name in node.inputs]
        outputs = apply(node, inputs, table)
        if seen is not None:
            seen(node, inputs, outputs)
        values.update(zip(node.outputs, outputs))
        kept.update((name, value) for name, value in zip(node.outputs, outputs) if name in wanted)
        for name in node.inputs:
            if last[name] == i:
                values.pop(name, None)
    return [kept[name] if name in kept else value_of(name) for name in wanted]


def inputs_in(folder):
    """What names.txt lists, as worker.py writes it."""
    with open(os.path.join(folder, "names.txt")) as file:
        lines = [line.split() for line in file]
    return {name: np.load(os.path.join(folder, path)) for kind, name, path in lines if kind == "input"}


# ---- ONNX's own cases

def check():
    """Every case of ONNX for operators of the table, in one node and f32: a line for each that fails."""
    from onnx.backend.test.case.node import collect_testcases
    checked, wrong, refused = {}, 0, 0
    np.seterr(all="ignore")
    for case in collect_testcases(None):
        graph = case.model.graph if case.model is not None else None
        if graph is None or any(n.op_type not in TABLE or n.domain for n in graph.node):
            continue
        try:
            for inputs, right in case.data_sets:
                given = evaluate(case.model, dict(zip([i.name for i in graph.input], inputs)))
                for ours, theirs in zip(given, right):
                    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=2e-5, atol=6e-5, equal_nan=True):
                        raise ValueError(f"{ours.shape} {theirs.shape} {np.abs(ours - theirs).max() if ours.shape == theirs.shape else ''}")
            for node in graph.node:
                checked[node.op_type] = checked.get(node.op_type, 0) + 1
        except (Unsupported, AttributeError) as problem:
            refused += 1
        except Exception as problem:
            wrong += 1
            print(f"{case.name}: WRONG: {type(problem).__name__}: {problem}")
    print(f"{sum(checked.values())} cases of {len(checked)} operators agree, {wrong} are wrong, {refused} are of types or forms "
          f"that are refused; without a case: {', '.join(sorted(set(TABLE) - set(checked)))}")
    return wrong


def main():
    if sys.argv[1:] == ["--check"]:
        sys.exit(check() > 0)
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    model, data, to = sys.argv[1:]
    with np.errstate(all="ignore"):
        try:
            for i, value in enumerate(evaluate(onnx.load(model), inputs_in(data))):
                np.save(os.path.join(to, f"{i}.npy"), value)
        except Unsupported as problem:
            sys.exit(f"evaluate.py: {model}: {problem} not known here")


if __name__ == "__main__":
    main()

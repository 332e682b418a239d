#!/usr/bin/env python3
"""One side of compare.py in a process of its own, so that its memory, its threads and its faults are its own.

    worker.py inputs MODEL.onnx DATA TO     writes the model's inputs to the folder TO (from the folder DATA, or random when
                                            it is "-") and prints what they are
    worker.py difference FOLDER OTHER       of the tensors in two folders, INDEX.npy: the largest, over the largest magnitude
    worker.py onnxruntime|openvino MODEL.onnx DATA THREADS
    worker.py witness THREADS

The last two print a line of JSON when they are ready and one more for each line that they read: {"seconds": S} measures
for S seconds; {"outputs": FOLDER} writes the outputs as FOLDER/INDEX.npy. They end when their input does.
"""
import gc, json, multiprocessing, os, sys, time
import numpy as np

SIDE = 192        # of the witness's matrices: three take 440 KB, which fits the second-level cache of any core of today
COPIED = 64 << 20  # bytes that the witness copies: more than a core's share of the last cache


def names_of(folder):
    """What a folder's names.txt says: {(kind, tensor): path}."""
    listed, path = {}, os.path.join(folder, "names.txt")
    for line in open(path) if os.path.exists(path) else []:
        words = line.split()
        if len(words) >= 3:
            listed[words[0], words[1]] = os.path.join(folder, words[2])
    return listed


# ---- inputs

def random_input(name, shape, dtype, rng):
    """Normal floats, masks of ones, small whole numbers: valid tokens of any vocabulary here."""
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    if "mask" in name or dtype == np.bool_:
        return np.ones(shape, dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def read_input(path):
    if path.endswith(".pb"):
        import onnx
        from onnx import numpy_helper
        tensor = onnx.TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        return numpy_helper.to_array(tensor)
    return np.load(path)


def write_inputs(model, data, to):
    import onnx
    graph = onnx.load(model, load_external_data=False).graph
    constants = {c.name for c in graph.initializer}
    rng = np.random.default_rng(1)
    listed = names_of(data) if data != "-" else {}
    ports, lines = [], []
    for port in graph.input:
        if port.name in constants:
            continue
        tensor = port.type.tensor_type
        extents = [max(d.dim_value, 0) for d in tensor.shape.dim]  # 0: open; some exporters write -1
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if data != "-":
            value = read_input(listed.get(("input", port.name)) or os.path.join(data, f"input_{port.name}.npy"))
        elif 0 in extents:
            raise ValueError(f"input {port.name} has no fixed shape: give inputs beside the model (input_NAME.npy)")
        else:
            value = random_input(port.name, extents, dtype, rng)
        if value.dtype != dtype or value.ndim != len(extents) or any(e and e != v for e, v in zip(extents, value.shape)):
            raise ValueError(f"input {port.name} is {dtype}{extents}, not {value.dtype}{list(value.shape)}")
        np.save(os.path.join(to, f"input_{len(lines)}.npy"), value)
        lines.append(f"input {port.name} input_{len(lines)}.npy\n")
        ports.append({"name": port.name, "shape": list(value.shape), "fixed": 0 not in extents})
    with open(os.path.join(to, "names.txt"), "w") as file:
        file.writelines(lines)
    return {"inputs": ports, "outputs": [o.name for o in graph.output]}


def difference(folder, other):
    worst = 0.0
    for file in sorted(os.listdir(folder)):
        ours, right = np.load(os.path.join(folder, file)), np.load(os.path.join(other, file))
        if ours.shape != right.shape:
            raise ValueError(f"output {file[:-4]} is {list(ours.shape)}, not {list(right.shape)}")
        if right.size > 0:
            ours, right = ours.astype(np.float64), right.astype(np.float64)  # bool and unsigned numbers, too
            error = np.abs(ours - right).max() / max(np.abs(right).max(), 1e-30)
            worst = max(worst, float(error) if np.isfinite(error) else 1e9)
    return {"difference": worst}


# ---- peers: what a careful user writes, inputs bound once, all in f32

class OnnxRuntime:
    def __init__(self, path, feeds, threads):
        import onnxruntime as ort
        ort.set_default_logger_severity(3)
        self.version = ort.__version__
        self.base = resident()
        start = time.perf_counter()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.ready = time.perf_counter() - start
        self.binding = self.session.io_binding()
        self.values = {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in feeds.items()}
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    def __init__(self, path, feeds, threads):
        import openvino as ov
        self.version = ov.__version__.split("-")[0]
        self.base = resident()
        start = time.perf_counter()
        core = ov.Core()
        model = core.read_model(path)
        if any(port.partial_shape.is_dynamic for port in model.inputs):
            model.reshape({name: list(value.shape) for name, value in feeds.items()})
        # without the last one it computes in bf16 where the processor can
        compiled = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
                                                     "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
        self.ready = time.perf_counter() - start
        self.count = len(compiled.outputs)
        self.request = compiled.create_infer_request()
        self.values = {name: ov.Tensor(value) for name, value in feeds.items()}
        for name, value in self.values.items():
            self.request.set_tensor(compiled.input(name), value)
        self.run = self.request.infer

    def outputs(self):
        return [self.request.get_output_tensor(i).data for i in range(self.count)]


def resident(field="VmRSS:"):
    """Bytes of this process; unlike getrusage's, its largest (VmHWM) is not inherited from the process that started us."""
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def measure_peer(peer, seconds):
    """As `tilth bench` does: two runs to warm up, then every second run counts (its others time the kernels)."""
    for _ in range(2):
        peer.run()
    times, end = [], time.perf_counter_ns() + int(seconds * 1e9)
    while not times or time.perf_counter_ns() < end:
        start = time.perf_counter_ns()
        peer.run()
        times.append(time.perf_counter_ns() - start)
        peer.run()
    times.sort()
    return {"min_ns": times[0], "median_ns": times[(len(times) - 1) // 2], "mean_ns": sum(times) / len(times), "runs": len(times),
            "max_rss_bytes": resident("VmHWM:")}


def serve_peer(kind, path, data, threads):
    feeds = {name: np.load(file) for (_, name), file in names_of(data).items()}
    peer = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}[kind](path, feeds, threads)
    start = time.perf_counter()
    peer.run()
    yield {"version": peer.version, "ready_s": peer.ready, "first_run_s": time.perf_counter() - start,
           "base_rss_bytes": peer.base}
    for command in commands():
        if "outputs" in command:
            for i, value in enumerate(peer.outputs()):
                np.save(os.path.join(command["outputs"], f"{i}.npy"), value)
            yield {}
        else:
            yield measure_peer(peer, command["seconds"])


# ---- witnesses: work that is the same in every round

def beat_alone(pipe, gate, processor, size):
    """A process that answers (work, seconds) with how often it did that work in a second. Threads of one process would wait
    for Python's lock after each call, and more so where cores are lent."""
    os.sched_setaffinity(0, {processor})
    rng = np.random.default_rng(1)
    a, b, c = (rng.random((SIDE, SIDE), np.float32) for _ in range(3))
    here, there = np.ones(size, np.uint8), np.ones(size, np.uint8)
    works = {"gemm": lambda: np.matmul(a, b, out=c), "copy": lambda: np.copyto(there, here)}
    while True:
        try:
            name, seconds = pipe.recv()
        except EOFError:  # whoever asks has ended
            return
        work, count = works[name], 0
        work()
        gate.wait()
        start = now = time.perf_counter()
        while now < start + seconds:
            work()
            count += 1
            now = time.perf_counter()
        pipe.send(count / (now - start))


def serve_witness(threads):
    spawn = multiprocessing.get_context("spawn")  # a process has its own end of its own pipe, and nothing else
    processors = sorted(os.sched_getaffinity(0))
    size = COPIED // threads
    gate, pipes = spawn.Barrier(threads), []
    for i in range(threads):
        ours, theirs = spawn.Pipe()
        spawn.Process(target=beat_alone, args=(theirs, gate, processors[i % len(processors)], size), daemon=True).start()
        theirs.close()
        pipes.append(ours)

    def beat(name, seconds):
        for pipe in pipes:
            pipe.send((name, seconds))
        return sum(pipe.recv() for pipe in pipes)

    beat("gemm", 0.01)  # they are there
    yield {"version": np.__version__}
    for command in commands():
        yield {"gemm_gflops": beat("gemm", command["seconds"]) * 2e-9 * SIDE**3,
               "copy_gbs": beat("copy", command["seconds"]) * 2e-9 * size}


def commands():
    for line in sys.stdin:
        yield json.loads(line)


def main():
    kind, rest = sys.argv[1], sys.argv[2:]
    # libraries print to stdout too: what is for compare.py goes through a copy of it
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    gc.disable()
    try:
        if kind in ("inputs", "difference"):
            print(json.dumps({"inputs": write_inputs, "difference": difference}[kind](*rest)), file=answers)
            return
        server = serve_witness(int(rest[0])) if kind == "witness" else serve_peer(kind, rest[0], rest[1], int(rest[2]))
        for answer in server:
            print(json.dumps(answer), file=answers)
    except Exception as problem:  # whatever a library raises: one side's failure is a line of the report
        text = " ".join(str(problem).split())
        print(json.dumps({"error": f"{type(problem).__name__}: {text[:300]}"}), file=answers)


if __name__ == "__main__":
    main()

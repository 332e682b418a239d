#!/usr/bin/env python3
"""Networks of torchvision, transformers and timm with random weights: eight for accuracy.py (squeeze-and-excite, layer norms, long
averages), and the second list of second.py for compare.py.

    VENV=$(PACKAGES="torch torchvision transformers timm onnxscript" tests/peers/setup.sh)
    $VENV/bin/python tests/peers/export.py FOLDER [NAME...]      writes FOLDER/NAME/NAME.onnx, NAME.weights, input_X.npy, and
                                                                 output_X.npy, which ONNX Runtime says; no NAME: the eight
    $VENV/bin/python tests/peers/export.py FOLDER second --tilth build/release/tilth     the second list; tilth writes three of it
    $VENV/bin/python tests/peers/export.py --check [NAME...]     exports them in f64 and holds evaluate.py to PyTorch: 1e-12

Nothing is downloaded: configurations are written out below. Weights are those of the libraries' initialisation from a seed, but
for what begins as zero or nearly (a head, a scale of a whole block), which would hide all before it; statistics of batch norms
are those of random images, their factors within a fifth of 1. The exporter makes them part of the convolutions before them, where
there are any. FOLDER/NAME/sums are the sums of what is there and of this file: only where one differs a network is made again.
"""
import argparse, hashlib, os, subprocess, sys, tempfile, warnings
sys.dont_write_bytecode = True
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np
import onnx
import torch

import evaluate
import second

OPSET, SEED, LIMIT = 17, 7, 1e-12
SAME = 1e-3  # of two right programs in f32, relative to the largest magnitude


# ---- networks: a function that makes it, and the shapes of its inputs

def vision(name, **options):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(weights=None, **options)
    return make


def vit():
    import torchvision
    return torchvision.models.VisionTransformer(image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536)


class First(torch.nn.Module):
    """The first result of a model of transformers."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False)[0]


def distilbert():
    from transformers import DistilBertConfig, DistilBertModel
    config = DistilBertConfig(vocab_size=30522, max_position_embeddings=512, n_layers=6, n_heads=12, dim=768, hidden_dim=3072,
                              activation="gelu", attn_implementation="eager")
    return First(DistilBertModel(config), ["input_ids", "attention_mask"])


def mobilevit():
    from transformers import MobileViTConfig, MobileViTForImageClassification
    config = MobileViTConfig(image_size=256, patch_size=2, hidden_sizes=[144, 192, 240], neck_hidden_sizes=[16, 32, 64, 96, 128, 160, 640],
                             num_attention_heads=4, mlp_ratio=2.0, expand_ratio=4.0, hidden_act="silu", num_labels=1000)
    return First(MobileViTForImageClassification(config), ["pixel_values"])


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2Model
    config = Wav2Vec2Config(hidden_size=384, num_hidden_layers=4, num_attention_heads=6, intermediate_size=1536,
                            conv_dim=[512] * 7, conv_stride=[5, 2, 2, 2, 2, 2, 2], conv_kernel=[10, 3, 3, 3, 3, 2, 2],
                            feat_extract_norm="group", num_conv_pos_embeddings=128, num_conv_pos_embedding_groups=16,
                            apply_spec_augment=False, attn_implementation="eager")
    model = Wav2Vec2Model(config)
    for module in model.modules():  # a weight that is computed at each run becomes a constant
        for name in list(getattr(module, "parametrizations", {})):
            torch.nn.utils.parametrize.remove_parametrizations(module, name)
    return First(model, ["input_values"])


IMAGE = {"image": [1, 3, 224, 224]}
NETWORKS = {
    "regnet_y_400mf": (vision("regnet_y_400mf"), {"image": [1, 3, 448, 448]}),
    "efficientnet_v2_s": (vision("efficientnet_v2_s"), {"image": [1, 3, 384, 384]}),
    "densenet121": (vision("densenet121"), IMAGE),
    "convnext_tiny": (vision("convnext_tiny"), IMAGE),
    "mobilevit_s": (mobilevit, {"image": [1, 3, 256, 256]}),
    "vit_s16": (vit, IMAGE),
    "distilbert_256": (distilbert, {"input_ids": [1, 256], "attention_mask": [1, 256]}),
    "wav2vec2_1s": (wav2vec2, {"samples": [1, 16000]}),
}


# ---- weights

def inputs_of(shapes):
    """Of each port's shape; an array is what it is."""
    rng = np.random.default_rng(SEED)
    made = {}
    for name, shape in shapes.items():
        if isinstance(shape, np.ndarray):
            made[name] = shape
        elif name == "attention_mask":
            made[name] = np.ones(shape, np.int64)
        elif name == "input_ids":
            made[name] = rng.integers(0, 30000, shape)
        else:
            made[name] = rng.standard_normal(shape).astype(np.float32)
    return made


def settle(model, shapes):
    """No part of the model vanishes, and batch norms have the statistics of what they get."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2 and parameter.std() == 0 and "layer_scale" not in name:
                torch.nn.init.trunc_normal_(parameter, std=0.02)
            elif "layer_scale" in name:
                parameter.uniform_(0.2, 0.6)
        for norm in norms:
            norm.weight.uniform_(0.8, 1.2)
            norm.bias.normal_(0, 0.1)
            norm.reset_running_stats()
            norm.momentum = None  # the mean of all calls
        if norms:
            model.eval()
            for norm in norms:
                norm.train()
            size = getattr(model, "size", 224)
            model(torch.randn([4, shapes["image"][1], size, size]))
    return model.eval()


def row(name):
    """What makes it, its inputs, the names of its outputs."""
    return second.NETWORKS.get(name) or (*NETWORKS[name], ["output"])


def build(name):
    make, shapes, _ = row(name)
    torch.manual_seed(SEED)
    return settle(make(), shapes), inputs_of(shapes)


# ---- files

def write(model, feeds, path, outputs=("output",)):
    example = tuple(torch.from_numpy(value) for value in feeds.values())
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, example, path, input_names=list(feeds), output_names=list(outputs), opset_version=OPSET, dynamo=False)


def write_zoo(tilth, name, path):
    """One of `tilth model`, and inputs for it."""
    if not tilth:
        raise SystemExit(f"export.py: {name} is written by tilth: --tilth says where it is")
    subprocess.run([tilth, "model", second.ZOO[name], "-o", path, "--external"], check=True, stdout=subprocess.DEVNULL)
    ports = onnx.load(path, load_external_data=False).graph.input
    return inputs_of({port.name: [d.dim_value for d in port.type.tensor_type.shape.dim] for port in ports})


def expected(path, feeds):
    """What ONNX Runtime makes of it, nothing optimised: {output: array}."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {i.name: feeds[i.name] for i in session.get_inputs()})))


def compare_with(right, outputs):
    """The file computes what PyTorch does: a trace may have lost a mask or a position."""
    right = right if isinstance(right, tuple) else (right,)
    if len(right) != len(outputs):
        raise ValueError(f"{len(outputs)} outputs, and PyTorch has {len(right)}")
    for ours, (port, theirs) in zip(right, outputs.items()):
        error = np.abs(ours.numpy() - theirs).max() / np.abs(theirs).max()
        if not error <= SAME:
            raise ValueError(f"output {port} differs from PyTorch's by {error:.1e} of the largest magnitude")


def digest(folder):
    """A line of sha256sum for each file, and for what made them."""
    made = [(f"torch {torch.__version__}, {os.path.basename(file)}", file) for file in (os.path.abspath(__file__), second.__file__)]
    made += [(file, os.path.join(folder, file)) for file in sorted(os.listdir(folder)) if file != "sums"]
    lines = []
    for name, path in made:
        with open(path, "rb") as data:
            lines.append(f"{hashlib.file_digest(data, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines)


def export(name, folder, tilth):
    to = os.path.join(folder, name)
    sums = os.path.join(to, "sums")
    if os.path.exists(sums) and open(sums).read() == digest(to):
        return "is there"
    os.makedirs(to, exist_ok=True)
    for file in os.listdir(to):
        os.remove(os.path.join(to, file))
    path = os.path.join(to, f"{name}.onnx")
    if name in second.ZOO:
        feeds = write_zoo(tilth, name, path)
    else:
        model, feeds = build(name)
        with torch.no_grad():
            right = model(*(torch.from_numpy(value) for value in feeds.values()))
        write(model, feeds, path, row(name)[2])
        del model
        network = onnx.load(path)
        onnx.save(network, path, save_as_external_data=True, location=f"{name}.weights", size_threshold=1024)
    onnx.checker.check_model(path)
    outputs = expected(path, feeds)
    if name not in second.ZOO:
        compare_with(right, outputs)
    arrays = {f"input_{port}": value for port, value in feeds.items()}
    arrays.update({f"output_{port}": value for port, value in outputs.items()})
    for file, value in arrays.items():
        np.save(os.path.join(to, f"{file}.npy"), value)
    with open(sums, "w") as file:
        file.write(digest(to))
    return f"{sum(os.path.getsize(os.path.join(to, f)) for f in os.listdir(to)) * 1e-6:.1f} MB"


def check(name):
    """The largest difference of evaluate.py from PyTorch in f64, over the largest magnitude; and that magnitude."""
    model, feeds = build(name)
    model = model.double()
    for module in model.modules():
        if hasattr(module, "eps"):
            module.eps = float(np.float32(module.eps))  # as an attribute of ONNX has it
    feeds = {port: value.astype(np.float64) if value.dtype == np.float32 else value for port, value in feeds.items()}
    with torch.no_grad():
        right = model(*(torch.from_numpy(value) for value in feeds.values())).numpy()
    with tempfile.TemporaryDirectory(prefix="tilth_export_") as folder:
        path = os.path.join(folder, "double.onnx")
        write(model, feeds, path)
        ours = evaluate.evaluate(onnx.load(path), feeds)[0]
    scale = np.abs(right).max()
    return np.abs(ours - right).max() / scale, scale, right.std()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="FOLDER, NAME...")
    parser.add_argument("--check", action="store_true", help="holds evaluate.py to PyTorch in f64 and writes nothing")
    parser.add_argument("--if-known", action="store_true", help="leaves out names that are none of them")
    parser.add_argument("--list", action="store_true", help="only prints the names; with the word second, those of the second list")
    parser.add_argument("--tilth", help="the binary, which writes the zoo's networks of the second list")
    options = parser.parse_intermixed_args()
    newer = [*second.NETWORKS, *second.ZOO]
    if options.list:
        print("\n".join(newer if "second" in options.words else NETWORKS))
        return
    if not options.check and not options.words:
        parser.error("FOLDER is missing")
    names = (options.words if options.check else options.words[1:]) or list(NETWORKS)
    names = [each for name in names for each in (newer if name == "second" else [name])]
    known = [*NETWORKS, *second.NETWORKS, *([] if options.check else second.ZOO)]
    unknown = [name for name in names if name not in known]
    if options.if_known:
        names, unknown = [name for name in names if name in known], []
    if unknown:
        parser.error(f"no network {', '.join(unknown)}; there are {', '.join(known)}")
    bad = 0
    for name in names:
        if options.check:
            error, largest, deviation = check(name)
            bad += not error <= LIMIT
            print(f"{name:20} {error:8.1e} of {largest:.3g}, deviation {deviation:.3g}{'' if error <= LIMIT else '  WRONG'}", flush=True)
        else:
            try:
                print(f"{name:24} {export(name, options.words[0], options.tilth)}", flush=True)
            except Exception as problem:  # whatever a library raises: one network's failure is a line
                bad += 1
                print(f"{name:24} not exported: {type(problem).__name__}: {' '.join(str(problem).split())[:400]}", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Networks of `tilth model` in PyTorch, batch 1, f32 with allow_tf32 off: what they take on a GPU, as gpu-check compares it.

    networks.py [--device cuda] [--seconds 2] [--ways eager,graphs,compiled] [--within SECONDS]
                [--only-if-there] NAME...

A line of JSON for each network and way: {"record":"peer","model":...,"peer":"pytorch","way":"eager"|"graphs"|"compiled",...}, with
`skipped` and why where one fails; --only-if-there ends with one such line and status 0 where there is no torch, or none that sees a
GPU. What is not done --within so many seconds is skipped. Layers and shapes are those of the zoo; weights are random, on which no time depends. A call takes its input from the host and
gives its results back, as tilth's do; `device_ns` is without. On a processor (--device cpu, to try this file) there are no graphs."""
import argparse
import json
import signal
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except Exception as problem:  # not there, or without one of its own libraries
    torch, missing = None, problem


def say(**fields):
    print(json.dumps({"record": "peer", **fields}, separators=(",", ":")), flush=True)


def sentence(problem):
    return (type(problem).__name__ + ": " + " ".join(str(problem).split()))[:300]


if torch is not None:
    class Block(nn.Module):
        """Two 3x3 (`wide` 1), or 1x1, 3x3 and 1x1 to four times the channels, and what went in."""

        def __init__(self, inputs, channels, stride, wide):
            super().__init__()
            outputs = channels * wide
            kernels = [(inputs, channels, 3, stride), (channels, channels, 3, 1)] if wide == 1 else \
                [(inputs, channels, 1, 1), (channels, channels, 3, stride), (channels, outputs, 1, 1)]
            layers = []
            for a, b, kernel, step in kernels:
                layers += [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
            self.layers = nn.Sequential(*layers[:-1])
            self.down = None
            if stride != 1 or inputs != outputs:
                self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            return F.relu(self.layers(x) + (x if self.down is None else self.down(x)))

    def resnet(counts, wide):
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inputs = 64
        for stage, count in enumerate(counts):
            for i in range(count):
                layers.append(Block(inputs, 64 << stage, 2 if stage > 0 and i == 0 else 1, wide))
                inputs = (64 << stage) * wide
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))

    class Bottleneck(nn.Module):
        """MobileNetV2's: to `expand` times the channels, a 3x3 of each alone, back."""

        def __init__(self, inputs, outputs, stride, expand):
            super().__init__()
            wide = inputs * expand
            layers = [] if expand == 1 else [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
            layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
                       nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
            self.layers, self.adds = nn.Sequential(*layers), stride == 1 and inputs == outputs

        def forward(self, x):
            return x + self.layers(x) if self.adds else self.layers(x)

    def mobilenet_v2():
        layers, inputs = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()], 32
        for expand, outputs, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                               (6, 160, 3, 2), (6, 320, 1, 1)]:
            for i in range(count):
                layers.append(Bottleneck(inputs, outputs, stride if i == 0 else 1, expand))
                inputs = outputs
        return nn.Sequential(*layers, nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))

    class Encoder(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.first, self.second = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

        def forward(self, x):
            batch, tokens, width = x.shape
            q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
            x = self.first(x + self.out(y))
            return self.second(x + self.narrow(F.gelu(self.wide(x))))

    class Bert(nn.Module):
        def __init__(self, layers, width, heads):
            super().__init__()
            self.words, self.places, self.types = nn.Embedding(30522, width), nn.Embedding(512, width), nn.Embedding(2, width)
            self.norm = nn.LayerNorm(width, eps=1e-12)
            self.layers = nn.Sequential(*[Encoder(width, heads) for _ in range(layers)])
            self.pool = nn.Linear(width, width)

        def forward(self, ids):
            x = self.words(ids) + self.places.weight[:ids.shape[1]] + self.types.weight[0]
            x = self.layers(self.norm(x))
            return x, torch.tanh(self.pool(x[:, 0]))

    def image():
        return torch.randn(1, 3, 224, 224)

    def tokens():
        return torch.randint(0, 30522, (1, 128))

    NETWORKS = {
        "resnet18": (lambda: resnet([2, 2, 2, 2], 1), image),
        "resnet50": (lambda: resnet([3, 4, 6, 3], 4), image),
        "mobilenet_v2": (mobilenet_v2, image),
        "bert_tiny": (lambda: Bert(2, 128, 2), tokens),
        "bert_base": (lambda: Bert(12, 768, 12), tokens),
    }


def outputs_of(result):
    return result if isinstance(result, tuple) else (result,)


def measure(run, host, x, device, seconds):
    """Times of single calls in nanoseconds, in order: by the clock, with copies of inputs and results, as tilth's are; and of the
    device alone."""
    calls, alone, end = [], [], None
    while end is None or len(calls) < 3 or (time.perf_counter() < end and len(calls) < 2000):
        if len(alone) == 3 and end is None:  # three to warm up
            calls, alone, end = [], [], time.perf_counter() + seconds
        if device == "cuda":
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
        start = time.perf_counter_ns()
        x.copy_(host, non_blocking=True)
        if device == "cuda":
            first.record()
        result = run()
        if device == "cuda":
            last.record()
        for each in outputs_of(result):
            each.cpu()  # which waits
        calls.append(time.perf_counter_ns() - start)
        alone.append(first.elapsed_time(last) * 1e6 if device == "cuda" else calls[-1])
    return sorted(calls), sorted(alone)


def eager(model, x, device):
    return lambda: model(x)


def graphs(model, x, device):
    if device != "cuda":
        raise RuntimeError("a processor has no graphs")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # what allocates on its first runs must not be captured
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(x)

    def run():
        graph.replay()
        return result
    return run


def compiled(model, x, device):
    made = torch.compile(model, mode="max-autotune-no-cudagraphs" if device != "cuda" else "reduce-overhead")
    made(x)
    return lambda: made(x)


def base(name):
    """bert_base of bert_base_128: of 128 tokens they all are."""
    return name[:-4] if name.endswith("_128") else name


def time_is_over(*_):
    raise TimeoutError("no time is left")


WAYS = {"eager": eager, "graphs": graphs, "compiled": compiled}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--ways", default="eager,graphs,compiled")
    parser.add_argument("--within", type=float, default=0)
    parser.add_argument("--only-if-there", action="store_true")
    parser.add_argument("names", nargs="+", metavar="NAME")
    args = parser.parse_args()
    lacking = None
    if torch is None:
        lacking = "there is no PyTorch: " + sentence(missing)
    elif args.device == "cuda" and not torch.cuda.is_available():
        lacking = f"PyTorch {torch.__version__} sees no GPU"
    if lacking is not None:
        say(peer="pytorch", skipped=lacking)
        return 0 if args.only_if_there else 5
    begun = time.perf_counter()
    signal.signal(signal.SIGALRM, time_is_over)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    # all networks in one way before the next: what is slow to be ready comes last
    with torch.inference_mode():
        for way in args.ways.split(","):
            for name in args.names:
                if base(name) not in NETWORKS:
                    if way == args.ways.split(",")[0]:
                        say(model=name, peer="pytorch", skipped="networks.py does not have it")
                    continue
                try:
                    if args.within > 0:
                        signal.setitimer(signal.ITIMER_REAL, max(args.within - (time.perf_counter() - begun), 0.01))
                    make, feed = NETWORKS[base(name)]
                    start = time.perf_counter()
                    host = feed()
                    if args.device == "cuda":
                        host = host.pin_memory()
                    model, x = make().eval().to(args.device), host.to(args.device)
                    run = WAYS[way](model, x, args.device)
                    ready = time.perf_counter() - start
                    calls, alone = measure(run, host, x, args.device, args.seconds)
                    say(model=name, peer="pytorch", version=torch.__version__, way=way, ready_s=round(ready, 3),
                        runs=len(calls), min_ns=round(calls[0]), median_ns=round(calls[len(calls) // 2]),
                        device_ns=round(alone[0]))
                except Exception as problem:  # whatever PyTorch raises: this one's failure is a line
                    say(model=name, peer="pytorch", version=torch.__version__, way=way, skipped=sentence(problem))
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Which kernel classes stay below 75 % of what bounds them, over several networks.

    for m in resnet18 ...; do tilth bench $m.onnx --threads 1 --no-db --json > $m.json; done
    tests/bench/slow_classes.py --bandwidth 0.9:95,48:31,0:16 *.json

A kernel is bound by its multiply-adds or by the bytes of its operands, whichever takes longer at the peak or at the
bandwidth: --bandwidth has MB:GB/s, what plain loops over so many megabytes reach (0: any number). A line is a class
(kernels equal up to extents): its share of the time of all networks, percent of the bound and what would be won, and the
kernel that takes longest. Several files of one name are runs of one network: the faster time of each kernel counts."""
import argparse
import collections
import json
import os


def read(paths, levels):
    """Kernels of one network, each as fast as any of the files has it: (record, ns by arithmetic, ns by traffic)."""
    best = {}
    for path in paths:
        for k in map(json.loads, open(path)):
            if k["record"] == "kernel" and k["min_ns"] > 0:
                best[k["step"]] = min(k, best.get(k["step"], k), key=lambda k: k["min_ns"])
    for k in best.values():
        peak = k["flops"] / k["min_ns"] / k["percent_of_peak"] * 100 if k["percent_of_peak"] > 0 else 0
        rate = next(gbs for mb, gbs in levels if mb == 0 or k["bytes"] <= mb * 1e6)
        yield k, k["flops"] / peak if peak > 0 else 0, k["bytes"] / rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandwidth", default="0:31")
    parser.add_argument("--below", type=float, default=75)
    parser.add_argument("--share", type=float, default=0.2, help="percent of the time of all networks, at least")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    levels = [tuple(map(float, pair.split(":"))) for pair in options.bandwidth.split(",")]
    classes = collections.defaultdict(list)
    networks = collections.defaultdict(list)
    for path in options.files:
        networks[os.path.basename(path).removesuffix(".json")].append(path)
    for network, paths in networks.items():
        kernels = list(read(paths, levels))
        total = sum(k["min_ns"] for k, _, _ in kernels)  # every network counts alike
        for k, arithmetic, traffic in kernels:
            classes[k["class"]].append((k["min_ns"] / total, arithmetic / total, traffic / total, k, network))
    scale = 100 / len(networks)
    rows = []
    for members in classes.values():
        time = sum(m[0] for m in members)
        bound = sum(max(m[1], m[2]) for m in members)
        if 100 * bound / time < options.below and time * scale >= options.share:
            rows.append(((time - bound) * scale, time * scale, 100 * bound / time,
                         100 * sum(m[1] for m in members) / time, len(members), max(members, key=lambda m: m[0])))
    print(f"{'lost':>6} {'share':>6} {'bound':>6} {'peak':>6} {'kernels':>7}  slowest")
    for lost, share, bound, peak, count, (_, _, _, k, network) in sorted(rows, key=lambda row: -row[0]):
        print(f"{lost:5.2f}% {share:5.2f}% {bound:5.1f}% {peak:5.1f}% {count:7d}  {network} {k['name']} "
              f"({k['min_ns'] / 1e3:.0f} us)")
    print(f"all of them: {sum(row[0] for row in rows):.1f} % of the time is lost in {len(rows)} classes")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What each part of our cost model is worth, and what others make of the same data: `tilth cost-model` again and again.

    tests/bench/cost_study.py TILTH DATA.tld ... --hold-out NETWORK.onnx ... [--seeds 3] [--ablation-seeds 1] [--epochs N]

Models are trained on DATA without any workload of the networks, each with several seeds, and judged on those. What is printed
of each is a mean over networks (tasks by their share of the time), over seeds, an interval of 95 % by bootstrap over networks,
and what it has less than ours: network by network, over the seeds that both have, so that networks which are hard for all do
not count. Trained models stay in --folder: an interrupted study goes on with the same command, and a training that was killed
goes on from its checkpoint."""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

# name: what it is, the model, options. The first is ours; those behind the ablations are models of others.
OURS = "attention"
STUDIED = {
    OURS: ("ours: attention over statements, decisions, workload, machine", "attention", []),
    "nomachine": ("without the machine's columns", "attention", ["--without", "machine"]),
    "noworkload": ("without the workload's columns", "attention", ["--without", "workload"]),
    "nodecisions": ("without tokens of decisions", "attention", ["--without", "decisions"]),
    "pooled": ("without attention: every token by itself, then their mean", "attention,layers=0", []),
    "tenset": ("without own columns: attention over the field's 164 alone", "attention@tenset", []),
    "mlp": ("TenSet's network over our rows", "mlp", []),
    "mlp_tenset": ("TenSet's network over TenSet's rows", "mlp@tenset", []),
    "trees": ("boosted trees (XGBoost) over our rows", "trees", []),
    "screener": ("decisions alone, of points that were not built", "screener", []),
    "analytic": ("the analytic model", "analytic", []),
}
BASELINES = ("mlp", "mlp_tenset", "trees", "analytic")
METRICS = ("pairs", "pairs near", "top-1", "top-5", "ranks")
RATIOS = ("top-1", "top-5")


def run(command, log):
    """The objects that it prints; what it says of progress goes into a file."""
    with open(log, "a", encoding="utf-8") as err:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=err, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}, see {log}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def keep(path, rows):
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(rows, out)
    os.replace(path + ".new", path)


def judged(o, name, seed):
    """Trains and judges unless that was done; the lines of `eval`."""
    _, model, options = STUDIED[name]
    base = os.path.join(o.folder, f"{name}-{seed}")
    held_out = [word for network in o.held_out for word in ("--hold-out", network)]
    if not os.path.exists(base + ".tlm"):
        print(f"training {name}, seed {seed}", file=sys.stderr, flush=True)
        begun = time.monotonic()
        epochs = ["--epochs", str(o.epochs)] if o.epochs else []
        run([o.tilth, "cost-model", "train", *o.data, *held_out, "-m", model, *options, *epochs, "--seed", str(seed), "-o",
             base + ".tlm", "--json"], base + ".log")
        keep(base + ".seconds", time.monotonic() - begun)
    if not os.path.exists(base + ".json"):
        command = [o.tilth, "cost-model", "eval", *o.data, *held_out, "-m", base + ".tlm", "--json"]
        keep(base + ".json", run(command, base + ".log"))
    with open(base + ".json", encoding="utf-8") as kept:
        return json.load(kept)


def by_network(rows, metric):
    """Network -> value; ratios of times as logarithms."""
    values = {r["network"]: r[metric] for r in rows if r["record"] == "network" and metric in r}
    return {n: math.log(v) if metric in RATIOS else v for n, v in values.items()}


def mean_over_seeds(runs, metric):
    values = [by_network(rows, metric) for rows in runs]
    return {n: statistics.fmean(v[n] for v in values if n in v) for n in values[0]} if values else {}


def interval(values):
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(4000))
    return statistics.fmean(values), means[100], means[3899]


def score(runs, metric):
    """Mean, least, most, and the means of the seeds."""
    values = list(mean_over_seeds(runs, metric).values())
    if not values:
        return None
    back = math.exp if metric in RATIOS else float
    seeds = [back(statistics.fmean(by_network(rows, metric).values())) for rows in runs]
    return [back(x) for x in interval(values)], seeds


def difference(done, name, metric):
    """How much more than ours, over the seeds that both have."""
    seeds = sorted(set(done[OURS]) & set(done[name]))
    mine = mean_over_seeds([done[OURS][s] for s in seeds], metric)
    theirs = mean_over_seeds([done[name][s] for s in seeds], metric)
    both = [theirs[n] - mine[n] for n in mine if n in theirs]
    return interval(both) if both else None


def ceiling(rows, metric):
    for r in rows:
        if r["record"] == "metric" and r["metric"] == metric and r["networks_ceiling"]:
            return r["networks_ceiling"]["value"]
    return None


def rate_of(runs):
    rates = [r["programs_a_second"] for rows in runs for r in rows if r["record"] == "calibration"]
    return statistics.median(rates) if rates else float("nan")


def print_table(done):
    first = next(iter(done[OURS].values()))
    data = next(r for r in first if r["record"] == "data")
    print(f"{data['learn']} programs to learn from, {data['check']} to stop by, {data['judge']} to be judged on; "
          "means over networks (95 % by bootstrap over them)\n")
    print("| model | seeds | " + " | ".join(METRICS) + " | pairs, beside ours | near, beside ours | programs a second |")
    print("|---" * (len(METRICS) + 5) + "|")
    for name, runs in done.items():
        cells = [f"`{name}`: {STUDIED[name][0]}", str(len(runs))]
        for metric in METRICS:
            found = score(list(runs.values()), metric)
            cells.append("" if found is None else "{:.3f} ({:.3f} to {:.3f})".format(*found[0]))
        for metric in ("pairs", "pairs near"):
            apart = difference(done, name, metric) if name != OURS else None
            cells.append("" if apart is None else "{:+.3f} ({:+.3f} to {:+.3f})".format(*apart))
        print("| " + " | ".join(cells) + f" | {rate_of(runs.values()):,.0f} |")
    cells = [f"{ceiling(first, m):.3f}" if ceiling(first, m) is not None else "" for m in METRICS]
    print("| measured once more (simulated) | | " + " | ".join(cells) + " | | | |")
    for name, runs in done.items():
        if len(runs) > 1:
            means = ", ".join(f"{x:.3f}" for x in score(list(runs.values()), "pairs")[1])
            print(f"\npairs of the seeds of {name}: {means}", end="")
    print()


def print_verdict(done):
    for name in BASELINES:
        if name not in done:
            continue
        for metric in ("pairs", "pairs near", "top-5"):
            apart = difference(done, name, metric)
            if apart is not None:
                word = "below ours" if apart[2] < 0 else "above ours" if apart[1] > 0 else "as ours, as far as this tells"
                print(f"{name}, {metric}: {word} ({apart[0]:+.3f}, {apart[1]:+.3f} to {apart[2]:+.3f})")


def print_json(done):
    for name, runs in done.items():
        for metric in METRICS:
            found = score(list(runs.values()), metric)
            if found is None:
                continue
            (value, low, high), seeds = found
            row = {"record": "study", "model": name, "words": STUDIED[name][0].split(":")[0], "metric": metric, "value": value,
                   "low": low, "high": high, "seeds": seeds}
            apart = difference(done, name, metric) if name != OURS else None
            if apart is not None:
                row["beside_ours"] = dict(zip(("value", "low", "high"), apart))
            print(json.dumps(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilth")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--hold-out", dest="held_out", nargs="+", required=True)
    parser.add_argument("--only", nargs="+", choices=list(STUDIED), default=list(STUDIED), help="of these, beside ours")
    parser.add_argument("--seeds", type=int, default=3, help="of ours and of the models of others")
    parser.add_argument("--ablation-seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=0, help="each model's own number")
    parser.add_argument("--folder", default="cost-study", help="models and what came of them")
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    done = {}
    for name in STUDIED:
        if name != OURS and name not in o.only:
            continue
        count = o.seeds if name == OURS or name in BASELINES else o.ablation_seeds
        done[name] = {seed: judged(o, name, seed) for seed in range(1, (1 if name == "analytic" else count) + 1)}
    if o.json:
        print_json(done)
        return
    print_table(done)
    print_verdict(done)


if __name__ == "__main__":
    main()

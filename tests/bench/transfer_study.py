#!/usr/bin/env python3
"""Which part of what a search finds does transfer find: `tilth transfer` beside `tilth tune`, in the plain space.

    tests/bench/transfer_study.py TILTH --from resnet50.onnx vgg16.onnx --to resnet18.onnx [--top 5] [--trials 300] [--seeds 1]

The kernels of the donors are searched for once (evolution, --donor-trials a kernel); then, on the heaviest kernels of each
receiver, evolution and auto with --trials (the best of all their seeds is what tuning can do), and transfer with K = 1 and 5:
K = 1 measures the guess that K = 0 takes unseen. Kernels that donors and receiver share do not count (--others-only leaves
them out). Donors are ranked by each --rank (analytic; the file of a trained model; default, which comes with tilth), by the
nearest shape, and, as controls, by chance, and without the kin of the kernels' classes. A trained model must not have learned
from the receivers: the default one has not from those that tuner/data/README.md names. The searches are blank (--cost-model
none).

Each gain is a schedule's against the naive nest of the plain space, or against the default of the full one (--space full
--least-gain 1.05 --apart), measured in turns. What is printed of each way is its share of the logarithm of the full search's
gain: the mean over kernels, weighted by how often their network runs them, an interval by bootstrap over kernels, and its
seconds; at the end over the kernels of all receivers. The best of many measurements is in part luck: with --afresh what the
full search and each way found is measured again, by turns. What was searched for is kept in files whose names begin with
--db: an interrupted study goes on behind the last search that it finished."""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import time


def run(arguments):
    """The records that a command prints, and the seconds that it took."""
    begun = time.monotonic()
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)}: exit status {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], time.monotonic() - begun


def once(path, arguments):
    """The same of the file at that path, which an earlier run of the study wrote; else it is run, and written."""
    if os.path.exists(path):
        with open(path) as f:
            return json.load(f)
    result = run(arguments)
    with open(path + ".new", "w") as f:
        json.dump(result, f)
    os.replace(path + ".new", path)
    return result


def gains(records, kind, name):
    """Kernel -> (gain, weight). A kernel of the plain space is one a lowering: the best of them counts."""
    out = {}
    for r in records:
        if r["record"] != kind or not r.get("best_ns") or not r.get("untuned_ns"):
            continue
        gain = max(r["untuned_ns"] / r["best_ns"], 1e-9)
        if r["workload"] not in out or gain > out[r["workload"]][0]:
            out[r["workload"]] = (gain, r.get("weight", r.get("occurrences", 1)), r[name])
    return out


def remove(db):
    for end in ("", "-wal", "-shm"):
        if os.path.exists(db + end):
            os.remove(db + end)


def copy(tilth, source, db):
    """A new database of the same records."""
    remove(db)
    subprocess.run([tilth, "db", "merge", source, "--db", db], stdout=subprocess.DEVNULL, check=True)


def measured_afresh(o, tune, model, databases):
    """Way -> kernel -> (gain, weight, name): the best that each way's database knows of a kernel beside its untuned schedule,
    the median of so many rounds, in each of which the ways take turns."""
    rounds = {way: [] for way in databases}
    scratch = f"{o.db}-afresh.db"
    for _ in range(o.afresh):
        for way, db in databases.items():
            copy(o.tilth, db, scratch)
            records, _ = run([*tune, model, "--policy", "auto", "--top", str(o.top), "--trials-per-task", "1", "--db", scratch])
            rounds[way].append(gains(records, "task", "name"))
    remove(scratch)
    return {way: {k: (statistics.median(f[k][0] for f in found if k in f), *found[0][k][1:]) for k in found[0]}
            for way, found in rounds.items()}


def rows_of(full, found, least):
    """Weight, logarithm of the full gain and of the one that was found, of each kernel where there is so much to gain."""
    return [(w, math.log(g), math.log(found[k][0]) if k in found else 0.0)
            for k, (g, w, _) in full.items() if g > least]


def share_of(rows):
    """Of the logarithm of the full gain, weighted; with a 90 % interval over kernels."""
    if not rows:
        return float("nan"), float("nan"), float("nan"), 0

    def mean(sample):
        return sum(w * min(b, a) for w, a, b in sample) / sum(w * a for w, a, _ in sample)
    draw = random.Random(1)
    means = sorted(mean([draw.choice(rows) for _ in rows]) for _ in range(2000))
    return mean(rows), means[100], means[1899], len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilth")
    parser.add_argument("--from", dest="donors", nargs="+", required=True)
    parser.add_argument("--to", dest="receivers", nargs="+", required=True)
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--donor-top", type=int, default=12)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--donor-trials", type=int, default=200)
    parser.add_argument("--donor-policy", default="evolution")
    parser.add_argument("--policies", nargs="+", default=["evolution", "auto"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rank", nargs="+", default=["analytic"])
    parser.add_argument("--space", default="plain")
    parser.add_argument("--least-gain", type=float, default=1.02, help="of the full search, for a kernel to count")
    parser.add_argument("--apart", action="store_true",
                        help="the searches of the first seed tell which kernels count, the others what there is to gain")
    parser.add_argument("--afresh", type=int, default=0, metavar="ROUNDS",
                        help="measure what the full search and each way found again, in so many rounds; their medians count")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--db", default="transfer")
    o = parser.parse_args()
    common = ["--space", o.space, "--threads", o.threads, "--json", "--quiet", "--no-check"]
    tune = [o.tilth, "tune", *common, "--budget", "2h", "--transfer", "0", "--cost-model", "none"]
    donors, together = f"{o.db}-donors.db", {}
    for model in o.donors:
        name = os.path.basename(model)
        _, seconds = once(f"{o.db}-donors-{name}.json",
                          [*tune, model, "--policy", o.donor_policy, "--top", str(o.donor_top), "--trials-per-task",
                           str(o.donor_trials), "--db", donors])
        print(f"donors of {name}: {seconds:.0f} s", flush=True)
    for model in o.receivers:
        name, full, chosen, spent = os.path.basename(model), {}, {}, 0.0
        ways, databases = {}, {}
        for policy in o.policies:
            for seed in range(o.seeds):
                base = f"{o.db}-{name}-{policy}-{seed}"
                records, seconds = once(f"{base}.json",
                                        [*tune, model, "--policy", policy, "--seed", str(seed), "--top", str(o.top),
                                         "--trials-per-task", str(o.trials), "--db", f"{base}.db"])
                found = gains(records, "task", "name")
                spent += seconds
                goal = chosen if o.apart and seed == 0 else full
                if goal is full:
                    ways[f"{policy}, seed {seed}"] = (found, seconds)
                    databases[f"{policy}, seed {seed}"] = f"{base}.db"
                for k, row in found.items():
                    goal[k] = max(goal.get(k, row), row)
        searches = list(ways)
        if o.apart:
            full = {k: row for k, row in full.items() if k in chosen and chosen[k][0] > o.least_gain}
        ranks = [(f"by {os.path.basename(r)}", ["--rank", r]) for r in (*o.rank, "shape", "random")]
        ranks.append(("of its class alone", ["--rank", o.rank[0], "--class-only"]))
        for rank, words in ranks:
            for k in (1, 5):
                way, scratch = f"transfer K={k} {rank}", f"{o.db}-{name}-{len(databases)}.db"
                copy(o.tilth, donors, scratch)
                records, seconds = run([o.tilth, "transfer", *common, model, "--others-only", *words, "-k", str(k),
                                        "--top", str(o.top), "--db", scratch])
                ways[way] = (gains(records, "transferred", "kernel"), seconds)
                databases[way] = scratch
        if o.afresh:
            again = measured_afresh(o, tune, model, databases)
            full = {k: max((again[way][k] for way in searches if k in again[way]), default=full[k]) for k in full}
            ways = {way: (again[way], seconds) for way, (_, seconds) in ways.items()}
        for way, db in databases.items():
            if way not in searches:
                remove(db)
        print(f"\n{name}: {len(full)} kernels, gain of the full search "
              f"{math.exp(sum(math.log(g) for g, _, _ in full.values()) / max(len(full), 1)):.2f} (geometric mean)")
        print(f"{'way':34s} {'share of log gain':>18s}  {'90 %':^15s} {'kernels':>8s} {'seconds':>8s} {'of the search':>14s}")
        for way, (found, seconds) in ways.items():
            rows = rows_of(full, found, 1.0 if o.apart else o.least_gain)
            together.setdefault(way, []).extend(rows)
            mean, low, high, count = share_of(rows)
            print(f"{way:34s} {mean:18.3f}  {low:6.3f}..{high:6.3f} {count:8d} {seconds:8.1f} {seconds / spent:14.4f}", flush=True)
    print(f"\nall receivers\n{'way':34s} {'share of log gain':>18s}  {'90 %':^15s} {'kernels':>8s}")
    for way, rows in together.items():
        mean, low, high, count = share_of(rows)
        print(f"{way:34s} {mean:18.3f}  {low:6.3f}..{high:6.3f} {count:8d}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How much slower networks are in company: a process that takes half of one of their processors in slices of 4 ms.

    company.py TILTH COMPANY MODEL... [--threads 2] [--rounds 9] [--seconds 1] [--against OTHER_TILTH]... [--json FILE]

COMPANY is the program build/release/bench/company. Each round measures every side in quiet and in company, one right after the
other, which of the two first by turns; the sides are tilth, other builds of it (--against), and ONNX Runtime and OpenVINO where
this Python has them. The slowdown of a side is the median over the rounds of its median in company over its median in quiet, and the
same of means: runs shorter than a slice are mostly undisturbed or mostly twice as long, and their median is either. What the company got of its processor stands beside it: a side that keeps it away is no faster, only ruder. A round counts when all others
on the machine took less than --threshold of the processors meanwhile; rounds are added until --rounds of them count.

A model is what compare.py takes. Without the peers' packages only tilth is measured, on inputs of its own."""
import argparse, importlib.util, json, os, subprocess, sys, tempfile, time
sys.dont_write_bytecode = True
import compare

PEERS = compare.PEERS


def has_peers():
    return all(importlib.util.find_spec(name) for name in ("numpy", "onnx", *PEERS))


def busy_s():
    """Seconds that all processors were not idle, those that the host took away included."""
    ticks = list(map(int, open("/proc/stat").readline().split()[1:9]))
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def children_s():
    spent = os.times()
    return sum(spent[:4])  # and ourselves


def process_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Company:
    """The neighbour, while it is there."""

    got, cpu_s = None, 0

    def __init__(self, options, cpus):
        self.command = [options.company, "any" if options.free else str(cpus[-1]), str(options.share), str(options.slice_ms)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        time.sleep(0.05)
        return self

    def __exit__(self, *_):
        said, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise compare.Failure("the company did not come")
        self.got = json.loads(said)["share"]


class Tilth:
    """tilth, or another build of it, on one model."""

    def __init__(self, binary, path, shared):
        self.command = [binary, "bench", path, *shared, "--json"]

    def own_s(self):
        return 0  # a child that has ended: children_s() has it

    def measure(self, seconds):
        said = compare.call([*self.command, "--seconds", str(seconds)])
        return next(r for r in map(json.loads, said.splitlines()) if r.get("record") == "model")


class Peer:
    def __init__(self, worker):
        self.worker = worker

    def own_s(self):
        return process_s(self.worker.process.pid)

    def measure(self, seconds):
        answer = self.worker.ask(seconds=seconds)
        time.sleep(0.05)  # its threads spin for a while in the hope of more
        return answer


def sides_of(options, name, work, model_of):
    """{side: what measures it}; tilth's caches are warm afterwards."""
    sides = {}
    if has_peers():
        model = model_of(options, name, work)
        path, shared = model.path, model.shared
        for peer in PEERS:
            try:
                model.workers[peer] = compare.Worker(peer, path, model.data, options.threads)
                sides[peer] = Peer(model.workers[peer])
            except compare.Failure as failure:
                print(f"{name}: {failure}", file=sys.stderr)
    else:
        model = None
        path, data = compare.find_model(options.tilth, name, options.models, work)
        shared = [] if data == "-" else ["--data", data]
        shared += ["--threads", str(options.threads), "--cache", os.path.join(work, "cache"), "-q"]
    builds = {"tilth": options.tilth, **{binary: binary for binary in options.against}}
    for side, binary in builds.items():
        cache = [os.path.join(work, f"cache{len(sides)}") if word == os.path.join(work, "cache") else word for word in shared]
        sides[side] = Tilth(binary, path, cache)
        sides[side].measure(0.05)
    return model, sides


def measure(options, name, work, cpus):
    model, sides = sides_of(options, name, work, compare.Model)
    rows, tries = {side: [] for side in sides}, 0
    try:
        while min(map(len, rows.values())) < options.rounds and tries < options.rounds * options.patience:
            tries += 1
            for side, what in sides.items():
                if len(rows[side]) < options.rounds:
                    row = both(options, what, cpus, tries)
                    thrown = row["others"] > options.threshold
                    print(f"{name} round {tries}, {side}: {row['quiet']['median_ns'] * 1e-6:.3f} -> {row['company']['median_ns'] * 1e-6:.3f} ms; others had "
                          f"{100 * row['others']:.0f} %{'  DISTURBED' if thrown else ''}", file=sys.stderr, flush=True)
                    rows[side] += [] if thrown else [row]
    finally:
        if model is not None:
            model.stop()
    return {"model": os.path.basename(name), "sides": {side: summary(r) for side, r in rows.items() if r}}


def both(options, what, cpus, turn):
    """One side in quiet and in company, and the share of the processors that went to neither."""
    start, before, own = time.perf_counter(), busy_s() - children_s(), what.own_s()
    quiet = what.measure(options.seconds) if turn % 2 == 0 else None
    with Company(options, cpus) as company:
        disturbed = what.measure(options.seconds)
    quiet = quiet or what.measure(options.seconds)
    others = busy_s() - children_s() - before - (what.own_s() - own)
    keys = ("min_ns", "median_ns", "mean_ns")
    return {"quiet": {k: quiet[k] for k in keys}, "company": {k: disturbed[k] for k in keys}, "share": company.got,
            "others": max(others, 0) / (time.perf_counter() - start) / os.cpu_count()}


def summary(rows):
    def ratios(key):
        return [r["company"][key] / r["quiet"][key] for r in rows]
    medians = ratios("median_ns")
    return {"quiet_ms": compare.middle([r["quiet"]["median_ns"] for r in rows]) * 1e-6,
            "company_ms": compare.middle([r["company"]["median_ns"] for r in rows]) * 1e-6,
            "slowdown": compare.middle(medians), "least_slowdown": min(medians), "largest_slowdown": max(medians),
            "slowdown_of_means": compare.middle(ratios("mean_ns")), "share": compare.middle([r["share"] for r in rows]), "rounds": rows}


def print_report(report):
    rows = [["medians, ms", "side", "quiet", "in company", "slowdown", "(least..largest)", "of means", "company got", "rounds"]]
    for model in report["models"]:
        for side, s in model.get("sides", {}).items():
            rows.append([model["model"], side, f"{s['quiet_ms']:.3f}", f"{s['company_ms']:.3f}", f"{s['slowdown']:.2f}",
                         f"({s['least_slowdown']:.2f}..{s['largest_slowdown']:.2f})", f"{s['slowdown_of_means']:.2f}", f"{100 * s['share']:.0f} %",
                         str(len(s["rounds"]))])
    print(f"{report['cpu']}, {report['threads']} threads on processors {','.join(map(str, report['cpus']))}; company takes "
          f"{100 * report['share']:.0f} % of {report['where']} in slices of {report['slice_ms']:g} ms\n")
    print(compare.table(rows))
    for side, mean in report["geomean"].items():
        print(f"geometric mean of {side}: {mean:.2f}, of means {report['geomean_of_means'][side]:.2f}")
    for model in report["models"]:
        if "error" in model or not model["sides"]:
            print(f"{model['model']}: {model.get('error', 'no round was undisturbed')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilth")
    parser.add_argument("company")
    parser.add_argument("names", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpus", help="processors to pin all processes to, as 0,2; the company is on the last of them")
    parser.add_argument("--rounds", type=int, default=9, help="that count, of each side (9)")
    parser.add_argument("--patience", type=int, default=3, help="gives up after as many times --rounds (3)")
    parser.add_argument("--threshold", type=float, default=0.05, help="of the processors, what others may take in a round that counts (0.05)")
    parser.add_argument("--seconds", type=float, default=1, help="of each side, in quiet and in company, in each round (1)")
    parser.add_argument("--share", type=float, default=0.5, help="of its processor that the company takes (0.5)")
    parser.add_argument("--slice-ms", type=float, default=4, help="how long it computes at a time (4)")
    parser.add_argument("--free", action="store_true", help="the company is on no processor of its own")
    parser.add_argument("--against", action="append", default=[], metavar="TILTH", help="another build of tilth as a side; may be repeated")
    parser.add_argument("--batch", type=int, default=1, help="samples in each run: rewrites networks of batch 1 (batch.py)")
    parser.add_argument("--models", default="build/models", help="holds NAME/NAME.onnx (build/models)")
    parser.add_argument("--tilth-options", default="", help="more of them for tilth bench, in one argument")
    parser.add_argument("--json", help="everything, each round included, in a file")
    options = parser.parse_args()
    if min(options.threads, options.rounds) < 1 or not options.seconds > 0:
        parser.error("--threads, --rounds and --seconds are above 0")
    models = []
    try:
        if options.json:
            open(options.json, "a").close()
        cpus = compare.cores(options.threads, options.cpus)
        os.sched_setaffinity(0, cpus)
        for name in options.names:
            with tempfile.TemporaryDirectory(prefix="tilth_company_") as work:
                try:
                    models.append(measure(options, name, work, cpus))
                except (compare.Failure, OSError) as failure:
                    models.append({"model": name, "error": str(failure)})
    except (compare.Failure, OSError, ValueError) as failure:
        sys.exit(f"company.py: {failure}")
    sides = list(dict.fromkeys(side for m in models for side in m.get("sides", {})))
    report = {"record": "company", "cpu": compare.cpu_name(), "threads": options.threads, "cpus": cpus, "share": options.share,
              "slice_ms": options.slice_ms, "rounds": options.rounds, "time_s": int(time.time()),
              "where": "any processor" if options.free else f"processor {cpus[-1]}",
              **{f"geomean{end}": {s: compare.geometric_mean([m["sides"][s][f"slowdown{end}"] for m in models if s in m.get("sides", {})])
                                   for s in sides} for end in ("", "_of_means")},
              "models": models}
    print_report(report)
    if options.json:
        with open(options.json, "w") as file:
            file.write(json.dumps(report, indent=1) + "\n")
    sys.exit(any("error" in m or not m["sides"] for m in models))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

#!/usr/bin/env python3
"""tilth beside ONNX Runtime and OpenVINO: the same file, inputs, number of threads and cores, in turn.

    VENV=$(tests/peers/setup.sh)
    $VENV/bin/python tests/peers/compare.py build/release/tilth resnet18 bert_base_128 [--threads N] [--json FILE] [--svg FILE]

A model is a file (its inputs are the input_NAME.npy beside it, else random), a folder of --models (NAME@1: another call of
NAME.onnx), or a name of `tilth model --list`. tests/peers/README.md tells how to read the result. Exit status: 1 when a model could not be compared, an output is
wrong, or no round was undisturbed.
"""
import argparse, json, math, os, platform, select, shlex, subprocess, sys, tempfile, time
sys.dont_write_bytecode = True  # nothing beside the sources
import chart

# Nothing here imports numpy: what the kernel remembers as this process's largest memory would count for its children.
HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["onnxruntime", "openvino"]
SIDES = ["tilth"] + PEERS
WITNESSES = {"peak_gflops": "peak loop", "gemm_gflops": "GEMM in L2", "copy_gbs": "copy"}
LARGE = 1e-3    # largest difference over largest magnitude: two right programs differ by 1e-4 at most, but where rounding
                # decides; whether that is so, `tilth verify` tells
PATIENCE = 900  # seconds until a silent process counts as hung


class Failure(Exception):
    pass


class Worker:
    """A process of worker.py that answers each line with a line."""

    def __init__(self, *arguments):
        self.name = arguments[0]
        self.said = tempfile.TemporaryFile()  # what libraries say; a pipe that nobody reads would stop them
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py"), *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said)
        self.hello = self.answer()

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            if not ready:
                self.process.kill()
            status = self.process.wait()
            self.said.seek(0)
            last = " ".join(self.said.read().decode(errors="replace").split())[-300:]
            why = f"ended with status {status}" if ready else f"no answer for {PATIENCE} s"
            raise Failure(f"{self.name}: {why}{': ' if last else ''}{last}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, **command):
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer() says what it said last
        return self.answer()

    def stop(self):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.said.close()


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command[:3])} exits with {done.returncode}: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout


# ---- what is compared

def cores(threads, given):
    """One processor of each core that we may use, the first ones."""
    allowed = sorted(os.sched_getaffinity(0))
    if given:
        chosen = [int(c) if c.isdecimal() else -1 for c in given.split(",")]
        if len(set(chosen)) != threads or not set(chosen) <= set(allowed):
            raise Failure(f"--cpus {given}: --threads {threads} takes as many different processors out of {allowed}")
        return chosen
    chosen, seen = [], set()
    for cpu in allowed:
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        core = open(path).read() if os.path.exists(path) else str(cpu)
        if core not in seen:
            seen.add(core)
            chosen.append(cpu)
    if len(chosen) < threads:
        raise Failure(f"--threads {threads}: only {len(chosen)} cores may be used (--cpus chooses processors)")
    return chosen[:threads]


def find_model(tilth, name, models, work):
    """The file, and the folder of its inputs or "-"."""
    path = name if os.path.isfile(name) else os.path.join(models, name, f"{name.split('@')[0]}.onnx")
    if os.path.isfile(path):
        folder = os.path.dirname(os.path.abspath(path))
        given = any(f == "names.txt" or f.startswith("input_") and f.endswith(".npy") for f in os.listdir(folder))
        return path, folder if given else "-"
    if name not in [line.split()[0] for line in call([tilth, "model", "--list"]).splitlines()]:
        raise Failure(f"neither a file, nor in {models}, nor a name of `tilth model --list`")
    path = os.path.join(work, f"{name}.onnx")
    call([tilth, "model", name, "-o", path])
    return path, "-"


# ---- one model

class Model:
    def __init__(self, options, name, work):
        self.options, self.name, self.work = options, os.path.basename(name), work
        self.path, data = find_model(options.tilth, name, options.models, work)
        if options.batch > 1:
            together = os.path.join(work, "batch")
            call([sys.executable, os.path.join(HERE, "batch.py"), together, self.path, data, str(options.batch)])
            self.path, data = os.path.join(together, os.path.basename(self.path)), together
        self.data = os.path.join(work, "data")
        os.mkdir(self.data)
        described = Worker("inputs", self.path, data, self.data)
        described.stop()
        self.ports = described.hello
        self.shared = ["--data", self.data, "--threads", str(options.threads), "--cache", os.path.join(work, "cache"), "-q"]
        for port in self.ports["inputs"]:
            if not port["fixed"]:
                self.shared += ["--shape", f"{port['name']}={','.join(map(str, port['shape']))}"]
        self.shared += shlex.split(options.tilth_options)
        self.workers, self.sides, self.rounds = {}, {}, []

    def bench(self, seconds):
        said = call([self.options.tilth, "bench", self.path, *self.shared, "--json", "--seconds", str(seconds)])
        records = [json.loads(line) for line in said.splitlines()]
        found = next(r for r in records if r.get("record") == "model")
        heaviest = sorted((r for r in records if r.get("record") == "kernel"), key=lambda r: -r["share"])
        found["heaviest"] = [{key: r.get(key) for key in ("name", "share", "min_ns", "percent_of_peak")} for r in heaviest[:3]]
        return found

    def start(self):
        """Each side some times from nothing: the shortest time to ready. The last process of each peer stays."""
        for _ in range(self.options.starts):
            subprocess.run(["rm", "-rf", os.path.join(self.work, "cache")], check=True)
            cold = self.bench(0.05)
            self.note("tilth", {"ready_s": cold["ready_s"], "cold_rss_bytes": cold["max_rss_bytes"]})
            for peer in PEERS:
                if "error" in self.sides.get(peer, {}):
                    continue
                try:
                    if peer in self.workers:
                        self.workers.pop(peer).stop()
                    self.workers[peer] = Worker(peer, self.path, self.data, self.options.threads)
                    self.note(peer, self.workers[peer].hello)
                except Failure as failure:
                    self.sides[peer] = {"error": str(failure)}
        if not self.workers:
            raise Failure("; ".join(side["error"] for side in self.sides.values() if "error" in side))

    def note(self, side, facts):
        known = self.sides.setdefault(side, {})
        for key, value in facts.items():
            shortest = key.endswith("_s") and key in known
            known[key] = min(known[key], value) if shortest else value

    def check(self):
        """Largest differences of tilth's outputs from each peer's."""
        ours = os.path.join(self.work, "tilth")
        call([self.options.tilth, "run", self.path, *self.shared, "-o", ours])
        for index, name in enumerate(self.ports["outputs"]):
            file = "".join("_" if c in "/:" or c < "!" else c for c in name)
            os.rename(os.path.join(ours, f"output_{file}.npy"), os.path.join(ours, f"{index}.npy"))
        for peer, worker in self.workers.items():
            theirs = os.path.join(self.work, peer)
            os.mkdir(theirs)
            worker.ask(outputs=theirs)
            checker = Worker("difference", ours, theirs)
            checker.stop()
            self.sides[peer]["difference"] = checker.hello["difference"]
            if not checker.hello["difference"] <= LARGE:
                self.sides[peer]["is_wrong"] = self.is_wrong(theirs)

    def is_wrong(self, theirs):
        """Whether `tilth verify` says so, given a peer's outputs: not where inputs that are off by little move them as far."""
        with open(os.path.join(self.data, "names.txt")) as listed, open(os.path.join(theirs, "names.txt"), "w") as names:
            for line in listed:
                file = line.split()[2]
                os.symlink(os.path.join(self.data, file), os.path.join(theirs, file))
                names.write(line)
            names.writelines(f"output {name} {index}.npy\n" for index, name in enumerate(self.ports["outputs"]))
        done = subprocess.run([self.options.tilth, "verify", self.path, "--data", theirs, *self.shared[2:], "--json"],
                              capture_output=True, text=True)
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        verdicts = [record["ok"] for record in records if record.get("record") == "output"]
        if len(verdicts) < len(self.ports["outputs"]):
            raise Failure(f"tilth verify exits with {done.returncode}: {' '.join(done.stderr.split())[-300:]}")
        return not all(verdicts)

    def round(self, witness):
        """Every side once, another first each time, a witness before each and after the last."""
        present = [s for s in SIDES if s == "tilth" or s in self.workers]
        first = len(self.rounds) % len(present)
        record = {"order": present[first:] + present[:first]}
        samples = [witness.ask(seconds=0.04)]
        for side in record["order"]:
            if side == "tilth":
                record[side] = self.bench(self.options.seconds)
                record[side].pop("round_ns", None)
            else:
                record[side] = self.workers[side].ask(seconds=self.options.seconds)
                time.sleep(0.02)  # its threads spin for a while in the hope of more
            samples.append(witness.ask(seconds=0.04))
        for key in ("gemm_gflops", "copy_gbs"):
            record[key] = min(s[key] for s in samples)
            record[key + "_best"] = max(s[key] for s in samples)
        record["peak_gflops"] = record["peak_gflops_best"] = record["tilth"]["peak_gflops"]
        self.rounds.append(record)
        return record

    def stop(self):
        for worker in self.workers.values():
            worker.stop()
        self.workers = {}


def judge(record, best, threshold):
    """Why a round does not count; empty when it does."""
    why = [f"{WITNESSES[key]} at {100 * record[key] / best[key]:.0f} %" for key in WITNESSES
           if record[key] < threshold * best[key]]
    if threshold > 0 and 2 * record["tilth"]["disturbed_rounds"] > record["tilth"]["rounds"]:
        why.append("peak loop fell during the round")
    return ", ".join(why)


def measure(options, model, witness, best):
    """Rounds until enough are undisturbed. Later ones can raise what is best, so all are judged again each time."""
    good = []
    while len(good) < options.rounds and len(model.rounds) < options.rounds * options.patience:
        record = model.round(witness)
        for key in WITNESSES:
            best[key] = max(best.get(key, 0), record[key + "_best"])
        good = [r for r in model.rounds if not judge(r, best, options.threshold)]
        times = "  ".join(f"{s} {record[s]['min_ns'] * 1e-6:.3f} ({record[s]['median_ns'] * 1e-6:.3f})" for s in SIDES
                          if s in record)
        state = "  ".join(f"{WITNESSES[key]} {100 * record[key] / best[key]:.0f} %" for key in WITNESSES)
        thrown = judge(record, best, options.threshold)
        print(f"{model.name} round {len(model.rounds)}: {times} ms;  {state}{'  DISTURBED' if thrown else ''}",
              file=sys.stderr, flush=True)


def middle(values):
    values = sorted(values)
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def summarise(model, best, threshold):
    """What the report shows of a model."""
    for record in model.rounds:
        record["thrown_away"] = judge(record, best, threshold)
    good = [r for r in model.rounds if not r["thrown_away"]]
    result = {"model": model.name, "round_count": len(model.rounds), "good_rounds": len(good), "sides": model.sides,
              "rounds": model.rounds}
    for side, facts in model.sides.items():
        mine = [r[side] for r in good if side in r]
        if mine:
            facts["min_ms"] = min(r["min_ns"] for r in mine) * 1e-6
            facts["median_ms"] = middle([r["median_ns"] for r in mine]) * 1e-6
        every = [r[side] for r in model.rounds if side in r]
        if every:
            facts["max_rss_bytes"] = max(r["max_rss_bytes"] for r in every)
    tilth = model.sides["tilth"]
    if model.rounds:
        last = (good or model.rounds)[-1]["tilth"]
        tilth["kernels"], tilth["heaviest"] = last["kernels"], last["heaviest"]
    if good:
        tilth["percent_of_peak"] = max(r["tilth"]["percent_of_peak"] for r in good)
        for kind in ("min", "median"):
            theirs = {p: model.sides[p][f"{kind}_ms"] for p in PEERS if f"{kind}_ms" in model.sides.get(p, {})}
            result[f"better_by_{kind}"] = min(theirs, key=theirs.get)
            result[f"ratio_{kind}"] = min(theirs.values()) / tilth[f"{kind}_ms"]
    if model.rounds:
        tilth["ready_cached_s"] = min(r["tilth"]["ready_s"] for r in model.rounds)
    result["difference"] = max((f["difference"] for f in model.sides.values() if "difference" in f), default=None)
    result["is_wrong"] = any(f.get("is_wrong", False) for f in model.sides.values())
    return result


# ---- the report

def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            return name + (" without AVX-512" if "without_avx512" in os.environ.get("LD_PRELOAD", "") else "")
    return platform.machine()


def table(rows):
    """Columns as wide as they need, the first to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip()
                     for row in rows)


def show(value, form):
    return "-" if value is None else format(value, form)


def milliseconds(value):
    return show(value, ".3f" if value is None or value >= 0.1 else ".2g")


def latency_rows(results, report):
    rows = [["latency, ms: min (median)"] + SIDES + ["ratio", "(median)", "% peak", "rounds", "difference"]]
    for r in results:
        sides = [r["sides"].get(s, {}) for s in SIDES]
        rows.append([r["model"], *[f"{milliseconds(s.get('min_ms'))} ({milliseconds(s.get('median_ms'))})" for s in sides],
                     show(r.get("ratio_min"), ".2f"), f"({show(r.get('ratio_median'), '.2f')})",
                     show(sides[0].get("percent_of_peak"), ".1f"), f"{r['good_rounds']}/{r['round_count']}",
                     show(r["difference"], ".1e")])
    rows.append(["geometric mean", "", "", "", show(report["geomean_min"], ".2f"),
                 f"({show(report['geomean_median'], '.2f')})", "", "", ""])
    return rows


def start_rows(results):
    rows = [["time to ready, s; memory, MB", "tilth cold", "cached", *PEERS, "tilth", *PEERS]]
    for r in results:
        sides = [r["sides"].get(s, {}) for s in SIDES]
        rows.append([r["model"], show(sides[0].get("ready_s"), ".3f"), show(sides[0].get("ready_cached_s"), ".3f"),
                     *[show(s.get("ready_s"), ".3f") for s in sides[1:]],
                     *[show(s["max_rss_bytes"] * 1e-6 if "max_rss_bytes" in s else None, ".0f") for s in sides]])
    return rows


def print_report(report):
    results = report["models"]
    print(f"{report['cpu']}, {report['threads']} thread(s) on processors {','.join(map(str, report['cpus']))}, "
          f"batch {report['batch']}; "
          + ", ".join(f"{name} {version}" for name, version in report["versions"].items()))
    if report["witness_best"]:
        print("best witnesses: " + ", ".join(f"{WITNESSES[key]} {value:.1f} {'GB/s' if key == 'copy_gbs' else 'GFLOP/s'}"
                                             for key, value in report["witness_best"].items())
              + f"; rounds with one below {100 * report['threshold']:.0f} % do not count")
    measured = [r for r in results if "sides" in r]
    if measured:
        print(f"\n{table(latency_rows(measured, report))}\n\n{table(start_rows(measured))}\n\n"
              "ratio: the better peer's time over tilth's (above 1: tilth is faster)")
        for line in slowest_lines(measured):
            print(line)
    for r in results:
        for line in problems_of(r) + remarks_on(r):
            print(f"{r['model']}: {line}")


def slowest_lines(results):
    """The model that is furthest behind, and where its time goes."""
    compared = [r for r in results if "ratio_min" in r]
    if not compared:
        return []
    r = min(compared, key=lambda result: result["ratio_min"])
    tilth = r["sides"]["tilth"]
    lines = [f"slowest: {r['model']}, {r['ratio_min']:.2f} of {r['better_by_min']}: {tilth['kernels']} kernels in "
             f"{tilth['min_ms']:.3f} ms, {1e3 * tilth['min_ms'] / max(tilth['kernels'], 1):.2f} us each on average"]
    for kernel in tilth["heaviest"]:
        lines.append(f"  {100 * kernel['share']:.0f} % in {kernel['name']}, {kernel['min_ns'] * 1e-3:.1f} us, "
                     f"{show(kernel['percent_of_peak'], '.1f')} % of peak")
    return lines


def problems_of(result):
    found = [result["error"]] if "error" in result else []
    found += [f["error"] for f in result.get("sides", {}).values() if "error" in f]
    if "sides" in result and result["good_rounds"] == 0:
        found.append("no round was undisturbed: no result (--threshold 0 counts them all)")
    if result.get("is_wrong"):
        found.append(f"WRONG: outputs differ by {result['difference']:.1e} of their magnitude")
    return found


def remarks_on(result):
    """What is no problem, and looks like one."""
    if result.get("difference") is None or result["difference"] <= LARGE or result["is_wrong"]:
        return []
    return [f"outputs differ by {result['difference']:.1e} of their magnitude, where inputs that are off by little move them "
            "as far"]


def compare(options, best):
    versions = {"tilth": call([options.tilth, "--version"]).split("\n")[0].split()[-1]}
    models = []
    witness = Worker("witness", options.threads)
    try:
        for name in options.names:
            shown = os.path.basename(name)
            with tempfile.TemporaryDirectory(prefix="tilth_peers_") as work:
                model = None
                try:
                    model = Model(options, name, work)
                    model.start()
                    model.check()
                    measure(options, model, witness, best)
                    models.append(model)
                except (Failure, OSError) as failure:
                    models.append({"model": shown, "error": str(failure)})
                    print(f"{shown}: {failure}", file=sys.stderr, flush=True)
                finally:
                    if model is not None:
                        model.stop()
    finally:
        witness.stop()
    results = [m if isinstance(m, dict) else summarise(m, best, options.threshold) for m in models]
    for result in results:
        for peer in PEERS:
            version = result.get("sides", {}).get(peer, {}).get("version")
            if version:
                versions[peer] = version
    return versions, results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilth", help="the binary")
    parser.add_argument("names", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpus", help="processors to pin to, as 0,2 (default: one of each of the first cores)")
    parser.add_argument("--rounds", type=int, default=7, help="undisturbed rounds wanted (7)")
    parser.add_argument("--patience", type=int, default=3, help="gives up after as many times --rounds (3)")
    parser.add_argument("--seconds", type=float, default=1, help="of each side in each round (1)")
    parser.add_argument("--starts", type=int, default=3, help="starts of each side, for the time to ready (3)")
    parser.add_argument("--threshold", type=float, default=0.85, help="of a witness's best, below which a round is disturbed")
    parser.add_argument("--batch", type=int, default=1, help="samples in each run: rewrites networks of batch 1 (batch.py)")
    parser.add_argument("--models", default="build/models", help="holds NAME/NAME.onnx (build/models)")
    parser.add_argument("--tilth-options", default="", help="more of them for tilth bench and run, in one argument")
    parser.add_argument("--json", help="everything, each round included, in a file")
    parser.add_argument("--svg", help="a bar chart in a file")
    options = parser.parse_args()
    if min(options.threads, options.rounds, options.patience, options.starts, options.batch) < 1 or not options.seconds > 0:
        parser.error("--threads, --rounds, --patience, --starts, --batch and --seconds are above 0")
    try:
        for path in filter(None, (options.json, options.svg)):
            open(path, "a").close()  # what would fail after the measuring fails before it
        cpus = cores(options.threads, options.cpus)
        os.sched_setaffinity(0, cpus)  # and with us all that we start
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the witness has threads of its own
        best = {}
        versions, results = compare(options, best)
    except (Failure, OSError, ValueError) as failure:
        sys.exit(f"compare.py: {failure}")
    report = {"record": "peers", "cpu": cpu_name(), "threads": options.threads, "batch": options.batch, "cpus": cpus,
              "versions": versions,
              "time_s": int(time.time()), "threshold": options.threshold, "witness_best": best,
              "geomean_min": geometric_mean([r["ratio_min"] for r in results if "ratio_min" in r]),
              "geomean_median": geometric_mean([r["ratio_median"] for r in results if "ratio_median" in r]), "models": results}
    print_report(report)
    sys.stdout.flush()
    for path, text in ((options.json, json.dumps(report, indent=1)), (options.svg, chart.draw(report, SIDES))):
        if path:
            with open(path, "w") as file:
                file.write(text + "\n")
    sys.exit(any(problems_of(r) for r in results))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

#!/usr/bin/env python3
"""Latency of one model in tilth and in ONNX Runtime, in turn, so that a disturbed second hits both.

    python3 -m venv VENV && VENV/bin/pip install numpy onnxruntime
    VENV/bin/python tests/peers/latency.py build/release/tilth MODEL.onnx DATA_DIR [THREADS [ROUNDS]]

DATA_DIR holds input_NAME.npy files. Prints a line a round, then the ratio of the minima.
"""
import glob, json, os, subprocess, sys, time
import numpy as np
import onnxruntime as ort


def session_of(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    start = time.perf_counter()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session, time.perf_counter() - start


def peer_round(session, feeds, seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        session.run(None, feeds)
        times.append(time.perf_counter_ns() - start)
    return min(times), sorted(times)[len(times) // 2]


def our_round(tilth, path, data, threads, seconds):
    command = [tilth, "bench", path, "--data", data, "--threads", str(threads), "--seconds", str(seconds), "--json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return json.loads(lines[-1])


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tilth, path, data = sys.argv[1:4]
    threads = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    session, ready = session_of(path, threads)
    feeds = {i.name: np.load(os.path.join(data, f"input_{i.name}.npy")) for i in session.get_inputs()}
    session.run(None, feeds)
    ours, theirs = [], []
    for k in range(rounds):
        peer, peer_median = peer_round(session, feeds, 0.7)
        record = our_round(tilth, path, data, threads, 0.7)
        theirs.append(peer)
        ours.append(record["min_ns"])
        print(f"round {k}: tilth min {record['min_ns'] / 1e6:.3f} median {record['median_ns'] / 1e6:.3f} ms "
              f"({record['percent_of_peak']:.1f} % of {record['peak_gflops']:.0f} GFLOP/s), "
              f"onnxruntime min {peer / 1e6:.3f} median {peer_median / 1e6:.3f} ms", flush=True)
    print(f"{os.path.basename(path)} on {threads} thread(s): tilth {min(ours) / 1e6:.3f} ms, "
          f"onnxruntime {ort.__version__} {min(theirs) / 1e6:.3f} ms, tilth / onnxruntime = {min(ours) / min(theirs):.3f} "
          f"(onnxruntime ready in {ready:.2f} s)")


if __name__ == "__main__":
    main()

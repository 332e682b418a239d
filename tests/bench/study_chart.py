#!/usr/bin/env python3
"""Draws what a study printed, as SVG: curves of policies over trials, or bars with intervals.

    tests/bench/study_chart.py FILE... [--title TEXT] [--least X] > picture.svg

FILE is what one of these printed: policy_study --json (a curve a policy: the geometric mean over the runs of the tasks that all
policies finished), cost_study.py --json (a panel a metric, a bar a model), transfer_study.py (a panel a receiver, a bar a way).
Nothing but Python's own library is needed."""
import argparse
import json
import math
import re
import sys
from html import escape

COLOURS = ("#0b6e4f", "#4f6d9b", "#c77d1e", "#7b4fa3", "#8d99ae")
FONT = 'font-family="Helvetica, Arial, sans-serif"'
NAMES, PANEL, GAP, ROW, BAR, TOP, BOTTOM = 310, 250, 60, 22, 12, 76, 40


def text(x, y, what, size=12, anchor="start", colour="#222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(what)}</text>')


def page(width, height, title, body):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" {FONT}>',
                      f'<rect width="{width}" height="{height}" fill="white"/>', text(12, 24, title, 15, weight="bold"), *body,
                      "</svg>"])


# --- curves of policies -------------------------------------------------------------------------------------------------


def gain_after(run, trials):
    """The best so far; 1 before anything was better."""
    return max([1.0] + [gain for at, gain in run["curve"] if at <= trials])


def curves_of(records):
    """Policy -> runs of the tasks that every policy has, with as many seeds."""
    policies = list(dict.fromkeys(r["policy"] for r in records))
    runs = {p: [r for r in records if r["policy"] == p and r["trials"] > 0] for p in policies}
    seeds = {t: [sum(r["task"] == t for r in runs[p]) for p in policies] for t in {r["task"] for r in records}}
    whole = {t for t, counts in seeds.items() if min(counts) == max(counts) > 0}
    return {p: [r for r in runs[p] if r["task"] in whole] for p in policies}, len(whole)


def mean_after(runs, trials):
    return math.exp(sum(math.log(gain_after(r, trials)) for r in runs) / len(runs))


def draw_curves(records, title):
    runs, tasks = curves_of(records)
    left, width, height = 60, 560, 280
    most = max(r["trials"] for of in runs.values() for r in of)
    top = max(mean_after(of, most) for of in runs.values())

    def place(trials, gain):
        return left + width * math.log(trials) / math.log(most), TOP + height * (1 - math.log(gain) / math.log(top * 1.1))
    body = [text(12, 46, f"best so far over the untuned program: geometric mean of {tasks} tasks", colour="#555")]
    for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        if tick <= most:
            x, _ = place(tick, 1)
            body += [f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + height}" stroke="#e3e3e3"/>',
                     text(x, TOP + height + 16, str(tick), anchor="middle", colour="#555")]
    for tick in (1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100):
        if tick <= top * 1.1 and (top > 3) == (tick >= 2 or tick == 1):
            _, y = place(1, tick)
            body += [f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#e3e3e3"/>',
                     text(left - 8, y + 4, f"{tick:g}", anchor="end", colour="#555")]
    body.append(text(left + width / 2, TOP + height + 34, "trials", anchor="middle"))
    for i, (policy, of) in enumerate(runs.items()):
        end = max(r["trials"] for r in of)
        stops = sorted({min(end, round(1.05 ** k)) for k in range(int(math.log(end) / math.log(1.05)) + 2)})
        points = [(t, mean_after(of, t)) for t in stops]
        path = " ".join(f"{'ML'[k > 0]}{x:.1f} {y:.1f}" for k, (x, y) in enumerate(place(*p) for p in points))
        x, y = place(*points[-1])
        body += [f'<path d="{path}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"/>',
                 text(x + 6, y + 4, f"{policy} {points[-1][1]:.2f}", colour=COLOURS[i])]
    return page(left + width + 130, TOP + height + 48, title, body)


# --- bars with intervals ------------------------------------------------------------------------------------------------


def draw_bars(panels, title, least):
    """panels: (name, {row: (value, low, high)})."""
    rows = list(dict.fromkeys(row for _, values in panels for row in values))
    most = max(high for _, values in panels for _, _, high in values.values())
    most = max(1.0, most) if most > 0.5 else most
    scale, end = PANEL / (most - least), TOP + ROW * len(rows)
    body = [text(NAMES - 8, TOP + ROW * i + BAR + 2, row, anchor="end") for i, row in enumerate(rows)]
    for k, (name, values) in enumerate(panels):
        left = NAMES + k * (PANEL + GAP)
        body.append(text(left, TOP - 14, name, weight="bold"))
        for i in range(5):
            x = left + PANEL * i / 4
            body += [f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{end}" stroke="#e3e3e3"/>',
                     text(x, end + 16, f"{least + (most - least) * i / 4:.3g}", 11, "middle", "#555")]
        for i, row in enumerate(rows):
            if row not in values:
                continue
            value, low, high = (max(v, least) for v in values[row])
            y, colour = TOP + ROW * i, COLOURS[0] if i == 0 else COLOURS[4]
            body += [f'<rect x="{left}" y="{y + 3}" width="{(value - least) * scale:.1f}" height="{BAR}" fill="{colour}"/>',
                     f'<line x1="{left + (low - least) * scale:.1f}" y1="{y + 3 + BAR / 2}" '
                     f'x2="{left + (high - least) * scale:.1f}" y2="{y + 3 + BAR / 2}" stroke="#111" stroke-width="1.5"/>',
                     text(left + (high - least) * scale + 4, y + BAR + 1, f"{values[row][0]:.3f}", 10)]
    return page(NAMES + len(panels) * (PANEL + GAP), end + BOTTOM, title, body)


def panels_of_models(records):
    panels = {}
    for r in records:
        panels.setdefault(r["metric"], {})[r.get("words", r["model"])] = (r["value"], r["low"], r["high"])
    return [(metric, panels[metric]) for metric in ("pairs", "pairs near", "top-1") if metric in panels]


# "mnasnet1_0.onnx: 5 kernels, gain of the full search 20.41 (geometric mean)", then a line a way.
RECEIVER = re.compile(r"(\S+?)(?:\.onnx)?: \d+ kernels, gain of the full search|(all receivers)")
WAY = re.compile(r"(\S.*?)\s+(\d\.\d{3})\s+(\d\.\d{3})\.\.\s*(\d\.\d{3})\s")


def panels_of_transfer(lines):
    panels = []
    for line in lines:
        receiver, way = RECEIVER.match(line), WAY.match(line)
        if receiver:
            panels.append((receiver[1] or receiver[2], {}))
        elif way and panels:
            panels[-1][1][way[1]] = tuple(float(way[i]) for i in (2, 3, 4))
    return [panel for panel in panels if panel[1] and panel[0] != "all receivers"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--title")
    parser.add_argument("--least", type=float, default=0.0, help="where bars begin")
    o = parser.parse_args()
    lines = [line.rstrip("\n") for path in o.files for line in open(path, encoding="utf-8")]
    records = [json.loads(line) for line in lines if line.startswith("{")]
    curves = [r for r in records if r["record"] == "curve"]
    models = [r for r in records if r["record"] == "study"]
    ways = panels_of_transfer(lines)
    if curves:
        print(draw_curves(curves, o.title or "Gain over trials"))
    elif models:
        print(draw_bars(panels_of_models(models), o.title or "Cost models", o.least))
    elif ways:
        print(draw_bars(ways, o.title or "Share of the logarithm of the full search's gain", o.least))
    else:
        sys.exit("study_chart.py: nothing that a study prints in " + " ".join(o.files))


if __name__ == "__main__":
    main()

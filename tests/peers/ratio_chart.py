#!/usr/bin/env python3
"""Draws results of compare.py side by side: how many times as fast as each peer tilth is, a panel a result, a row a network.

    python3 tests/peers/ratio_chart.py RESULT.json... > ratios.svg

RESULT.json is what `make bench-peers JSON=RESULT.json` wrote. A panel's title is the result's `title`, or its number of
threads. Times are the shortest of the rounds that count. Nothing but Python's own library is needed."""
import json
import math
import sys
from html import escape

PEERS = {"onnxruntime": ("ONNX Runtime", "#8d99ae"), "openvino": ("OpenVINO", "#0b6e4f")}
NAMES, PANEL, GAP, ROW, BAR, TOP, BOTTOM = 120, 236, 14, 22, 8, 84, 34
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def text(x, y, what, size=11, anchor="start", colour="#222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}">{escape(what)}</text>')


def bar(x, y, width, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def ratios_of(report):
    """{network: {peer: its time over tilth's}}, in the order of the result; what a side lacks is left out."""
    found = {}
    for model in report["models"]:
        times = {side: facts["min_ms"] for side, facts in model["sides"].items() if "min_ms" in facts}
        if "tilth" in times:
            found[model["model"]] = {peer: times[peer] / times["tilth"] for peer in PEERS if peer in times}
    return found


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def with_mean(ratios):
    """The same with a last row: the geometric mean of each peer's."""
    means = {peer: geometric_mean([row[peer] for row in ratios.values() if peer in row]) for peer in PEERS}
    return {**ratios, "geometric mean": {peer: mean for peer, mean in means.items() if mean}}


def draw_panel(report, ratios, networks, left, most):
    title = report.get("title") or f"{report['threads']} thread{'s' if report['threads'] > 1 else ''}"
    scale, end = PANEL / most, TOP + ROW * len(networks)
    out = [text(left, TOP - 14, title, 12, weight="bold")]
    for tick in [t / 2 for t in range(int(most * 2) + 1)]:
        x = left + tick * scale
        out += [f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{end}" stroke="#e3e3e3"/>',
                text(x, end + 14, f"{tick:g}", 10, "middle", "#555")]
    for i, network in enumerate(networks):
        y = TOP + ROW * i + (ROW - len(PEERS) * (BAR + 1)) / 2
        for peer, (_, colour) in PEERS.items():
            ratio = ratios.get(network, {}).get(peer)
            if ratio:
                out += [bar(left, y, ratio * scale, colour), text(left + ratio * scale + 3, y + BAR, f"{ratio:.2f}", 9)]
            y += BAR + 1
    x = left + scale
    return out + [f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{end}" stroke="#b3261e" stroke-dasharray="5 3"/>']


def draw(reports):
    rows = [with_mean(ratios_of(report)) for report in reports]
    networks = list(dict.fromkeys(name for row in rows for name in row if name != "geometric mean")) + ["geometric mean"]
    most = 0.4 + max([1] + [ratio for row in rows for peers in row.values() for ratio in peers.values()])
    width = NAMES + len(reports) * (PANEL + GAP) + GAP
    height = TOP + ROW * len(networks) + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" {FONT}>',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           text(12, 24, "How many times as fast as each peer (right of the dashed line: tilth is faster)", 15, weight="bold"),
           text(width - GAP, 24, "; ".join(dict.fromkeys(report["cpu"] for report in reports)), 10, "end", "#555")]
    x = 12
    for peer, (name, colour) in PEERS.items():
        label = f"{name} {', '.join(dict.fromkeys(report['versions'].get(peer, '') for report in reports))}".strip()
        out += [bar(x, 38, 12, colour), text(x + 18, 46, label)]
        x += 40 + 7 * len(label)
    for i, network in enumerate(networks):
        out.append(text(NAMES - 6, TOP + ROW * (i + 0.5) + 4, network, 11, "end",
                        weight="bold" if network == "geometric mean" else "normal"))
    for i, (report, ratios) in enumerate(zip(reports, rows)):
        out += draw_panel(report, ratios, networks, NAMES + i * (PANEL + GAP), most)
    return "\n".join(out + ["</svg>"])


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        reports = [json.load(open(path)) for path in sys.argv[1:]]
        print(draw(reports))
    except (OSError, ValueError, KeyError) as failure:
        sys.exit(f"ratio_chart.py: {failure!r}")


if __name__ == "__main__":
    main()

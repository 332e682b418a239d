"""The comparison as a picture: for each model a bar a side, its speed against the better peer's, in SVG written here."""
from html import escape

COLOURS = {"tilth": "#0b6e4f", "onnxruntime": "#8d99ae", "openvino": "#4f6d9b"}
WIDTH, LEFT, RIGHT, BAR, GAP, TOP, BOTTOM = 860, 150, 150, 16, 18, 92, 44
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def text(x, y, what, size=12, anchor="start", colour="#222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
            f'font-weight="{weight}" stroke="white" stroke-width="3" paint-order="stroke">{escape(what)}</text>')


def milliseconds(value):
    return f"{value:#.3g} ms" if value < 100 else f"{value:.0f} ms"


def groups_of(report, sides):
    """(name, [(side, speed by minima, by medians, words)]); the better peer's speed is 1."""
    groups = []
    for result in report["models"]:
        if "ratio_min" not in result:
            continue
        facts = result["sides"]
        one = {kind: facts[result[f"better_by_{kind}"]][f"{kind}_ms"] for kind in ("min", "median")}
        groups.append((result["model"], [(side, one["min"] / facts[side]["min_ms"], one["median"] / facts[side]["median_ms"],
                                          milliseconds(facts[side]["min_ms"])) for side in sides
                                         if "min_ms" in facts.get(side, {})]))
    if len(groups) > 1:
        mean = report["geomean_min"]
        groups.append(("geometric mean", [(sides[0], mean, report["geomean_median"], f"{mean:.2f}x")]))
    return groups


def step_of(most):
    return next(s for s in (0.25, 0.5, 1, 2, 5, 10, 50, 100, 1000) if most / s <= 8 or s == 1000)


def draw(report, sides):
    groups = groups_of(report, sides)
    most = 1.05 * max([1] + [speed for _, bars in groups for bar in bars for speed in bar[1:3]])
    height = TOP + sum(len(bars) * BAR + GAP for _, bars in groups) + BOTTOM
    scale = (WIDTH - LEFT - RIGHT) / most
    end = height - BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" {FONT}>',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           text(16, 28, "Speed against the better peer (longer is faster)", 17, weight="bold"),
           text(16, 48, f"{report['cpu']}, {report['threads']} thread{'s' if report['threads'] > 1 else ''}"
                        f"{', batch %d' % report['batch'] if report.get('batch', 1) > 1 else ''}; shortest run of "
                        f"{'the undisturbed' if report['threshold'] > 0 else 'all'} rounds, tick: median", 12, colour="#555")]
    x = 16
    for side in sides:
        label = f"{side} {report['versions'].get(side, '')}".strip()
        out += [f'<rect x="{x}" y="60" width="12" height="12" fill="{COLOURS[side]}"/>', text(x + 18, 70, label)]
        x += 40 + 7 * len(label)
    step = step_of(most)
    for i in range(int(most / step) + 1):
        x = LEFT + i * step * scale
        out += [f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{end}" stroke="#e3e3e3"/>',
                text(x, end + 16, f"{i * step:g}", anchor="middle", colour="#555")]
    x = LEFT + scale
    over = [f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{end}" stroke="#b3261e" stroke-dasharray="5 3"/>',
            text(x, end + 32, "better peer", anchor="middle", colour="#b3261e")]
    y = TOP
    for name, bars in groups:
        out.append(text(LEFT - 10, y + len(bars) * BAR / 2 + 4, name, 13, "end"))
        for side, speed, median, words in bars:
            out += [f'<rect x="{LEFT}" y="{y}" width="{speed * scale:.1f}" height="{BAR - 2}" fill="{COLOURS[side]}"/>',
                    f'<line x1="{LEFT + median * scale:.1f}" y1="{y - 1}" x2="{LEFT + median * scale:.1f}" y2="{y + BAR - 1}" '
                    'stroke="#111" stroke-width="2"/>']
            over.append(text(LEFT + max(speed, median) * scale + 8, y + BAR - 5, words))
            y += BAR
        y += GAP
    return "\n".join(out + over + ["</svg>"])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commanded against measured stiffness of several commanded policies in one figure.

    silc eval knob --policy command.onnx --json silc.json
    silc eval knob --policy softmimic.onnx --robot g1_friction/robot.yaml --json softmimic.json
    python3 tools/peer/knob_figure.py silc.json softmimic.json --labels "silc (a bound),SoftMimic (a target)" --out knob.svg

Panels are the left hand against the base along x, y and z: points are measured, lines are K_s, the dashed line is what was
commanded. Needs nothing but Python.
"""

import argparse
import json
import math
import pathlib
import sys

COLORS = ("#0b6bcb", "#d1570a", "#2e7d32", "#7b3fa0")
POINT = "left hand against the base"
AXES = "xyz"
MODEL = ("K_s with weight", "K_s with gravity")  # the second in files written before its name changed
WIDTH, HEIGHT = 300, 300  # of a panel, without what stands around it
LEFT, TOP, GAP, BOTTOM = 64, 34, 36, 84


def read_sweeps(path, point):
    """For each policy of a file of `silc eval knob --json`: {axis: {label: [(commanded, stiffness), ...]}} [N/m]."""
    try:
        results = [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}")
    sweeps = []
    for result in results:
        sweep = {axis: {} for axis in AXES}
        for curve in result.get("curves", []):
            place, _, axis = curve["panel"].rpartition(", ")
            if place == point and axis in sweep:
                pairs = zip(curve["x"], curve["y"])
                sweep[axis][curve["label"]] = [(x, y) for x, y in pairs if isinstance(y, (int, float)) and y > 0]
        if not any(sweep[axis].get("measured") for axis in AXES):
            sys.exit(f"{path}: has no sweep of the {point}; silc eval knob --json writes one")
        sweeps.append(sweep)
    if not sweeps:
        sys.exit(f"{path}: is empty")
    return sweeps


def decades(values):
    """The powers of ten, and twice and five times them, that enclose all values."""
    low, high = min(values), max(values)
    ticks = [m * 10.0**e for e in range(-3, 8) for m in (1, 2, 5)]
    first = max(t for t in ticks if t <= low)
    last = min(t for t in ticks if t >= high)
    return [t for t in ticks if first <= t <= last]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Panel:
    """One set of logarithmic axes, at (x0, y0)."""

    def __init__(self, x0, y0, x_ticks, y_ticks):
        self.x0, self.y0, self.x_ticks, self.y_ticks = x0, y0, x_ticks, y_ticks

    @staticmethod
    def share(value, ticks):
        return math.log(value / ticks[0]) / math.log(ticks[-1] / ticks[0])

    def at(self, x, y):
        return self.x0 + WIDTH * self.share(x, self.x_ticks), self.y0 + HEIGHT * (1 - self.share(y, self.y_ticks))

    def frame(self, title, named):
        out = [
            f'<rect x="{self.x0}" y="{self.y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>',
            f'<text x="{self.x0 + WIDTH / 2}" y="{self.y0 - 10}" text-anchor="middle">{escape(title)}</text>',
        ]
        for tick in self.x_ticks:
            x, _ = self.at(tick, self.y_ticks[0])
            out.append(f'<line x1="{x:.1f}" y1="{self.y0}" x2="{x:.1f}" y2="{self.y0 + HEIGHT}" stroke="#ddd"/>')
            out.append(f'<text x="{x:.1f}" y="{self.y0 + HEIGHT + 16}" text-anchor="middle">{tick:g}</text>')
        for tick in self.y_ticks:
            _, y = self.at(self.x_ticks[0], tick)
            out.append(f'<line x1="{self.x0}" y1="{y:.1f}" x2="{self.x0 + WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
            if named:
                out.append(f'<text x="{self.x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        return out

    def line(self, points, color, dashes=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*p) for p in points))
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"{dashed}/>'

    def dots(self, points, color):
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>' for x, y in (self.at(*p) for p in points)]


def figure(sweeps, labels, point=POINT):
    """The figure as SVG text."""
    everything = [p for s in sweeps for axis in AXES for curve in s[axis].values() for p in curve]
    x_ticks = decades([p[0] for p in everything])
    y_ticks = decades([p[1] for p in everything] + [p[0] for p in everything])
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 16, TOP + HEIGHT + BOTTOM
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for k, axis in enumerate(AXES):
        panel = Panel(LEFT + k * (WIDTH + GAP), TOP, x_ticks, y_ticks)
        out += panel.frame(f"{point}, {axis}", k == 0)
        out.append(panel.line([(x_ticks[0], x_ticks[0]), (x_ticks[-1], x_ticks[-1])], "#444", "5 4"))
        for sweep, color in zip(sweeps, COLORS):
            model = next((sweep[axis][label] for label in MODEL if sweep[axis].get(label)), None)
            if model:
                out.append(panel.line(model, color))
            out += panel.dots(sweep[axis].get("measured", []), color)
    middle, under = LEFT + (3 * WIDTH + 2 * GAP) / 2, TOP + HEIGHT + 38
    out.append(f'<text x="{middle}" y="{under}" text-anchor="middle">commanded [N/m]</text>')
    turn = f"rotate(-90 16 {TOP + HEIGHT / 2})"
    out.append(f'<text x="16" y="{TOP + HEIGHT / 2}" text-anchor="middle" transform="{turn}">felt [N/m]</text>')
    x = LEFT
    for label, color in zip(labels, COLORS):
        out.append(f'<circle cx="{x + 5}" cy="{under + 22}" r="4" fill="{color}"/>')
        out.append(f'<line x1="{x + 14}" y1="{under + 22}" x2="{x + 36}" y2="{under + 22}" stroke="{color}" stroke-width="1.6"/>')
        text = f"{label}: measured, K_s"
        out.append(f'<text x="{x + 42}" y="{under + 26}">{escape(text)}</text>')
        x += 60 + 7 * len(text)
    out.append(f'<line x1="{x}" y1="{under + 22}" x2="{x + 26}" y2="{under + 22}" stroke="#444" stroke-dasharray="5 4"/>')
    out.append(f'<text x="{x + 32}" y="{under + 26}">as commanded</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", help="files of silc eval knob --json")
    parser.add_argument("--labels", help="names in the figure, with commas between them [the files']")
    parser.add_argument("--out", default="knob.svg", help="SVG file to write [%(default)s]")
    args = parser.parse_args()
    found = [(pathlib.Path(path).stem, sweep) for path in args.results for sweep in read_sweeps(path, POINT)]
    labels = args.labels.split(",") if args.labels else [name for name, _ in found]
    if len(found) > len(COLORS):
        sys.exit(f"{len(found)} policies: at most {len(COLORS)} can be told apart")
    if len(labels) != len(found):
        sys.exit(f"--labels: {len(labels)} names for {len(found)} policies")
    text = figure([sweep for _, sweep in found], labels)
    pathlib.Path(args.out).write_text(text, encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()

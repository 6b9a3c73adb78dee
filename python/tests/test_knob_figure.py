# SPDX-License-Identifier: Apache-2.0
"""tools/peer/knob_figure.py: several policies' commanded against measured stiffness in one figure."""

import json
import math
import re
import subprocess
import sys
import xml.etree.ElementTree

from conftest import ROOT

PROGRAM = str(ROOT / "tools/peer/knob_figure.py")


def result(ratio):
    """A line of `silc eval knob --json`: what is measured is `ratio` of what is commanded."""
    commanded = [10.0, 100.0, 1000.0]
    curves = []
    for axis in "xyz":
        curve = {"panel": f"left hand against the base, {axis}", "x": commanded}
        curves.append({**curve, "label": "commanded", "y": commanded})
        curves.append({**curve, "label": "measured", "y": [ratio * c for c in commanded[:2]] + [None]})
        curves.append({**curve, "label": "K_s with weight", "y": [ratio * c for c in commanded]})
    return json.dumps({"experiment": "knob", "curves": curves}) + "\n"


def run(*arguments):
    return subprocess.run([sys.executable, PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def test_two_policies_stand_in_one_figure(tmp_path):
    for name, ratio in (("ours", 1.0), ("theirs", 0.5)):
        (tmp_path / f"{name}.json").write_text(result(ratio))
    out = tmp_path / "knob.svg"
    done = run(tmp_path / "ours.json", tmp_path / "theirs.json", "--labels", "a bound,a < target", "--out", out)
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    xml.etree.ElementTree.fromstring(text)
    assert "a bound: measured, K_s" in text and "a &lt; target: measured, K_s" in text
    # two measured values along each of three axes, and one in the legend; what has no value has no point
    by_color = {}
    for x, y, color in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4" fill="(#\w+)"', text):
        by_color.setdefault(color, []).append((float(x), float(y)))
    assert sorted(map(len, by_color.values())) == [7, 7]
    ours, theirs = by_color.values()
    # at the same command half the stiffness is lower by log 2 of the axis, which goes from 5 to 1000
    for a, b in zip(ours[:2], theirs[:2]):
        assert a[0] == b[0]
        assert abs((b[1] - a[1]) - 300 * math.log(2) / math.log(1000 / 5)) < 0.2


def test_what_is_no_sweep_is_named(tmp_path):
    (tmp_path / "walk.json").write_text('{"experiment": "walk", "curves": []}\n')
    for arguments, message in (
        ([tmp_path / "none.json"], "none.json"),
        ([tmp_path / "walk.json"], "walk.json: has no sweep of the left hand"),
    ):
        done = run(*arguments, "--out", tmp_path / "out.svg")
        assert done.returncode == 1 and message in done.stderr
    (tmp_path / "a.json").write_text(result(1.0))
    done = run(tmp_path / "a.json", "--labels", "a,b", "--out", tmp_path / "out.svg")
    assert done.returncode == 1 and "--labels: 2 names for 1 policies" in done.stderr
    assert not (tmp_path / "out.svg").exists()

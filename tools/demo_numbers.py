#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers that ./dev demo prints, from the JSON that silc wrote.

    tools/demo_numbers.py observe|shake|stand|budget FILE
    tools/demo_numbers.py check SILC      whether that program still measures what is printed here
"""
import json
import os
import subprocess
import sys

# metrics of `silc eval`: name, what the demo calls it ({label}: as silc does), unit
ROWS = {
    "stand": [("survival", "robots that stand through 20 s of pushes", "%"),
              ("disc_median", "σ on K_s, median", ""),
              ("disc_within", "moments within the budget, {label}", "%")],
    "budget": [("random_direction_violations_one_step", "random directions of K₁ over it", "%"),
               ("worst_static_p99", "K_s, worst direction, p99 [× budget]", ""),
               ("disc_violations", "moments with K_s over it, σ > 1", "%")],
}


def line(what, value):
    print(f"   {what:<55} {value}")


def number(value, unit=""):
    """Three digits; silc writes null for what does not exist and "inf" for the infinite."""
    if value is None:
        return "none"
    if value == "inf":
        return "∞"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def gravity(result):
    """What the budget does with sensed gravity: held or followed."""
    return result["budget"]["channels"]["gravity"]


def observe(result):
    summary = result["summary"]
    hand = next(point for point in summary["points"] if point["name"] == "left hand in the world")
    met = [row for row in summary["contacts"] if row["contact"] != "all"]
    judged = sum(row["moments"] * row["judged_share"] for row in met)
    over = sum(row["moments"] * row["condition_violations"] for row in met)
    line("left hand, pushed along z, as it is felt", number(hand["one_axis"][2], "N/m"))
    line("spectral radius of the action loop; unstable from 1 on",
         number(summary["loop_radius_median"]))
    line("moments that could be judged", f"{round(judged)} of {len(result['moments'])}")
    name = result["budget"]["name"]
    line(f"moments over the budget '{name}', gravity {gravity(result)}", f"{round(over)}")


def shake(result):
    model = {row["name"]: row["one_axis"] for row in result["shake"]["model"]}
    measured = result["shake"]["measured"][0]
    for label, values in (("the servo's springs alone", model["PD alone"]),
                          ("one-step K₁", model["one-step K₁"]),
                          ("static K_s with weight", model["K_s with weight"]),
                          (f"measured at ±{measured['force']:g} N", measured["one_axis"])):
        line(f"left hand, x, y, z: {label}",
             "".join(f"{number(value):>6}" for value in values) + " N/m")


def table(results, rows):
    names = [os.path.splitext(os.path.basename(result["policy"]))[0] for result in results]
    metrics = [{metric["name"]: metric["value"] for metric in r["metrics"]} for r in results]

    def row(label, cells):
        line(label, "  ".join(f"{cell:>{len(name)}}" for cell, name in zip(cells, names)))

    row(f"budget '{results[0]['budget']['name']}', gravity {gravity(results[0])}", names)
    labels = {metric["name"]: metric["label"] for metric in results[0]["metrics"]}
    for name, text, unit in rows:
        row(text.format(label=labels[name]), [number(values[name], unit) for values in metrics])


def check(silc):
    for experiment, rows in ROWS.items():
        text = subprocess.run([silc, "eval", experiment, "--help"], check=True,
                              capture_output=True, encoding="utf-8").stdout
        measured = {words[0] for words in map(str.split, text.splitlines()) if words}
        missing = [name for name, _, _ in rows if name not in measured]
        if missing:
            sys.exit(f"silc eval {experiment} does not measure {', '.join(missing)}")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("observe", "shake", "check", *ROWS):
        sys.exit(__doc__)
    kind, path = sys.argv[1:]
    if kind == "check":
        return check(path)
    with open(path, encoding="utf-8") as file:
        results = [json.loads(text) for text in (file if kind in ROWS else [file.read()])]
    if kind == "observe":
        observe(results[0])
    elif kind == "shake":
        shake(results[0])
    else:
        table(results, ROWS[kind])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stiffness that `silc deploy` observed while it ran, against what `silc observe --states LOG --json FILE` makes of its log.

At every control step that was observed on-line the two must agree on whether there is a static stiffness, and, where
there is one, on σ and the diagonal of K_s. Differences are relative to the number, or to 1 where that is smaller; the
file has seven digits, which is 5e-7. The radius of the action loop is estimated on-line and exact afterwards: the two must
lie on the same side of 1. Exit 0: they agree; 1: they do not, or nothing was observed.
"""
import argparse
import glob
import json
import os
import sys

import numpy as np


def read_log(folder):
    """The columns of control steps, all chunks one after the other."""
    names = ("sequence", "sigma", "K_s_diag", "rho", "observe_s")
    columns = {name: [] for name in names}
    for chunk in sorted(glob.glob(os.path.join(folder, "chunk_*.npz"))):
        with np.load(chunk) as arrays:
            if "sequence" in arrays:
                for name in names:
                    columns[name].append(arrays[name])
    if not columns["sequence"]:
        sys.exit(f"{folder}: holds no control steps")
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def difference(a, b):
    return np.abs(a - b) / np.maximum(1.0, np.abs(b))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", help="folder written by silc deploy --log")
    parser.add_argument("observed", help="file written by silc observe --json")
    parser.add_argument("--tolerance", type=float, default=1e-6)
    args = parser.parse_args()

    log = read_log(args.log)
    with open(args.observed, encoding="utf-8") as file:
        moments = json.load(file)["moments"]
    steps = len(log["sequence"])
    if len(moments) != steps:
        sys.exit(f"{args.log} has {steps} control steps, {args.observed} has {len(moments)} moments")

    observed = ~np.isnan(log["observe_s"])
    live = observed & ~np.isnan(log["sigma"])
    again = observed & np.array([moment["quasi_static"]["status"] == "ok" for moment in moments])
    radius = np.array([moment["loop_radius"] for moment in moments], dtype=float)
    other_side = observed & ((radius < 1) != (log["rho"] < 1))
    both = live & again
    worst_sigma = worst_diagonal = 0.0
    for i in np.flatnonzero(both):
        sigma = moments[i]["quasi_static"]["sigma"]
        diagonal = np.array(moments[i]["K_s"], dtype=float).diagonal()
        worst_sigma = max(worst_sigma, difference(sigma, log["sigma"][i]))
        worst_diagonal = max(worst_diagonal, difference(diagonal, log["K_s_diag"][i]).max())
    print(f"on-line against silc observe: {steps} control steps, {observed.sum()} observed; a static stiffness in both at "
          f"{both.sum()}, in neither at {(observed & ~live & ~again).sum()}, in one alone at {(live != again).sum()}")
    print(f"  largest difference: sigma {worst_sigma:.2g}, diagonal of K_s {worst_diagonal:.2g}; radius of the action "
          f"loop on another side of 1 at {other_side.sum()}")
    if not observed.any():
        sys.exit("nothing was observed on-line")
    if (live != again).any() or other_side.any():
        sys.exit("the two do not agree on where there is a static stiffness")
    if not (worst_sigma <= args.tolerance and worst_diagonal <= args.tolerance):  # a NaN is no agreement
        sys.exit(f"the two differ by more than {args.tolerance:g}")


if __name__ == "__main__":
    main()

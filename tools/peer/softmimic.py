#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SoftMimic's released standing policy as an ONNX file that silc takes, with its stiffness as a command.

    git clone https://github.com/robodreamer/softmimic
    python3 tools/peer/softmimic.py softmimic stand.onnx --robot g1_friction
    silc export stand.onnx softmimic.onnx --mode tools/peer/softmimic_budget.yaml
    silc eval knob --policy softmimic.onnx --robot g1_friction/robot.yaml

Needs PyTorch and silc's Python package (pip install . in this repository). Nothing of theirs is part of this project.
"""

import argparse
import pathlib
import re
import shutil
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2]
POLICY = "pretrained_models/2025-09-26_03-54-58_StaticStand-SoftMimic/model_48000.jit"


def actor_of(path):
    """The MLP inside a scripted policy: its linear layers with ELU between them."""
    import torch
    from torch import nn

    module = torch.jit.load(str(path), map_location="cpu")
    state = {name: value for name, value in module.state_dict().items() if name.startswith("actor.")}
    places = sorted({int(name.split(".")[1]) for name in state})
    layers = []
    for place in places:
        weight, bias = state[f"actor.{place}.weight"], state[f"actor.{place}.bias"]
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data.copy_(weight)
        layer.bias.data.copy_(bias)
        layers += [layer, nn.ELU()]
    actor = nn.Sequential(*layers[:-1])
    # what was read is what they run
    x = torch.randn(64, layers[0].in_features)
    difference = (actor(x) - module(x)).abs().max().item()
    if not difference < 1e-5:
        sys.exit(f"{path}: no plain MLP with ELU: its answers differ by {difference:.3g}")
    return actor


def write_robot(folder):
    """This project's G1 with the joints of their simulator: their policy shakes where joints have no friction."""
    shutil.copytree(FOLDER / "robots/g1", folder)
    model = pathlib.Path(folder) / "g1.xml"
    joint = '<joint damping="0.05" frictionloss="0.2" armature="0.01"'  # [N·m·s/rad], [N·m], [kg·m²]
    text, count = re.subn(r'<joint armature="[0-9.]+"', joint, model.read_text())
    if count == 0:
        sys.exit(f"{model}: no armature to change")
    model.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", help="folder of their repository")
    parser.add_argument("out", help="ONNX file to write")
    parser.add_argument("--robot", help="folder to write: this project's G1 with joint friction as theirs has")
    args = parser.parse_args()
    path = pathlib.Path(args.clone) / POLICY
    if not path.exists():
        sys.exit(f"{path}: no such file; is {args.clone} a clone of robodreamer/softmimic?")
    import silc

    silc.export(
        actor_of(path),
        str(FOLDER / "layouts/softmimic.yaml"),
        args.out,
        notes={"silc_method": "softmimic", "silc_task": "stand"},
    )
    if args.robot:
        write_robot(args.robot)
    print(f"{args.out}: now give it its budget: silc export {args.out} OUT.onnx --mode tools/peer/softmimic_budget.yaml")


if __name__ == "__main__":
    main()

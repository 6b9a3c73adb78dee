# SPDX-License-Identifier: Apache-2.0
"""The budget as a command (docs/command.md): numbers drawn per sample, and how a policy sees them.

A command u (B, 3) has the natural logarithms of com [N/m], hands [N/m] and null_space [N·m/rad] or
[1], in double (B1). Those without a range are not read.
"""

from __future__ import annotations

import math
from typing import Dict, Mapping, Optional

import torch
from torch import Tensor

from ..budget import COMMANDED, Budget, BudgetCommand, CommandInput


def draw_commands(
    command: BudgetCommand, count: int, *, generator: Optional[torch.Generator] = None, device=None
) -> Tensor:
    """(count, 3) u, each number uniform in the logarithm over its range (B4); 0 where it has none."""
    u = torch.rand(count, len(COMMANDED), generator=generator, dtype=torch.float64, device=device)
    for i, name in enumerate(COMMANDED):
        low, high = (math.log(k) for k in getattr(command, name) or (1.0, 1.0))
        u[:, i] = low + (high - low) * u[:, i]
    return u


def command_inputs(command: BudgetCommand, first: int) -> Dict[str, CommandInput]:
    """The places of the terms of (B3), side by side from number `first` of the observation on.

    Offset and scale map a range to [−1, 1]; a range of one number is shown as 0.
    """
    found = {}
    for name, (low, high) in command.ranges().items():
        half = 0.5 * math.log(high / low)
        found[name] = CommandInput(
            first + len(found), 0.5 * math.log(low * high), 1 / half if half > 0 else 1.0
        )
    return found


def command_terms(inputs: Mapping[str, CommandInput], u: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """(B, terms) what a policy sees of u (B, 3), in the order of the inputs (B3)."""
    places = sorted(inputs.items(), key=lambda item: item[1].input)
    terms = [(u[:, COMMANDED.index(name)] - at.offset) * at.scale for name, at in places]
    return torch.stack(terms, 1).to(dtype)


def commands_in(inputs: Mapping[str, CommandInput], observations: Tensor) -> Tensor:
    """(B, 3) u that each observation tells its policy, in double; 0 where it is not told."""
    u = []
    for name in COMMANDED:
        if name in inputs:
            at = inputs[name]
            u.append(observations[:, at.input].to(torch.float64) / at.scale + at.offset)
        else:
            u.append(torch.zeros_like(observations[:, 0], dtype=torch.float64))
    return torch.stack(u, 1)


def check_inputs(inputs: Mapping[str, CommandInput], budget: Optional[Budget], width: int) -> None:
    """Raises ValueError where what the observation tells and the budget's ranges do not fit."""
    ranges = {} if budget is None or budget.command is None else budget.command.ranges()
    for name, at in inputs.items():
        if name not in ranges:
            known = f"only for {', '.join(ranges)}" if ranges else "nor for anything"
            raise ValueError(f"command_inputs: '{name}': the budget has no range for it, {known}")
        if not 0 <= at.input < width:
            raise ValueError(f"command_inputs: {name}: input {at.input} is outside [0, {width})")
        if at.scale == 0 or not (math.isfinite(at.scale) and math.isfinite(at.offset)):
            raise ValueError(f"command_inputs: {name}: scale {at.scale}, offset {at.offset}: hide the command")
    missing = [name for name in ranges if name not in inputs]
    if missing:
        raise ValueError(f"command_inputs: none for {', '.join(missing)}, which the budget has a range for")

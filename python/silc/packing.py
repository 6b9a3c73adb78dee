# SPDX-License-Identifier: Apache-2.0
"""Contacts as one row per sample, as a trainer's storage keeps them; what a penalty needs of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

import torch
from torch import Tensor

from .budget import Budget, CommandInput
from .torch import Channels, Contacts, PenaltyOptions, StiffnessPenalty

GROUP = "silc"

PER_JOINT = 3 + 6 + 6 + 3
"""numbers of a row of pack_contacts() for each joint: com, hands, closing rows, gravity"""


@dataclass
class PenaltySetup:
    """What a penalty needs to know of an environment."""

    channels: Channels
    kp: Tensor
    """(n) [N·m/rad]"""
    alpha: Tensor
    """(n) [rad] action scale"""
    kd: Optional[Tensor] = None
    """(n) [N·m·s/rad]; the penalty's ``frequencies`` alone need it"""
    period: Optional[float] = None
    """[s] from one action to the next; likewise"""
    command_inputs: Optional[Mapping[str, CommandInput]] = None
    """where the actor's observation tells its budget; a budget with ranges alone needs them"""

    def penalty(self, budget, options: PenaltyOptions) -> StiffnessPenalty:
        """The penalty of this environment. budget: a Budget, a name or file, or a dict of its fields."""
        if isinstance(budget, str):
            budget = Budget.read(budget)
        elif isinstance(budget, dict):
            budget = Budget(**budget)
        if budget is not None and budget.command is not None and self.command_inputs is None:
            raise ValueError("budget: has ranges, but the environment's setup has no command_inputs")
        return StiffnessPenalty(
            budget,
            self.channels,
            self.kp,
            self.alpha,
            options,
            kd=self.kd,
            period=self.period,
            command_inputs=self.command_inputs,
        )


def pack_contacts(contacts: Contacts) -> Tensor:
    """One row per sample, (B, 1 + PER_JOINT n): mode, com, hands, closing rows, gravity."""
    return torch.cat([t.reshape(t.shape[0], -1).to(torch.float32) for t in contacts], 1)


def unpack_contacts(packed: Tensor, joints: int) -> Contacts:
    """The inverse of pack_contacts()."""
    expected = 1 + PER_JOINT * joints
    if packed.dim() != 2 or packed.shape[1] != expected:
        raise ValueError(f"group '{GROUP}': shape {tuple(packed.shape)}, expected (B, {expected})")
    B = packed.shape[0]
    mode, com, hands, closing, gravity = packed.split(
        [1, 3 * joints, 6 * joints, 6 * joints, 3 * joints], 1
    )
    return Contacts(
        mode.reshape(B).round().to(torch.int64),
        com.reshape(B, 3, joints),
        hands.reshape(B, 2, 3, joints),
        closing.reshape(B, 6, joints),
        gravity.reshape(B, 3, joints),
    )

# SPDX-License-Identifier: Apache-2.0
"""How stiff a robot may be, as a person writes it down."""

from __future__ import annotations

import difflib
import math
from dataclasses import asdict, dataclass
from typing import Optional, Sequence, Tuple

Vector3 = Tuple[float, float, float]

WEIGHTS = ("identity", "gains")
CHANNELS = ("followed", "held")
CONDITIONS = ("one-sided", "two-sided", "disc")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raises ValueError that names the setting, the value and the nearest choice."""
    if value in choices:
        return
    near = difflib.get_close_matches(str(value), choices, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise ValueError(f"{name}: '{value}' is not one of {', '.join(choices)}{hint}")


def _vector3(name: str, value) -> Optional[Vector3]:
    if value is None:
        return None
    if isinstance(value, (int, float)):
        value = (value, value, value)
    value = tuple(float(v) for v in value)
    if len(value) != 3:
        raise ValueError(f"{name}: {len(value)} numbers, expected 3 (x, y, z of the world)")
    return value


@dataclass(frozen=True)
class Budget:
    """A stiffness budget (S6): the points that have a bound, and how they are judged.

    A number in the place of three holds for all axes. ``Budget.read("compliance")`` takes the
    names and files that ``silc --mode`` takes.
    """

    com: Optional[Vector3] = None
    """[N/m] centre of mass against the ground, along x, y, z of the world"""
    left_hand: Optional[Vector3] = None
    """[N/m] against the base"""
    right_hand: Optional[Vector3] = None
    """[N/m] against the base"""
    hand_floor: Vector3 = (0.0, 0.0, 0.0)
    """[1] the least share of its stiffness that a named hand must keep, per axis"""
    weight: str = "identity"
    """what measures the null space: identity (N·m/rad) or gains (a share of each joint's kp)"""
    null_stiffness: float = 50.0
    """[N·m/rad] or [1], see weight"""
    torque: str = "followed"
    """sensed torque: followed (it moves with the joints) or held (not judged)"""
    gravity: str = "followed"
    """sensed direction of gravity: followed or held"""
    condition: str = "disc"
    """disc (S7c), two-sided (S7b) or one-sided (S7a)"""

    def __post_init__(self) -> None:
        for name in ("com", "left_hand", "right_hand", "hand_floor"):
            object.__setattr__(self, name, _vector3(name, getattr(self, name)))
        if self.hand_floor is None:
            object.__setattr__(self, "hand_floor", (0.0, 0.0, 0.0))
        check_choice("weight", self.weight, WEIGHTS)
        check_choice("torque", self.torque, CHANNELS)
        check_choice("gravity", self.gravity, CHANNELS)
        check_choice("condition", self.condition, CONDITIONS)
        for name in ("com", "left_hand", "right_hand"):
            value = getattr(self, name)
            if value is not None and not all(math.isfinite(v) and v > 0 for v in value):
                raise ValueError(f"{name}: {value} N/m: must be finite and positive")
        if not (math.isfinite(self.null_stiffness) and self.null_stiffness > 0):
            raise ValueError(f"null_stiffness: {self.null_stiffness}: must be finite and positive")
        if not all(0 <= f < 1 for f in self.hand_floor):
            raise ValueError(f"hand_floor: {self.hand_floor}: must lie in [0, 1)")
        if self.has_floor:
            if self.left_hand is None and self.right_hand is None:
                raise ValueError("hand_floor: names no hand; give left_hand or right_hand")
            if self.condition != "disc":
                raise ValueError(f"hand_floor: only condition 'disc' has a band, not '{self.condition}'")

    @property
    def has_floor(self) -> bool:
        return any(f > 0 for f in self.hand_floor)

    @staticmethod
    def read(mode: str) -> "Budget":
        """The budget that ``silc --mode`` takes: a name, a file, with ``,key=value`` changes."""
        from . import _core
        from .files import find_budget

        return Budget(**_core.read_budget(find_budget(mode)))

    def yaml(self) -> str:
        """The budget as a file of configs/budgets says it."""
        from . import _core

        return _core.budget_yaml(asdict(self))

# SPDX-License-Identifier: Apache-2.0
"""How stiff a robot may be, as a person writes it down."""

from __future__ import annotations

import difflib
import math
from dataclasses import InitVar, asdict, dataclass, replace
from typing import Dict, NamedTuple, Optional, Sequence, Tuple

Vector3 = Tuple[float, float, float]
Range = Tuple[float, float]

COMMANDED = ("com", "hands", "null_space")
"""the numbers of a command, in the order of u (B1)"""
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
class BudgetCommand:
    """The numbers of a budget that a policy is told at run time, (B1) of docs/command.md.

    Each is None, or the range (low, high) that the policy is trained for.
    """

    com: Optional[Range] = None
    """[N/m] centre of mass along x and y of the world"""
    hands: Optional[Range] = None
    """[N/m] both hands along x, y, z"""
    null_space: Optional[Range] = None
    """[N·m/rad] or [1], as the budget's weight"""

    def __post_init__(self) -> None:
        for name, value in self.ranges().items():
            try:
                low, high = value = tuple(float(v) for v in value)
            except (TypeError, ValueError):
                raise ValueError(f"command: {name}: {value}, expected 2 numbers (low, high)") from None
            if not (0 < low and math.isfinite(high)):
                raise ValueError(f"command: {name}: {value}: a range must be finite and above 0")
            if low > high:
                raise ValueError(f"command: {name}: {value}: the range is upside down")
            object.__setattr__(self, name, value)

    def ranges(self) -> Dict[str, Range]:
        """The ranges that there are, by name."""
        return {name: getattr(self, name) for name in COMMANDED if getattr(self, name) is not None}

    def middle(self) -> Dict[str, float]:
        """The middle of the logarithms (B3) of every range, to three digits where it is inside."""
        found = {}
        for name, (low, high) in self.ranges().items():
            exact = math.sqrt(low * high)
            rounded = float(f"{exact:.3g}")
            found[name] = rounded if low <= rounded <= high else exact
        return found


class CommandInput(NamedTuple):
    """Where an observation tells a number of the budget: u = offset + o/scale (B3)."""

    input: int
    """of the observation, in its newest frame"""
    offset: float = 0.0
    """ln of [N/m], [N·m/rad] or [1]"""
    scale: float = 1.0
    """[1]"""


@dataclass(frozen=True)
class Budget:
    """A stiffness budget (S6): the points that have a bound, and how they are judged.

    A number in the place of three holds for all axes. ``Budget.read("compliance")`` takes the
    names and files that ``silc --mode`` takes.

    With ``command`` it has ranges instead of numbers, for policies that are told their budget. Such
    a budget is for training: ``at()`` makes one of it that a policy can be judged by.
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
    null_space: float = 50.0
    """[N·m/rad] or [1], see weight"""
    torque: str = "followed"
    """sensed torque: followed (it moves with the joints) or held (not judged)"""
    gravity: str = "followed"
    """sensed direction of gravity: followed or held"""
    condition: str = "disc"
    """disc (S7c), two-sided (S7b) or one-sided (S7a)"""
    command: Optional[BudgetCommand] = None
    """what is commanded; the numbers above then stand at the middle of their ranges"""
    null_stiffness: InitVar[Optional[float]] = None
    """what null_space was called once"""

    def __post_init__(self, null_stiffness: Optional[float]) -> None:
        if null_stiffness is not None:
            raise ValueError("null_stiffness: is called null_space, as in files and on the command line")
        self._put_middle()
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
        if not (math.isfinite(self.null_space) and self.null_space > 0):
            raise ValueError(f"null_space: {self.null_space}: must be finite and positive")
        if not all(0 <= f < 1 for f in self.hand_floor):
            raise ValueError(f"hand_floor: {self.hand_floor}: must lie in [0, 1)")
        if self.has_floor:
            if self.left_hand is None and self.right_hand is None:
                raise ValueError("hand_floor: names no hand; give left_hand or right_hand")
            if self.condition != "disc":
                raise ValueError(f"hand_floor: only condition 'disc' has a band, not '{self.condition}'")

    def _put_middle(self) -> None:
        command = self.command
        if isinstance(command, dict):
            for name in command:
                check_choice("command", name, COMMANDED)
            command = BudgetCommand(**command)
        if not (command is None or isinstance(command, BudgetCommand)):
            raise ValueError(f"command: {command}: expected a BudgetCommand, or a dict of its fields")
        if command is None or not command.ranges():
            object.__setattr__(self, "command", None)
            return
        object.__setattr__(self, "command", command)
        if command.com is not None and self.com is None:
            raise ValueError("command: com: has a range but no number along z: give com")
        middle = {name: math.sqrt(low * high) for name, (low, high) in command.ranges().items()}
        for name, value in self._fields_at(middle).items():
            object.__setattr__(self, name, value)

    def _fields_at(self, numbers: Dict[str, float]) -> dict:
        # the fields that commanded numbers stand for; twin of BudgetAt() in the C++ core       (B2)
        at: dict = {}
        if "com" in numbers:
            at["com"] = (numbers["com"], numbers["com"], _vector3("com", self.com)[2])
        if "hands" in numbers:
            at["left_hand"] = at["right_hand"] = (numbers["hands"],) * 3
        if "null_space" in numbers:
            at["null_space"] = numbers["null_space"]
        return at

    def at(
        self,
        *,
        com: Optional[float] = None,
        hands: Optional[float] = None,
        null_space: Optional[float] = None,
    ) -> "Budget":
        """The plain budget of one command (B2).

        Args:
            com: [N/m] centre of mass along x and y.
            hands: [N/m] both hands, every axis.
            null_space: [N·m/rad] or [1], as ``weight``.

        A number left out stands at the middle of its range. ValueError for a number outside its
        range, and for one that the budget has no range for.
        """
        if self.command is None:
            raise ValueError("budget: has no ranges; its numbers are what it is")
        ranges, numbers = self.command.ranges(), self.command.middle()
        for name, value in (("com", com), ("hands", hands), ("null_space", null_space)):
            if value is None:
                continue
            if name not in ranges:
                raise ValueError(f"{name}: is not commanded, only {', '.join(ranges)}")
            low, high = ranges[name]
            if not low <= value <= high:
                raise ValueError(f"{name}: {value:g} is outside [{low:g}, {high:g}]")
            numbers[name] = float(value)
        return replace(self, command=None, **self._fields_at(numbers))

    def numbers_of(self, plain: "Budget") -> Dict[str, float]:
        """The numbers of a plain budget, as a command of this one that has ranges.

        ValueError where the plain one says more than a command can: one number for x and y of the
        centre of mass, one for both hands and every axis, one for the null space. A plain budget
        that names no hand leaves their number out.
        """
        if plain.command is not None:
            raise ValueError("budget: has ranges, and one number each is needed: Budget.at() puts them in")
        ranges, numbers = ({} if self.command is None else self.command.ranges()), {}
        if "com" in ranges:
            if plain.com is None or plain.com[0] != plain.com[1]:
                raise ValueError(
                    f"budget: com: {plain.com}: a command has one number for x and y of the centre of mass"
                )
            numbers["com"] = plain.com[0]
        hands = (plain.left_hand, plain.right_hand)
        if "hands" in ranges and hands != (None, None):
            if None in hands or len({*hands[0], *hands[1]}) != 1:
                raise ValueError(
                    f"budget: hands: {hands[0]}, {hands[1]}: a command has one number for both hands and every axis"
                )
            numbers["hands"] = hands[0][0]
        if "null_space" in ranges:
            if plain.weight != self.weight:
                raise ValueError(f"budget: weight: '{plain.weight}' where the command's null space has '{self.weight}'")
            numbers["null_space"] = plain.null_space
        return numbers

    @property
    def has_floor(self) -> bool:
        return any(f > 0 for f in self.hand_floor)

    @staticmethod
    def read(mode: str) -> "Budget":
        """The budget that ``silc --mode`` takes: a name, a file, with ``,key=value`` changes.

        ``Budget.read("command")`` has ranges, and so has ``"command,com=600..3000"``.
        """
        from . import _core
        from .files import find_budget

        return Budget(**_core.read_budget(find_budget(mode)))

    def yaml(self) -> str:
        """The budget as a file of configs/budgets says it."""
        from . import _core

        return _core.budget_yaml(asdict(self))

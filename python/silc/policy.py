# SPDX-License-Identifier: Apache-2.0
"""Policies from ONNX files: what they see, what they answer, and their exact derivatives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Dict, List, Optional, Sequence, Union

import numpy as np

from . import _core
from .budget import COMMANDED, Budget, BudgetCommand, CommandInput
from .files import DEFAULT_MODE, DEFAULT_ROBOT, data_folders, find
from .robot import Robot


@dataclass(frozen=True)
class PolicyJacobians:
    """How the action answers to small changes of what the policy observed.

    Lists by frame, the newest first; rows are actions and columns joints, both in the robot's order.
    A quantity that the policy does not see has an empty list.
    """

    J_q: List[np.ndarray]
    """[1/rad] joint positions"""
    J_v: List[np.ndarray]
    """[s/rad] joint velocities"""
    J_a: List[np.ndarray]
    """[1] previous actions"""
    J_tau: List[np.ndarray]
    """[1/(N·m)] joint torques"""
    J_g: List[np.ndarray]
    """[1] unit gravity in the base frame, (n, 3)"""
    J_w: List[np.ndarray]
    """[s/rad] angular velocity of the base in its frame, (n, 3)"""


_BLOCKS = {
    "joint_pos": "J_q",
    "joint_vel": "J_v",
    "prev_action": "J_a",
    "joint_torque": "J_tau",
    "projected_gravity": "J_g",
    "base_ang_vel": "J_w",
}


class Layout:
    """What a policy sees, in which order and scale, and what its answer means.

    ``Layout.read("g1_loco")`` takes a name of layouts/ or the path of a YAML file (docs/policies.md).
    """

    def __init__(self, core: "_core.Layout") -> None:
        self._core = core

    @staticmethod
    def read(name: str) -> "Layout":
        return Layout(_core.Layout.read(find("layouts", name, "{}.yaml", "SILC_LAYOUTS")))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def joints(self) -> List[str]:
        """The policy's joints in its order."""
        return self._core.joints

    @property
    def action_joints(self) -> List[str]:
        """The joint that each action moves."""
        return self._core.action_joints

    @property
    def width(self) -> int:
        """Numbers in an observation."""
        return self._core.width

    @property
    def control_dt(self) -> float:
        """[s] one step of the policy"""
        return self._core.control_dt

    def yaml(self) -> str:
        """The layout as a file."""
        return self._core.yaml()

    def with_budget_terms(self, budget: Union[Budget, str]) -> "Layout":
        """This layout for a policy that is told its budget: a term more for each range, (B3).

        They stand at the end of a frame, as ``silc train`` adds them. budget: with ranges, such as
        "command". Terms that are there already are left as they are.
        """
        budget = Budget.read(budget) if isinstance(budget, str) else budget
        if budget.command is None:
            raise ValueError("budget: has no ranges, so there is nothing to tell")
        return Layout(self._core.with_budget_terms(asdict(budget.command)))

    def per_joint(self, values: Sequence[float], robot: Robot, rest: Sequence[float]) -> np.ndarray:
        """Numbers per joint of the layout in the robot's order; `rest` for joints it does not name."""
        full = np.array(rest, dtype=float)
        for name, value in zip(self.joints, values):
            full[robot.joints.index(name)] = value
        return full

    def kp(self, robot: Robot) -> np.ndarray:
        """[N·m/rad] gains of the servo, robot's order: the layout's, else the robot's default."""
        return self.per_joint(self._core.kp, robot, robot.gains[robot.default_gains].kp)

    def kd(self, robot: Robot) -> np.ndarray:
        """[N·m·s/rad] as kp()"""
        return self.per_joint(self._core.kd, robot, robot.gains[robot.default_gains].kd)

    def action_scale(self, robot: Robot) -> np.ndarray:
        """[rad] α, robot's order; 0 where the policy does not command."""
        scale = np.broadcast_to(self._core.action_scale, len(self.action_joints))
        full = np.zeros(len(robot.joints))
        for name, value in zip(self.action_joints, scale):
            full[robot.joints.index(name)] = value
        return full

    def columns(self, robot: Robot) -> Dict[str, np.ndarray]:
        """How an observation moves with q0, q, v, a, tau, g: (width, joints or 3), scales inside."""
        table, n = self._core.table(list(robot.joints)), len(robot.joints)
        names = {
            "joint_pos": "q",
            "joint_vel": "v",
            "prev_action": "a",
            "joint_torque": "tau",
            "projected_gravity": "g",
        }
        columns: Dict[str, np.ndarray] = {}
        for i, (source, column, age, scale, _, _) in enumerate(table):
            if source not in names:
                continue
            for name in [names[source]] + (["q0"] if source == "joint_pos" and age == 0 else []):
                width = 3 if name == "g" else n
                columns.setdefault(name, np.zeros((self.width, width)))[i, column] += scale
        return columns

    def command_inputs(self) -> Dict[str, CommandInput]:
        """Where the newest frame tells com, hands and null_space, for ``StiffnessPenalty``."""
        names = {"budget_com": "com", "budget_hands": "hands", "budget_null": "null_space"}
        rows = enumerate(self._core.table(list(self.joints)))
        return {
            names[source]: CommandInput(i, offset, scale)
            for i, (source, _, age, scale, offset, _) in rows
            if source in names and age == 0
        }

    def channels(self, robot: Union[Robot, str] = DEFAULT_ROBOT, dtype=None, device=None):
        """``silc.torch.Channels`` of this layout, for ``StiffnessPenalty``."""
        import torch

        from .torch import Channels

        robot = Robot.read(robot) if isinstance(robot, str) else robot
        columns = self.columns(robot)
        if "q" not in columns:
            raise ValueError(f"layout '{self.name}': shows no joint positions")
        where = {"dtype": dtype or torch.float32, "device": device}
        made = {name: torch.as_tensor(m, **where) for name, m in columns.items()}
        index = [robot.joints.index(j) for j in self.action_joints]
        if index != list(range(len(robot.joints))):
            made["action_joint"] = torch.as_tensor(index, device=device)
        age = [row[2] for row in self._core.table(list(robot.joints))]
        return Channels(**made, age=torch.as_tensor(age, device=device))


class Policy:
    """A network, the layout around it, and the history between its steps."""

    def __init__(self, path: str, layout: Optional[str] = None, robot: Union[Robot, str] = DEFAULT_ROBOT) -> None:
        self.robot = Robot.read(robot) if isinstance(robot, str) else robot
        given, folders = layout or "", data_folders("layouts", "SILC_LAYOUTS")
        if given and "/" not in given and not given.endswith(".yaml"):
            given = find("layouts", given, "{}.yaml", "SILC_LAYOUTS")
        self.path = str(path)
        self._core = _core.Policy(
            self.path,
            given,
            ":".join(str(f) for f in folders),
            list(self.robot.joints),
            self.robot.poses[self.robot.default_pose],
        )
        self._ranges: Optional[Budget] = None
        if self._core.told_numbers and self._core.has_budget:
            own = Budget(**self._core.budget)
            if own.command is not None:
                self._ranges, self._told = own, own.command.middle()

    @property
    def layout(self) -> Layout:
        return Layout(self._core.layout)

    @property
    def metadata(self) -> Dict[str, str]:
        """What the file says beside the network."""
        return self._core.metadata

    @property
    def budget(self) -> Budget:
        """The budget inside the file, else ``compliance``; of a commanded policy, what it is told."""
        self._check_terms()
        if self._ranges is not None:
            return self._ranges.at(**self._told)
        if not self._core.has_budget:
            return Budget.read(self.metadata.get("silc_mode") or DEFAULT_MODE)
        own = Budget(**self._core.budget)
        if own.command is not None:
            raise ValueError(
                f"{self.path}: was trained under a budget with ranges, but its layout has no term that "
                "tells it which; choose the layout it was trained with (layout=)"
            )
        return own

    @property
    def sees_budget(self) -> bool:
        """Whether the network sees its budget: a commanded policy (docs/command.md)."""
        return bool(self._core.told_numbers)

    @property
    def command(self) -> Optional[BudgetCommand]:
        """The ranges that a commanded policy is trained for; None: it is told nothing."""
        return None if self._ranges is None else self._ranges.command

    @property
    def told(self) -> Optional[Dict[str, float]]:
        """What a commanded policy is told: com, hands [N/m], null_space [N·m/rad] or [1]."""
        return None if self._ranges is None else dict(self._told)

    def tell(
        self,
        budget: Union[Budget, str, None] = None,
        *,
        com: Optional[float] = None,
        hands: Optional[float] = None,
        null_space: Optional[float] = None,
    ) -> Budget:
        """Tells a commanded policy its budget, from the next ``act()`` on.

        Args:
            budget: a plain ``Budget`` or a name such as "compliance", whose numbers become the command.
            com: [N/m] centre of mass along x and y of the world.
            hands: [N/m] both hands along x, y, z.
            null_space: [N·m/rad], or [1] where the budget's weight is "gains".

        A number left out stands at the middle of its range, to three digits, whatever was told
        before; so does the hands' where ``budget`` names no hand. ``reset()`` forgets nothing of it.

        Returns:
            the budget that the policy is told, which is then ``policy.budget``.

        Raises ValueError for a number outside its range, for a budget that says more than the
        command can, and for a policy that is told nothing; the policy then stays as it was told.
        """
        numbers = {k: v for k, v in (("com", com), ("hands", hands), ("null_space", null_space)) if v is not None}
        if budget is not None and numbers:
            raise ValueError(f"budget: has these numbers already; leave out {', '.join(numbers)}")
        self._check_terms()
        if self._ranges is None:
            raise ValueError(
                f"{self.path}: is not told its budget; policies trained under ranges are, as --mode command has them"
            )
        if budget is not None:
            budget = Budget.read(budget) if isinstance(budget, str) else budget
            numbers = self._ranges.numbers_of(budget)
        try:
            found = self._ranges.at(**numbers)
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None
        told = self._ranges.numbers_of(found)
        self._core.tell([told.get(name, 1.0) for name in COMMANDED])
        self._told = told
        return found

    def _check_terms(self) -> None:
        # what a network sees of its budget and what its file says of the ranges fit together
        shown = self._core.told_numbers
        if shown and self._ranges is None:
            raise ValueError(
                f"{self.path}: sees its budget ({', '.join(shown)}), but the file has no ranges: it cannot be "
                "told which; silc export IN.onnx OUT.onnx --mode command writes them"
            )
        missing = [] if self._ranges is None else [n for n in self._ranges.command.ranges() if n not in shown]
        if missing:
            raise ValueError(f"{self.path}: the layout has no term for what its budget commands: {', '.join(missing)}")

    @property
    def kp(self) -> np.ndarray:
        """[N·m/rad] of the servo, robot's order: the file's, else the robot's default."""
        return self._gains(self._core.kp, self.robot.gains[self.robot.default_gains].kp)

    @property
    def kd(self) -> np.ndarray:
        """[N·m·s/rad] as kp"""
        return self._gains(self._core.kd, self.robot.gains[self.robot.default_gains].kd)

    @staticmethod
    def _gains(own: np.ndarray, robots: np.ndarray) -> np.ndarray:
        return robots.copy() if own.size == 0 else np.where(np.isnan(own), robots, own)

    @property
    def action_scale(self) -> np.ndarray:
        """[rad] α, robot's order, 0 where not commanded"""
        return self._core.action_scale

    @property
    def default_pose(self) -> np.ndarray:
        """[rad] robot's order"""
        return self._core.default_pose

    @property
    def observation(self) -> np.ndarray:
        """What the network last saw."""
        return self._core.observation

    @property
    def raw_action(self) -> np.ndarray:
        """[1] the last answer, robot's order"""
        return self._core.raw_action

    def reset(self) -> None:
        """Forgets history, previous action and gait phase."""
        self._core.reset()

    def act(
        self,
        q,
        qd,
        *,
        tau=None,
        w_WB_B=(0, 0, 0),
        v_WB_B=(0, 0, 0),
        g_B=(0, 0, -1),
        command=(0, 0, 0),
        height: float = 0.75,
        walk: float = 0.0,
        waist=(0, 0, 0),
        q_ref=None,
    ) -> np.ndarray:
        """One control step: joint targets [rad] in the robot's order.

        Args:
            q, qd, tau: [rad], [rad/s], [N·m] robot's order.
            w_WB_B, v_WB_B: [rad/s], [m/s] velocity of the base in its own frame.
            g_B: unit gravity in the base frame; upright (0, 0, −1).
            command: vx, vy [m/s], yaw rate [rad/s].
            height, walk, waist: [m], 1 walks, [rad] where the policy takes them.
            q_ref: [rad] reference, where the policy takes one; default: its default pose.

        A commanded policy sees the budget that ``tell()`` told it, else the middle of its ranges.
        """

        def vector(value):
            return np.asarray(value, dtype=float).reshape(-1)

        n = len(self.robot.joints)
        return self._core.act(
            vector(q),
            vector(qd),
            np.zeros(n) if tau is None else vector(tau),
            vector(w_WB_B),
            vector(v_WB_B),
            vector(g_B),
            vector(command),
            height,
            walk,
            vector(waist),
            None if q_ref is None else vector(q_ref),
        )

    def jacobians(self, obs=None) -> PolicyJacobians:
        """Exact derivatives at an observation, as the network is given it; default: the last one.

        The last observation goes through the fast path that ``silc observe`` uses, in float32 for
        plain MLPs; a given one through the graph in double precision.
        """
        if obs is None:
            return PolicyJacobians(**self._core.jacobians())
        obs = np.asarray(obs, dtype=float).reshape(-1)
        J, n, layout = self._core.network_jacobian(obs), len(self.robot.joints), self.layout
        rows = [self.robot.joints.index(j) for j in layout.action_joints]
        blocks: Dict[str, List[np.ndarray]] = {name: [] for name in _BLOCKS.values()}
        for i, (source, column, age, scale, _, clip) in enumerate(
            layout._core.table(list(self.robot.joints))
        ):
            if source not in _BLOCKS:
                continue
            frames = blocks[_BLOCKS[source]]
            while len(frames) <= age:
                frames.append(np.zeros((n, 3 if _BLOCKS[source] in ("J_g", "J_w") else n)))
            if abs(obs[i]) < clip:  # at its clip a number does not move
                frames[age][rows, column] += scale * J[:, i]
        return PolicyJacobians(**blocks)

    def evaluate(self, obs) -> np.ndarray:
        """The network's answer to an observation, in its own order, in double precision."""
        return self._core.evaluate(np.asarray(obs, dtype=float).reshape(-1))


def load_policy(path: str, layout: Optional[str] = None, robot: Union[Robot, str] = DEFAULT_ROBOT) -> Policy:
    """A policy from an ONNX file.

    Args:
        path: the file.
        layout: what it sees: a name of layouts/ or a YAML file; default: what the file says of itself.
        robot: by name, or by the path of its robot.yaml.

    Raises ValueError that says what does not fit together.
    """
    return Policy(path, layout, robot)

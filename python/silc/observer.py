# SPDX-License-Identifier: Apache-2.0
"""Stiffness of a policy on the user's own MuJoCo model and state.

Jacobians and contact forces come from the user's ``mujoco`` package, whichever version it is; what is
made of them is computed by silc's C++ core, the same code as ``silc observe``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import List, Optional, Sequence

import numpy as np

from . import _core
from .budget import Budget
from .policy import Policy
from .robot import Point, Robot

MODES = _core.CONTACT_MODES
_POINTS = ("com", "left_hand_in_world", "right_hand_in_world", "left_hand_on_base", "right_hand_on_base")


@dataclass(frozen=True)
class BudgetReading:
    """A stiffness held against a budget."""

    status: str
    sigma: float
    """[1] ≤ 1 where the budget holds"""
    worst: float
    """[1] worst direction of the quadratic form, ≤ 1 where sym K ≤ M"""


@dataclass(frozen=True)
class PointReading:
    """Stiffness that a force on a point feels, axes of the world."""

    status: str
    K_x: np.ndarray
    """[N/m] 3 × 3"""
    C_x: np.ndarray
    """[m/N] 3 × 3"""
    one_axis: np.ndarray
    """[N/m] 1/C_ii: what a push along one axis measures"""
    worst: float
    """[1] against the budget; NaN when it does not name the point"""


@dataclass(frozen=True)
class Moment:
    """Everything observed at one moment. Matrices are NaN where their status is not "ok"."""

    mode: str
    joints: Sequence[str]
    """the robot's order"""
    K_1: np.ndarray
    """[N·m/rad] latest frame alone (S2)"""
    K_s: np.ndarray
    """[N·m/rad] quasi-static (S3)"""
    K_judged: np.ndarray
    """[N·m/rad] K_s without the channels that the budget holds"""
    loop_radius: float
    """[1] of the action loop; under 1: stable"""
    loop_condition: float
    quasi_static: BudgetReading
    """of K_judged"""
    one_step: BudgetReading
    """of K_1"""
    com: PointReading
    left_hand_in_world: PointReading
    """what a push at the hand meets: arm and legs"""
    right_hand_in_world: PointReading
    left_hand_on_base: PointReading
    """a hand pulled against the base, waist and arm alone: what a budget's hands bound"""
    right_hand_on_base: PointReading
    contact_status: str
    one_step_status: str
    static_status: str
    judged_status: str
    foot_force: np.ndarray
    """[N] normal, left and right"""
    q: np.ndarray
    """[rad]"""
    target: np.ndarray
    """[rad] what the policy asks of the servo"""
    kp: np.ndarray
    """[N·m/rad]"""
    budget: Budget = field(repr=False)
    _sweep: object = field(repr=False, compare=False, default=None)

    @property
    def sigma(self) -> float:
        """[1] the budget holds where σ ≤ 1"""
        return self.quasi_static.sigma

    def holds(self) -> bool:
        """Whether the budget holds."""
        return bool(self.sigma <= 1)

    def joint_table(self):
        """A pandas DataFrame, one row per joint: kp, diagonals of K_1 and K_s [N·m/rad]."""
        import pandas

        return pandas.DataFrame(
            {"kp": self.kp, "K_1": np.diag(self.K_1), "K_s": np.diag(self.K_s)}, index=list(self.joints)
        )

    def point_table(self):
        """A pandas DataFrame, one row per point: 1/C_ii along x, y, z [N/m], share of the budget."""
        import pandas

        rows = {}
        for name in _POINTS:
            point = getattr(self, name)
            rows[name] = [*point.one_axis, point.worst]
        return pandas.DataFrame.from_dict(rows, "index", columns=["x", "y", "z", "worst"])

    def plot(self, point: str = "com", axes=None):
        """The stiffness of a point along every direction in the x–z and y–z plane.

        The budget is drawn beside a point that it bounds: the centre of mass, the hands on the base.
        Radii are nᵀ K_x n [N/m]. Needs matplotlib; returns its axes.
        """
        import matplotlib.pyplot as plt

        if point not in _POINTS:
            raise ValueError(f"point: '{point}' is not one of {', '.join(_POINTS)}")
        if axes is None:
            axes = plt.subplots(1, 2, figsize=(8, 4), subplot_kw={"projection": "polar"})[1]
        bound = {
            "com": self.budget.com,
            "left_hand_on_base": self.budget.left_hand,
            "right_hand_on_base": self.budget.right_hand,
        }.get(point)
        K = 0.5 * (getattr(self, point).K_x + getattr(self, point).K_x.T)
        angle = np.linspace(0, 2 * np.pi, 361)
        for axis, plane, name in zip(axes, ((0, 2), (1, 2)), ("x–z", "y–z")):
            n = np.zeros((angle.size, 3))
            n[:, plane[0]], n[:, plane[1]] = np.cos(angle), np.sin(angle)
            axis.plot(angle, np.einsum("ai,ij,aj->a", n, K, n), label="observed")
            if bound is not None:
                axis.plot(angle, (n * n) @ np.array(bound), "--", label="budget")
            axis.set_rscale("symlog", linthresh=100)
            axis.set_title(f"{point}, {name} plane [N/m]")
            axis.legend(loc="lower right")
        return axes


class _View:
    # names of a robot resolved in a user's model, which may have a prefix ("robot/")
    def __init__(self, robot: Robot, model, prefix: str) -> None:
        import mujoco

        self.mujoco, self.model, self.robot = mujoco, model, robot

        def identify(kind, name: str, must: bool = True) -> int:
            found = mujoco.mj_name2id(model, kind, prefix + name)
            if found < 0 and must:
                raise ValueError(f"model: has no {kind.name[len('mjOBJ_'):].lower()} '{prefix}{name}'")
            return found

        obj = mujoco.mjtObj
        joints = [identify(obj.mjOBJ_JOINT, j) for j in robot.joints]
        self.qpos = np.array([model.jnt_qposadr[j] for j in joints])
        self.dof = np.array([model.jnt_dofadr[j] for j in joints])
        self.base = identify(obj.mjOBJ_BODY, robot.base)
        free = [
            j
            for j in range(model.njnt)
            if model.jnt_bodyid[j] == self.base and model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE
        ]
        if not free:
            raise ValueError(f"model: body '{prefix}{robot.base}' has no free joint")
        self.base_dof = int(model.jnt_dofadr[free[0]])
        self.columns = np.concatenate((np.arange(self.base_dof, self.base_dof + 6), self.dof))

        def point(p: Point):
            site = identify(obj.mjOBJ_SITE, p.site, must=False)
            if site >= 0:
                return int(model.site_bodyid[site]), site, None
            body = identify(obj.mjOBJ_BODY, p.body)
            if p.offset is None:
                raise ValueError(f"model: has no site '{prefix}{p.site}', and the robot gives no offset")
            return body, -1, np.array(p.offset)

        self.feet = [point(p) for p in robot.feet]
        self.hands = [point(p) for p in robot.hands]
        self.effort = np.full(len(joints), np.inf)
        for i, j in enumerate(joints):
            if model.jnt_actfrclimited[j]:
                self.effort[i] = np.abs(model.jnt_actfrcrange[j]).max()

    def jacobian(self, data, point) -> np.ndarray:
        # linear, then angular rows; columns base, joints
        body, site, offset = point
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        if site >= 0:
            self.mujoco.mj_jacSite(self.model, data, linear, angular, site)
        else:
            where = data.xpos[body] + data.xmat[body].reshape(3, 3) @ offset
            self.mujoco.mj_jac(self.model, data, linear, angular, where, body)
        return np.concatenate((linear, angular))[:, self.columns]

    def com_jacobian(self, data) -> np.ndarray:
        J = np.zeros((3, self.model.nv))
        self.mujoco.mj_jacSubtreeCom(self.model, data, J, self.base)
        return J[:, self.columns]

    def foot_forces(self, data) -> np.ndarray:
        """[N] normal forces between each foot's body and bodies that do not move."""
        forces, wrench = np.zeros(2), np.zeros(6)
        bodies = [self.feet[0][0], self.feet[1][0]]
        for c in range(data.ncon):
            geoms = data.contact[c].geom
            if geoms[0] < 0 or geoms[1] < 0:
                continue
            pair = [int(self.model.geom_bodyid[g]) for g in geoms]
            for k in (0, 1):
                if pair[k] in bodies and self.model.body_weldid[pair[1 - k]] == 0:
                    self.mujoco.mj_contactForce(self.model, data, c, wrench)
                    forces[bodies.index(pair[k])] += wrench[0]
        return forces

    def gravity(self, data) -> np.ndarray:
        g = np.array(self.model.opt.gravity)
        down = g / np.linalg.norm(g) if np.linalg.norm(g) > 0 else np.array([0.0, 0.0, -1.0])
        return data.xmat[self.base].reshape(3, 3).T @ down


class Observer:
    """Watches a policy on one model, step by step; ``silc.observe`` looks at a single state.

    Args:
        policy: of ``silc.load_policy``; its history is the sequence of observed states.
        model: a ``mujoco.MjModel`` that holds the robot.
        budget: a ``Budget`` or a name; default: the policy's own. A commanded policy is told this
            budget at every step (``Policy.tell``); without one it is judged by what it is told.
        kp, kd: [N·m/rad], [N·m·s/rad] robot's order; default: the policy's.
        prefix: of the robot's names in the model ("robot/").
    """

    def __init__(self, policy: Policy, model, budget=None, kp=None, kd=None, prefix: str = "") -> None:
        self.policy = policy
        self._given = Budget.read(budget) if isinstance(budget, str) else budget
        self._tell()
        self.budget = self._given or policy.budget
        if self.budget.command is not None:
            raise ValueError("budget: has ranges, and one number each is needed: Budget.at() puts them in")
        self.view = _View(policy.robot, model, prefix)
        self.kp = policy.kp if kp is None else np.asarray(kp, dtype=float)
        self.kd = policy.kd if kd is None else np.asarray(kd, dtype=float)
        self._make_core()
        if not policy.robot.hands and (self.budget.left_hand or self.budget.right_hand):
            raise ValueError(f"budget: bounds hands, which {policy.robot.name} does not have")
        self._effort = np.minimum(self.view.effort, policy._core.effort_limit)
        self.reset()

    def _make_core(self) -> None:
        self._core = _core.Observer(self.kp, self.kd, self.policy.action_scale, asdict(self.budget))

    def _tell(self) -> None:
        # a policy that sees its budget sees the one it is judged by, or none
        if self.policy.sees_budget and self._given is not None:
            self.policy.tell(self._given)

    def reset(self) -> None:
        """Forgets the policy's history and the feet's contacts."""
        self.policy.reset()
        self._tracker = _core.ContactModeTracker(*self.policy.robot.foot_force)
        self._target = self.policy.default_pose.copy()

    def _act(self, data, tau, command, height, walk) -> None:
        v = self.view
        self._tell()
        q, qd = data.qpos[v.qpos], data.qvel[v.dof]
        if tau is None:
            # (S1) with the target of the step before, limited as the motors are
            tau = np.clip(self.kp * (self._target - q) - self.kd * qd, -self._effort, self._effort)
        R = data.xmat[v.base].reshape(3, 3)
        base = data.qvel[v.base_dof : v.base_dof + 6]
        self._target = self.policy.act(
            q,
            qd,
            tau=tau,
            w_WB_B=base[3:],
            v_WB_B=R.T @ base[:3],
            g_B=v.gravity(data),
            command=command,
            height=height,
            walk=walk,
        )

    def observe(
        self,
        data,
        mode=None,
        tau=None,
        command=(0, 0, 0),
        height: float = 0.75,
        walk: float = 0.0,
    ) -> Moment:
        """One control step: the policy is asked about the state in `data`, and looked at.

        Args:
            data: a ``mujoco.MjData`` after ``mj_forward`` or ``mj_step`` and ``mj_forward``.
            mode: 0 or "double support", 1 or "left support", 2 or "right support", 3 or "flight";
                default: from the contact forces, with hysteresis.
            tau: [N·m] that the motors apply; default: what the servo makes of the last target.
            command: vx, vy [m/s], yaw rate [rad/s]; height [m], walk: where the policy takes them.
        """
        v = self.view
        forces = v.foot_forces(data)
        tracked = self._tracker.update(forces[0], forces[1], self.policy.layout.control_dt)
        if isinstance(mode, str):
            if mode not in MODES:
                raise ValueError(f"mode: '{mode}' is not one of {', '.join(MODES)}")
            mode = MODES.index(mode)
        self._act(data, tau, command, height, walk)
        if self.policy.sees_budget and self._given is None and self.budget != self.policy.budget:
            self.budget = self.policy.budget  # it was told another one since
            self._make_core()
        none = np.zeros((3, v.columns.size))
        found = self._core.observe(
            self.policy._core,
            [v.jacobian(data, p) for p in v.feet],
            v.com_jacobian(data),
            [v.jacobian(data, p)[:3] for p in v.hands] if v.hands else [none, none],
            v.gravity(data),
            tracked if mode is None else int(mode),
        )
        readings = {k: BudgetReading(**found.pop(k)) for k in ("one_step", "quasi_static")}
        points = {k: PointReading(**found.pop(k)) for k in _POINTS}
        return Moment(
            mode=MODES[found.pop("mode")],
            joints=self.policy.robot.joints,
            foot_force=forces,
            q=np.array(data.qpos[v.qpos]),
            target=self._target.copy(),
            kp=self.kp,
            budget=self.budget,
            **readings,
            **points,
            **found,
        )

    def sweep(self, hz: Sequence[float], latency: float = 0.0) -> List[np.ndarray]:
        """K(jω) [N·m/rad] of the moment last observed at frequencies [Hz], latency [s].        (S4)"""
        return self._core.sweep([float(f) for f in hz], self.policy.layout.control_dt, latency)


def observe(policy: Policy, model, data, *, budget=None, mode=None, prefix: str = "", **asked) -> Moment:
    """How stiff a policy makes the robot in the state of `data`, standing still there.

    The policy is asked about this state again and again until its history and its own previous
    actions have settled. For a robot in motion use ``Observer``, one call per control step.

    Args:
        policy: of ``silc.load_policy``.
        model, data: the user's ``mujoco.MjModel`` and ``MjData``, after ``mj_forward``.
        budget: a ``Budget`` or a name such as "compliance"; default: the policy's own. A commanded
            policy is told it (``Policy.tell``), and stays told; without one it is judged by what it
            is told. ValueError where it cannot be told.
        mode: contact mode; default: from the contact forces.
        prefix: of the robot's names in the model.
        asked: command, height, walk and tau, as ``Observer.observe`` takes them.
    """
    observer = Observer(policy, model, budget, prefix=prefix)
    previous = None
    for step in range(500):
        observer._act(data, **{"tau": None, "command": (0, 0, 0), "height": 0.75, "walk": 0.0, **asked})
        # a full history of this state first, then until nothing changes
        settled = previous is not None and np.abs(observer._target - previous).max() < 1e-9
        if step > policy.layout._core.history and settled:
            break
        previous = observer._target.copy()
    return observer.observe(data, mode, **asked)

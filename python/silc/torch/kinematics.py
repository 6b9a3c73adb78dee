# SPDX-License-Identifier: Apache-2.0
"""Jacobians of a humanoid from its base's pose and its joints' angles alone.

For simulators that do not hand out MuJoCo's arrays: Isaac Lab, holosoma, a log of a robot. MuJoCo reads
the model once, for the tree, the hinges and the masses; every batch after that is PyTorch alone.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

import numpy as np
import torch
from torch import Tensor

from .contact import BodyJacobians
from .tree import PointOnBody, TreeJacobians, point_in_model


class TreeArrays(NamedTuple):
    """What ``TreeJacobians`` takes: MuJoCo's arrays of a batch, in the numbers of the model.

    Of the robot's bodies and listed joints; the rest of the model is zero.
    """

    xanchor: Tensor  # (B, njnt, 3) [m]
    xaxis: Tensor  # (B, njnt, 3)
    xpos: Tensor  # (B, nbody, 3) [m]
    xmat: Tensor  # (B, nbody, 3, 3)
    subtree_com: Tensor  # (B, nbody, 3) [m]


class _Hinge(NamedTuple):
    number: int  # of the model
    column: Optional[int]  # of q; None: a hinge that nobody moves
    anchor: Tensor  # (3) [m] in the body's frame
    axis: Tensor  # (3)


class _Body(NamedTuple):
    number: int
    parent: int
    place: Tensor  # (3) [m] in the parent's frame
    turn: Tensor  # (3, 3)
    hinges: List[_Hinge]
    mass: float  # [kg]
    centre: Tensor  # (3) [m] in the body's frame


class TreeKinematics:
    """Poses of a robot's bodies for a batch of states: twin, in PyTorch, of mj_kinematics and mj_comPos.

        R_b = R_p R_b⁰ Π_i exp([axis_i]× (q_i − q_i⁰));   every hinge keeps its anchor where it is

    Args:
        model: ``mujoco.MjModel`` that holds the robot.
        base: number of the body that floats.
        joints: numbers of the hinges, in the order of q. Other hinges stay at the model's own angle.
        device: of the batches.
    """

    def __init__(self, model, base: int, joints: Sequence[int], device=None) -> None:
        self.base, self.joints, self.device = int(base), [int(j) for j in joints], device
        self.nbody, self.njnt = int(model.nbody), int(model.njnt)
        column = {j: i for i, j in enumerate(self.joints)}

        def constant(values) -> Tensor:
            return torch.as_tensor(np.array(values, dtype=float), dtype=torch.float32, device=device)

        self.bodies: List[_Body] = []
        inside = {self.base}
        for b in range(self.base, self.nbody):  # parents come first
            parent = int(model.body_parentid[b])
            if b != self.base and parent not in inside:
                continue
            inside.add(b)
            hinges = []
            for j in range(int(model.body_jntadr[b]), int(model.body_jntadr[b]) + int(model.body_jntnum[b])):
                kind = int(model.jnt_type[j])
                if b == self.base and kind == 0:  # mjJNT_FREE
                    continue
                if b == self.base or kind != 3:  # mjJNT_HINGE
                    raise ValueError(f"joint {model.joint(j).name}: only hinges behind a floating base are known here")
                hinges.append(_Hinge(j, column.get(j), constant(model.jnt_pos[j]), constant(model.jnt_axis[j])))
            self.bodies.append(
                _Body(
                    b,
                    parent,
                    constant(model.body_pos[b]),
                    constant(_matrix(model.body_quat[b])),
                    hinges,
                    float(model.body_mass[b]),
                    constant(model.body_ipos[b]),
                )
            )
        found = {h.number for body in self.bodies for h in body.hinges}
        for j in self.joints:
            if j not in found:
                raise ValueError(f"joint {model.joint(j).name}: does not move a body of the base's tree")
        self.rest = constant([model.qpos0[model.jnt_qposadr[j]] for j in self.joints])
        axes = constant([model.jnt_axis[j] for j in self.joints])
        self.cross = torch.stack([_cross(axis) for axis in axes])  # (n, 3, 3)

    def __call__(self, q: Tensor, p_WB: Optional[Tensor] = None, quat_wxyz: Optional[Tensor] = None) -> TreeArrays:
        """q (B, n) [rad], p_WB (B, 3) [m], quat_wxyz (B, 4) of the base; without a pose it is upright at the origin."""
        n = len(self.joints)
        if q.dim() != 2 or q.shape[1] != n:
            raise ValueError(f"q: shape {tuple(q.shape)}, expected (B, {n})")
        B = q.shape[0]
        for name, value, width in (("p_WB", p_WB, 3), ("quat_wxyz", quat_wxyz, 4)):
            if value is not None and tuple(value.shape) != (B, width):
                raise ValueError(f"{name}: shape {tuple(value.shape)}, expected ({B}, {width})")
        eye = torch.eye(3, device=self.device)
        zero = torch.zeros(B, 3, device=self.device)
        angle = (q.to(torch.float32) - self.rest)[:, :, None, None]
        # Rodrigues, all hinges at once
        turns = eye + angle.sin() * self.cross + (1 - angle.cos()) * torch.matmul(self.cross, self.cross)
        xpos, xmat = [zero] * self.nbody, [eye.expand(B, 3, 3)] * self.nbody
        xanchor, xaxis = [zero] * self.njnt, [zero] * self.njnt
        moment = [zero] * self.nbody  # Σ m c of a subtree [kg·m]
        mass = [0.0] * self.nbody
        for body in self.bodies:
            if body.number == self.base:
                p = zero if p_WB is None else p_WB.to(torch.float32)
                R = eye.expand(B, 3, 3) if quat_wxyz is None else rotation(quat_wxyz.to(torch.float32))
            else:
                up = xmat[body.parent]
                p = xpos[body.parent] + torch.matmul(up, body.place)
                R = torch.matmul(up, body.turn)
            for hinge in body.hinges:
                anchor = p + torch.matmul(R, hinge.anchor)
                xanchor[hinge.number], xaxis[hinge.number] = anchor, torch.matmul(R, hinge.axis)
                if hinge.column is not None:
                    R = torch.matmul(R, turns[:, hinge.column])
                    p = anchor - torch.matmul(R, hinge.anchor)
            xpos[body.number], xmat[body.number] = p, R
            moment[body.number] = body.mass * (p + torch.matmul(R, body.centre))
            mass[body.number] = body.mass
        for body in reversed(self.bodies[1:]):
            moment[body.parent] = moment[body.parent] + moment[body.number]
            mass[body.parent] += mass[body.number]
        com = [m / max(total, 1e-12) for m, total in zip(moment, mass)]
        return TreeArrays(*(torch.stack(rows, 1) for rows in (xanchor, xaxis, xpos, xmat, com)))


class RobotJacobians:
    """Floating-base Jacobians from joint angles and the base's pose: ``contact_kinematics(jacobians(q), mode)``.

    Args:
        model: ``mujoco.MjModel`` that holds the robot.
        joints: names of the hinges, in the order of the columns.
        feet, hands: left and right, as ``point_in_model()`` finds them; a robot without hands gives none.
        prefix: of the robot's names in the model, such as "robot/".
        device: of the batches.
    """

    def __init__(
        self,
        model,
        joints: Sequence[str],
        feet: Sequence[PointOnBody],
        hands: Sequence[PointOnBody] = (),
        *,
        prefix: str = "",
        device=None,
    ) -> None:
        import mujoco

        numbers = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, prefix + j) for j in joints]
        missing = [j for j, number in zip(joints, numbers) if number < 0]
        if missing:
            raise ValueError(f"model: has no joint '{prefix}{missing[0]}'")
        base = _floating_body(model, numbers)
        self.kinematics = TreeKinematics(model, base, numbers, device)
        self.tree = TreeJacobians(model, base, numbers, feet, hands, device)

    @staticmethod
    def of(robot, device=None) -> "RobotJacobians":
        """Of a ``silc.Robot``, in its own MJCF; columns in the robot's order."""
        import mujoco

        model = mujoco.MjModel.from_xml_path(robot.model_file)
        feet, hands = (
            [point_in_model(model, p.body, p.site, p.offset) for p in points] for points in (robot.feet, robot.hands)
        )
        return RobotJacobians(model, robot.joints, feet, hands, device=device)

    def __call__(self, q: Tensor, p_WB: Optional[Tensor] = None, quat_wxyz: Optional[Tensor] = None) -> BodyJacobians:
        """As ``TreeKinematics`` takes them. Where the robot stands does not matter; how it leans does."""
        return self.tree(*self.kinematics(q, p_WB, quat_wxyz))


def rotation(quat_wxyz: Tensor) -> Tensor:
    """(B, 4) unit quaternions → (B, 3, 3)."""
    w, x, y, z = quat_wxyz.unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def _matrix(quat_wxyz: Sequence[float]) -> np.ndarray:
    return rotation(torch.as_tensor(np.array(quat_wxyz, dtype=float))).numpy()


def _cross(axis: Tensor) -> Tensor:
    x, y, z = axis.unbind()
    o = torch.zeros_like(x)
    return torch.stack((o, -z, y, z, o, -x, -y, x, o)).view(3, 3)


def _floating_body(model, joints: Sequence[int]) -> int:
    # the outermost body that carries the joints
    body = int(model.jnt_bodyid[joints[0]])
    while int(model.body_parentid[body]) > 0:
        body = int(model.body_parentid[body])
    return body

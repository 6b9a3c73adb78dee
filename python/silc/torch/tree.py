# SPDX-License-Identifier: Apache-2.0
"""Jacobians of a humanoid for thousands of robots at once, from what a simulator's batch holds.

    column of hinge i:  axis_i × (p − anchor_i), axis_i       where the point hangs on joint i
    centre of mass:     m_i/m · axis_i × (c_i − anchor_i)      c_i, m_i of the subtree behind joint i
    base:               I, −[p − p_B]× R;  0, R                linear in the world, angular in the base

The model itself (``mujoco.MjModel``) is read once, for the tree and the masses.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np
import torch
from torch import Tensor

from .contact import BodyJacobians


class PointOnBody:
    """A point fixed on a body: its number in the model, and its place in the body's frame [m]."""

    def __init__(self, body: int, offset: Sequence[float]) -> None:
        self.body, self.offset = int(body), tuple(float(v) for v in offset)


def point_in_model(model, body_name: str, site_name: str, offset=None) -> PointOnBody:
    """The site where the model has it, else `offset` [m] on the body. ValueError names what is missing."""
    import mujoco

    site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, site_name)
    if site >= 0:
        return PointOnBody(model.site_bodyid[site], model.site_pos[site])
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body_name)
    if body < 0 or offset is None:
        raise ValueError(f"model: has neither the site '{site_name}' nor the body '{body_name}'")
    return PointOnBody(body, offset)


class TreeJacobians:
    """Floating-base Jacobians of feet, hands and centre of mass.

    Args:
        model: ``mujoco.MjModel`` that holds the robot.
        base: number of the body with the free joint.
        joints: numbers of the hinges, in the order of the columns.
        feet, hands: left and right; a robot without hands gives none and gets zero rows.
        device: of the batches.
    """

    def __init__(
        self,
        model,
        base: int,
        joints: Sequence[int],
        feet: Sequence[PointOnBody],
        hands: Sequence[PointOnBody] = (),
        device=None,
    ) -> None:
        if len(feet) != 2 or len(hands) not in (0, 2):
            raise ValueError("feet and hands: left and right are needed; hands may be left out")
        for j in joints:
            if model.jnt_type[j] != 3:  # mjJNT_HINGE
                raise ValueError(f"joint {model.joint(j).name}: only hinges are known here")
        self.base, self.joints = int(base), torch.as_tensor(list(joints), device=device)
        self.joint_body = [int(model.jnt_bodyid[j]) for j in joints]
        self.points = list(feet) + list(hands)

        def carries(body: int) -> list:
            # which joints move the body
            chain = set()
            while body > 0:
                chain.add(body)
                body = int(model.body_parentid[body])
            return [b in chain for b in self.joint_body]

        moved = np.array([carries(p.body) for p in self.points])
        self.moved = torch.as_tensor(moved, dtype=torch.float32, device=device)
        self.offsets = torch.as_tensor(
            [p.offset for p in self.points], dtype=torch.float32, device=device
        )
        self.bodies = torch.as_tensor([p.body for p in self.points], device=device)
        total = float(model.body_subtreemass[self.base])
        self.mass_share = torch.as_tensor(
            np.array([model.body_subtreemass[b] for b in self.joint_body]) / total,
            dtype=torch.float32,
            device=device,
        )
        self.joint_body_index = torch.as_tensor(self.joint_body, device=device)
        g = np.array(model.opt.gravity, dtype=float)
        g = g / np.linalg.norm(g) if np.linalg.norm(g) > 0 else np.array([0.0, 0.0, -1.0])
        self.down = torch.as_tensor(g, dtype=torch.float32, device=device)

    def __call__(
        self, xanchor: Tensor, xaxis: Tensor, xpos: Tensor, xmat: Tensor, subtree_com: Tensor
    ) -> BodyJacobians:
        """Arrays of MuJoCo's mjData with a batch in front: (B, njnt, 3), (B, nbody, 3), (B, nbody, 3, 3)."""
        B = xpos.shape[0]
        xmat = xmat.reshape(B, -1, 3, 3)
        anchor, axis = xanchor[:, self.joints], xaxis[:, self.joints]  # (B, n, 3)
        R, p_B = xmat[:, self.base], xpos[:, self.base]
        n = anchor.shape[1]

        def base_columns(p: Tensor) -> Tensor:
            # linear velocity of a point per base velocity: I, −[p − p_B]× R
            d = p - p_B
            eye = torch.eye(3, dtype=p.dtype, device=p.device).expand(B, 3, 3)
            turn = torch.cross(R.transpose(1, 2), d.unsqueeze(1).expand(B, 3, 3), dim=2)
            return torch.cat((eye, turn.transpose(1, 2)), 2)

        rows = []
        for k in range(len(self.points)):
            body = self.bodies[k]
            p = xpos[:, body] + torch.matmul(xmat[:, body], self.offsets[k])
            moved = self.moved[k].view(1, n, 1)
            linear = moved * torch.cross(axis, p.unsqueeze(1) - anchor, dim=2)
            linear = torch.cat((base_columns(p), linear.transpose(1, 2)), 2)
            angular = torch.cat((torch.zeros_like(R), R, (moved * axis).transpose(1, 2)), 2)
            rows.append((linear, angular))
        feet = torch.stack([torch.cat(pair, 1) for pair in rows[:2]], 1)
        hands = torch.stack([pair[0] for pair in rows[2:]] or [torch.zeros_like(rows[0][0])] * 2, 1)
        c = subtree_com[:, self.joint_body_index]
        com = self.mass_share.view(1, n, 1) * torch.cross(axis, c - anchor, dim=2)
        com = torch.cat((base_columns(subtree_com[:, self.base]), com.transpose(1, 2)), 2)
        return BodyJacobians(feet, com, hands, torch.matmul(R.transpose(1, 2), self.down))


class FootContacts:
    """Contact modes from normal forces, with hysteresis: batched twin of the observer's tracker.

    enter, leave: [N] above which a foot begins to stand, below which it stops.
    """

    def __init__(self, enter: float, leave: float) -> None:
        if not 0 < leave <= enter:
            raise ValueError(f"contact forces: 0 < leave ({leave}) <= enter ({enter}) must hold")
        self.enter, self.leave = enter, leave
        self.stands = None

    def update(self, force: Tensor) -> Tensor:
        """force (B, 2) [N] normal, left and right → (B) mode."""
        if self.stands is None or self.stands.shape != force.shape:
            self.stands = force > self.leave
        self.stands = torch.where(self.stands, force >= self.leave, force > self.enter)
        left, right = self.stands[:, 0], self.stands[:, 1]
        mode = torch.where(left, torch.where(right, 0, 1), torch.where(right, 2, 3))
        return mode

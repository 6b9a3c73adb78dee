# SPDX-License-Identifier: Apache-2.0
"""Stiffness of a policy in its loop (S2), (S3), and a stiffness held against a budget (S7).

Functions on batches: B samples, n joints in the robot's order. δτ = −K δq, τ what the motors apply.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from ..budget import CONDITIONS, check_choice
from .actors import Linearised
from .contact import BudgetFactors
from .matrices import inverse, largest_singular, singular


class Channels(NamedTuple):
    """How an observation moves with physical quantities: (obs, columns), all scales inside.

    A sum over frames is one set of columns with an entry in every frame. None where the policy does
    not see the quantity. ``silc.Layout.channels()`` makes them from a layout.
    """

    q0: Tensor
    """(obs, n) newest frame of the joint positions [1/rad]"""
    q: Tensor
    """(obs, n) every frame of the joint positions [1/rad]"""
    a: Optional[Tensor] = None
    """(obs, n) every frame of the previous action [1]"""
    tau: Optional[Tensor] = None
    """(obs, n) every frame of the torque [1/(N·m)]"""
    g: Optional[Tensor] = None
    """(obs, 3) every frame of projected gravity [1]"""
    action_joint: Optional[Tensor] = None
    """(actions) joint that each action moves; None: action i moves joint i"""
    v: Optional[Tensor] = None
    """(obs, n) every frame of the joint velocities [s/rad]; read by ``frequencies`` alone"""
    age: Optional[Tensor] = None
    """(obs) control steps since each number of the observation was new; None: one frame, 0.
    Read by ``action_loop_points`` and ``frequencies``"""

    def check(self, joints: int) -> None:
        """Raises ValueError naming the channel whose shape is wrong."""
        if self.q.dim() != 2:
            raise ValueError(f"channels.q: shape {tuple(self.q.shape)}, expected (obs, {joints})")
        obs = self.q.shape[0]
        for name in ("q0", "q", "a", "tau", "g", "v"):
            matrix, columns = getattr(self, name), 3 if name == "g" else joints
            if matrix is not None and tuple(matrix.shape) != (obs, columns):
                raise ValueError(
                    f"channels.{name}: shape {tuple(matrix.shape)}, expected ({obs}, {columns})"
                )
        if self.age is not None and tuple(self.age.shape) != (obs,):
            raise ValueError(f"channels.age: shape {tuple(self.age.shape)}, expected ({obs},)")

    def to(self, *args, **kwargs) -> "Channels":
        """Moved and converted as ``Tensor.to`` does; joints' numbers and ages stay integers."""
        moved = {}
        for name, tensor in self._asdict().items():
            if tensor is None:
                continue
            whole = name in ("action_joint", "age")
            moved[name] = tensor.to(device=moved["q0"].device) if whole else tensor.to(*args, **kwargs)
        return Channels(**moved)

    def lag(self) -> Tensor:
        """(obs) age in double; 0 where it is not known."""
        if self.age is None:
            return torch.zeros(self.q.shape[0], dtype=torch.float64, device=self.q.device)
        return self.age.to(torch.float64)


def joint_rows(J: Tensor, channels: Channels, joints: int) -> Tensor:
    """Rows of actions as rows of joints; joints that the policy does not move have none."""
    if channels.action_joint is None:
        return J
    rows = torch.zeros((J.shape[0], joints, J.shape[2]), dtype=J.dtype, device=J.device)
    return rows.index_copy(1, channels.action_joint, J)


def action_columns(p: Tensor, channels: Channels) -> Tensor:
    """(B, k, n) per joint as (B, k, nu) per action."""
    return p if channels.action_joint is None else p.index_select(2, channels.action_joint)


def one_step_stiffness(J_q0: Tensor, kp: Tensor, alpha: Tensor) -> Tensor:
    """K₁ = Kp (I − α J_q⁰) [N·m/rad]: joints jump, everything remembered stands still.   (S2)

    J_q0 (B, n, n) [1/rad], kp (n) [N·m/rad], alpha (n) [rad].
    """
    return torch.diag(kp) - (kp * alpha).view(1, -1, 1) * J_q0


class Settled(NamedTuple):
    """What (S3) leaves of a batch: twin, in PyTorch, of SolveQuasiStatic() in the C++ core."""

    loop: Tensor  # (B, n, n) I − S_a − S_τ Kp α
    inverse: Tensor  # its inverse N₀; not finite where there is none
    X: Tensor  # (B, n, n) N₀ (S_q + S_g E − S_τ Kp)
    columns: Tensor  # (obs, c) of the channels it sees: q, a, τ, g; `more` behind them
    more: Optional[Tensor] = None  # (B, n, m) ∂a/∂o of the columns that were asked for beside


def settle(
    linear: Linearised,
    channels: Channels,
    kp: Tensor,
    alpha: Tensor,
    gravity: Optional[Tensor] = None,
    more: Optional[Tensor] = None,
) -> Settled:
    """Solves (S3) for every sample: joints have moved and stayed, all that is sensed has followed.

    gravity (B, 3, n): E = ∂g_B/∂q; None holds gravity. Off the tape.
    more (obs, m): further columns whose Jacobian is wanted from the same chain.
    """
    n = kp.shape[0]
    sees_gravity = channels.g is not None and gravity is not None
    parts = [channels.q]
    parts += [m for m in (channels.a, channels.tau) if m is not None]
    parts += [channels.g] if sees_gravity else []
    parts += [more] if more is not None else []
    columns = torch.cat(parts, 1)
    # all columns through one chain: the products from the left are the same for every channel
    blocks = joint_rows(linear.jacobian(columns), channels, n)
    blocks = list(blocks.split([m.shape[1] for m in parts], 2))
    drive = blocks.pop(0)
    loop = torch.eye(n, dtype=drive.dtype, device=drive.device).expand_as(drive)
    if channels.a is not None:
        loop = loop - blocks.pop(0)
    if channels.tau is not None:
        S_tau = blocks.pop(0)
        loop = loop - S_tau * (kp * alpha)
        drive = drive - S_tau * kp
    if sees_gravity:
        drive = drive + torch.matmul(blocks.pop(0), gravity)
    N_0 = inverse(loop)
    return Settled(loop, N_0, torch.matmul(N_0, drive), columns, blocks.pop(0) if blocks else None)


def static_stiffness(settled: Settled, kp: Tensor, alpha: Tensor) -> Tensor:
    """K_s = Kp (I − α X) [N·m/rad], (B, n, n).                                            (S3)"""
    return torch.diag(kp) - (kp * alpha).view(1, -1, 1) * settled.X


def condition_matrix(K: Tensor, factors: BudgetFactors, condition: str = "disc") -> Tensor:
    """The matrix whose norm is σ of a condition (S7), (B, n, n); σ ≤ 1 where the budget holds.

    one-sided (S7a) ‖L⁻¹ K‖; two-sided (S7b) ‖L⁻¹ K L⁻ᵀ‖; disc (S7c) ‖2 L⁻¹ (K − m) L⁻ᵀ − I‖.
    """
    check_choice("condition", condition, CONDITIONS)
    PT = factors.P.transpose(1, 2)
    if condition == "one-sided":
        return torch.matmul(torch.matmul(PT, K), factors.Pi)
    if condition == "two-sided":
        return torch.matmul(torch.matmul(PT, K), factors.P)
    held = K if factors.floor is None else K - factors.floor
    return 2 * torch.matmul(torch.matmul(PT, held), factors.P) - factors.unit


def sigma(A: Tensor, spectral: str = "eigen") -> Tensor:
    """Largest singular value of each matrix, (B)."""
    check_choice("spectral", spectral, ("eigen", "power"))
    return (largest_singular(A) if spectral == "power" else singular(A)).sigma[:, 0]

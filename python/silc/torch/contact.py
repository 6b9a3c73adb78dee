# SPDX-License-Identifier: Apache-2.0
"""What the feet leave of a batch of moments (S5), and the budget of each (S6)."""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from ..budget import COMMANDED, Budget
from .matrices import cholesky, cholesky_of_rows, over_matrix, solve_lower

DOUBLE_SUPPORT, LEFT_SUPPORT, RIGHT_SUPPORT, FLIGHT = 0, 1, 2, 3
UNKNOWN_MODE = 255
"""in the place of a mode where nobody knows it, such as at an episode's first moment"""
BASE_RCOND = 1e-10
"""least reciprocal condition of a foot's base block, which is a change of frame: some 0.1"""


class Contacts(NamedTuple):
    """A batch of moments as the penalty needs them. Any float type; n joints in the robot's order."""

    mode: Tensor
    """(B) 0 double support, 1 left, 2 right, 3 flight; anything beyond: unknown, left out"""
    com: Tensor
    """(B, 3, n) centre of mass per joint, through the feet [m/rad]"""
    hand_on_base: Tensor
    """(B, 2, 3, n) hands per joint, the base at rest [m/rad]"""
    closing: Tensor
    """(B, 6, n) rows that double support holds at zero; read in that mode only"""
    gravity: Tensor
    """(B, 3, n) E = ∂g_B/∂q [1/rad]"""

    def rows(self, count: int) -> "Contacts":
        """The first `count` samples."""
        return Contacts(*(t[:count] for t in self))

    def check(self, batch: int, joints: int) -> None:
        """Raises ValueError naming the tensor whose shape is wrong."""
        shapes = {
            "mode": (batch,),
            "com": (batch, 3, joints),
            "hand_on_base": (batch, 2, 3, joints),
            "closing": (batch, 6, joints),
            "gravity": (batch, 3, joints),
        }
        for name, expected in shapes.items():
            found = tuple(getattr(self, name).shape)
            if found != expected:
                raise ValueError(f"contacts.{name}: shape {found}, expected {expected}")


class BodyJacobians(NamedTuple):
    """Floating-base Jacobians of a batch, in the world frame.

    Columns: base linear velocity in the world (3), base angular velocity in the base frame (3),
    joints (n). Index 0 is left, 1 right.
    """

    foot: Tensor  # (B, 2, 6, 6 + n) linear rows, then angular rows
    com: Tensor  # (B, 3, 6 + n)
    hand: Tensor  # (B, 2, 3, 6 + n)
    g_B: Tensor  # (B, 3) unit gravity vector in the base frame


def column_sum_norm(A: Tensor) -> Tensor:
    """‖A‖₁ of every matrix of a batch."""
    return A.abs().sum(-2).amax(-1)


def contact_kinematics(body: BodyJacobians, mode: Tensor) -> Contacts:
    """Motions that the contacts leave (S5), in double precision. Batched twin, in PyTorch, of
    ComputeContactKinematics() in the C++ core.

        base velocity = B q̇,  B = −J_fb⁻¹ J_fj;   J = J_xj + J_xb B;   E = [g_B]× B_rot
        double support: J_c q̇ = 0, and B is made zero on the motions that J_c forbids

    A sample whose base block or closing rows are singular gets mode UNKNOWN_MODE, which leaves it
    out. Off the tape.
    """
    if body.com.dim() != 3 or body.com.shape[2] < 7:
        raise ValueError(f"body.com: shape {tuple(body.com.shape)}, expected (B, 3, 6 + joints)")
    batch, width = body.com.shape[0], body.com.shape[2]
    for name, expected in (
        ("foot", (batch, 2, 6, width)),
        ("hand", (batch, 2, 3, width)),
        ("g_B", (batch, 3)),
    ):
        found = tuple(getattr(body, name).shape)
        if found != expected:
            raise ValueError(f"body.{name}: shape {found}, expected {expected}")
    if tuple(mode.shape) != (batch,):
        raise ValueError(f"mode: shape {tuple(mode.shape)}, expected ({batch},)")
    with torch.no_grad():
        foot, com, hand, g_B = (t.to(torch.float64) for t in body)
        n = width - 6
        closed, flies = mode == DOUBLE_SUPPORT, mode == FLIGHT
        stance = torch.where(over_matrix(mode == RIGHT_SUPPORT), foot[:, 1], foot[:, 0])
        base = stance[:, :, :6]
        block = torch.linalg.inv_ex(base)[0]
        B = -torch.matmul(block, stance[:, :, 6:])
        # an inverse of rounding errors is finite, too: the core's rule, in the same norm
        rcond = 1 / (column_sum_norm(base) * column_sum_norm(block))
        ok = (torch.isfinite(B).all(2).all(1) & (rcond > BASE_RCOND)) | flies
        zero = torch.zeros((), dtype=B.dtype, device=B.device)
        B = torch.where(over_matrix(ok & ~flies), B, zero)
        # the other foot closes the chain
        J_c = foot[:, 1, :, 6:] + torch.matmul(foot[:, 1, :, :6], B)
        J_c = torch.where(over_matrix(closed), J_c, zero)
        gram = torch.matmul(J_c, J_c.transpose(1, 2))
        eye = torch.eye(6, dtype=B.dtype, device=B.device)
        L, ok = cholesky_of_rows(torch.where(over_matrix(closed), gram, eye), True, ok)
        Y = solve_lower(L, J_c)  # B (I − J_c⁺ J_c) = B − (B Yᵀ) Y
        B = B - torch.matmul(torch.matmul(B, Y.transpose(1, 2)), Y)
        x, y, z = g_B.unbind(1)
        o = torch.zeros_like(x)
        cross = torch.stack((o, -z, y, z, o, -x, -y, x, o), 1).view(-1, 3, 3)
        unknown = torch.full_like(mode, UNKNOWN_MODE)
        return Contacts(
            mode=torch.where(ok, mode, unknown),
            com=com[:, :, 6:] + torch.matmul(com[:, :, :6], B),
            hand_on_base=hand[..., 6:],
            closing=J_c,
            gravity=torch.matmul(cross, B[:, 3:]),
        )


class BudgetFactors(NamedTuple):
    """The budget of every sample as factors that need no reduced coordinates (S6):

        P Pᵀ = N M_s⁻¹ Nᵀ,    Π = N (Nᵀ N)⁻¹ Nᵀ

    so that (S7c) is ‖2 Pᵀ K P − Π_c‖ and (S7a) is ‖Pᵀ K Π‖, n × n in every contact mode.
    """

    P: Tensor  # (B, n, n) [(rad/N·m)^½]
    Pi: Tensor  # (B, n, n)
    unit: Tensor  # (B, n, n) projector on what P acts on
    ok: Tensor  # (B) bool: false where a Jacobian has lost rank
    floor: Optional[Tensor]  # (B, n, n) m of the band [N·m/rad]; None: 0


def budget_factors(
    budget: Budget,
    kp: Tensor,
    contacts: Contacts,
    dtype: Optional[torch.dtype] = None,
    command: Optional[Tensor] = None,
) -> BudgetFactors:
    """(S6) of every sample, worked out in double on the batch's device, handed out as `dtype`.
    Twin, in PyTorch, of MakeBudgetFactors() in the C++ trainer.

    With Ŵ = W^½, Π_c the projector off the rows of J_c Ŵ⁻¹ and (J Ŵ⁻¹ Π_c)ᵀ = Q R:

        P = Ŵ⁻¹ [ b^{−1/2} (Π_c − Q Qᵀ) + Q F Qᵀ ],   F Fᵀ = (R K_x Rᵀ)⁻¹

    With a floor under the hands P is made of M − m, and K − m takes the place of K.

    command: (B, 3) u of each sample (B1), for a budget with ranges: natural logarithms of com [N/m],
    hands [N/m] and null_space [N·m/rad] or [1]. The budget of a sample is then ``budget.at(exp u)``
    (B2). Numbers that have no range are not read.
    """
    check_command(budget, command, contacts.mode)
    if kp.dim() != 1:
        raise ValueError(f"kp: shape {tuple(kp.shape)}, expected (joints,)")
    if contacts.mode.dim() != 1:
        raise ValueError(f"contacts.mode: shape {tuple(contacts.mode.shape)}, expected (B,)")
    n = kp.shape[0]
    contacts.check(contacts.mode.shape[0], n)
    dtype = kp.dtype if dtype is None else dtype
    with torch.no_grad():
        return _budget_factors(budget, kp.to(torch.float64), contacts, dtype, command)


def check_command(budget: Budget, command: Optional[Tensor], mode: Tensor) -> None:
    """Raises ValueError where a budget with ranges has no command of the right shape, or a plain one has."""
    if budget.command is None:
        if command is not None:
            raise ValueError("command: the budget has no ranges")
        return
    if command is None:
        raise ValueError("command: the budget has ranges; give u of each sample, or one budget by Budget.at()")
    expected = (*mode.shape, len(COMMANDED))
    if tuple(command.shape) != expected:
        raise ValueError(f"command: shape {tuple(command.shape)}, expected {expected}: u of {', '.join(COMMANDED)}")


def _budget_factors(
    budget: Budget, kp: Tensor, contacts: Contacts, dtype: torch.dtype, command: Optional[Tensor]
) -> BudgetFactors:
    n, device = kp.shape[0], kp.device
    # stiffness per sample of what is commanded, (B, 1, 1)                                      (B2)
    told = {}
    if command is not None:
        for i, name in enumerate(COMMANDED):
            if getattr(budget.command, name) is not None:
                told[name] = over_matrix(command[:, i].to(torch.float64).exp())

    def eye(size: int) -> Tensor:
        return torch.eye(size, dtype=torch.float64, device=device)

    zero = torch.zeros((), dtype=torch.float64, device=device)
    gains = budget.weight == "gains"
    scale = kp.rsqrt() if gains else torch.ones_like(kp)  # Ŵ⁻¹
    mode = contacts.mode
    closed, flies = mode == DOUBLE_SUPPORT, mode == FLIGHT
    ok = (mode >= 0) & (mode <= FLIGHT)

    def projector(J: Tensor, ok: Tensor):
        # samples without a closed chain keep the identity
        gram = torch.matmul(J, J.transpose(1, 2))
        L, ok = cholesky_of_rows(torch.where(over_matrix(closed), gram, eye(6)), True, ok)
        Y = solve_lower(L, J)
        return eye(n) - torch.matmul(Y.transpose(1, 2), Y), ok

    J_c = torch.where(over_matrix(closed), contacts.closing.to(torch.float64), zero)
    Pi, ok = projector(J_c, ok)
    Pi_c = Pi
    if gains:
        Pi_c, ok = projector(J_c * scale, ok)

    # the points that have a bound, stacked
    rows, stiffness, shares = [], [], []
    if budget.com is not None:
        rows.append(contacts.com.to(torch.float64))
        stiffness += budget.com
        shares += [0.0, 0.0, 0.0]
    for side, k in enumerate((budget.left_hand, budget.right_hand)):
        if k is not None:
            rows.append(contacts.hand_on_base[:, side].to(torch.float64))
            stiffness += k
            shares += budget.hand_floor

    root_b = told["null_space"].rsqrt() if "null_space" in told else budget.null_space**-0.5
    P = root_b * Pi_c
    floor = None
    if rows:
        J_x, m = torch.cat(rows, 1), len(stiffness)

        def column(values) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device).view(1, m, 1)

        K = column(stiffness)
        if "com" in told or "hands" in told:
            K = K.expand(mode.shape[0], m, 1)
            hands = 3 if budget.com is not None else 0  # their first row
            x_y, z, rest = K[:, : min(hands, 2)], K[:, min(hands, 2) : hands], K[:, hands:]
            x_y = told["com"].expand_as(x_y) if "com" in told else x_y
            rest = told["hands"].expand_as(rest) if "hands" in told else rest
            K = torch.cat((x_y, z, rest), 1)
        K_floor = column(shares) * K
        K_x = K - K_floor  # (S6) of M − m: the rows are the same
        if budget.has_floor:
            floor = torch.matmul(J_x.transpose(1, 2), K_floor * J_x).to(dtype)
        # in flight the centre of mass, whose rows are the first, has no bound: a row that is out is
        # zero, with a one in the Gram matrix's place
        is_com = torch.arange(m, device=device) < (3 if budget.com is not None else 0)
        out = flies.unsqueeze(1) & is_com
        J = torch.where(out.unsqueeze(2), zero, torch.matmul(J_x * scale, Pi_c))
        gram = torch.matmul(J, J.transpose(1, 2)) + torch.diag_embed(out.to(torch.float64))
        R_T, ok = cholesky_of_rows(gram, False, ok)
        Q_T = solve_lower(R_T, J)  # (B, m, n)
        # F Fᵀ = A⁻¹, A = R K_x Rᵀ
        L_A, ok = cholesky(torch.matmul(R_T.transpose(1, 2), K_x * R_T), ok)
        F = solve_lower(L_A, eye(m).expand_as(L_A)).transpose(1, 2)
        P = P + torch.matmul(torch.matmul(Q_T.transpose(1, 2), F - root_b * eye(m)), Q_T)
    P = scale.view(1, n, 1) * P
    ok = ok & torch.isfinite(P).all(2).all(1)
    P = torch.where(over_matrix(ok), P, zero)
    return BudgetFactors(P.to(dtype), Pi.to(dtype), Pi_c.to(dtype), ok, floor)

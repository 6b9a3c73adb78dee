# SPDX-License-Identifier: Apache-2.0
"""The dynamic stiffness K(jω) of (S4) held at several frequencies: (S12), (S13), (P17).

Complex matrices are pairs of real ones, as in the trainer: every device and ``torch.compile`` take them.
"""

from __future__ import annotations

import cmath
import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .actors import Linearised
from .contact import BudgetFactors
from .matrices import embedded, inverse, largest_singular, over_matrix
from .stiffness import Channels, action_columns, joint_rows
from .terms import hinge, mean_of


class _Complex(NamedTuple):
    re: Tensor
    im: Tensor

    def plus(self, other: "_Complex") -> "_Complex":
        return _Complex(self.re + other.re, self.im + other.im)

    def minus(self, other: "_Complex") -> "_Complex":
        return _Complex(self.re - other.re, self.im - other.im)

    def scaled(self, factor) -> "_Complex":
        """By a number, which may be complex, or by a real tensor."""
        if isinstance(factor, complex):
            return _Complex(
                factor.real * self.re - factor.imag * self.im,
                factor.real * self.im + factor.imag * self.re,
            )
        return _Complex(self.re * factor, self.im * factor)

    def matmul(self, other) -> "_Complex":
        if isinstance(other, _Complex):
            return _Complex(
                torch.matmul(self.re, other.re) - torch.matmul(self.im, other.im),
                torch.matmul(self.re, other.im) + torch.matmul(self.im, other.re),
            )
        return _Complex(torch.matmul(self.re, other), torch.matmul(self.im, other))

    def transposed(self) -> "_Complex":
        return _Complex(self.re.transpose(1, 2), self.im.transpose(1, 2))

    def conjugate(self) -> "_Complex":
        return _Complex(self.re, -self.im)

    def congruent(self, P: Tensor) -> "_Complex":
        """Pᵀ · P"""
        PT = P.transpose(1, 2)
        return _Complex(*(torch.matmul(torch.matmul(PT, part), P) for part in self))

    def where(self, ok: Tensor) -> "_Complex":
        """0 for samples that take no part."""
        return _Complex(*(torch.where(over_matrix(ok), t, torch.zeros_like(t)) for t in self))

    def finite(self) -> Tensor:
        return torch.isfinite(self.re).all(2).all(1) & torch.isfinite(self.im).all(2).all(1)


def _inverse(a: _Complex) -> _Complex:
    # two real inverses; R = I − Re A is not singular where ‖A‖ < 1
    turned = torch.matmul(inverse(a.re), a.im)
    re = inverse(a.re + torch.matmul(a.im, turned))
    return _Complex(re, -torch.matmul(turned, re))


def _halves(vector: Tensor) -> _Complex:
    n = vector.shape[2] // 2
    return _Complex(vector[:, :, :n], vector[:, :, n:])


class FrequencyPoint(NamedTuple):
    """A frequency: how the observation moves with joints, actions and torques that go as e^{jωt}.

    Matrices are (obs, 2 n): the real part, then the imaginary; (obs, 6) for gravity. None: not seen.
    """

    omega: float
    """[rad/s]"""
    path: complex
    """e^{−jωd} Z(ω) of (S4)"""
    torque_delay: complex
    """e^{−jωTs}"""
    q: Tensor
    """joints, and their velocities by jω"""
    a: Optional[Tensor]
    tau: Optional[Tensor]
    g: Optional[Tensor]


def make_frequency_points(
    frequencies: Sequence[float], period: float, latency: float, channels: Channels
) -> List[FrequencyPoint]:
    """The columns at each frequency [Hz]; 0 is (S7c) itself and is left out.

    period: [s] from one action to the next. latency: [s] of the loop, as in (S4).
    """
    points = []
    for f in frequencies:
        if f == 0:
            continue
        if not f < 0.5 / period:
            raise ValueError(f"frequencies: {f:g} Hz is not under {0.5 / period:g} Hz, half the policy's rate")
        omega = 2 * math.pi * f
        turn = omega * period
        path = cmath.exp(-1j * omega * latency) * (1 - cmath.exp(-1j * turn)) / (1j * turn)
        delay = cmath.exp(-1j * turn * max(1.0, math.ceil(latency / period)))

        def seen(matrix: Optional[Tensor], lag: float, factor: complex = 1):
            if matrix is None:
                return None
            phase = -turn * (channels.lag() + lag)
            z = _Complex(phase.cos().unsqueeze(1), phase.sin().unsqueeze(1)).scaled(complex(factor))
            return torch.cat([matrix.to(torch.float64) * part for part in z], 1)

        q, v = seen(channels.q, 0), seen(channels.v, 0, 1j * omega)
        columns = (q if v is None else q + v, seen(channels.a, 1), seen(channels.tau, 0), seen(channels.g, 0))
        dtype = channels.q.dtype
        points.append(FrequencyPoint(omega, path, delay, *(None if m is None else m.to(dtype) for m in columns)))
    return points


class _Dynamic(NamedTuple):
    # (S4) at one frequency, and what its gradient needs
    N: _Complex  # (B, n, n) (I − A)⁻¹
    X: _Complex  # N G: how actions follow the joints
    K_e: _Complex  # (B, n, n) K − jω Kd


class _Servo(NamedTuple):
    kp: Tensor
    kd: Tensor
    gain: Tensor  # Kp α


# first columns of q, a, tau, g of a frequency among those of all; −1: not seen
_Places = Tuple[int, int, int, int]


def _solve(point: FrequencyPoint, at: _Places, blocks: Tensor, servo: _Servo, gravity: Optional[Tensor]) -> _Dynamic:
    n = servo.kp.shape[0]

    def block(first: int, width: int) -> _Complex:
        return _Complex(blocks[:, :, first : first + width], blocks[:, :, first + width : first + 2 * width])

    q, a, tau, g = at
    G = block(q, n)
    loop = _Complex(torch.eye(n, dtype=G.re.dtype, device=G.re.device).expand_as(G.re), torch.zeros_like(G.re))
    if a >= 0:
        loop = loop.minus(block(a, n))
    if tau >= 0:
        felt = block(tau, n)
        G = G.minus(felt.scaled(servo.kp)).minus(felt.scaled(1j * point.omega).scaled(servo.kd))
        loop = loop.minus(felt.scaled(point.torque_delay).scaled(servo.gain))
    if g >= 0:
        G = G.plus(block(g, 3).matmul(gravity))
    N = _inverse(loop)
    X = N.matmul(G)
    K_e = X.scaled(-point.path).scaled(servo.gain.view(1, -1, 1))
    return _Dynamic(N, X, _Complex(K_e.re + torch.diag(servo.kp), K_e.im))


def _tangents(
    point: FrequencyPoint,
    at: _Places,
    moved: _Dynamic,
    servo: _Servo,
    gravity: Optional[Tensor],
    l: _Complex,  # noqa: E741  (B, 1, n) with the hinge's slope inside
    r: _Complex,
    width: int,
) -> Tuple[Tensor, Tensor]:
    """Directions (B, 2, width) and pulls (B, 2, n) of Re(lᴴ dK r) = Re(pᴴ dJ o).

    dK = −path Kp α N (dG + dA X): p = −Nᴴ (path* Kp α l), o the observation that follows joints along r.
    """
    n = servo.kp.shape[0]
    p = l.scaled(-point.path.conjugate()).scaled(servo.gain).matmul(moved.N.conjugate())
    actions = r.matmul(moved.X.transposed())
    along = torch.zeros((r.re.shape[0], 1, width), dtype=r.re.dtype, device=r.re.device)
    across = torch.zeros_like(along)

    def put(first: int, columns: int, c: _Complex) -> None:
        # (C + jS)(c_r + j c_i)
        along[:, :, first : first + columns] = c.re
        along[:, :, first + columns : first + 2 * columns] = -c.im
        across[:, :, first : first + columns] = c.im
        across[:, :, first + columns : first + 2 * columns] = c.re

    q, a, tau, g = at
    put(q, n, r)
    if a >= 0:
        put(a, n, actions)
    if tau >= 0:
        springs = r.scaled(servo.kp).plus(r.scaled(1j * point.omega).scaled(servo.kd))
        put(tau, n, actions.scaled(point.torque_delay).scaled(servo.gain).minus(springs))
    if g >= 0:
        put(g, 3, r.matmul(gravity.transpose(1, 2)))
    return torch.cat((along, across), 1), torch.cat((p.re, p.im), 1)


class FrequencyResult(NamedTuple):
    """(P17) of one batch: the mean over the frequencies."""

    value: Tensor  # scalar, off the tape
    surrogate: Tensor  # scalar on the tape: its gradient is that of `value`
    sigma: Tensor  # (B) largest σ(ω), of the margin where the bound is under 1
    driving: Tensor  # (B) largest ν(ω): above 0 the loop gives energy


def frequency_penalty(
    linear: Linearised,
    channels: Channels,
    points: Sequence[FrequencyPoint],
    kp: Tensor,
    kd: Tensor,
    alpha: Tensor,
    factors: BudgetFactors,
    gravity: Optional[Tensor],
    options,
    bound: Tensor,
    ok: Tensor,
) -> FrequencyResult:
    """mean over ω of h(σ(ω)) + w ν(ω)₊²: springs and policy in the budget's disc (S12), the whole loop passive
    (S13). The largest σ and ν alone, whatever options.sigmas says.

    options: a PenaltyOptions. ok (B): samples that take part.
    """
    servo = _Servo(kp, kd, kp * alpha)
    # all columns of all frequencies through one chain
    parts, places, width = [], [], 0
    for point in points:
        at = []
        for name in ("q", "a", "tau", "g"):
            matrix = getattr(point, name)
            if matrix is None or (name == "g" and gravity is None):
                at.append(-1)
                continue
            at.append(width)
            width += matrix.shape[1]
            parts.append(matrix)
        places.append(tuple(at))
    columns = torch.cat(parts, 1)
    blocks = joint_rows(linear.jacobian(columns), channels, kp.shape[0])

    P = factors.P
    PT = P.transpose(1, 2)
    scale, share = 2 / bound.clamp_max(1), 1.0 / len(points)
    value = torch.zeros((), dtype=P.dtype, device=P.device)
    directions, pulls, sigmas, drivings = [], [], [], []
    for point, at in zip(points, places):
        moved = _solve(point, at, blocks, servo, gravity)
        good = ok & moved.K_e.finite()
        for part in moved.N:
            good = good & (part.abs().amax((1, 2)) < options.loop_gain_limit)
        moved = _Dynamic(*(matrix.where(good) for matrix in moved))

        # (S12): 2 Pᵀ (K_e − m) P/min(b, 1) − Π_c
        held = moved.K_e
        if factors.floor is not None:
            held = _Complex(held.re - factors.floor, held.im)
        form = held.congruent(P)
        A = _Complex(scale * form.re - factors.unit, scale * form.im).where(good)
        s = largest_singular(embedded(*A))
        sigma = s.sigma[:, 0]
        cost, slope = hinge(sigma, options.hinge, bound.clamp_min(1))
        value = value + share * mean_of(cost, good)
        # rows (B, 1, n) to the joints: (P u)ᵀ = uᵀ Pᵀ
        left = _halves(s.u).matmul(PT).scaled(over_matrix(share * slope) * scale)
        rows = [(left, _halves(s.v).matmul(PT))]

        # (S13): D = −2 Pᵀ S P, S = sym Im K − j skew Re K; shifted, so that the largest eigenvalue is the largest
        # in size
        im = moved.K_e.im + torch.diag(point.omega * kd)
        twice = _Complex(-(im + im.transpose(1, 2)), moved.K_e.re - moved.K_e.re.transpose(1, 2))
        D = twice.congruent(P).where(good)
        shift = (D.re.square() + D.im.square()).sum((1, 2)).sqrt()
        matrix = embedded(*D)
        eye = torch.eye(matrix.shape[1], dtype=P.dtype, device=P.device)
        d = largest_singular(matrix + over_matrix(shift) * eye)
        driving = d.sigma[:, 0] - shift
        over = driving.clamp_min(0)
        weight = share * options.damping_weight
        value = value + weight * mean_of(over.square(), good)
        # dν = Re(lᴴ dK r), r = P u and l = −2j r
        r = _halves(d.v).matmul(PT)
        rows.append((r.scaled(-2j).scaled(over_matrix(2 * weight * over)), r))

        for left, right in rows:
            direction, pull = _tangents(point, at, moved, servo, gravity, left, right, width)
            directions.append(direction)
            pulls.append(pull)
        sigmas.append(sigma)
        drivings.append(driving)
    pull = action_columns(torch.cat(pulls, 1), channels)
    surrogate = linear.along(pull, columns, torch.cat(directions, 1)) / P.shape[0]
    return FrequencyResult(
        value, surrogate, torch.stack(sigmas).amax(0), torch.stack(drivings).amax(0)
    )

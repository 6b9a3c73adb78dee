# SPDX-License-Identifier: Apache-2.0
"""Penalties on the stiffness of a policy: the methods of ``silc train`` in PyTorch.

Values are means over the samples. A value is on the tape: its gradient is that of the mean, worked
out with the singular triples frozen (S9). Options have the names and defaults of ``learn.penalty``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..budget import Budget, CommandInput, check_choice
from .actors import Actor, Linearised, linearise
from .frequency import FrequencyPoint, frequency_penalty, make_frequency_points
from .circle import Feedback, circle_columns, circle_feedback, draw_loop_angles, hold_feedback
from .command import check_inputs, commands_in
from .contact import BudgetFactors, Contacts, budget_factors
from .matrices import Singular, eigen, largest_singular, over_matrix, singular
from .stiffness import (
    Channels,
    action_columns,
    joint_rows,
    one_step_stiffness,
    settle,
    static_stiffness,
)
from .terms import hinge, mean_of, with_gradient

METHODS = ("silc", "silc-paper", "scalar-lcp", "alcp", "lcp")


@dataclass(frozen=True)
class PenaltyOptions:
    """``learn.penalty`` of a training preset. ``PenaltyOptions.of("silc", lambda_=0.2)``."""

    method: str = "silc"
    lambda_: float = 0.5
    """[1] weight"""
    schedule: str = "fixed"
    """fixed, ramp, multiplier"""
    start: int = 0
    """iterations before the penalty sets in; none is computed"""
    ramp: int = 300
    """iterations from 0 to lambda (ramp)"""
    multiplier_rate: float = 0.02
    """per iteration, of ln λ (multiplier)"""
    multiplier_floor: float = 0.85
    """share of the reference score under which λ falls"""
    multiplier_target: float = 0.01
    """mean violation that is left alone"""
    score_reference: float = 0.0
    """[1] score of an unbounded policy; 0: the best seen so far"""
    bound_start: float = 1.0
    """[1] σ allowed at first (silc, silc-paper) …"""
    bound_end: float = 1.0
    """[1] … and at last; 1: the budget M, b < 1: b M (silc)"""
    bound_rate: float = 0.003
    """per iteration, of ln bound, while the task is fulfilled"""
    bound_lag: float = 0.05
    """mean violation above which the bound waits"""
    gradient_clip: float = 1.0
    """norm of the penalty's gradient, clipped apart from the task's"""
    samples: int = 2048
    """of each mini-batch; 0: all"""
    every: int = 1
    """steps to one that works its gradient out; held in between"""
    hinge: str = "square"
    """square: (σ−1)₊² (S8); log: (ln σ)₊²"""
    sigmas: str = "largest"
    """largest, all"""
    probes: int = 0
    """all: random combinations of singular vectors; 0: every one"""
    spectral: str = "eigen"
    """eigen, power"""
    action_loop_limit: float = 0.9
    """[1] ‖S_a + S_τ Kp α‖₂ above this is penalised (silc)"""
    action_loop_weight: float = 0.1
    """[1] relative to the stiffness term"""
    action_loop_points: int = 0
    """of the unit circle, drawn each iteration, at which the loop is held beside z = 1 (P16)"""
    frequencies: Tuple[float, ...] = ()
    """[Hz] at which K(jω) is held too, (S12) and (S13) (silc)"""
    damping_weight: float = 0.1
    """[1] of (S13), relative to (S12)"""
    latency: float = 0.0
    """[s] of the loop that K(jω) is of"""
    loop_gain_limit: float = 100.0
    """[1] entries of (I−S_a)⁻¹ beyond this: sample left out"""
    lipschitz: float = 2.0
    """[1] scalar-lcp and the diagonal of K_LCP (alcp)"""

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("schedule", self.schedule, ("fixed", "ramp", "multiplier"))
        check_choice("hinge", self.hinge, ("square", "log"))
        check_choice("sigmas", self.sigmas, ("largest", "all"))
        check_choice("spectral", self.spectral, ("eigen", "power"))
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and low <= value <= high):
                raise ValueError(f"{name}: {value} is outside [{low:g}, {high:g}]")
        object.__setattr__(self, "frequencies", tuple(self.frequencies))  # a list of a config file
        for f in self.frequencies:
            if not (isinstance(f, (int, float)) and 0 <= f <= 1000):
                raise ValueError(f"frequencies: {f} is outside [0, 1000] Hz")
        if self.probes > 0 and self.sigmas != "all":
            raise ValueError("probes: only sigmas='all' takes random combinations; set it, or probes=0")
        if self.sigmas == "all" and self.spectral == "power":
            raise ValueError(
                "spectral: power finds the largest singular value alone; use eigen, or sigmas='largest'"
            )

    @staticmethod
    def of(method: str = "silc", **changes) -> "PenaltyOptions":
        """The defaults that go with a method, and changes to them."""
        check_choice("method", method, METHODS)
        known = [f.name for f in fields(PenaltyOptions)]
        for name in changes:
            check_choice("option", name, known)
        own = {
            "lambda_": 0.002 if method == "lcp" else 0.5,
            "hinge": "log" if method == "silc" else "square",
            "sigmas": "all" if method == "silc" else "largest",
        }
        return PenaltyOptions(**{"method": method, **own, **changes})


_RANGES = (
    ("lambda_", 0, 1e6),
    ("start", 0, 1e9),
    ("ramp", 1, 1e9),
    ("multiplier_rate", 0, 1),
    ("multiplier_floor", 0, 1),
    ("multiplier_target", 1e-9, 1e6),
    ("score_reference", 0, 1e9),
    ("bound_start", 0.1, 1e9),
    ("bound_end", 0.1, 1e9),
    ("bound_rate", 0, 1),
    ("bound_lag", 0, 1e9),
    ("gradient_clip", 1e-6, 1e6),
    ("samples", 0, 1e9),
    ("every", 1, 1e9),
    ("probes", 0, 64),
    ("action_loop_limit", 0.01, 100),
    ("action_loop_weight", 0, 1e6),
    ("action_loop_points", 0, 64),
    ("damping_weight", 0, 1e6),
    ("latency", 0, 1),
    ("loop_gain_limit", 1, 1e9),
    ("lipschitz", 1e-3, 1e6),
)


class PenaltyResult(NamedTuple):
    """A penalty of one batch."""

    value: Tensor
    """scalar on the tape: mean over the samples, with its gradient"""
    sigma: Tensor
    """(B) largest σ, or what the method bounds relative to its bound; 1 is the edge"""
    ok: Tensor
    """(B) bool: samples that took part"""
    loop_norm: Optional[Tensor] = None
    """(B) largest ‖A(z)‖₂ of the loop's points, ‖S_a + S_τ Kp α‖₂ at z = 1 (silc)"""
    frequency_sigma: Optional[Tensor] = None
    """(B) largest σ(ω) of ``frequencies``, of the margin where the bound is under 1"""
    frequency_driving: Optional[Tensor] = None
    """(B) largest ν(ω); above 0 the loop drives"""


def draw_signs(options: PenaltyOptions, batch: int, joints: int, like: Tensor) -> Optional[Tensor]:
    """(B, probes, n) of ±1, or None where every singular vector is used."""
    if options.probes == 0:
        return None
    signs = torch.randint(0, 2, (batch, options.probes, joints), device=like.device)
    return signs.to(like.dtype) * 2 - 1


class _Directions(NamedTuple):
    # singular triples with the hinge's slope folded in: Σ_k l_k d(·) r_kᵀ is the gradient
    value: Tensor  # (B)
    sigma: Tensor  # (B) largest
    left: Tensor  # (B, k, n)
    right: Tensor


def _penalised_directions(
    A: Tensor, bound: Tensor, options: PenaltyOptions, signs: Optional[Tensor]
) -> _Directions:
    every = options.sigmas == "all"
    if every or options.spectral == "eigen":
        s = singular(A)
        if not every:
            s = Singular(s.sigma[:, :1], s.u[:, :1], s.v[:, :1])
    else:
        s = largest_singular(A)
    value, slope = hinge(s.sigma, options.hinge, bound)
    root = slope.sqrt().unsqueeze(2)
    left, right = s.u * root, s.v * root
    if every and options.probes > 0:
        # E[(Σ ε_i l_i)(Σ ε_j r_j)ᵀ] = Σ l_i r_iᵀ for independent signs: one tangent instead of n
        if signs is None or signs.shape[1] != options.probes:
            raise ValueError(f"signs: needed with probes={options.probes}: (B, probes, joints) of ±1")
        scale = options.probes**-0.5
        left = torch.matmul(signs, left) * scale
        right = torch.matmul(signs, right) * scale
    return _Directions(value.sum(1), s.sigma[:, 0], left, right)


def _newest(linear: Linearised, channels: Channels, joints: int) -> Tensor:
    return joint_rows(linear.jacobian(channels.q0), channels, joints)


def log_prob_gradient_penalty(linear: Linearised, std: Tensor, action: Tensor) -> PenaltyResult:
    """mean ‖∇_o log π(a|o)‖² at the action taken (lcp). std (nu) or (B, nu), action (B, nu)."""
    e = (action - linear.output) / std.square()
    each = linear.observation_gradient(e).square().sum(1)
    ok = torch.ones_like(each, dtype=torch.bool)
    return PenaltyResult(each.mean(), each.detach().sqrt(), ok)


def scalar_penalty(
    linear: Linearised, channels: Channels, joints: int, options: PenaltyOptions
) -> PenaltyResult:
    """mean (‖J_q⁰‖₂ − k)₊² (scalar-lcp)."""
    J = _newest(linear, channels, joints)
    s = largest_singular(J) if options.spectral == "power" else singular(J)
    largest = s.sigma[:, 0]
    over = (largest - options.lipschitz).clamp_min(0)
    p = (2 * over).view(-1, 1, 1) * s.u[:, :1]
    surrogate = linear.along(action_columns(p, channels), channels.q0, s.v[:, :1]) / J.shape[0]
    ok = torch.ones_like(largest, dtype=torch.bool)
    return PenaltyResult(
        with_gradient(over.square().mean(), surrogate), largest / options.lipschitz, ok
    )


def anisotropic_penalty(
    linear: Linearised, channels: Channels, joints: int, options: PenaltyOptions
) -> PenaltyResult:
    """mean λ_max(J_q⁰ J_q⁰ᵀ − k² I)₊² (alcp).                                           (S10)"""
    J = _newest(linear, channels, joints)
    k2 = options.lipschitz**2
    eye = torch.eye(joints, dtype=J.dtype, device=J.device)
    values, vectors = eigen(torch.matmul(J, J.transpose(1, 2)) - k2 * eye)
    largest, w = values[:, 0], vectors[:, :1]
    over = largest.clamp_min(0)
    p = (4 * over).view(-1, 1, 1) * w
    surrogate = linear.along(action_columns(p, channels), channels.q0, torch.matmul(w, J)) / J.shape[0]
    ok = torch.ones_like(largest, dtype=torch.bool)
    relative = ((largest + k2).clamp_min(0) / k2).sqrt()
    return PenaltyResult(with_gradient(over.square().mean(), surrogate), relative, ok)


def paper_penalty(
    linear: Linearised,
    channels: Channels,
    kp: Tensor,
    alpha: Tensor,
    factors: BudgetFactors,
    options: PenaltyOptions,
    bound: Tensor,
    signs: Optional[Tensor] = None,
) -> PenaltyResult:
    """(S7a) on K₁ (silc-paper)."""
    gain = kp * alpha
    K_1 = one_step_stiffness(_newest(linear, channels, kp.shape[0]), kp, alpha)
    ok = factors.ok & torch.isfinite(K_1).all(2).all(1)
    K = torch.where(over_matrix(ok), K_1, torch.zeros_like(K_1))
    A = torch.matmul(torch.matmul(factors.P.transpose(1, 2), K), factors.Pi)
    d = _penalised_directions(A, bound, options, signs)
    # left = P u, right = Π v; p = −α Kp left
    p = -torch.matmul(d.left, factors.P.transpose(1, 2)) * gain
    r = torch.matmul(d.right, factors.Pi.transpose(1, 2))
    surrogate = linear.along(action_columns(p, channels), channels.q0, r) / K.shape[0]
    return PenaltyResult(with_gradient(mean_of(d.value, ok), surrogate), d.sigma, ok)


def static_penalty(
    linear: Linearised,
    channels: Channels,
    kp: Tensor,
    alpha: Tensor,
    factors: BudgetFactors,
    gravity: Optional[Tensor],
    options: PenaltyOptions,
    bound: Tensor,
    signs: Optional[Tensor] = None,
    loop_angles: Optional[Tensor] = None,
    frequency_points: Sequence[FrequencyPoint] = (),
    kd: Optional[Tensor] = None,
) -> PenaltyResult:
    """(S7c) on K_s, ‖2 Pᵀ(K − m)P/min(b, 1) − Π_c‖ ≤ max(b, 1), and ‖S_a + S_τ Kp α‖₂ held under
    its limit (silc).

    loop_angles (points) [rad]: where ‖A(z)‖ is held too (P16). frequency_points: of
    ``make_frequency_points()``, where K(jω) is held too (P17); it needs kd (n) [N·m·s/rad].
    """
    gain = kp * alpha
    sees_gravity = channels.g is not None and gravity is not None
    around = None if loop_angles is None else circle_columns(channels, loop_angles)
    settled = settle(linear, channels, kp, alpha, gravity, around)
    eye = torch.eye(kp.shape[0], dtype=settled.X.dtype, device=settled.X.device)
    zero = torch.zeros((), dtype=settled.X.dtype, device=settled.X.device)

    # a sample whose action loop is nearly an integrator has no K_s worth the name
    ok = factors.ok & torch.isfinite(settled.X).all(2).all(1)
    ok = ok & (settled.inverse.abs().amax((1, 2)) < options.loop_gain_limit)
    X = torch.where(over_matrix(ok), settled.X, zero)
    N_0 = torch.where(over_matrix(ok), settled.inverse, eye)
    K = torch.diag(kp) - gain.view(1, -1, 1) * X

    # A bound b under 1 is a margin: the budget is b M then. Samples left out become A = 0.
    scale = 2 / bound.clamp_max(1)
    held = K if factors.floor is None else K - factors.floor
    PT = factors.P.transpose(1, 2)
    form = torch.matmul(torch.matmul(PT, held), factors.P)
    A = torch.where(over_matrix(ok), scale * form - factors.unit, zero)
    d = _penalised_directions(A, bound.clamp_min(1), options, signs)
    # left = 2 P u/min(b, 1), right = P v; p = −N₀ᵀ α Kp left                             (S9)
    left = scale * torch.matmul(d.left, PT)
    r = torch.matmul(d.right, PT)
    pull = torch.matmul(-left * gain, N_0)
    # how the observation moves along the channels, in the order of their columns
    along = [r]
    if channels.a is not None:
        along.append(torch.matmul(r, X.transpose(1, 2)))
    if channels.tau is not None:
        along.append(-torch.matmul(r, K.transpose(1, 2)))
    if sees_gravity:
        along.append(torch.matmul(r, gravity.transpose(1, 2)))
    direction, width = torch.cat(along, 2), settled.columns.shape[1]
    # the columns of other points of the circle are the loop's alone
    own = direction.shape[2]
    direction = nn.functional.pad(direction, (0, width - own))
    value = mean_of(d.value, ok)

    # the action loop, also of samples left out: it is what brings them back
    points = []
    if channels.a is not None or channels.tau is not None:
        # z = 1, where trained policies have their slowest modes: S_a + S_τ Kp α
        n = kp.shape[0]
        a = n if channels.a is not None else -1
        tau = -1 if channels.tau is None else n if channels.a is None else 2 * n
        points.append(Feedback(eye - settled.loop, None, (a, -1), (tau, -1)))
    if settled.more is not None:
        points += circle_feedback(settled.more, channels, gain, own)
    loop_norm = None
    # a bound that is still being tightened leaves the loop as much room
    limit = options.action_loop_limit + 0.5 * bound.clamp_min(1).log()
    for point in points:
        # tangents beside those of the stiffness: one chain through the network serves all
        loop = hold_feedback(point, width, gain, limit, options.action_loop_weight, options.spectral)
        direction, pull = torch.cat((direction, loop.direction), 1), torch.cat((pull, loop.pull), 1)
        value = value + loop.value
        loop_norm = loop.norm if loop_norm is None else torch.maximum(loop_norm, loop.norm)
    surrogate = linear.along(action_columns(pull, channels), settled.columns, direction) / K.shape[0]
    if not frequency_points:
        return PenaltyResult(with_gradient(value, surrogate), d.sigma, ok, loop_norm)
    seen_gravity = gravity if sees_gravity else None
    moved = frequency_penalty(
        linear, channels, frequency_points, kp, kd, alpha, factors, seen_gravity, options, bound, ok
    )
    total = with_gradient(value + moved.value, surrogate + moved.surrogate)
    return PenaltyResult(total, d.sigma, ok, loop_norm, moved.sigma, moved.driving)


class PenaltyWeight:
    """λ and the bound from iteration to iteration."""

    def __init__(self, options: PenaltyOptions) -> None:
        self.options = options
        self.log_multiplier = 0.0  # ln(λ/lambda)
        self.smoothed_score = 0.0
        self.best_score = 0.0
        self.follows = 0
        self.log_bound = 0.0  # ln(bound/bound_start)
        self.smoothed_violation = 0.0

    def state_dict(self) -> dict:
        return {k: v for k, v in vars(self).items() if k != "options"}

    def load_state_dict(self, state: dict) -> None:
        vars(self).update(state)

    def lambda_at(self, iteration: int) -> float:
        """[1] the weight at `iteration`."""
        o = self.options
        if iteration < o.start:
            return 0.0
        if o.schedule == "ramp":
            return o.lambda_ * min(1.0, (iteration - o.start + 1) / o.ramp)
        if o.schedule == "multiplier":
            return o.lambda_ * math.exp(self.log_multiplier)
        return o.lambda_

    def bound(self) -> float:
        """[1] σ that is let pass now."""
        return self.options.bound_start * math.exp(self.log_bound)

    def follow(self, violation: float, score: float) -> None:
        """After an iteration: the mean violation and the task's score, higher is better.

        The bound goes from bound_start to bound_end while the smoothed score is above
        multiplier_floor of its reference, back while it is not, and waits while the smoothed
        violation is above bound_lag. The multiplier moves ln λ by at most multiplier_rate.
        """
        if not (math.isfinite(violation) and math.isfinite(score)):
            return
        o = self.options
        if self.follows == 0:
            self.smoothed_score, self.smoothed_violation = score, violation
            self.best_score = score
        else:
            self.smoothed_score += 0.1 * (score - self.smoothed_score)
            self.smoothed_violation += 0.1 * (violation - self.smoothed_violation)
            self.best_score = max(self.best_score, self.smoothed_score)
        self.follows += 1
        reference = o.score_reference if o.score_reference > 0 else self.best_score
        floor = o.multiplier_floor * reference
        fulfilled = not (reference > 0 and self.smoothed_score < floor)
        way = math.log(o.bound_end / o.bound_start)
        if not fulfilled:
            self.log_bound -= math.copysign(o.bound_rate, way)
        elif self.smoothed_violation <= o.bound_lag:
            self.log_bound += math.copysign(o.bound_rate, way)
        self.log_bound = min(max(self.log_bound, min(way, 0.0)), max(way, 0.0))
        if o.schedule != "multiplier":
            return
        drive = (violation - o.multiplier_target) / o.multiplier_target
        if not fulfilled:
            drive = -4 * (1 - self.smoothed_score / floor)
        self.log_multiplier += o.multiplier_rate * min(max(drive, -1.0), 1.0)
        self.log_multiplier = min(max(self.log_multiplier, math.log(1e-4)), math.log(1e4))


def add_gradients(pairs: List[Tuple[nn.Parameter, Tensor]], processes: int = 1) -> None:
    """Adds what ``StiffnessPenalty.gradients`` gave to the parameters' own gradients.

    processes: of torch.distributed that train together; the mean over them is added.
    """
    for parameter, gradient in pairs:
        if processes > 1:
            gradient = gradient.clone()
            torch.distributed.all_reduce(gradient, op=torch.distributed.ReduceOp.SUM)
            gradient = gradient / processes
        parameter.grad = gradient.clone() if parameter.grad is None else parameter.grad + gradient


def _mean_over_processes(values: Sequence[float], device) -> List[float]:
    # of all that train together, where torch.distributed is initialised; NaN where one has NaN
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return list(values)
    total = torch.tensor(values, dtype=torch.float64, device=device)
    distributed.all_reduce(total, op=distributed.ReduceOp.SUM)
    return (total / distributed.get_world_size()).tolist()


class StiffnessPenalty(nn.Module):
    """``loss = penalty(actor, observations, contacts)``: λ times the penalty, ready to be added.

    The gradient of what is returned is clipped to ``gradient_clip`` apart from the task's, so that a
    strong penalty cannot drown the task. Call ``follow(score)`` once an iteration: it moves λ and
    the bound.

    Args:
        budget: how stiff the robot may be. Not needed by scalar-lcp, alcp and lcp. Method silc trains
            the condition "disc" alone. With ranges (``Budget.command``) every sample has a budget of
            its own, (B2) of docs/command.md.
        channels: how the observation moves with joints, actions, torque and gravity.
        kp: (n) servo gains [N·m/rad], robot's order.
        alpha: (n) action scale [rad], 0 where the policy does not command.
        options: ``PenaltyOptions.of("silc")`` by default.
        kd: (n) servo damping [N·m·s/rad]; ``frequencies`` alone need it.
        period: [s] from one action to the next; likewise.
        seed: of the points of ``action_loop_points``. Processes that train together have the same.
        command_inputs: where an observation tells the policy its budget, of
            ``silc.torch.command_inputs()`` or ``Layout.command_inputs()``: a sample is held to what
            its policy was told. Without them a budget with ranges needs ``command`` in every call.
    """

    def __init__(
        self,
        budget: Optional[Budget],
        channels: Channels,
        kp,
        alpha,
        options: Optional[PenaltyOptions] = None,
        *,
        kd=None,
        period: Optional[float] = None,
        seed: int = 0,
        command_inputs: Optional[Mapping[str, CommandInput]] = None,
    ) -> None:
        super().__init__()
        self.options = PenaltyOptions.of("silc") if options is None else options
        dtype = channels.q.dtype
        self.register_buffer("kp", torch.as_tensor(kp, dtype=dtype).reshape(-1), persistent=False)
        self.register_buffer("alpha", torch.as_tensor(alpha, dtype=dtype).reshape(-1), persistent=False)
        n = self.kp.shape[0]
        if self.alpha.shape[0] != n:
            raise ValueError(f"alpha: {self.alpha.shape[0]} numbers, kp has {n}")
        if not bool(torch.isfinite(self.kp).all() and (self.kp > 0).all()):
            raise ValueError("kp: must be finite and positive")
        if not bool(torch.isfinite(self.alpha).all()):
            raise ValueError("alpha: must be finite")
        channels.check(n)
        needs_budget = self.options.method in ("silc", "silc-paper")
        if needs_budget and budget is None:
            raise ValueError(f"budget: method '{self.options.method}' needs one")
        if self.options.method == "silc" and budget.condition != "disc":
            raise ValueError(
                f"budget: condition: '{budget.condition}': method 'silc' trains the disc (S7c); say "
                "condition='disc' (silc-paper trains (S7a) on K₁, whatever the budget's condition)"
            )
        if budget is not None and budget.has_floor and self.options.method != "silc":
            budget = replace(budget, hand_floor=(0.0, 0.0, 0.0))  # (S7a) has no band
        self.budget = budget
        self.command_inputs = None if command_inputs is None else dict(command_inputs)
        if command_inputs is not None:
            check_inputs(command_inputs, budget, channels.q.shape[0])
        if budget is not None:
            channels = channels._replace(
                tau=channels.tau if budget.torque == "followed" else None,
                g=channels.g if budget.gravity == "followed" else None,
            )
        for name in Channels._fields:
            self.register_buffer(f"channel_{name}", getattr(channels, name), persistent=False)
        self.seed = int(seed)
        self.register_buffer("loop_angles", None, persistent=False)
        self._make_frequency_points(channels, kd, period)
        self.weight = PenaltyWeight(self.options)
        self.iteration = 0
        self.last: Optional[PenaltyResult] = None
        self._violations: List[Tensor] = []
        self._sigmas: List[Tensor] = []
        self._ok: List[Tensor] = []
        self._held: List[Tuple[nn.Parameter, Tensor]] = []
        self._calls = 0
        self.draw_loop_angles()

    def _make_frequency_points(self, channels: Channels, kd, period: Optional[float]) -> None:
        self._frequency_points: List[FrequencyPoint] = []
        self.register_buffer("kd", None, persistent=False)
        if self.options.method != "silc" or not any(self.options.frequencies):
            return
        if kd is None:
            raise ValueError("kd: frequencies need it")
        if period is None or not 0 < period < math.inf:
            raise ValueError(f"period: {period} s; frequencies need one above 0")
        kd = torch.as_tensor(kd, dtype=channels.q.dtype).reshape(-1)
        if kd.shape != self.kp.shape:
            raise ValueError(f"kd: {kd.shape[0]} numbers, kp has {self.kp.shape[0]}")
        if not bool(torch.isfinite(kd).all() and (kd >= 0).all()):
            raise ValueError("kd: must be finite and not negative")
        self.kd = kd.to(self.kp.device)
        self._frequency_points = make_frequency_points(self.options.frequencies, period, self.options.latency, channels)
        # the matrices are buffers, so that they move with the module
        for i, point in enumerate(self._frequency_points):
            for name in ("q", "a", "tau", "g"):
                self.register_buffer(f"frequency_{i}_{name}", getattr(point, name), persistent=False)

    @property
    def frequency_points(self) -> List[FrequencyPoint]:
        """``frequencies`` but 0 Hz."""
        return [
            point._replace(**{name: getattr(self, f"frequency_{i}_{name}") for name in ("q", "a", "tau", "g")})
            for i, point in enumerate(self._frequency_points)
        ]

    @property
    def channels(self) -> Channels:
        return Channels(*(getattr(self, f"channel_{name}") for name in Channels._fields))

    def draw_loop_angles(self) -> None:
        """Points of the circle of this iteration; ``follow()`` calls it. Function of seed and iteration."""
        points = self.options.action_loop_points
        if points > 0 and self.options.method == "silc":
            angles = draw_loop_angles(points, self.seed, self.iteration)
            self.loop_angles = torch.tensor(angles, dtype=torch.float64, device=self.kp.device)

    def get_extra_state(self) -> dict:
        return {"iteration": self.iteration, **self.weight.state_dict()}

    def set_extra_state(self, state: dict) -> None:
        state = dict(state)
        self.iteration = state.pop("iteration")
        self.weight.load_state_dict(state)
        self.draw_loop_angles()

    def evaluate(
        self,
        actor: Actor,
        observations: Tensor,
        contacts: Optional[Contacts] = None,
        *,
        factors: Optional[BudgetFactors] = None,
        signs: Optional[Tensor] = None,
        bound: Optional[Tensor] = None,
        std: Optional[Tensor] = None,
        action: Optional[Tensor] = None,
        loop_angles: Optional[Tensor] = None,
        command: Optional[Tensor] = None,
    ) -> PenaltyResult:
        """The penalty of every row, without λ, clipping or sampling; ``torch.compile``-able for MLPs.

        factors: of ``budget_factors()``, where they are worked out once for several epochs.
        command: (B, 3) u of each row (B1), for a budget with ranges; default: what ``command_inputs``
            find in the observations.
        loop_angles: (points) [rad] in the place of those that were drawn.
        """
        o, channels, n = self.options, self.channels, self.kp.shape[0]
        if observations.dim() != 2 or observations.shape[1] != channels.q.shape[0]:
            raise ValueError(
                f"observations: shape {tuple(observations.shape)}, expected (B, {channels.q.shape[0]})"
            )
        linear = linearise(actor, observations)
        nu = n if channels.action_joint is None else channels.action_joint.shape[0]
        if tuple(linear.output.shape) != (observations.shape[0], nu):
            raise ValueError(
                f"actor: answered {tuple(linear.output.shape)}, expected ({observations.shape[0]}, {nu})"
            )
        if o.method == "lcp":
            if std is None or action is None:
                raise ValueError("lcp: needs std and action")
            return log_prob_gradient_penalty(linear, std, action)
        if o.method == "scalar-lcp":
            return scalar_penalty(linear, channels, n, o)
        if o.method == "alcp":
            return anisotropic_penalty(linear, channels, n, o)
        if contacts is None:
            raise ValueError(f"contacts: method '{o.method}' needs them")
        contacts.check(observations.shape[0], n)
        dtype = channels.q.dtype
        if factors is None:
            if command is None and self.command_inputs is not None:
                command = commands_in(self.command_inputs, observations.detach())
            factors = budget_factors(self.budget, self.kp, contacts, dtype, command)
        if bound is None:
            bound = torch.tensor(self.weight.bound(), dtype=dtype, device=self.kp.device)
        if signs is None:
            signs = draw_signs(o, observations.shape[0], n, self.kp)
        if o.method == "silc-paper":
            return paper_penalty(linear, channels, self.kp, self.alpha, factors, o, bound, signs)
        gravity = contacts.gravity.to(dtype)
        angles = self.loop_angles if loop_angles is None else loop_angles
        return static_penalty(
            linear,
            channels,
            self.kp,
            self.alpha,
            factors,
            gravity,
            o,
            bound,
            signs,
            loop_angles=angles,
            frequency_points=self.frequency_points,
            kd=self.kd,
        )

    def gradients(
        self,
        actor: Actor,
        observations: Tensor,
        contacts: Optional[Contacts] = None,
        *,
        parameters=None,
        std: Optional[Tensor] = None,
        action: Optional[Tensor] = None,
        command: Optional[Tensor] = None,
    ) -> List[Tuple[nn.Parameter, Tensor]]:
        """Parameters with λ times the penalty's gradient, clipped: to be added after a task's own clip.

        Of the first ``samples`` rows; rows of a mini-batch are shuffled. Every ``every``-th call works
        the gradient out; the calls between give the same again. Empty before iteration ``start``.

        parameters: what the gradient is of; the actor's by default.
        command: (B, 3), as ``evaluate()`` takes it.
        """
        o = self.options
        if parameters is None:
            modules = actor if isinstance(actor, (list, tuple)) else [actor]
            parameters = [p for m in modules if isinstance(m, nn.Module) for p in m.parameters()]
        parameters = [p for p in parameters if p.requires_grad]
        if not parameters:
            raise ValueError("parameters: the actor has none that can be trained")
        due = self.iteration >= o.start and self._calls % o.every == 0
        self._calls += 1
        if not due:
            return self._held
        count = observations.shape[0] if o.samples == 0 else min(o.samples, observations.shape[0])
        result = self.evaluate(
            actor,
            observations[:count],
            None if contacts is None else contacts.rows(count),
            std=std[:count] if std is not None and std.dim() == 2 else std,
            action=None if action is None else action[:count],
            command=None if command is None else command[:count],
        )
        self.last = PenaltyResult(*(None if t is None else t.detach() for t in result))
        self._violations.append(self.last.value)
        self._sigmas.append(self.last.sigma)
        self._ok.append(self.last.ok)
        value = self.weight.lambda_at(self.iteration) * result.value
        found = torch.autograd.grad(value, parameters, allow_unused=True)
        pairs = [(p, g) for p, g in zip(parameters, found) if g is not None]
        norm = torch.stack([g.norm() for _, g in pairs]).norm()
        factor = (o.gradient_clip / norm.clamp_min(1e-30)).clamp_max(1)
        self._held = [(p, g * factor) for p, g in pairs]
        return self._held

    def forward(
        self, actor: Actor, observations: Tensor, contacts: Optional[Contacts] = None, **more
    ) -> Tensor:
        """λ times the penalty, a scalar whose gradient is that of ``gradients()``, with its arguments."""
        pairs = self.gradients(actor, observations, contacts, **more)
        if not pairs:
            return torch.zeros((), dtype=self.kp.dtype, device=self.kp.device)
        value = self.weight.lambda_at(self.iteration) * self.last.value
        return with_gradient(value, sum((p * g).sum() for p, g in pairs))

    def follow(self, score: float) -> dict:
        """After an iteration: moves λ and the bound; returns figures for a log.

        Where torch.distributed is initialised, every process calls it once an iteration. All then
        move by the mean of their scores and penalties, so that they keep one λ and one bound;
        ``penalty`` of the figures is that mean, σ is of the process' own samples.

        score: of the task, higher is better (the mean reward will do).
        """
        figures = {"lambda": self.weight.lambda_at(self.iteration), "bound": self.weight.bound()}
        some = bool(self._violations)
        violation = float(torch.stack(self._violations).mean()) if some else 0.0
        # a process that penalised nothing takes part, or the others would wait for it
        share, violation, score = _mean_over_processes(
            (float(some), violation, float(score)), self.kp.device
        )
        if share > 0:
            figures["penalty"] = violation / share
            self.weight.follow(figures["penalty"], score)
        if some:
            ok, s = torch.cat(self._ok), torch.cat(self._sigmas)
            figures["left_out"] = float(1 - ok.to(torch.float32).mean())
            if bool(ok.any()):
                s = s[ok]
                figures["sigma_mean"], figures["sigma_p99"] = float(s.mean()), float(s.quantile(0.99))
                figures["violating"] = float((s > 1).to(torch.float32).mean())
            if self.last.frequency_sigma is not None and bool(self.last.ok.any()):
                s, driving = (t[self.last.ok] for t in (self.last.frequency_sigma, self.last.frequency_driving))
                figures["frequency_sigma_mean"], figures["frequency_sigma_p99"] = float(s.mean()), float(s.quantile(0.99))
                figures["frequency_driving"] = float((driving > 0).to(torch.float32).mean())
            if self.last.loop_norm is not None:
                figures["action_loop"] = float(self.last.loop_norm.mean())
        self._violations, self._sigmas, self._ok = [], [], []
        self._calls = 0
        self.iteration += 1
        self.draw_loop_angles()
        return figures

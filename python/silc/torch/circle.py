# SPDX-License-Identifier: Apache-2.0
"""The action loop around the unit circle (P16): ‖A(z)‖ at points beside z = 1.

With the joints held, actions follow from those before them, and A(z) is what actions that go as z^t do to the
next one. ‖A(z)‖ < 1 on the whole circle keeps the loop stable; points of it are drawn anew each iteration.
"""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .matrices import embedded, largest_singular, over_matrix, singular
from .stiffness import Channels

_STREAM = 0x6C6F6F70  # of these draws alone, as in the trainer
_WORD = 0xFFFFFFFF


def _philox(counter: Tuple[int, int, int, int], key: Tuple[int, int]) -> Tuple[int, int, int, int]:
    # ten rounds of Philox-4x32 (Salmon et al. 2011); multipliers and increments are the published ones
    c, k = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = (q >> 32) ^ c[1] ^ k[0], q & _WORD, (p >> 32) ^ c[3] ^ k[1], p & _WORD
        k = (k[0] + 0x9E3779B9) & _WORD, (k[1] + 0xBB67AE85) & _WORD
    return c


def draw_loop_angles(points: int, seed: int, iteration: int) -> List[float]:
    """Angles [rad] on the upper half of the unit circle, one in each of `points` equal parts.

    The trainer's own for the same seed and iteration; all processes of a training draw the same.  (P16)
    """
    key = seed & _WORD, (seed >> 32) & _WORD
    words: List[int] = []
    for block in range((points + 3) // 4):
        words += _philox((block, 0, iteration & _WORD, _STREAM), key)
    return [math.pi * (i + words[i] * 2.0**-32) / points for i in range(points)]


class Feedback(NamedTuple):
    """A(z) of a batch, and where its columns stand among those of the observation."""

    real: Tensor  # (B, n, n)
    imag: Optional[Tensor]  # None where z is real
    a: Tuple[int, int] = (-1, -1)  # first column of the real and of the imaginary part; −1: not seen
    tau: Tuple[int, int] = (-1, -1)


def circle_columns(channels: Channels, angles: Tensor) -> Optional[Tensor]:
    """(obs, c): how the observation moves with actions, then torques, that go as z^t, z = e^{iθ}.

    Per angle: real and imaginary part of each channel that is seen. What is seen k steps late has z^{−k}; an
    action is seen a step after it was. None where neither actions nor torque are seen.
    """
    seen = [m for m in (channels.a, channels.tau) if m is not None]
    if not seen or angles.numel() == 0:
        return None
    turn = (1 + channels.lag()).unsqueeze(1) * angles.to(torch.float64)  # (obs, points)
    parts = []
    for i in range(angles.shape[0]):
        for matrix in seen:
            wide = matrix.to(torch.float64)
            parts += [wide * turn[:, i : i + 1].cos(), wide * -turn[:, i : i + 1].sin()]
    return torch.cat(parts, 1).to(channels.q.dtype)


def circle_feedback(blocks: Tensor, channels: Channels, gain: Tensor, first: int) -> List[Feedback]:
    """A(z) at every point, from the Jacobian of circle_columns(), which begin at column `first`."""
    n, found, column = gain.shape[0], [], 0
    while column < blocks.shape[2]:
        real, imag, where = 0, 0, []
        for matrix, factor in ((channels.a, None), (channels.tau, gain)):
            if matrix is None:
                where.append((-1, -1))
                continue
            re, im = blocks[:, :, column : column + n], blocks[:, :, column + n : column + 2 * n]
            real = real + (re if factor is None else re * factor)
            imag = imag + (im if factor is None else im * factor)
            where.append((first + column, first + column + n))
            column += 2 * n
        found.append(Feedback(real, imag, *where))
    return found


class HeldFeedback(NamedTuple):
    """What (P16) costs at one point, and the tangents of its gradient."""

    value: Tensor  # scalar
    norm: Tensor  # (B) ‖A(z)‖
    direction: Tensor  # (B, k, width): 1 tangent of a real point, 2 of a complex one
    pull: Tensor  # (B, k, n)


def hold_feedback(
    at: Feedback, width: int, gain: Tensor, limit: Tensor, weight: float, spectral: str
) -> HeldFeedback:
    """w (‖A(z)‖ − limit)₊², the mean over the samples.

    With singular vectors (u_r, u_i), (v_r, v_i) of [Re −Im; Im Re],
    dσ = u_r · (dRe v_r − dIm v_i) + u_i · (dRe v_i + dIm v_r).
    """
    n, whole = gain.shape[0], at.imag is not None
    A = embedded(at.real, at.imag) if whole else at.real
    A = torch.where(over_matrix(torch.isfinite(A).all(2).all(1)), A, torch.zeros_like(A))
    s = largest_singular(A) if spectral == "power" or whole else singular(A)
    norm = s.sigma[:, 0]
    over = (norm - limit).clamp_min(0)
    slope = (2 * weight * over).view(-1, 1, 1)
    u, v = s.u[:, :1], s.v[:, :1]

    def moved(along: Tensor, across: Optional[Tensor]) -> Tensor:
        # how the observation's columns move: actions along z^t, torques by the spring of each
        out = torch.zeros((v.shape[0], 1, width), dtype=v.dtype, device=v.device)
        for (re, im), factor in ((at.a, None), (at.tau, gain)):
            for first, part in ((re, along), (im, across)):
                if first >= 0 and part is not None:
                    out[:, :, first : first + n] = part if factor is None else part * factor
        return out

    value = weight * over.square().mean()
    if not whole:
        return HeldFeedback(value, norm, moved(v, None), slope * u)
    v_r, v_i = v[:, :, :n], v[:, :, n:]
    direction = torch.cat((moved(v_r, -v_i), moved(v_i, v_r)), 1)
    return HeldFeedback(value, norm, direction, slope * torch.cat((u[:, :, :n], u[:, :, n:]), 1))

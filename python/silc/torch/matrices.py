# SPDX-License-Identifier: Apache-2.0
"""Batches of matrices as small as a robot has joints. Nothing here is on the tape's way."""

from __future__ import annotations

from typing import NamedTuple, Tuple

import torch
from torch import Tensor

RANK_TOLERANCE = 1e-6
"""[1] shortest part of a row outside the span of the rows before it, over the longest such part"""


def over_matrix(per_sample: Tensor) -> Tensor:
    """(B) against (B, r, c)"""
    return per_sample.view(-1, 1, 1)


def cholesky(A: Tensor, ok: Tensor) -> Tuple[Tensor, Tensor]:
    """Factors; samples that have none get the identity and are marked."""
    L, info = torch.linalg.cholesky_ex(A)
    good = (info == 0) & torch.isfinite(L).all(2).all(1)
    eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return torch.where(over_matrix(good), L, eye), ok & good


def cholesky_of_rows(gram: Tensor, mixed_units: bool, ok: Tensor) -> Tuple[Tensor, Tensor]:
    """The same of Gram matrices J Jᵀ, also marking samples whose rows are not independent.

    mixed_units: the rule is of the rows scaled to length one.
    """
    L, ok = cholesky(gram, ok)
    part = L.diagonal(0, 1, 2)
    if mixed_units:
        part = part / gram.diagonal(0, 1, 2).sqrt()
    good = part.amin(1) > RANK_TOLERANCE * part.amax(1)
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return torch.where(over_matrix(good), L, eye), ok & good


def solve_lower(L: Tensor, B: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(L, B, upper=False)


class Singular(NamedTuple):
    sigma: Tensor  # (B, k) largest first
    u: Tensor  # (B, k, rows) one vector per row
    v: Tensor  # (B, k, cols)


def eigen(A: Tensor) -> Tuple[Tensor, Tensor]:
    """Symmetric: values (B, n), largest first, and vectors (B, n, n), one per row."""
    values, vectors = torch.linalg.eigh(A)
    return values.flip(1), vectors.transpose(1, 2).flip(1)


def singular(A: Tensor) -> Singular:
    """Exact, by the eigenvectors of A Aᵀ. A (B, rows, cols), not tall."""
    values, u = eigen(torch.matmul(A, A.transpose(1, 2)))
    sigma = values.clamp_min(0).sqrt()
    v = torch.matmul(u, A) / sigma.clamp_min(1e-12).unsqueeze(2)
    return Singular(sigma, u, v)


def largest_singular(A: Tensor) -> Singular:
    """The largest alone, by squaring A Aᵀ ten times: matrix products and nothing else."""

    def unit(x: Tensor) -> Tensor:
        return x / x.norm(2, 2, True).clamp_min(1e-30)

    gram = torch.matmul(A, A.transpose(1, 2))
    C = gram
    for _ in range(10):
        C = C / C.diagonal(0, 1, 2).sum(1).clamp_min(1e-30).view(-1, 1, 1)
        C = torch.matmul(C, C)
    # the column with the largest diagonal entry has most of the first vector in it
    index = C.diagonal(0, 1, 2).argmax(1).view(-1, 1, 1).expand(-1, C.shape[1], 1)
    u = C.gather(2, index).transpose(1, 2)
    # two steps on the matrix itself take off the rounding of the squarings
    for _ in range(2):
        u = unit(torch.matmul(unit(u), gram))
    w = torch.matmul(u, A)
    return Singular(w.norm(2, 2), u, unit(w))


def embedded(re: Tensor, im: Tensor) -> Tensor:
    """A complex matrix as the real one [Re −Im; Im Re]: it has the norm, and for a Hermitian one the
    eigenvalues."""
    return torch.cat((torch.cat((re, -im), 2), torch.cat((im, re), 2)), 1)


def inverse(A: Tensor) -> Tensor:
    """A⁻¹; entries are not finite where A is singular."""
    return torch.linalg.inv_ex(A)[0]

# SPDX-License-Identifier: Apache-2.0
"""What the terms of a penalty share: the hinge (S8), means over samples, a value with a gradient."""

from __future__ import annotations

from typing import Tuple

from torch import Tensor

from ..budget import check_choice


def hinge(sigma: Tensor, kind: str, bound: Tensor) -> Tuple[Tensor, Tensor]:
    """Value and slope of (S8) at σ/bound: square (σ/b − 1)₊², log (ln σ/b)₊²."""
    check_choice("hinge", kind, ("square", "log"))
    if kind == "log":
        over = (sigma / bound).clamp_min(1).log()
        return over.square(), 2 * over / sigma.clamp_min(1e-12)
    over = (sigma / bound - 1).clamp_min(0)
    return over.square(), 2 * over / bound


def with_gradient(value: Tensor, surrogate: Tensor) -> Tensor:
    """`value`, with the gradient of `surrogate`."""
    return value.detach() + (surrogate - surrogate.detach())


def mean_of(value: Tensor, ok: Tensor) -> Tensor:
    """Mean of a value per sample, those that take no part counted as 0."""
    return (value * ok.to(value.dtype)).mean()

# SPDX-License-Identifier: Apache-2.0
"""Policies trained elsewhere, written so that ``silc observe``, ``eval``, ``view`` and ``deploy`` take them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Dict, Optional, Union

from . import _core
from .budget import Budget
from .policy import Layout

_ACTIVATIONS = {
    "ELU": ("elu", "alpha"),
    "ReLU": ("relu", None),
    "LeakyReLU": ("leaky_relu", "negative_slope"),
    "Tanh": ("tanh", None),
    "Sigmoid": ("sigmoid", None),
    "Softplus": ("softplus", None),
}


def export(
    actor,
    layout: Union[Layout, str],
    path: str,
    *,
    budget: Union[Budget, str, None] = None,
    notes: Optional[Dict[str, str]] = None,
) -> None:
    """Writes an actor as an ONNX file that carries its layout.

    Args:
        actor: a PyTorch module: an ``nn.Sequential`` of linear layers and activations, with a
            normaliser before them or without, several of them (``silc.torch.SideBySide`` or a list),
            or a module of rsl_rl (``obs_normalizer`` and ``mlp``).
        layout: what it sees and how its answer becomes joint targets: a ``Layout``, a name or a file.
        path: of the file to write.
        budget: to judge it by, kept in the file: a ``Budget``, or a name such as "compliance". One
            with ranges makes a commanded policy; ``Layout.with_budget_terms()`` has what it sees.
        notes: silc_task, silc_method, … for the file's metadata.

    Raises ValueError when the actor is no plain MLP or does not fit the layout.
    """
    from torch import nn

    from .torch.actors import SideBySide, mlp_branch

    layout = Layout.read(layout) if isinstance(layout, str) else layout
    if hasattr(actor, "mlp") and hasattr(actor, "obs_normalizer"):
        actor = nn.Sequential(actor.obs_normalizer, *actor.mlp)
    if isinstance(actor, SideBySide):
        actor = list(actor.actors)
    modules = list(actor) if isinstance(actor, (list, tuple, nn.ModuleList)) else [actor]
    branches, normaliser = [], None
    for module in modules:
        branch = mlp_branch(module)
        if branch is None:
            raise ValueError(
                f"actor: {type(module).__name__} is no plain MLP (nn.Sequential of Linear and "
                f"{', '.join(_ACTIVATIONS)}); export it with torch.onnx and give silc a layout file"
            )
        scaling = None
        if branch.scaling is not None:
            scaling = tuple(t.detach().float().cpu().tolist() for t in branch.scaling)
        if module is not modules[0] and scaling != normaliser:
            raise ValueError("actor: its parts normalise their inputs differently")
        normaliser = scaling
        branches.append([_layer(layer) for layer in branch.layers])
    mode = budget if isinstance(budget, str) else ""
    budget = Budget.read(budget) if isinstance(budget, str) else budget
    _core.write_policy(
        str(path),
        normaliser,
        branches,
        layout._core,
        dict(notes or {}),
        None if budget is None else asdict(budget),
        mode,
    )


def _layer(layer):
    kind, alpha = "none", 1.0
    if layer.activation is not None:
        name = type(layer.activation).__name__
        if name not in _ACTIVATIONS:
            raise ValueError(f"actor: {name} cannot be written: {', '.join(_ACTIVATIONS)}")
        kind, attribute = _ACTIVATIONS[name]
        alpha = float(getattr(layer.activation, attribute)) if attribute else 1.0
    weight = layer.linear.weight.detach().float().cpu().contiguous()
    bias = layer.linear.bias
    bias = weight.new_zeros(weight.shape[0]) if bias is None else bias.detach().float().cpu().contiguous()
    return weight.numpy(), bias.numpy(), kind, alpha

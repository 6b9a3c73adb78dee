# SPDX-License-Identifier: Apache-2.0
"""Derivatives of an actor against its observation, off and on the tape.

Two ways, held together by test. A plain MLP (``nn.Sequential`` of linear layers and activations, or
several of them side by side) is multiplied out by hand: matrix products alone, which
``torch.compile`` takes whole. Any other module goes through autograd.
"""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

Actor = Union[nn.Module, Sequence[nn.Module], Callable[[Tensor], Tensor]]


def _elu_slope(alpha: float) -> Callable[[Tensor], Tensor]:
    if alpha == 1.0:
        return lambda z: torch.exp(z.clamp_max(0))
    return lambda z: torch.where(z > 0, torch.ones_like(z), alpha * torch.exp(z.clamp_max(0)))


def _slope_of(activation: nn.Module) -> Optional[Callable[[Tensor], Tensor]]:
    """act'(z); on the tape where z is, so that act'' follows. None: not known here."""
    kind = type(activation)
    if kind is nn.ELU:
        return _elu_slope(float(activation.alpha))
    if kind is nn.ReLU:
        return lambda z: (z > 0).to(z.dtype)
    if kind is nn.LeakyReLU:
        low = float(activation.negative_slope)
        return lambda z: torch.where(z > 0, torch.ones_like(z), torch.full_like(z, low))
    if kind is nn.Tanh:
        return lambda z: 1 - torch.tanh(z).square()
    if kind is nn.Sigmoid:
        return lambda z: torch.sigmoid(z) * (1 - torch.sigmoid(z))
    if kind is nn.SiLU:
        return lambda z: torch.sigmoid(z) * (1 + z * (1 - torch.sigmoid(z)))
    if kind is nn.Softplus and activation.beta == 1:
        return torch.sigmoid
    return None


class InputScaling(nn.Module):
    """o ↦ (o − mean)/spread, constants of the moment: a normaliser before an MLP."""

    def __init__(self, mean: Tensor, spread: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)

    def forward(self, observations: Tensor) -> Tensor:
        return (observations - self.mean) / self.spread


def input_scaling(module: nn.Module) -> Optional[Tuple[Tensor, Tensor]]:
    """Mean and spread, (obs) each, of a normaliser that is known here; None: it is none."""
    if isinstance(module, InputScaling):
        return module.mean, module.spread
    # rsl_rl's: (x − mean)/(std + eps), buffers of one row
    if type(module).__name__ == "EmpiricalNormalization" and hasattr(module, "_std"):
        return module._mean.reshape(-1), module._std.reshape(-1) + module.eps
    return None


class Layer(NamedTuple):
    linear: nn.Linear
    activation: Optional[nn.Module]
    slope: Optional[Callable[[Tensor], Tensor]]


class Branch(NamedTuple):
    """A plain MLP: (o − mean)/spread, where there is a normaliser, then its layers."""

    scaling: Optional[Tuple[Tensor, Tensor]]
    layers: List[Layer]


def _flatten(module: nn.Module) -> List[nn.Module]:
    if isinstance(module, nn.Sequential):
        return [leaf for child in module for leaf in _flatten(child)]
    return [module]


def mlp_branch(module: nn.Module) -> Optional[Branch]:
    """A module as a plain MLP, or None when it is something else.

    Taken are ``nn.Sequential`` and subclasses that leave ``forward`` as it is; hooks make a module
    something else.
    """
    if not isinstance(module, nn.Sequential) or type(module).forward is not nn.Sequential.forward:
        return None
    scaling, layers = None, []
    for leaf in _flatten(module):
        if leaf._forward_hooks or leaf._forward_pre_hooks:
            return None
        if type(leaf) is nn.Identity:
            continue
        if type(leaf) is nn.Linear:
            layers.append(Layer(leaf, None, None))
            continue
        if not layers and scaling is None:
            scaling = input_scaling(leaf)
            if scaling is not None:
                continue
        slope = _slope_of(leaf)
        if slope is None or not layers or layers[-1].activation is not None:
            return None
        layers[-1] = Layer(layers[-1].linear, leaf, slope)
    return Branch(scaling, layers) if layers else None


class Linearised:
    """An actor around a batch of observations."""

    output: Tensor  # (B, nu) on the tape

    def jacobian(self, columns: Tensor) -> Tensor:
        """∂a/∂o E, exact, off the tape.  columns (obs, c) → (B, nu, c)"""
        raise NotImplementedError

    def along(self, p: Tensor, columns: Tensor, direction: Tensor) -> Tensor:
        """Σ over samples and k of p · (∂a/∂o E r), on the tape of the weights; p and r frozen.

        p (B, k, nu), columns (obs, c), direction r (B, k, c) → scalar
        """
        raise NotImplementedError

    def observation_gradient(self, e: Tensor) -> Tensor:
        """(∂a/∂o)ᵀ e, on the tape.  e (B, nu) → (B, obs)"""
        raise NotImplementedError


class LinearisedMlp(Linearised):
    """Plain MLPs side by side: W_L D_{L−1} W_{L−1} … D_1 (W_1 E), multiplied from the left (P11)."""

    def __init__(self, branches: Sequence[Branch], observations: Tensor) -> None:
        self.branches = branches
        self.slopes: List[List[Optional[Tensor]]] = []
        outputs = []
        for scaling, layers in branches:
            x, slopes = observations, []
            if scaling is not None:
                x = (x - scaling[0]) / scaling[1]
            for layer in layers:
                z = layer.linear(x)
                slopes.append(None if layer.slope is None else layer.slope(z))
                x = z if layer.activation is None else layer.activation(z)
            self.slopes.append(slopes)
            outputs.append(x)
        self.output = torch.cat(outputs, 1)

    @staticmethod
    def _scaled(columns: Tensor, scaling: Optional[Tuple[Tensor, Tensor]]) -> Tensor:
        return columns if scaling is None else columns / scaling[1].unsqueeze(1)

    def jacobian(self, columns: Tensor) -> Tensor:
        given = columns
        with torch.no_grad():
            rows = []
            for (scaling, layers), slopes in zip(self.branches, self.slopes):
                columns = self._scaled(given, scaling)
                size = slopes[-1].shape[1] if slopes[-1] is not None else layers[-1].linear.out_features
                batch = self.output.shape[0]
                Y = layers[-1].linear.weight.unsqueeze(0)
                if slopes[-1] is not None:
                    Y = slopes[-1].unsqueeze(2) * Y
                for l in range(len(layers) - 2, -1, -1):
                    if slopes[l] is not None:
                        Y = Y * slopes[l].unsqueeze(1)
                    if l > 0:
                        Y = torch.matmul(Y, layers[l].linear.weight)
                if len(layers) == 1:
                    rows.append(torch.matmul(Y, columns).expand(batch, size, columns.shape[1]))
                else:
                    rows.append(torch.matmul(Y, torch.mm(layers[0].linear.weight, columns)))
            return torch.cat(rows, 1)

    def along(self, p: Tensor, columns: Tensor, direction: Tensor) -> Tensor:
        outputs = []
        for (scaling, layers), slopes in zip(self.branches, self.slopes):
            first = torch.mm(layers[0].linear.weight, self._scaled(columns, scaling))
            t = torch.matmul(direction, first.t())
            for l, layer in enumerate(layers):
                if l > 0:
                    t = torch.matmul(t, layer.linear.weight.t())
                if slopes[l] is not None:
                    t = slopes[l].unsqueeze(1) * t
            outputs.append(t)
        return (p * torch.cat(outputs, 2)).sum()

    def observation_gradient(self, e: Tensor) -> Tensor:
        total, column = None, 0
        for (scaling, layers), slopes in zip(self.branches, self.slopes):
            width = layers[-1].linear.out_features
            g = e[:, column : column + width]
            column += width
            for l in range(len(layers) - 1, -1, -1):
                if slopes[l] is not None:
                    g = g * slopes[l]
                g = torch.mm(g, layers[l].linear.weight)
            g = g if scaling is None else g / scaling[1]
            total = g if total is None else total + g
        return total


class LinearisedByAutograd(Linearised):
    """Any module that maps each row by itself (no batch statistics, no noise)."""

    def __init__(self, actor: Callable[[Tensor], Tensor], observations: Tensor) -> None:
        with torch.enable_grad():
            self.x = observations.detach().requires_grad_(True)
            self.output = actor(self.x)

    def jacobian(self, columns: Tensor) -> Tensor:
        B, nu = self.output.shape
        seeds = torch.eye(nu, dtype=self.output.dtype, device=self.output.device)
        seeds = seeds.unsqueeze(1).expand(nu, B, nu)
        (rows,) = torch.autograd.grad(
            self.output, self.x, seeds, retain_graph=True, is_grads_batched=True
        )
        return torch.matmul(rows.transpose(0, 1), columns)

    def along(self, p: Tensor, columns: Tensor, direction: Tensor) -> Tensor:
        # pᵀ J r is (Jᵀ p) · r: one pull-back per tangent, itself on the tape
        (pulled,) = torch.autograd.grad(
            self.output, self.x, p.transpose(0, 1), create_graph=True, is_grads_batched=True
        )
        moved = torch.matmul(direction, columns.t())  # (B, k, obs)
        return (pulled.transpose(0, 1) * moved).sum()

    def observation_gradient(self, e: Tensor) -> Tensor:
        (g,) = torch.autograd.grad(self.output, self.x, e, create_graph=True)
        return g


class SideBySide(nn.Module):
    """Several actors on one observation, their actions one after the other."""

    def __init__(self, actors: Sequence[nn.Module]) -> None:
        super().__init__()
        self.actors = nn.ModuleList(actors)

    def forward(self, observations: Tensor) -> Tensor:
        return torch.cat([actor(observations) for actor in self.actors], 1)


def linearise(actor: Actor, observations: Tensor) -> Linearised:
    """Evaluates the actor and keeps what its derivatives need."""
    if isinstance(actor, SideBySide):
        actor = list(actor.actors)
    if isinstance(actor, (list, tuple, nn.ModuleList)):
        branches = [mlp_branch(a) for a in actor]
        if all(b is not None for b in branches):
            return LinearisedMlp(branches, observations)
        return LinearisedByAutograd(SideBySide(list(actor)), observations)
    branch = mlp_branch(actor) if isinstance(actor, nn.Module) else None
    if branch is not None:
        return LinearisedMlp([branch], observations)
    return LinearisedByAutograd(actor, observations)

# SPDX-License-Identifier: Apache-2.0
"""Humanoid policies whose stiffness is specified, observed and bounded.

    policy = silc.load_policy("policy.onnx")            # what the network sees comes with the file
    moment = silc.observe(policy, model, data)          # your own mujoco.MjModel and MjData

``silc.torch`` bounds stiffness in trainings. docs/python.md begins with an example of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .budget import Budget, BudgetCommand

__version__ = "0.1.0"
__all__ = [
    "Budget",
    "BudgetCommand",
    "Layout",
    "Moment",
    "Observer",
    "Policy",
    "PolicyJacobians",
    "Robot",
    "export",
    "load_policy",
    "observe",
]

if TYPE_CHECKING:
    from .exporting import export
    from .observer import Moment, Observer, observe
    from .policy import Layout, Policy, PolicyJacobians, load_policy
    from .robot import Robot

# The compiled module is loaded when it is first asked for: silc.torch does without.
_PLACES = {
    "Layout": "policy",
    "Moment": "observer",
    "Observer": "observer",
    "Policy": "policy",
    "PolicyJacobians": "policy",
    "Robot": "robot",
    "export": "exporting",
    "load_policy": "policy",
    "observe": "observer",
}


def __getattr__(name: str):
    if name not in _PLACES:
        raise AttributeError(f"module 'silc' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__():
    return sorted([*globals(), *_PLACES])

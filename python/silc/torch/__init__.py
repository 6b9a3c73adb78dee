# SPDX-License-Identifier: Apache-2.0
"""The stiffness bound for trainings in PyTorch.

    from silc.torch import Budget, StiffnessPenalty
    penalty = StiffnessPenalty(Budget(com=(200, 200, 20000)), channels, kp, alpha)
    loss = task_loss + penalty(actor, observations, contacts)

Pure PyTorch: nothing here loads silc's compiled module. docs/python.md begins with an example.
"""

from ..budget import Budget, BudgetCommand, CommandInput
from .actors import InputScaling, SideBySide, linearise
from .circle import draw_loop_angles
from .command import command_inputs, command_terms, commands_in, draw_commands
from .contact import (
    BodyJacobians,
    BudgetFactors,
    Contacts,
    budget_factors,
    contact_kinematics,
)
from .frequency import FrequencyPoint, make_frequency_points
from .penalty import (
    PenaltyOptions,
    PenaltyResult,
    PenaltyWeight,
    StiffnessPenalty,
    add_gradients,
    anisotropic_penalty,
    log_prob_gradient_penalty,
    paper_penalty,
    scalar_penalty,
    static_penalty,
)
from .stiffness import (
    Channels,
    condition_matrix,
    one_step_stiffness,
    settle,
    sigma,
    static_stiffness,
)
from .terms import hinge

__all__ = [
    "BodyJacobians",
    "Budget",
    "BudgetCommand",
    "BudgetFactors",
    "Channels",
    "CommandInput",
    "Contacts",
    "FrequencyPoint",
    "InputScaling",
    "PenaltyOptions",
    "PenaltyResult",
    "PenaltyWeight",
    "SideBySide",
    "StiffnessPenalty",
    "add_gradients",
    "anisotropic_penalty",
    "budget_factors",
    "command_inputs",
    "command_terms",
    "commands_in",
    "condition_matrix",
    "contact_kinematics",
    "draw_commands",
    "draw_loop_angles",
    "hinge",
    "linearise",
    "log_prob_gradient_penalty",
    "make_frequency_points",
    "one_step_stiffness",
    "paper_penalty",
    "scalar_penalty",
    "settle",
    "sigma",
    "static_penalty",
    "static_stiffness",
]

# SPDX-License-Identifier: Apache-2.0
"""Feet and hands of robots by name, for trainings without the compiled module.

Numbers of robots/*/robot.yaml and their MJCF; test_adapters.py holds the two together.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

from .torch.tree import PointOnBody, point_in_model

# Body, site and, for models without the site, its place on the body [m]; forces [N] at which a foot
# begins and stops to stand.
ROBOTS: Dict[str, dict] = {
    "g1": {
        "feet": (
            ("left_ankle_roll_link", "left_foot", (0.04, 0, -0.035)),
            ("right_ankle_roll_link", "right_foot", (0.04, 0, -0.035)),
        ),
        "hands": (
            ("left_wrist_yaw_link", "left_palm", (0.08, 0, 0)),
            ("right_wrist_yaw_link", "right_palm", (0.08, 0, 0)),
        ),
        "force": (40.0, 16.0),
    },
    "t1": {
        "feet": (
            ("left_foot_link", "left_foot", (0.01, 0, -0.04)),
            ("right_foot_link", "right_foot", (0.01, 0, -0.04)),
        ),
        "hands": (
            ("left_hand_link", "left_palm", (0, 0.1, 0)),
            ("right_hand_link", "right_palm", (0, -0.1, 0)),
        ),
        "force": (40.0, 16.0),
    },
}


def robot_points(robot: str) -> dict:
    """What is known of a robot; ValueError that lists the known ones otherwise."""
    if robot not in ROBOTS:
        raise ValueError(f"robot: '{robot}' is not one of {', '.join(ROBOTS)}; add it to silc.known_robots.ROBOTS")
    return ROBOTS[robot]


def points_of(robot: str, model, prefix: str = "") -> Tuple[List[PointOnBody], List[PointOnBody]]:
    """Feet and hands of a known robot in a model; ValueError names what the model has not."""
    known = robot_points(robot)
    feet, hands = (
        [point_in_model(model, prefix + body, prefix + site, offset) for body, site, offset in points]
        for points in (known["feet"], known["hands"])
    )
    return feet, hands

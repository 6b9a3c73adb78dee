# SPDX-License-Identifier: Apache-2.0
"""A robot.yaml as data: joints in the robot's order, feet, hands, gains, poses."""

from __future__ import annotations

import xml.etree.ElementTree
from dataclasses import dataclass, replace
from typing import Dict, Optional, Tuple

import numpy as np

from . import _core
from .files import DEFAULT_ROBOT, find


@dataclass(frozen=True)
class Point:
    """A point of a body: a named site where the model has it, else a place in the body's frame."""

    body: str
    site: str
    offset: Optional[Tuple[float, float, float]] = None
    """[m] in the body's frame, for models without the site"""


@dataclass(frozen=True)
class Gains:
    """The servo (S1): τ = kp (q_ref + α a − q) − kd q̇, one entry per joint."""

    kp: np.ndarray
    """[N·m/rad]"""
    kd: np.ndarray
    """[N·m·s/rad]"""
    action_scale: np.ndarray
    """[rad]"""


@dataclass(frozen=True)
class Robot:
    """What silc needs to know of a robot beyond its MJCF. ``Robot.read("g1")``."""

    name: str
    joints: Tuple[str, ...]
    """the robot's order: rows and columns of every joint-space matrix"""
    base: str
    """the body with the free joint"""
    feet: Tuple[Point, Point]
    """left, right"""
    hands: Tuple[Point, ...]
    """left, right; or none"""
    foot_force: Tuple[float, float]
    """[N] normal force above which a foot begins to stand, below which it stops"""
    gains: Dict[str, Gains]
    default_gains: str
    poses: Dict[str, np.ndarray]
    """[rad]"""
    default_pose: str
    control_period: float
    """[s]"""
    model_file: str
    """silc's own MJCF of it"""

    @staticmethod
    def read(name: str = DEFAULT_ROBOT) -> "Robot":
        """A robot by name, or by the path of its robot.yaml or folder. ValueError otherwise."""
        d = _core.read_robot(find("robots", name, "{}/robot.yaml", "SILC_ROBOTS"))
        sites = _sites(d["model_file"])
        return Robot(
            name=d["name"],
            joints=tuple(d["joints"]),
            base=d["base"],
            feet=tuple(Point(f["body"], f["site"], sites.get(f["site"])) for f in d["feet"]),
            hands=tuple(Point(body, site, sites.get(site)) for body, site in d["hands"]),
            foot_force=tuple(d["foot_force"]),
            gains={k: Gains(*v) for k, v in d["gains"].items()},
            default_gains=d["default_gains"],
            poses={k: v[1] for k, v in d["poses"].items()},
            default_pose=d["default_pose"],
            control_period=d["control_period"],
            model_file=d["model_file"],
        )

    def with_points(self, **points: Point) -> "Robot":
        """The robot with other points: left_foot, right_foot, left_hand, right_hand."""
        feet, hands = list(self.feet), list(self.hands)
        for name, point in points.items():
            if name not in ("left_foot", "right_foot", "left_hand", "right_hand"):
                raise ValueError(f"{name}: not one of left_foot, right_foot, left_hand, right_hand")
            where = feet if name.endswith("foot") else hands
            if len(where) < 2:
                raise ValueError(f"{name}: {self.name} has no hands")
            where[0 if name.startswith("left") else 1] = point
        return replace(self, feet=tuple(feet), hands=tuple(hands))


def _sites(model_file: str) -> Dict[str, Tuple[float, float, float]]:
    # silc's own MJCF says where its sites are, for models of the same bodies without them
    try:
        tree = xml.etree.ElementTree.parse(model_file)
    except (OSError, xml.etree.ElementTree.ParseError):
        return {}
    return {
        s.get("name"): tuple(float(v) for v in s.get("pos", "0 0 0").split())
        for s in tree.iter("site")
        if s.get("name")
    }

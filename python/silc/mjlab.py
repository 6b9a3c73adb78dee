# SPDX-License-Identifier: Apache-2.0
"""mjlab: observation terms that supply Jacobians and contact modes, and what a penalty needs of an environment.

    from silc.mjlab import add_stiffness_terms
    add_stiffness_terms(env_cfg)                                       # the G1; robot="t1" for the T1
    agent_cfg.algorithm = silc.mjlab.SilcAlgorithmCfg(budget="compliance")

The group "silc" that is added goes into the rollout storage beside the others; no network sees it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict

import torch
from mjlab.rl.config import RslRlPpoAlgorithmCfg

from .files import DEFAULT_MODE, DEFAULT_ROBOT
from .packing import GROUP, PenaltySetup, pack_contacts
from .torch.contact import UNKNOWN_MODE, contact_kinematics
from .torch.stiffness import Channels
from .torch.tree import FootContacts, TreeJacobians, point_in_model

# What is known of each robot: body, site and, for models without the site, its place on the body [m];
# forces [N] at which a foot begins and stops to stand. Numbers of robots/*/robot.yaml and their MJCF.
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
        raise ValueError(f"robot: '{robot}' is not one of {', '.join(ROBOTS)}; add it to silc.mjlab.ROBOTS")
    return ROBOTS[robot]


class stiffness_terms:
    """Observation term: contact mode and the Jacobians of (S5), (B, 1 + PER_JOINT n), of every environment."""

    def __init__(self, cfg, env) -> None:
        entity, known = cfg.params.get("entity", "robot"), robot_points(cfg.params["robot"])
        model = env.sim.mj_model
        prefix = entity + "/"
        asset = env.scene[entity]
        indexing = asset.indexing
        joints = [int(j) for j in indexing.joint_ids]

        def points(name):
            return [
                point_in_model(model, prefix + body, prefix + site, offset)
                for body, site, offset in known[name]
            ]

        self.tree = TreeJacobians(
            model,
            int(indexing.root_body_id),
            joints,
            points("feet"),
            points("hands"),
            env.device,
        )
        self.contacts = FootContacts(*known["force"])
        self.sensor = cfg.params["sensor"]
        self.fresh = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)

    def reset(self, env_ids=None) -> None:
        self.fresh[slice(None) if env_ids is None else env_ids] = True

    def __call__(self, env, **_) -> torch.Tensor:
        data = env.sim.data
        force = env.scene[self.sensor].data.force  # (B, 2, 3) [N] in the world
        mode = self.contacts.update(force[..., 2].abs())
        # at an episode's first moment nothing is known of the contacts
        mode = torch.where(self.fresh, torch.full_like(mode, UNKNOWN_MODE), mode)
        self.fresh = torch.zeros_like(self.fresh)
        body = self.tree(data.xanchor, data.xaxis, data.xpos, data.xmat, data.subtree_com)
        return pack_contacts(contact_kinematics(body, mode))


def add_stiffness_terms(
    env_cfg, robot: str = DEFAULT_ROBOT, sensor: str = "feet_ground_contact", entity: str = "robot"
) -> None:
    """Adds the group "silc" to an environment's observations.

    sensor: a contact sensor with forces of the left, then the right foot.
    """
    from mjlab.managers.observation_manager import ObservationGroupCfg, ObservationTermCfg

    robot_points(robot)
    names = [s.name for s in env_cfg.scene.sensors or ()]
    if sensor not in names:
        raise ValueError(f"sensor: the scene has no '{sensor}' among {', '.join(names)}")
    params = {"robot": robot, "sensor": sensor, "entity": entity}
    env_cfg.observations[GROUP] = ObservationGroupCfg(
        terms={"stiffness": ObservationTermCfg(func=stiffness_terms, params=params)},
        concatenate_terms=True,
        enable_corruption=False,
    )


@dataclass
class SilcAlgorithmCfg(RslRlPpoAlgorithmCfg):
    """PPO with the penalty: fields of mjlab's, the class, and what silc is told."""

    class_name: str = "silc.rsl_rl:SilcPPO"
    budget: Any = DEFAULT_MODE
    """name, file or dict of silc.Budget's fields"""
    penalty: Dict[str, Any] = field(default_factory=dict)
    """options of silc.torch.PenaltyOptions.of()"""

    @staticmethod
    def of(plain: RslRlPpoAlgorithmCfg, **silc: Any) -> "SilcAlgorithmCfg":
        """A task's own PPO settings, with the penalty."""
        settings = asdict(plain)
        settings.pop("class_name")
        return SilcAlgorithmCfg(**settings, **silc)


def describe(env) -> PenaltySetup:
    """Channels, gains and action scale of an mjlab environment with joint position actions."""
    env = env.unwrapped
    model, asset = env.sim.mj_model, env.scene["robot"]
    joints = [int(j) for j in asset.indexing.joint_ids]
    n, column = len(joints), {j: i for i, j in enumerate(joints)}

    # gains of position actuators on these joints
    kp, kd = torch.zeros(n), torch.zeros(n)
    for a in range(model.nu):
        joint = int(model.actuator_trnid[a, 0])
        if joint in column:
            kp[column[joint]] = float(model.actuator_gainprm[a, 0])
            kd[column[joint]] = -float(model.actuator_biasprm[a, 2])
    if not bool((kp > 0).all()):
        missing = [asset.joint_names[i] for i in range(n) if not kp[i] > 0]
        raise ValueError(f"env: no position actuator on {', '.join(missing)}")

    # which joint each action moves, and how far
    manager = env.action_manager
    if len(manager.active_terms) != 1:
        raise ValueError(f"env: one action term is expected, there are {', '.join(manager.active_terms)}")
    term = manager.get_term(manager.active_terms[0])
    action_joint = [int(i) for i in term.target_ids]
    scale = term.scale
    scale = scale[0].cpu() if isinstance(scale, torch.Tensor) else torch.full((len(action_joint),), scale)
    alpha = torch.zeros(n)
    alpha[torch.as_tensor(action_joint)] = scale

    channels = _channels(env.observation_manager, "actor", n, action_joint)
    if action_joint != list(range(n)):
        channels = channels._replace(action_joint=torch.as_tensor(action_joint))
    return PenaltySetup(channels, kp, alpha, kd, float(env.step_dt))


_SOURCES = {"joint_pos_rel": "q", "joint_vel_rel": "v", "last_action": "a", "projected_gravity": "g"}


def _channels(manager, group: str, n: int, action_joint) -> Channels:
    """Columns of the terms that move with joints, actions and gravity, from an observation manager."""
    names = manager.active_terms[group]
    dims = manager.group_obs_term_dim[group]
    cfgs = manager._group_obs_term_cfgs[group]
    width = sum(int(d[-1]) for d in dims)
    made: Dict[str, torch.Tensor] = {}
    age = torch.zeros(width, dtype=torch.int64)
    start = 0
    for name, dim, cfg in zip(names, dims, cfgs):
        size = int(dim[-1])
        source = _SOURCES.get(getattr(cfg.func, "__name__", type(cfg.func).__name__))
        frames = max(1, cfg.history_length)
        each = size // frames
        if source is not None:
            scale = torch.ones(each) if cfg.scale is None else torch.as_tensor(cfg.scale).cpu().expand(each)
            if source in ("q", "v"):
                ids = cfg.params["asset_cfg"].joint_ids if "asset_cfg" in cfg.params else slice(None)
                columns = list(range(n))[ids] if isinstance(ids, slice) else [int(i) for i in ids]
            else:
                columns = action_joint if source == "a" else [0, 1, 2]
            if len(columns) != each:
                raise ValueError(f"observation term '{name}': {each} numbers, expected {len(columns)}")
            for frame in range(frames):  # oldest first
                newest = frame == frames - 1
                age[start + frame * each : start + (frame + 1) * each] = frames - 1 - frame
                for which in [source] + (["q0"] if source == "q" and newest else []):
                    matrix = made.setdefault(which, torch.zeros(width, 3 if which == "g" else n))
                    for k, c in enumerate(columns):
                        matrix[start + frame * each + k, c] += scale[k]
        start += size
    if "q" not in made:
        raise ValueError(f"observation group '{group}': no term shows joint positions (joint_pos_rel)")
    return Channels(**made, age=age)

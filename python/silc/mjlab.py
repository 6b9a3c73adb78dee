# SPDX-License-Identifier: Apache-2.0
"""mjlab: observation terms that supply Jacobians and contact modes, and what a penalty needs of an environment.

    from silc.mjlab import SilcAlgorithmCfg, add_stiffness_terms
    add_stiffness_terms(env_cfg)                                       # the G1; robot="t1" for the T1
    agent_cfg.algorithm = SilcAlgorithmCfg.of(agent_cfg.algorithm, budget="compliance")

``of()`` keeps the task's own PPO settings; ``SilcAlgorithmCfg(budget=...)`` alone has mjlab's defaults.
The group "silc" that is added goes into the rollout storage beside the others; no network sees it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Sequence

import torch
from mjlab.rl.config import RslRlPpoAlgorithmCfg

from .files import DEFAULT_MODE, DEFAULT_ROBOT
from .known_robots import points_of, robot_points
from .packing import GROUP, PenaltySetup, pack_contacts
from .torch.contact import UNKNOWN_MODE, contact_kinematics
from .torch.stiffness import Channels
from .torch.tree import FootContacts, TreeJacobians

ENTITY = "robot"
"""mjlab's own name for the robot of a scene: what its terms mean where they name no entity"""


def asset_of(env, entity: str):
    """An entity of the scene; ValueError that lists those there are."""
    try:
        return env.scene[entity]
    except KeyError:
        raise ValueError(f"entity: the scene has no '{entity}'{_among(env.scene)}") from None


def _among(scene) -> str:
    names = getattr(scene, "entities", None)
    return f" among {', '.join(names)}" if names else ""


class stiffness_terms:
    """Observation term: contact mode and the Jacobians of (S5), (B, 1 + PER_JOINT n), of every environment."""

    def __init__(self, cfg, env) -> None:
        entity, robot = cfg.params.get("entity", ENTITY), cfg.params["robot"]
        model, indexing = env.sim.mj_model, asset_of(env, entity).indexing
        joints = [int(j) for j in indexing.joint_ids]
        feet, hands = points_of(robot, model, entity + "/")
        self.tree = TreeJacobians(model, int(indexing.root_body_id), joints, feet, hands, env.device)
        self.contacts = FootContacts(*robot_points(robot)["force"])
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
    env_cfg, robot: str = DEFAULT_ROBOT, sensor: str = "feet_ground_contact", entity: str = ENTITY
) -> None:
    """Adds the group "silc" to an environment's observations.

    Args:
        robot: whose feet and hands, of silc.known_robots.
        sensor: a contact sensor with forces of the left, then the right foot.
        entity: the robot's name in the scene; describe() takes joints and gains of the same one.
    """
    from mjlab.managers.observation_manager import ObservationGroupCfg, ObservationTermCfg

    robot_points(robot)
    if entity not in env_cfg.scene.entities:
        raise ValueError(f"entity: the scene has no '{entity}'{_among(env_cfg.scene)}")
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


def describe(env, groups: Sequence[str] = ("actor",), entity: Optional[str] = None) -> PenaltySetup:
    """Channels, gains and action scale of an mjlab environment with joint position actions.

    Args:
        groups: the observation groups that the actor sees, in its order (``obs_groups["actor"]``).
        entity: the robot's name in the scene; default: the one of add_stiffness_terms().
    """
    env = env.unwrapped
    entity = _entity_of(env) if entity is None else entity
    model, asset = env.sim.mj_model, asset_of(env, entity)
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
    moves = getattr(getattr(term, "cfg", None), "entity_name", entity)
    if moves != entity:
        raise ValueError(f"action term '{manager.active_terms[0]}': moves '{moves}', and the penalty is of '{entity}'")
    action_joint = [int(i) for i in term.target_ids]
    scale = term.scale
    scale = scale[0].cpu() if isinstance(scale, torch.Tensor) else torch.full((len(action_joint),), scale)
    alpha = torch.zeros(n)
    alpha[torch.as_tensor(action_joint)] = scale

    channels = _channels(env.observation_manager, groups, entity, n, action_joint)
    if action_joint != list(range(n)):
        channels = channels._replace(action_joint=torch.as_tensor(action_joint))
    return PenaltySetup(channels, kp, alpha, kd, float(env.step_dt))


def _entity_of(env) -> str:
    # the robot whose Jacobians the environment's term supplies
    for cfg in env.observation_manager._group_obs_term_cfgs.get(GROUP, []):
        if "entity" in cfg.params:
            return cfg.params["entity"]
    return ENTITY


_SOURCES = {"joint_pos_rel": "q", "joint_vel_rel": "v", "last_action": "a", "projected_gravity": "g"}


def _source_of(cfg, entity: str) -> Optional[str]:
    """q, v, a or g that a term shows of the entity; None: it moves with none of these."""
    source = _SOURCES.get(getattr(cfg.func, "__name__", type(cfg.func).__name__))
    asset_cfg = cfg.params.get("asset_cfg")
    shows = ENTITY if asset_cfg is None else asset_cfg.name
    return None if source != "a" and shows != entity else source


class _Term:
    """One observation term: where it begins among the actor's inputs, and how it is laid out."""

    def __init__(self, name: str, cfg, start: int, dim: Sequence[int]) -> None:
        self.name, self.cfg, self.start = name, cfg, start
        self.size, self.frames = int(dim[-1]), max(1, cfg.history_length)
        self.each = self.size // self.frames


def _terms(manager, groups: Sequence[str]) -> List[_Term]:
    terms: List[_Term] = []
    start = 0
    for group in groups:
        if group not in manager.active_terms:
            raise ValueError(
                f"observation group '{group}': the environment has none of that name among "
                f"{', '.join(manager.active_terms)}"
            )
        rows = zip(
            manager.active_terms[group], manager._group_obs_term_cfgs[group], manager.group_obs_term_dim[group]
        )
        for name, cfg, dim in rows:
            if len(dim) != 1:
                raise ValueError(f"observation term '{name}': shape {tuple(dim)}, expected one row of numbers")
            terms.append(_Term(name, cfg, start, dim))
            start += terms[-1].size
    return terms


def _channels(manager, groups: Sequence[str], entity: str, n: int, action_joint: Sequence[int]) -> Channels:
    """Columns of the terms that move with joints, actions and gravity, from an observation manager."""
    terms = _terms(manager, groups)
    width = sum(t.size for t in terms)
    made: Dict[str, torch.Tensor] = {}
    age = torch.zeros(width, dtype=torch.int64)
    for term in terms:
        cfg, source, each = term.cfg, _source_of(term.cfg, entity), term.each
        if source is None:
            continue
        scale = torch.ones(each) if cfg.scale is None else torch.as_tensor(cfg.scale).cpu().expand(each)
        if source in ("q", "v"):
            ids = cfg.params["asset_cfg"].joint_ids if "asset_cfg" in cfg.params else slice(None)
            columns = list(range(n))[ids] if isinstance(ids, slice) else [int(i) for i in ids]
        else:
            columns = list(action_joint) if source == "a" else [0, 1, 2]
        if len(columns) != each:
            raise ValueError(f"observation term '{term.name}': {each} numbers, expected {len(columns)}")
        for frame in range(term.frames):  # oldest first
            newest, first = frame == term.frames - 1, term.start + frame * each
            age[first : first + each] = term.frames - 1 - frame
            for which in [source] + (["q0"] if source == "q" and newest else []):
                matrix = made.setdefault(which, torch.zeros(width, 3 if which == "g" else n))
                for k, c in enumerate(columns):
                    matrix[first + k, c] += scale[k]
    if "q" not in made:
        raise ValueError(
            f"observation group '{', '.join(groups)}': no term shows joint positions of '{entity}' (joint_pos_rel)"
        )
    return Channels(**made, age=age)

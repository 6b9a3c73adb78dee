# SPDX-License-Identifier: Apache-2.0
"""holosoma: its PPO with a bound on the policy's stiffness.

    silc.holosoma.add_stiffness_terms(env)                             # the G1; robot="t1" for the T1
    algo = silc.holosoma.SilcPPO(env, config, log_dir, device, budget="compliance")

The first line gives an environment of holosoma's own two methods, whichever simulator is behind it:
``silc_setup()`` returns a ``PenaltySetup`` (channels, kp, alpha), and ``silc_contacts()`` the
``silc.torch.Contacts`` of its present state, one row per environment. Other environments bring both
methods themselves; ``silc.torch.kinematics.RobotJacobians`` makes contacts of joint angles.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import torch
from holosoma.agents.ppo.ppo import PPO
from torch import nn

from .files import DEFAULT_ROBOT
from .known_robots import points_of, robot_points
from .packing import PER_JOINT, PenaltySetup, pack_contacts, unpack_contacts
from .torch import Channels, Contacts, PenaltyOptions, add_gradients, contact_kinematics
from .torch.actors import input_scaling
from .torch.contact import UNKNOWN_MODE
from .torch.kinematics import RobotJacobians
from .torch.tree import FootContacts

ACTOR_GROUPS = ("actor_obs",)
"""holosoma's own name for what the actor sees"""


class StiffnessTerms:
    """What a penalty needs of an environment of holosoma's: channels, gains, contact modes, Jacobians.

    Args:
        env: with joint position actions; of its simulator it reads joint angles, the base's pose and
            contact forces.
        robot: whose feet and hands, of silc.known_robots.
        model: ``mujoco.MjModel`` of the robot; default: the MJCF that the robot's config names.
        groups: the observation groups that the actor sees, in its order.
    """

    def __init__(
        self, env, robot: str = DEFAULT_ROBOT, model=None, groups: Sequence[str] = ACTOR_GROUPS
    ) -> None:
        self.env, self.groups, self.joints = env, list(groups), list(env.dof_names)
        known = robot_points(robot)
        model = _model_of(env.robot_config) if model is None else model
        self.jacobians = RobotJacobians(model, self.joints, *points_of(robot, model), device=env.device)
        self.feet = [_body_number(env.simulator.body_names, body) for body, _, _ in known["feet"]]
        self.contacts = FootContacts(*known["force"])

    def silc_setup(self) -> PenaltySetup:
        """Channels, gains and action scale, joints in the environment's order."""
        term, n = _position_action(self.env), len(self.joints)
        gains = {name: getattr(term, name).detach().cpu() for name in ("p_gains", "d_gains", "action_scales")}
        for name, values in gains.items():
            if values.shape != (n,):
                raise ValueError(f"env: {name}: shape {tuple(values.shape)}, expected ({n},)")
        return PenaltySetup(
            _channels(self.env.observation_manager, self.groups, n),
            gains["p_gains"],
            gains["action_scales"],
            gains["d_gains"],
            float(self.env.dt),
        )

    def silc_contacts(self) -> Contacts:
        """Of the present state, one row per environment."""
        simulator = self.env.simulator
        mode = self.contacts.update(simulator.contact_forces[:, self.feet, 2].abs())
        # at an episode's first moment the forces are those of the last one
        fresh = self.env.episode_length_buf == 0
        mode = torch.where(fresh, torch.full_like(mode, UNKNOWN_MODE), mode)
        root = simulator.robot_root_states
        quat_wxyz = root[:, [6, 3, 4, 5]]  # holosoma writes w last
        return contact_kinematics(self.jacobians(simulator.dof_pos, root[:, :3], quat_wxyz), mode)


def add_stiffness_terms(
    env, robot: str = DEFAULT_ROBOT, model=None, groups: Sequence[str] = ACTOR_GROUPS
) -> StiffnessTerms:
    """Gives an environment the two methods that SilcPPO asks for; arguments as StiffnessTerms has them."""
    terms = StiffnessTerms(env, robot, model, groups)
    env.silc_setup, env.silc_contacts = terms.silc_setup, terms.silc_contacts
    return terms


def _model_of(robot_config):
    import mujoco
    from holosoma.utils.path import resolve_asset_path

    asset = robot_config.asset
    spec = mujoco.MjSpec.from_file(str(resolve_asset_path(asset.xml_file, asset.asset_root)))
    # contacts with a floor that the scene brings: a tree needs neither
    for pair in list(spec.pairs):
        spec.delete(pair) if hasattr(spec, "delete") else pair.delete()
    return spec.compile()


def _body_number(names: Sequence[str], body: str) -> int:
    if body not in names:
        raise ValueError(f"env: its simulator has no body '{body}' among {', '.join(names)}")
    return list(names).index(body)


def _position_action(env) -> Any:
    control = env.robot_config.control.control_type
    if control != "P":
        raise ValueError(f"env: control_type '{control}'; stiffness is that of joint position actions, 'P'")
    terms = dict(env.action_manager.iter_terms())
    if len(terms) != 1:
        raise ValueError(f"env: one action term is expected, there are {', '.join(terms)}")
    name, term = next(iter(terms.items()))
    for needed in ("p_gains", "d_gains", "action_scales"):
        if not hasattr(term, needed):
            raise ValueError(f"action term '{name}': has no {needed}: it is no joint position action")
    return term


_SOURCES = {"dof_pos": "q", "dof_vel": "v", "actions": "a", "projected_gravity": "g"}


def _channels(manager, groups: List[str], n: int) -> Channels:
    """Columns of the terms that move with joints, actions and gravity, from an observation manager."""
    for group in groups:
        if group not in manager.cfg.groups:
            raise ValueError(
                f"observation group '{group}': the environment has none of that name among "
                f"{', '.join(manager.cfg.groups)}"
            )
    layout = manager.get_observation_layout(groups)
    width = sum(entry["dim"] * entry["history_length"] for entry in layout)
    made: Dict[str, torch.Tensor] = {}
    age, start = torch.zeros(width, dtype=torch.int64), 0
    for entry in layout:
        each, frames = entry["dim"], entry["history_length"]
        source = _SOURCES.get(entry["func"].rpartition(":")[2])
        if source is not None:
            columns = 3 if source == "g" else n
            if each != columns:
                raise ValueError(f"observation term '{entry['name']}': {each} numbers, expected {columns}")
            block = torch.as_tensor(entry["scale"], dtype=torch.float32).cpu().expand(each).diag()
            for frame in range(frames):  # oldest first
                first = start + frame * each
                age[first : first + each] = frames - 1 - frame
                for which in [source] + (["q0"] if source == "q" and frame == frames - 1 else []):
                    made.setdefault(which, torch.zeros(width, columns))[first : first + each] += block
        start += each * frames
    if "q" not in made:
        raise ValueError(f"observation group '{', '.join(groups)}': no term shows joint positions (dof_pos)")
    return Channels(**made, age=age)


class SilcPPO(PPO):
    """holosoma's PPO; beside its arguments ``budget`` (a Budget, a name or a dict of its fields) and
    ``penalty`` (options of ``PenaltyOptions.of()``). Processes of one training share λ, bound and gradient."""

    def __init__(self, env, *args, budget=None, penalty: Optional[dict] = None, **kwargs) -> None:
        super().__init__(env, *args, **kwargs)
        for name in ("silc_setup", "silc_contacts"):
            if not hasattr(env, name):
                raise ValueError(
                    f"env: has no method {name}(); silc.holosoma.add_stiffness_terms(env) gives it both"
                )
        options = PenaltyOptions.of(**(penalty or {}))
        self.penalty = env.silc_setup().penalty(budget, options).to(self.device)
        self.figures: Dict[str, float] = {}
        self._pairs: list = []

    def _setup_models_and_optimizer(self) -> None:
        super()._setup_models_and_optimizer()
        self.actor_optimizer.register_step_pre_hook(lambda *_: self._add_gradients())

    def _setup_storage(self) -> None:
        super()._setup_storage()
        self.storage.register("silc", shape=(1 + PER_JOINT * self.penalty.kp.shape[0],), dtype=torch.float)
        add = self.storage.add
        # the state that the actor saw, not the one its action led to
        self.storage.add = lambda **data: add(silc=self._seen, **data)

    def _normalize_actor_obs(self, actor_obs, update: bool = True):
        # called once a step of a rollout, before the action
        if update:
            self._seen = pack_contacts(self.env.silc_contacts()).to(self.device)
        return super()._normalize_actor_obs(actor_obs, update)

    def _network(self) -> nn.Module:
        # on observations as the environment gives them: the normaliser's scale is part of the stiffness
        return nn.Sequential(self.actor_obs_normalizer, *self.actor.actor_module.module)

    def _compute_ppo_loss(self, minibatch) -> Dict[str, torch.Tensor]:
        losses = super()._compute_ppo_loss(minibatch)
        x = minibatch["actor_obs"]
        scaling = input_scaling(self.actor_obs_normalizer)
        if scaling is not None:  # they are stored normalised
            x = x * scaling[1] + scaling[0]
        contacts = unpack_contacts(minibatch["silc"], self.penalty.kp.shape[0])
        self._pairs = self.penalty.gradients(self._network(), x, contacts)
        return losses

    def _add_gradients(self) -> None:
        add_gradients(self._pairs, self.gpu_world_size if self.is_multi_gpu else 1)
        self._pairs = []

    def _training_step(self) -> Dict[str, float]:
        score = float(self.storage["rewards"].mean())
        losses = super()._training_step()
        self.figures = {f"silc_{k}": v for k, v in self.penalty.follow(score).items()}
        return {**losses, **self.figures}

    def save(self, path: str, infos: Optional[dict] = None) -> None:
        """holosoma's checkpoint, with λ, the bound and the iteration among its infos."""
        super().save(path, {**(infos or {}), "silc": self.penalty.get_extra_state()})

    def load(self, ckpt_path: Optional[str]) -> Optional[dict]:
        """The infos that save() was given; λ, bound and iteration go on from the checkpoint's."""
        infos = super().load(ckpt_path)
        if infos and "silc" in infos:
            self.penalty.set_extra_state(infos["silc"])
            infos = {name: value for name, value in infos.items() if name != "silc"} or None
        return infos

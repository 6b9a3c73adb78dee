# SPDX-License-Identifier: Apache-2.0
"""holosoma: its PPO with a bound on the policy's stiffness.

    algo = silc.holosoma.SilcPPO(env, config, log_dir, device, budget="compliance")

The environment has two methods: ``silc_setup()`` returns a ``PenaltySetup`` (channels, kp, alpha), and
``silc_contacts()`` the ``silc.torch.Contacts`` of its present state, one row per environment;
``silc.torch.tree.TreeJacobians`` makes them from a simulator's arrays.
"""

from __future__ import annotations

from typing import Dict, Optional

import torch
from holosoma.agents.ppo.ppo import PPO
from torch import nn

from .packing import PER_JOINT, PenaltySetup, pack_contacts, unpack_contacts  # noqa: F401  (PenaltySetup: for environments)
from .torch import PenaltyOptions, add_gradients
from .torch.actors import input_scaling


class SilcPPO(PPO):
    """holosoma's PPO; beside its arguments ``budget`` (a Budget, a name or a dict of its fields) and
    ``penalty`` (options of ``PenaltyOptions.of()``). Processes of one training share λ, bound and gradient."""

    def __init__(self, env, *args, budget=None, penalty: Optional[dict] = None, **kwargs) -> None:
        super().__init__(env, *args, **kwargs)
        for name in ("silc_setup", "silc_contacts"):
            if not hasattr(env, name):
                raise ValueError(f"env: has no method {name}()")
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

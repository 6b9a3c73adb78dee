# SPDX-License-Identifier: Apache-2.0
"""rsl_rl 5.4 and 5.5: ``algorithm.class_name = "silc.rsl_rl:SilcPPO"``.

The penalty takes rsl_rl's slot for an auxiliary loss, which is handed actor and mini-batch, and adds its
gradient just before the optimiser's step: clipped apart from the task's, as ``silc train`` does it.
Contact modes and Jacobians come as the observation group "silc" (``pack_contacts``), which the rollout
storage keeps although no network uses it.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

import torch
from rsl_rl.algorithms import PPO
from torch import Tensor, nn

from .packing import GROUP, PenaltySetup, pack_contacts, unpack_contacts  # noqa: F401
from .torch import PenaltyOptions, add_gradients


def setup_of(env, groups: Sequence[str] = ("actor",)) -> PenaltySetup:
    """What the environment says of itself (``env.silc_setup()``), or what is read off an mjlab one.

    groups: the observation groups that the actor sees, in its order.
    """
    if hasattr(env, "silc_setup"):
        return env.silc_setup()
    if hasattr(getattr(env, "unwrapped", None), "observation_manager"):
        from .mjlab import describe

        return describe(env, groups)
    raise ValueError("env: give it a method silc_setup() that returns a silc.rsl_rl.PenaltySetup")


def _actor_groups(obs, cfg: Dict[str, Any]) -> Sequence[str]:
    # as rsl_rl resolves them where the configuration is silent
    named = (cfg.get("obs_groups") or {}).get("actor")
    return list(named) if named else ["actor" if "actor" in obs.keys() else "policy"]


class _Slot:
    """Stands in rsl_rl's slot for a symmetry loss; a symmetry that was there before goes on."""

    use_mirror_loss, mirror_loss_coeff = True, 1.0

    def __init__(self, algorithm: "SilcPPO", inner) -> None:
        self.algorithm, self.inner = algorithm, inner

    def augment_batch(self, batch, original_batch_size: int) -> None:
        if self.inner is not None:
            self.inner.augment_batch(batch, original_batch_size)

    def compute_loss(self, actor, batch, original_batch_size: int) -> Tensor:
        self.algorithm.collect_penalty(batch.observations[:original_batch_size])
        zero = torch.zeros((), device=self.algorithm.device)
        if self.inner is None:
            return zero
        loss = self.inner.compute_loss(actor, batch, original_batch_size)
        return self.inner.mirror_loss_coeff * loss if self.inner.use_mirror_loss else zero


class SilcPPO(PPO):
    """PPO with a bound on the policy's stiffness.

    Of ``algorithm`` it takes, beside PPO's own settings, ``budget`` (a name, a file or a dict of
    silc.Budget's fields) and ``penalty`` (options of ``PenaltyOptions.of()``). The losses it reports
    have λ, the bound, the mean penalty and σ. Processes of one training share λ, bound and gradient.
    """

    def __init__(self, *args, silc_setup: Optional[PenaltySetup] = None, budget=None, penalty=None, **kwargs):
        super().__init__(*args, **kwargs)
        if silc_setup is None:
            raise ValueError("SilcPPO: is made by construct_algorithm(), which asks the environment")
        if self.actor.is_recurrent:
            raise ValueError("SilcPPO: recurrent actors have no single observation to differentiate by")
        options = PenaltyOptions.of(**(penalty or {}))
        self.penalty = silc_setup.penalty(budget, options).to(self.device)
        self._pairs: list = []
        self._score = 0.0
        self._had_symmetry = self.symmetry is not None
        self.symmetry = _Slot(self, self.symmetry)
        self.optimizer.register_step_pre_hook(lambda *_: self._add_gradients())

    @staticmethod
    def construct_algorithm(obs, env, cfg: Dict[str, Any], device: str) -> "SilcPPO":
        if GROUP not in obs.keys():
            raise ValueError(
                f"env: its observations have no group '{GROUP}'; silc.mjlab.add_stiffness_terms() adds it"
            )
        settings = cfg["algorithm"]
        settings["silc_setup"] = setup_of(env, _actor_groups(obs, cfg))
        try:
            made = PPO.construct_algorithm(obs, env, cfg, device)
        finally:  # matrices have no place in what a runner logs of its configuration
            settings.pop("silc_setup", None)
        groups, described = made._raw_actor.obs_groups, made.penalty.channels.q.shape[0]
        width = sum(obs[group].shape[-1] for group in groups)
        if width != described:
            raise ValueError(
                f"obs_groups: the actor sees {width} numbers ({', '.join(groups)}), and the environment's "
                f"channels describe {described}"
            )
        return made

    def _network(self) -> nn.Module:
        # the same layers as one nn.Sequential: rsl_rl's MLP has a forward() of its own
        actor = self._raw_actor
        return nn.Sequential(actor.obs_normalizer, *actor.mlp)

    def collect_penalty(self, observations) -> None:
        """Works out the penalty's gradient of a mini-batch; the optimiser's next step adds it."""
        actor = self._raw_actor
        x = torch.cat([observations[group] for group in actor.obs_groups], -1)
        contacts = unpack_contacts(observations[GROUP], self.penalty.kp.shape[0])
        # rsl_rl 5.5 can work its losses out in bfloat16 (use_mixed_precision); stiffness needs more digits
        with torch.autocast(torch.device(self.device).type, enabled=False):
            self._pairs = self.penalty.gradients(self._network(), x, contacts)

    def _add_gradients(self) -> None:
        add_gradients(self._pairs, self.gpu_world_size if self.is_multi_gpu else 1)
        self._pairs = []

    def update(self) -> Dict[str, float]:
        self._score = float(self.storage.rewards.mean())
        losses = super().update()
        if not self._had_symmetry:
            losses.pop("symmetry", None)
        figures = self.penalty.follow(self._score)
        losses.update({f"silc_{name}": value for name, value in figures.items()})
        return losses

    def save(self) -> dict:
        return {**super().save(), "silc": self.penalty.get_extra_state()}

    def load(self, loaded_dict: dict, load_cfg: Optional[dict], strict: bool) -> bool:
        if "silc" in loaded_dict:
            self.penalty.set_extra_state(loaded_dict["silc"])
        return super().load(loaded_dict, load_cfg, strict)

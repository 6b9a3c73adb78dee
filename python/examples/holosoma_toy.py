# SPDX-License-Identifier: Apache-2.0
"""holosoma's PPO with the penalty, on the smallest environment that has everything it asks for.

    python holosoma_toy.py [--envs 64] [--iterations 20]

Prints σ before and after, and what an iteration takes with the penalty and by holosoma's own PPO.
Sixteen joints on springs under random loads; the reward is staying at zero. An environment of your own
needs the same two methods, silc_setup() and silc_contacts(); add_stiffness_terms() gives them to
holosoma's own environments.
"""

import argparse
import copy
import statistics
import tempfile
import time
from types import SimpleNamespace

import torch
from holosoma.agents.ppo.ppo import PPO
from holosoma.config_types.algo import LayerConfig, ModuleConfig, PPOConfig, PPOModuleDictConfig

from silc.holosoma import SilcPPO
from silc.packing import PenaltySetup
from silc.torch import Channels, Contacts

JOINTS = 16


class SpringEnv:
    """δq follows the target's torque and a load, with friction."""

    def __init__(self, envs: int) -> None:
        self.num_envs, self.generator = envs, torch.Generator().manual_seed(3)
        self.robot_config = SimpleNamespace(actions_dim=JOINTS)
        group = SimpleNamespace(history_length=1)
        dims = {"actor_obs": 3 * JOINTS, "critic_obs": 3 * JOINTS}
        self.observation_manager = SimpleNamespace(
            get_obs_dims=lambda: dims, cfg=SimpleNamespace(groups={k: group for k in dims})
        )
        normal = self._normal
        self.contacts = Contacts(
            torch.arange(envs) % 4,
            0.3 * normal(envs, 3, JOINTS),
            0.3 * normal(envs, 2, 3, JOINTS),
            normal(envs, 6, JOINTS),
            0.5 * normal(envs, 3, JOINTS),
        )
        self.q = torch.zeros(envs, JOINTS)
        self.reset_all()

    def _normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def silc_setup(self) -> PenaltySetup:
        eye = torch.eye(3 * JOINTS)
        return PenaltySetup(
            Channels(q0=eye[:, :JOINTS], q=eye[:, :JOINTS], a=eye[:, 2 * JOINTS :]),
            torch.full((JOINTS,), 40.0),
            torch.full((JOINTS,), 0.5),
        )

    def silc_contacts(self) -> Contacts:
        return self.contacts

    def _observe(self):
        seen = torch.cat((self.q, self.qd, self.action), 1)
        return {"actor_obs": seen, "critic_obs": seen.clone()}

    def reset_all(self):
        self.q = 0.3 * self._normal(self.num_envs, JOINTS)
        self.qd, self.action = torch.zeros_like(self.q), torch.zeros_like(self.q)
        return self._observe()

    def get_checkpoint_state(self):
        return {}

    def load_checkpoint_state(self, state):
        pass

    def step(self, asked):
        self.action = asked["actions"].clone()
        torque = 40 * (0.5 * self.action - self.q) + 10 * self._normal(self.num_envs, JOINTS)
        self.qd = 0.5 * self.qd + 0.005 * torque
        self.q = self.q + 0.1 * self.qd
        none = torch.zeros(self.num_envs, dtype=torch.bool)
        return self._observe(), -self.q.square().mean(1), none, {"time_outs": none, "episode": {}, "to_log": {}, "raw_episode": {}}


def make(envs: int, folder: str, penalty: dict, plain: bool = False):
    """The algorithm, ready to train; plain: holosoma's own PPO."""
    torch.manual_seed(1)

    def module(outputs):
        layers = LayerConfig(hidden_dims=[32, 24], activation="ELU")
        return lambda name: ModuleConfig("MLP", [name], [outputs], layers)

    modules = PPOModuleDictConfig(module("robot_action_dim")("actor_obs"), module(1)("critic_obs"))
    config = PPOConfig(modules, actor_learning_rate=1e-3, critic_learning_rate=1e-3, empirical_normalization=True)
    env = SpringEnv(envs)
    if plain:
        algo = PPO(env, config, folder, "cpu")
    else:
        budget = {"com": 2000, "null_space": 30}
        algo = SilcPPO(env, config, folder, "cpu", budget=budget, penalty=penalty)
    # a checkpoint holds the experiment that it is of
    algo.attach_checkpoint_metadata(SimpleNamespace(to_serializable_dict=dict))
    algo.setup()
    return algo


def train(envs: int, iterations: int, folder: str, penalty: dict, plain: bool = False):
    """The algorithm, and mean σ of the last rollout by the first weights and by the last."""
    algo = make(envs, folder, penalty, plain)
    env = algo.env
    algo._train_mode()
    first, observations = copy.deepcopy(algo.actor.state_dict()), env.reset_all()
    algo.seconds = []
    for iteration in range(iterations):
        start = time.perf_counter()
        observations = algo._rollout_step(observations)
        seen = env._observe()["actor_obs"].clone()
        losses = algo._training_step()
        algo.seconds.append(time.perf_counter() - start)
        print(iteration, {k: round(v, 3) for k, v in losses.items()})
    if plain:
        return algo, None, None

    def sigma() -> float:
        result = algo.penalty.evaluate(algo._network(), seen, env.silc_contacts())
        return float(result.sigma[result.ok].mean().detach())

    after = sigma()
    algo.actor.load_state_dict(first)
    return algo, sigma(), after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own, _, _ = train(args.envs, args.iterations, folder, {}, plain=True)
        bounded, before, after = train(args.envs, args.iterations, folder, {})
    ms = [1e3 * statistics.median(algo.seconds) for algo in (own, bounded)]
    print(f"sigma {before:.2f} -> {after:.2f}; an iteration takes {ms[1]:.0f} ms, {ms[0]:.0f} ms without the penalty")

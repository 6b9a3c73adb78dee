# SPDX-License-Identifier: Apache-2.0
"""rsl_rl's own runner with and without the bound, on the toy of springs.py: what an environment supplies.

    python rsl_rl_springs.py --envs 64 --iterations 20 [--run plain silc] [--device cuda:0]

An environment of your own needs what SpringsEnv has: an observation group "silc" (pack_contacts) and a method
silc_setup(). The rest is rsl_rl's configuration with algorithm.class_name = "silc.rsl_rl:SilcPPO".
Prints for each run the median time of an iteration [ms] and, with the penalty, its first and last figures.
"""

import argparse
import json
import statistics
import time

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from springs import JOINTS, Springs, channels
from tensordict import TensorDict

from silc.packing import GROUP, PenaltySetup, pack_contacts


class SpringsEnv(VecEnv):
    def __init__(self, envs, device="cpu"):
        self.num_envs, self.num_actions, self.device, self.cfg = envs, JOINTS, device, {}
        self.max_episode_length = 1000
        self.episode_length_buf = torch.zeros(envs, dtype=torch.long, device=device)
        self.springs = Springs(envs, device)
        self.seen, _ = self.springs.step(torch.zeros(envs, JOINTS, device=device))

    def silc_setup(self) -> PenaltySetup:
        return PenaltySetup(channels("cpu"), torch.full((JOINTS,), 40.0), torch.full((JOINTS,), 0.5))

    def get_observations(self) -> TensorDict:
        groups = {"policy": self.seen, GROUP: pack_contacts(self.springs.contacts)}
        return TensorDict(groups, batch_size=[self.num_envs], device=self.device)

    def step(self, actions):
        self.seen, rewards = self.springs.step(actions.to(self.device))
        dones = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        return self.get_observations(), rewards, dones, {"time_outs": dones}


def configuration(run="silc", hidden=(512, 256, 128), penalty=None, **algorithm):
    plain = {"class_name": "PPO", "num_learning_epochs": 5, "num_mini_batches": 4, "learning_rate": 1e-3}
    plain.update({"rnd_cfg": None, "symmetry_cfg": None}, **algorithm)
    if run != "plain":
        options = {**(penalty or {}), **({"lambda_": 0.0} if run == "watch" else {})}
        budget = {"com": 2000, "null_space": 30}
        plain.update(class_name="silc.rsl_rl:SilcPPO", budget=budget, penalty=options)
    network = {"class_name": "MLPModel", "hidden_dims": list(hidden), "activation": "elu", "obs_normalization": True}
    noise = {"class_name": "GaussianDistribution", "init_std": 0.5, "std_type": "scalar"}
    return {
        "num_steps_per_env": 24,
        "save_interval": 1000,
        "logger": "tensorboard",
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": noise},
        "critic": dict(network),
        "algorithm": plain,
    }


def train(envs, iterations, device="cpu", run="silc", log_dir=None, **settings):
    """Figures per iteration, and the runner."""
    torch.manual_seed(1)
    runner = OnPolicyRunner(SpringsEnv(envs, device), configuration(run, **settings), log_dir, device)
    update, figures, times = runner.alg.update, [], [time.perf_counter()]

    def timed():
        figures.append(update())
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter())
        figures[-1]["seconds"] = times[-1] - times[-2]
        return figures[-1]

    runner.alg.update = timed
    runner.learn(iterations)
    return figures, runner


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--run", nargs="+", choices=("silc", "watch", "plain"), default=["plain", "silc"])
    args = parser.parse_args()
    for which in args.run:
        rows, _ = train(args.envs, args.iterations, args.device, which)
        line = {"run": which, "iteration_ms": 1e3 * statistics.median(r["seconds"] for r in rows[min(5, len(rows) - 1) :])}
        for name in ("silc_sigma_mean", "silc_penalty"):
            if name in rows[0]:
                line[name + "_first"], line[name + "_last"] = rows[0][name], rows[-1][name]
        print(json.dumps({k: v if isinstance(v, str) else round(v, 4) for k, v in line.items()}), flush=True)

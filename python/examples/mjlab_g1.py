# SPDX-License-Identifier: Apache-2.0
"""mjlab's G1 on flat ground with a bound on stiffness, and beside it without one.

    python mjlab_g1.py --envs 4096 --iterations 100 --device cuda:0 [--run silc|watch|plain] [--json OUT]

Prints a line per iteration: reward, penalty, σ, seconds. silc: with the penalty. watch: PPO alone, σ worked
out and not used. plain: mjlab's own task and PPO as they are, without silc's terms, for the time they take.
"""

import argparse
import json
import statistics
import time
from dataclasses import asdict

import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.rl.runner import MjlabOnPolicyRunner
from mjlab.tasks.velocity.config.g1.env_cfgs import unitree_g1_flat_env_cfg
from mjlab.tasks.velocity.config.g1.rl_cfg import unitree_g1_ppo_runner_cfg

from silc.mjlab import SilcAlgorithmCfg, add_stiffness_terms

COMPLIANCE = {"com": (200, 200, 20000), "gravity": "held"}  # configs/budgets/compliance.yaml


def g1():
    """What is trained: the environment, PPO's settings, whose feet and hands it has."""
    return unitree_g1_flat_env_cfg(), unitree_g1_ppo_runner_cfg(), "g1"


def train(envs, iterations, device="cpu", run="silc", penalty=None, steps=24, hidden=None, seed=1, task=g1):
    """Figures per iteration, and the runner."""
    torch.manual_seed(seed)
    env_cfg, agent_cfg, robot = task()
    env_cfg.scene.num_envs, env_cfg.seed = envs, seed
    agent_cfg.num_steps_per_env = steps
    if hidden:
        agent_cfg.actor.hidden_dims = agent_cfg.critic.hidden_dims = hidden
    if run != "plain":
        options = {**(penalty or {}), **({"lambda_": 0.0} if run == "watch" else {})}
        add_stiffness_terms(env_cfg, robot)
        agent_cfg.algorithm = SilcAlgorithmCfg.of(agent_cfg.algorithm, budget=COMPLIANCE, penalty=options)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg, device=device))
    runner = MjlabOnPolicyRunner(env, asdict(agent_cfg), log_dir=None, device=device)
    alg, figures = runner.alg, []
    obs = env.get_observations().to(device)
    alg.train_mode()
    for iteration in range(iterations):
        start, reward = time.perf_counter(), 0.0
        with torch.inference_mode():
            for _ in range(steps):
                obs, rewards, dones, extras = env.step(alg.act(obs))
                obs = obs.to(device)
                alg.process_env_step(obs, rewards, dones, extras)
                reward += float(rewards.mean())
            alg.compute_returns(obs)
        collected = time.perf_counter()
        losses = alg.update()
        if device != "cpu":
            torch.cuda.synchronize()
        row = {
            "iteration": iteration,
            "reward": reward / steps,
            "collect_s": collected - start,
            "update_s": time.perf_counter() - collected,
            **{k: v for k, v in losses.items() if k.startswith("silc_")},
        }
        figures.append(row)
        print(json.dumps({k: round(v, 4) for k, v in row.items()}), flush=True)
    return figures, runner


def main(task=g1):
    parser = argparse.ArgumentParser()
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--run", choices=("silc", "watch", "plain"), default="silc")
    parser.add_argument("--samples", type=int, default=2048, help="penalised rows of a mini-batch; 0: all")
    parser.add_argument("--every", type=int, default=1, help="steps to one that works the penalty's gradient out")
    parser.add_argument("--probes", type=int, default=0, help="random combinations of singular vectors; 0: all of them")
    parser.add_argument("--bound-start", type=float, default=1.0)
    parser.add_argument("--json")
    args = parser.parse_args()
    options = {name: getattr(args, name) for name in ("samples", "every", "probes", "bound_start")}
    rows, _ = train(args.envs, args.iterations, args.device, args.run, options, task=task)
    settled = rows[min(5, len(rows) - 1) :]
    for name in ("collect_s", "update_s"):
        print(f"{name}: median {statistics.median(row[name] for row in settled):.3f} of {len(settled)} iterations")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file)


if __name__ == "__main__":
    main()

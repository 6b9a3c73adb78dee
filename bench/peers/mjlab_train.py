#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Control steps per second of mjlab with rsl_rl on mjlab's own velocity task of the G1: whole iterations of its runner.

Its task, network sizes and settings are its own; only the number of robots is ours. One JSON line per crowd.
"""
import argparse
import json
import statistics
import tempfile
import time
from dataclasses import asdict

import mjlab
import mjlab.tasks  # noqa: F401  registers them
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, load_runner_cls


def measure(args, envs):
    begin = time.perf_counter()
    env_config, agent = load_env_cfg(args.task), load_rl_cfg(args.task)
    env_config.scene.num_envs = envs
    agent.logger = "tensorboard"
    agent.upload_model = False
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg=env_config, device=args.device), clip_actions=agent.clip_actions)
    steps = agent.num_steps_per_env
    with tempfile.TemporaryDirectory() as folder:
        runner = (load_runner_cls(args.task) or MjlabOnPolicyRunner)(env, asdict(agent), folder, args.device)
        update, times = runner.alg.update, []

        def timed():
            result = update()
            if args.device.startswith("cuda"):
                torch.cuda.synchronize()
            times.append(time.perf_counter())
            return result

        runner.alg.update = timed
        runner.learn(num_learning_iterations=args.warmup + args.iterations, init_at_random_ep_len=True)
    env.close()
    seconds = [b - a for a, b in zip(times[args.warmup - 1:], times[args.warmup:])]
    return envs * steps / statistics.median(seconds), times[0] - begin, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="Mjlab-Velocity-Flat-Unitree-G1")
    parser.add_argument("--envs", type=int, nargs="+", default=[4096, 16384])
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    for envs in args.envs:
        line = {"name": "train.iteration_steps_per_s", "value": None, "unit": "1/s", "who": "mjlab with rsl_rl",
                "task": args.task, "envs": envs, "device": args.device}
        try:
            line["value"], line["first_iteration_s"], line["steps"] = measure(args, envs)
        except Exception as error:
            line["error"] = (str(error).splitlines() or [type(error).__name__])[0][:200]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

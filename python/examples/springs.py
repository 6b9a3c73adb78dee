# SPDX-License-Identifier: Apache-2.0
"""PPO with and without the bound on a toy of a robot's size: PyTorch alone, on any device.

    python springs.py --envs 4096 --iterations 100 --device cuda [--run silc|watch|plain] [--every 4] [--probes 1]

29 joints on springs under loads, 5 frames of joints, velocities and actions (435 inputs), actor 512-256-128,
random stances in all contact modes. Prints a JSON line per iteration: reward, penalty, σ, seconds to collect
and to update. plain computes no penalty: the difference is what the bound costs. --every 4 works the gradient
out in one of four steps and holds it between, --probes 1 uses one random combination of singular vectors.
"""

import argparse
import json
import time

import torch
from torch import nn

from silc.torch import Budget, Channels, Contacts, PenaltyOptions, StiffnessPenalty

JOINTS, FRAMES = 29, 5
WIDTH = 3 * JOINTS * FRAMES


def mlp(inputs, hidden, outputs):
    widths, layers = (inputs, *hidden), []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


class Springs:
    """Joints with a servo of 40 N·m/rad under random loads; the reward is staying at zero."""

    def __init__(self, envs, device):
        self.shape, self.device = (envs, JOINTS), device
        self.q, self.qd = 0.3 * torch.randn(self.shape, device=device), torch.zeros(self.shape, device=device)
        self.frames = torch.zeros(envs, FRAMES, 3 * JOINTS, device=device)
        self.contacts = Contacts(
            torch.arange(envs, device=device) % 4,
            0.3 * torch.randn(envs, 3, JOINTS, device=device),
            0.3 * torch.randn(envs, 2, 3, JOINTS, device=device),
            torch.randn(envs, 6, JOINTS, device=device),
            0.5 * torch.randn(envs, 3, JOINTS, device=device),
        )

    def step(self, action):
        torque = 40 * (0.5 * action - self.q) + 10 * torch.randn(self.shape, device=self.device)
        self.qd = 0.5 * self.qd + 0.005 * torque
        self.q = self.q + 0.1 * self.qd
        frame = torch.cat((self.q, self.qd, action), 1)
        self.frames = torch.cat((self.frames[:, 1:], frame.unsqueeze(1)), 1)  # newest last
        return self.frames.flatten(1), -self.q.square().mean(1)


def channels(device):
    eye = torch.eye(WIDTH, device=device).view(WIDTH, FRAMES, 3, JOINTS)
    return Channels(q0=eye[:, -1, 0], q=eye[:, :, 0].sum(1), a=eye[:, :, 2].sum(1))


def train(envs, iterations, device="cpu", run="silc", steps=24, epochs=5, batches=4, hidden=(512, 256, 128), **options):
    """Figures per iteration."""
    torch.manual_seed(1)
    options.update({"silc": {}, "watch": {"lambda_": 0.0}, "plain": {"start": 10**9}}[run])
    gains = torch.full((JOINTS,), 40.0, device=device), torch.full((JOINTS,), 0.5, device=device)
    penalty = StiffnessPenalty(
        Budget(com=2000, null_space=30), channels(device), *gains, PenaltyOptions.of("silc", **options)
    ).to(device)
    env, rows = Springs(envs, device), []
    actor, critic = mlp(WIDTH, hidden, JOINTS).to(device), mlp(WIDTH, hidden, 1).to(device)
    std = nn.Parameter(torch.full((JOINTS,), 0.5, device=device))
    adam = torch.optim.Adam([*actor.parameters(), *critic.parameters(), std], 1e-3)
    x, _ = env.step(torch.zeros(envs, JOINTS, device=device))

    def clock():
        if device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter()

    for iteration in range(iterations):
        start = clock()
        kept = []
        with torch.no_grad():
            for _ in range(steps):
                mean = actor(x)
                action = mean + std * torch.randn_like(mean)
                logp = torch.distributions.Normal(mean, std).log_prob(action).sum(1)
                seen, value = x, critic(x).squeeze(1)
                x, reward = env.step(action)
                kept.append((seen, action, logp, value, reward))
            seen, action, logp, value, reward = (torch.stack(t) for t in zip(*kept))
            following, advantage, gae = critic(x).squeeze(1), torch.zeros_like(reward), 0.0
            for t in reversed(range(steps)):
                gae = reward[t] + 0.99 * following - value[t] + 0.99 * 0.95 * gae
                advantage[t], following = gae, value[t]
            returns = advantage + value
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        flat = [t.flatten(0, 1) for t in (seen, action, logp, returns, advantage)]
        which = torch.arange(envs, device=device).repeat(steps)
        collected = clock()
        for _ in range(epochs):
            for index in torch.randperm(steps * envs, device=device).chunk(batches):
                o, a, old, target, adv = (t[index] for t in flat)
                ratio = (torch.distributions.Normal(actor(o), std).log_prob(a).sum(1) - old).exp()
                clipped = ratio.clamp(0.8, 1.2)
                loss = -torch.minimum(ratio * adv, clipped * adv).mean()
                loss = loss + (critic(o).squeeze(1) - target).square().mean()
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
                # after the task's clip, as silc train does it
                some = penalty.options.samples or index.numel()
                contacts = Contacts(*(t[which[index[:some]]] for t in env.contacts))
                for parameter, gradient in penalty.gradients(actor, o[:some], contacts):
                    parameter.grad += gradient
                adam.step()
        figures = penalty.follow(float(reward.mean()))
        row = {"iteration": iteration, "reward": float(reward.mean()), "collect_s": collected - start}
        row.update(update_s=clock() - collected, **figures)
        rows.append(row)
        print(json.dumps({k: round(v, 4) for k, v in row.items()}), flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--run", choices=("silc", "watch", "plain"), default="silc")
    parser.add_argument("--every", type=int, default=1, help="steps to one that works the penalty's gradient out")
    parser.add_argument("--probes", type=int, default=0, help="random combinations of singular vectors; 0: all of them")
    parser.add_argument("--samples", type=int, default=2048, help="penalised rows of a mini-batch; 0: all")
    args = parser.parse_args()
    penalised = {"every": args.every, "probes": args.probes, "samples": args.samples}
    train(args.envs, args.iterations, args.device, args.run, **penalised)

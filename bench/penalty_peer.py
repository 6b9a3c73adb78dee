#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one PPO update costs in PyTorch when the policy's Jacobian is penalised in the ways PyTorch offers.

Sizes are those of silc's update_bench: two actors (15 and 14 actions) and two critics, 5 frames of 115 inputs, 29 joints;
`samples` rows of each mini-batch are penalised by (sigma_max(L^-1 K) - 1)_+^2, K = Kp (I - alpha J). One JSON line per way:

  none    PPO alone
  vjp     J row by row: 29 vector-Jacobian products with create_graph, singular value by svdvals
  chain   J by multiplying the layers' Jacobians out with the tape on, singular value by svdvals
  power   no J: ten power-iteration steps by Jacobian- and vector-Jacobian products without tape, then one with it
  product J as in chain, its largest singular value by ten power-iteration steps on the matrix: no decomposition

The eager ways first. On a GPU then PyTorch's best: `none` and `product` with a mini-batch recorded as a graph, then with
torch.compile too, then with the networks' products in bf16 as well. A best way that this PyTorch cannot do is told in a
line with its error, and the others go on.
"""
import argparse
import functools
import json
import statistics
import time

import torch

FRAME, FRAMES, JOINTS, CRITIC, ACTIONS = 115, 5, 29, 128, (15, 14)
INPUTS = FRAME * FRAMES
NEWEST = FRAME * (FRAMES - 1)  # joint positions stand first in the newest frame
KP, ALPHA = 100.0, 0.25


def mlp(inputs, hidden, outputs):
    layers, last = [], inputs
    for width in hidden:
        layers += [torch.nn.Linear(last, width), torch.nn.ELU()]
        last = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(last, outputs))


def hinge(sigma):
    return (sigma - 1).clamp_min(0).square().mean()


def stiffness(J):
    return KP * (torch.eye(JOINTS, device=J.device) - ALPHA * J)


def penalty_vjp(actors, obs, L_inv):
    obs = obs.detach().requires_grad_(True)
    action = torch.cat([actor(obs) for actor in actors], 1)
    rows = [torch.autograd.grad(action[:, i].sum(), obs, create_graph=True)[0][:, NEWEST:NEWEST + JOINTS]
            for i in range(JOINTS)]
    return hinge(torch.linalg.svdvals(L_inv @ stiffness(torch.stack(rows, 1)))[:, 0])


def jacobian(actors, obs):
    """d action / d joint positions by multiplying the layers' Jacobians out, with the tape on."""
    blocks = []
    for actor in actors:
        x, J = obs, None
        for layer in actor:
            if isinstance(layer, torch.nn.Linear):
                J = (layer.weight[:, NEWEST:NEWEST + JOINTS].expand(len(obs), -1, -1) if J is None else layer.weight @ J)
            else:
                J = torch.exp(x.clamp_max(0)).unsqueeze(2) * J
            x = layer(x)
        blocks.append(J)
    return torch.cat(blocks, 1)


def penalty_chain(actors, obs, L_inv):
    return hinge(torch.linalg.svdvals(L_inv @ stiffness(jacobian(actors, obs)))[:, 0])


def penalty_power(actors, obs, L_inv, steps=10):
    q = torch.zeros(len(obs), JOINTS, device=obs.device, requires_grad=True)
    full = torch.cat([obs[:, :NEWEST], obs[:, NEWEST:NEWEST + JOINTS] + q, obs[:, NEWEST + JOINTS:]], 1)
    action = torch.cat([actor(full) for actor in actors], 1)
    w = torch.zeros_like(action, requires_grad=True)
    back = torch.autograd.grad(action, q, w, create_graph=True)[0]  # J^T w, linear in w

    def forward(v):  # L^-1 K v
        Jv = torch.autograd.grad(back, w, v, retain_graph=True)[0]
        return (L_inv @ (KP * (v - ALPHA * Jv)).unsqueeze(2)).squeeze(2)

    def adjoint(u, tape=False):  # K^T L^-T u
        t = KP * (L_inv.transpose(1, 2) @ u.unsqueeze(2)).squeeze(2)
        JTt = torch.autograd.grad(action, q, t, retain_graph=True, create_graph=tape)[0]
        return t - ALPHA * JTt

    v = torch.nn.functional.normalize(torch.randn_like(q), dim=1)
    for _ in range(steps):
        u = torch.nn.functional.normalize(forward(v), dim=1)
        v = torch.nn.functional.normalize(adjoint(u), dim=1)
    u = torch.nn.functional.normalize(forward(v), dim=1)
    return hinge((adjoint(u.detach(), tape=True) * v.detach()).sum(1))


def penalty_product(actors, obs, L_inv, steps=10):
    A = L_inv @ stiffness(jacobian(actors, obs).float())
    with torch.no_grad():
        B = A.detach()
        v = torch.nn.functional.normalize(B.sum(1), dim=1)
        for _ in range(steps):
            u = torch.nn.functional.normalize((B @ v.unsqueeze(2)).squeeze(2), dim=1)
            v = torch.nn.functional.normalize((B.transpose(1, 2) @ u.unsqueeze(2)).squeeze(2), dim=1)
        u = torch.nn.functional.normalize((B @ v.unsqueeze(2)).squeeze(2), dim=1)
    return hinge((u.unsqueeze(1) @ A @ v.unsqueeze(2)).flatten())


WAYS = {"none": None, "vjp": penalty_vjp, "chain": penalty_chain, "power": penalty_power, "product": penalty_product}
# PyTorch's best on a GPU: what is recorded, compiled and rounded
BEST = {"graph": {}, "graph compile": {"compiled": True}, "graph compile bf16": {"compiled": True, "bf16": True}}


def log_prob(mean, std, action):
    return (-((action - mean) / std).square() / 2 - std.log() - 0.9189385).sum(1)


class Update:
    """One PPO update on random samples: clipped surrogate, clipped value loss, AdamW, gradient norm 1."""

    def __init__(self, args):
        torch.manual_seed(1)
        self.args, device = args, args.device
        self.actors = [mlp(INPUTS, args.hidden, n).to(device) for n in ACTIONS]
        self.critics = [mlp(CRITIC, args.hidden, 1).to(device) for _ in ACTIONS]
        self.std = [torch.full((n,), 0.8, device=device, requires_grad=True) for n in ACTIONS]
        groups = [list(a.parameters()) + [s] for a, s in zip(self.actors, self.std)]
        self.groups = groups + [list(c.parameters()) for c in self.critics]
        self.optimisers = [torch.optim.AdamW(group, lr=1e-4) for group in self.groups]
        rows = args.envs * args.steps
        self.obs, self.critic_obs = (torch.randn(rows, n, device=device) for n in (INPUTS, CRITIC))
        self.advantage, self.target = (torch.randn(rows, 2, device=device) for _ in range(2))
        with torch.no_grad():
            self.mean = [torch.cat([actor(part) for part in self.obs.split(8192)]) for actor in self.actors]
            self.action = [m + 0.8 * torch.randn_like(m) for m in self.mean]
            self.old = [log_prob(m, s, a) for m, s, a in zip(self.mean, self.std, self.action)]
            self.value = [torch.cat([c(part).squeeze(1) for part in self.critic_obs.split(8192)]) for c in self.critics]
        samples = min(args.samples or rows // args.mini_batches, rows // args.mini_batches)
        shape = torch.randn(samples, JOINTS, JOINTS, device=device)
        M = shape @ shape.transpose(1, 2) + 50 * torch.eye(JOINTS, device=device)
        self.L_inv = torch.linalg.inv(torch.linalg.cholesky(M))

    def loss(self, index, penalty):
        loss = 0
        obs, critic_obs = self.obs[index], self.critic_obs[index]
        for k in range(2):
            ratio = (log_prob(self.actors[k](obs), self.std[k], self.action[k][index]) - self.old[k][index]).exp()
            A, R, V = self.advantage[index, k], self.target[index, k], self.value[k][index]
            v = self.critics[k](critic_obs).squeeze(1)
            clipped = V + (v - V).clamp(-0.2, 0.2)
            loss = loss - torch.minimum(ratio * A, ratio.clamp(0.8, 1.2) * A).mean()
            loss = loss + torch.maximum((v - R).square(), (clipped - R).square()).mean()
            loss = loss - 0.01 * self.std[k].log().sum()
        if penalty is not None:
            loss = loss + 0.5 * penalty(self.actors, obs[:len(self.L_inv)], self.L_inv)
        return loss

    def step(self, loss):
        loss.backward()
        for group, optimiser in zip(self.groups, self.optimisers):
            torch.nn.utils.clip_grad_norm_(group, 1.0)
            optimiser.step()

    def batches(self):
        order = torch.randperm(len(self.obs), device=self.args.device)
        for _ in range(self.args.epochs):
            yield from order.chunk(self.args.mini_batches)

    def run(self, penalty):
        for index in self.batches():
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            self.step(self.loss(index, penalty))

    def record(self, penalty, compiled=False, bf16=False):
        """A mini-batch's work as a graph; returns what runs the whole update with it."""
        self.optimisers = [torch.optim.AdamW(group, lr=1e-4, fused=True, capturable=True) for group in self.groups]
        index = next(self.batches()).clone()

        def loss_of(rows):
            with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
                return self.loss(rows, penalty)

        loss = torch.compile(loss_of) if compiled else loss_of
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # compiles, and allocates what the graph must not
                for optimiser in self.optimisers:
                    optimiser.zero_grad()
                self.step(loss(index))
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.step(loss(index))
            for group in self.groups:
                for p in group:
                    p.grad.zero_()

        def run():
            for rows in self.batches():
                index.copy_(rows)
                graph.replay()

        return run


def check(update):
    """The ways are the same number: at sigmas well apart, 200 power steps reach 1 %."""
    obs, L_inv = update.obs[:16], update.L_inv[:16]
    a, b = (way(update.actors, obs, L_inv).item() for way in (penalty_vjp, penalty_chain))
    c, d = (way(update.actors, obs, L_inv, steps=200).item() for way in (penalty_power, penalty_product))
    assert abs(a - b) <= 1e-3 * abs(a) and max(abs(a - c), abs(a - d)) <= 1e-2 * abs(a), (a, b, c, d)


def measure(args, name, make):
    """The median time of an update as a JSON line."""
    cuda = args.device == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    line = {"name": "penalty.update_ms", "value": None, "unit": "ms", "who": "torch " + torch.__version__, "way": name,
            "envs": args.envs, "steps": args.steps, "epochs": args.epochs, "samples": args.samples, "device": args.device}
    try:
        run, times = make(), []
        for i in range(args.iterations + 1):
            if cuda:
                torch.cuda.synchronize()
            begin = time.perf_counter()
            run()
            if cuda:
                torch.cuda.synchronize()
            if i > 0:
                times.append(1e3 * (time.perf_counter() - begin))
        line["value"] = statistics.median(times)
    except Exception as error:  # a way that this PyTorch or this machine does not have
        line["error"] = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    if cuda:
        line["peak_memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--mini-batches", type=int, default=4)
    parser.add_argument("--samples", type=int, default=2048, help="penalised rows of each mini-batch; 0: all")
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 256, 128])
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    if args.device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
    check(Update(args))
    for name, penalty in WAYS.items():
        measure(args, name, lambda: functools.partial(Update(args).run, penalty))
    if args.device == "cuda":
        for name in ("none", "product"):
            for best, options in BEST.items():
                measure(args, f"{name}, {best}", lambda: Update(args).record(WAYS[name], **options))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of (sigma - 1)+^2 as one would write it in stock PyTorch, three ways; silc bench penalty runs it.

sigma is the largest singular value of 2 P'KP - I with the static stiffness K = Kp (I - alpha X), X = da/dq, see
docs/penalty.md; the sizes are g1-loco's. One JSON object per line, like the C++ side.

  vjp29   the Jacobian by 29 reverse passes with create_graph, the norm by SVD
  chain   the Jacobian as a product of the layers' matrices on the tape, the norm by SVD
  power   the same Jacobian, the norm by power iteration with its vectors held fixed
"""
import argparse
import json
import statistics
import time

import torch

JOINTS, FRAME, FRAMES = 29, 131, 5
OBS = FRAME * FRAMES
KP, ALPHA = 100.0, 0.25


def channels(device):
    """Columns of the observation: every frame of q, previous action, torque, gravity."""
    q, a = torch.zeros(OBS, JOINTS), torch.zeros(OBS, JOINTS)
    tau, g = torch.zeros(OBS, JOINTS), torch.zeros(OBS, 3)
    for frame in range(FRAMES):
        first = frame * FRAME
        for j in range(JOINTS):
            q[first + j, j] = 1
            a[first + 2 * JOINTS + j, j] = 1
        for j in range(14):
            tau[first + 3 * JOINTS + j, 15 + j] = 0.01
        for j in range(3):
            g[first + 3 * JOINTS + 14 + j, j] = 1
    return [m.to(device) for m in (q, a, tau, g)]


def actor(hidden, outputs, device):
    layers, width = [], OBS
    for h in hidden:
        layers += [torch.nn.Linear(width, h), torch.nn.ELU()]
        width = h
    layers.append(torch.nn.Linear(width, outputs))
    return torch.nn.Sequential(*layers).to(device)


def jacobian_by_vjp(actors, obs):
    obs = obs.detach().requires_grad_(True)
    rows = []
    for net in actors:
        out = net(obs)
        for i in range(out.shape[1]):
            rows.append(torch.autograd.grad(out[:, i].sum(), obs, create_graph=True)[0])
    return torch.stack(rows, 1)  # (B, 29, obs)


def jacobian_by_chain(actors, obs):
    blocks = []
    for net in actors:
        x, slopes, weights = obs, [], []
        for layer in net:
            if isinstance(layer, torch.nn.Linear):
                x = layer(x)
                weights.append(layer.weight)
            else:
                slopes.append(torch.exp(torch.clamp(x, max=0)))
                x = layer(x)
        J = weights[-1].unsqueeze(0)  # from the left: few rows
        for W, s in zip(reversed(weights[:-1]), reversed(slopes)):
            J = (J * s.unsqueeze(1)) @ W
        blocks.append(J)
    return torch.cat(blocks, 1)


def disc(J, columns, P, E):
    """2 P'KP - I from the whole Jacobian."""
    q, a, tau, g = columns
    S_q, S_a, S_tau, S_g = J @ q, J @ a, J @ tau, J @ g
    eye = torch.eye(JOINTS, device=J.device)
    # a = S_q dq + S_a a + S_tau tau + S_g E dq with tau = Kp (alpha a - dq)
    loop = eye - S_a - S_tau * (KP * ALPHA)
    X = torch.linalg.solve(loop, S_q + S_g @ E - S_tau * KP)
    K = KP * (eye - ALPHA * X)
    return 2 * P.transpose(1, 2) @ K @ P - eye


def sigma_by_svd(A):
    return torch.linalg.svdvals(A)[:, 0]


def sigma_by_power(A, steps=20):
    with torch.no_grad():
        v = torch.randn(A.shape[0], JOINTS, 1, device=A.device)
        for _ in range(steps):
            u = torch.nn.functional.normalize(A @ v, dim=1)
            v = torch.nn.functional.normalize(A.transpose(1, 2) @ u, dim=1)
    return (u.transpose(1, 2) @ A @ v)[:, 0, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 256, 128])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device(args.device)
    actors = [actor(args.hidden, outputs, device) for outputs in (15, 14)]
    parameters = [p for net in actors for p in net.parameters()]
    columns = channels(device)
    obs = torch.randn(args.samples, OBS, device=device)
    P = 0.1 * torch.eye(JOINTS, device=device) + 0.01 * torch.randn(args.samples, JOINTS, JOINTS, device=device)
    E = 0.3 * torch.randn(args.samples, 3, JOINTS, device=device)

    ways = {
        "29 vector-Jacobian products, SVD": (jacobian_by_vjp, sigma_by_svd),
        "chain, SVD": (jacobian_by_chain, sigma_by_svd),
        "chain, power iteration": (jacobian_by_chain, sigma_by_power),
    }

    def once(way):
        jacobian, largest = ways[way]
        sigma = largest(disc(jacobian(actors, obs), columns, P, E))
        loss = torch.clamp(sigma - 1, min=0).square().mean()
        gradient = torch.autograd.grad(loss, parameters, allow_unused=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return sigma.detach(), gradient

    sigmas = {}
    for way in ways:
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        times, cpu = [], []
        for i in range(-2, args.repeats):
            start, cpu_start = time.perf_counter(), time.process_time()
            sigmas[way], _ = once(way)
            if i >= 0:
                times.append(time.perf_counter() - start)
                cpu.append(time.process_time() - cpu_start)
        line = {
            "name": "penalty.gradient_ms",
            "value": round(1e3 * statistics.median(times), 3),
            "unit": "ms",
            "cpu_ms": round(1e3 * statistics.median(cpu), 3),
            "by": f"PyTorch {torch.__version__}",
            "way": way,
            "samples": args.samples,
            "device": args.device,
        }
        if device.type == "cuda":
            line["peak_mib"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
        print(json.dumps(line), flush=True)
    # the ways must speak of the same number; TF32 products and a power iteration without a gap are coarse
    reference = sigmas["chain, SVD"]
    for way, sigma in sigmas.items():
        off = ((sigma - reference).abs() / reference).median().item()
        assert off < 0.05, f"{way}: sigma is off by {off:.2g}"


if __name__ == "__main__":
    main()

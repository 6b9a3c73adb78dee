#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Physics steps per second of mujoco_warp on the model and the crowd of `silc bench physics`.

The robot's MJCF on a floor, its motors as position servos with the gains of robot.yaml, 5 ms steps; joints, velocities,
pushes on the base drawn as silc's bench draws them (0.05 rad, 0.1 rad/s, 10 N). `--substeps` steps are recorded as one
graph on a GPU. One JSON line per crowd. A robot that has become NaN makes the line an error.
"""
import argparse
import fnmatch
import json
import pathlib
import statistics
import time

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def pick(table, joint, groups):
    """The number that a table of robot.yaml has for a joint: by name, pattern or group; the last that fits."""
    if not isinstance(table, dict):
        return float(table)
    found = 0.0
    for key, value in table.items():
        if any(fnmatch.fnmatch(joint, pattern) for pattern in groups.get(key, [key])):
            found = float(value)
    return found


def load(robot, friction_loss):
    """The robot on a floor with position servos, and its standing pose."""
    folder = ROOT / "robots" / robot
    config = yaml.safe_load((folder / "robot.yaml").read_text())
    groups = config.get("groups", {})
    spec = mujoco.MjSpec.from_file(str(folder / config["model"]))
    spec.option.timestep = config["physics_period"]
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], condim=3)
    gains = config["gains"][config["default_gains"]]
    for joint in spec.joints:
        if joint.name in config["joints"]:
            joint.frictionloss = friction_loss
    for actuator in spec.actuators:
        actuator.set_to_position(kp=pick(gains["kp"], actuator.target, groups), kv=pick(gains["kd"], actuator.target, groups))
    model = spec.compile()
    pose = config["poses"][config["default_pose"]]
    data = mujoco.MjData(model)
    data.qpos[2] = pose["base_height"]
    for joint in config["joints"]:
        angle = pick(pose["joints"], joint, groups)
        data.joint(joint).qpos[0] = angle
        for i in range(model.nu):
            if model.actuator(i).trnid[0] == model.joint(joint).id:
                data.ctrl[i] = angle
    mujoco.mj_forward(model, data)
    return model, data


def crowd(model, data, envs, seed=7):
    """What differs from robot to robot: joint positions, velocities, pushes on the base."""
    rng = np.random.default_rng(seed)
    qpos = np.repeat(data.qpos[None], envs, 0)
    qpos[:, 7:] += 0.05 * rng.standard_normal((envs, model.nq - 7))
    qpos[:, 4:7] += 0.02 * rng.standard_normal((envs, 3))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    push = np.zeros((envs, model.nbody, 6))
    push[:, 1, :2] = rng.uniform(-10, 10, (envs, 2))
    return qpos, 0.1 * rng.standard_normal((envs, model.nv)), push


def measure(args, model, data, envs):
    qpos, qvel, push = crowd(model, data, envs)
    m = mjw.put_model(model)
    d = mjw.put_data(model, data, nworld=envs, nconmax=args.contacts, njmax=args.constraints)

    def reset():
        for field, value in ((d.qpos, qpos), (d.qvel, qvel), (d.xfrc_applied, push)):
            wp.copy(field, wp.array(value.astype(np.float32), dtype=field.dtype))

    def steps():
        for _ in range(args.substeps):
            mjw.step(m, d)

    begin = time.perf_counter()
    reset()
    steps()
    wp.synchronize()
    first = time.perf_counter() - begin
    run = steps
    if wp.get_device().is_cuda:
        with wp.ScopedCapture() as capture:
            steps()
        run = lambda: wp.capture_launch(capture.graph)
    rates = []
    for _ in range(args.repeats):
        reset()
        wp.synchronize()
        begin = time.perf_counter()
        for _ in range(args.steps // args.substeps):
            run()
        wp.synchronize()
        rates.append(envs * (args.steps // args.substeps) * args.substeps / (time.perf_counter() - begin))
    return statistics.median(rates), first, bool(np.isfinite(d.qpos.numpy()).all())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="g1")
    parser.add_argument("--envs", type=int, nargs="+", default=[4096, 16384, 65536])
    parser.add_argument("--substeps", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--friction-loss", type=float, nargs="+", default=[0.0, 0.3], help="on every joint [N m]")
    parser.add_argument("--contacts", type=int, default=24, help="a robot, room for")
    parser.add_argument("--constraints", type=int, default=160, help="a robot, room for")
    parser.add_argument("--device", help="cuda:0, cpu [the best there is]")
    args = parser.parse_args()
    wp.config.quiet = True
    if args.device:
        wp.set_device(args.device)
    for loss in args.friction_loss:
        model, data = load(args.robot, loss)
        for envs in args.envs:
            line = {"name": "physics.steps_per_s", "value": None, "unit": "1/s", "who": "mujoco_warp " + mjw.__version__,
                    "envs": envs, "substeps": args.substeps, "friction_loss": loss, "device": str(wp.get_device())}
            try:
                line["value"], line["first_call_s"], finite = measure(args, model, data, envs)
                if not finite:
                    line.update(value=None, error="a robot became NaN")
            except Exception as error:  # memory, say: the next crowd may fit
                line["error"] = (str(error).splitlines() or [type(error).__name__])[0][:200]
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unitree's MuJoCo bridge without its window: their robot, messages, torques and remote; our clock and script.

The bridge's own program needs a screen, a gamepad and hands for its elastic band. This one imports the same bridge
class, steps the same model in real time, and moves gamepad and band as a script says. The script is that of
`silc sim --dds`; `release` unhooks the band, `band LENGTH` lowers it to that length [m].
"""
import argparse
import os
import sys
import time

import numpy as np

os.environ["SDL_VIDEODRIVER"] = os.environ["SDL_AUDIODRIVER"] = "dummy"
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"

BUTTONS = {"A": 0, "B": 1, "X": 2, "Y": 3, "select": 6, "start": 7}  # of their "xbox" layout
STICKS = {"lx": (0, 1), "ly": (1, -1), "rx": (3, 1), "ry": (4, -1)}  # axis; a gamepad's y points down
TRIGGER = 2  # axis of L2


class ScriptedGamepad:
    """What the bridge reads of a pygame joystick."""

    def __init__(self):
        self.axes = {TRIGGER: -1.0, 5: -1.0}
        self.buttons = set()

    def get_axis(self, axis):
        return self.axes.get(axis, 0.0)

    def get_button(self, button):
        return int(button in self.buttons)

    def get_hat(self, _):
        return (0, 0)


def parse_script(text):
    events = []
    for part in text.replace(";", "\n").splitlines():
        words = part.split()
        if words:
            events.append((float(words[0]), words[1], words[2:]))
    return sorted(events, key=lambda event: event[0])


class Peer:
    def __init__(self, args):
        sys.path.insert(0, os.path.join(args.folder, "unitree_mujoco", "simulate_python"))
        import config  # theirs; read by the bridge when it is imported

        config.ROBOT = "g1"
        config.SIMULATE_DT = args.dt
        import mujoco
        import pygame
        from unitree_sdk2py.core.channel import ChannelFactoryInitialize
        from unitree_sdk2py_bridge import ElasticBand, UnitreeSdk2Bridge

        self.mujoco = mujoco
        scene = os.path.join(args.folder, "unitree_mujoco/unitree_robots/g1/scene_29dof.xml")
        self.model = mujoco.MjModel.from_xml_path(scene)
        if self.model.nu != 29:
            sys.exit(f"{scene}: has {self.model.nu} motors, not 29")
        self.data = mujoco.MjData(self.model)
        self.model.opt.timestep = args.dt
        mujoco.mj_forward(self.model, self.data)
        self.torso = self.model.body("torso_link").id
        self.band = ElasticBand()
        self.band.length = args.band
        pygame.init()
        ChannelFactoryInitialize(args.domain, args.interface)
        self.bridge = UnitreeSdk2Bridge(self.model, self.data)
        self.gamepad = ScriptedGamepad()
        try:
            self.bridge.SetupJoystick()
        except SystemExit:
            pass  # there is none: the layout is all that was wanted
        self.bridge.axis_id = {"LX": 0, "LY": 1, "RX": 3, "RY": 4, "LT": 2, "RT": 5, "DX": 6, "DY": 7}
        self.bridge.button_id = {"X": 2, "Y": 3, "B": 1, "A": 0, "LB": 4, "RB": 5, "SELECT": 6, "START": 7}
        self.bridge.joystick = self.gamepad
        self.events = parse_script(args.script)
        self.push, self.pushed_until, self.pressed_until = np.zeros(3), 0.0, 0.0
        self.ended = False
        # what a second saw
        self.fastest = self.strongest = 0.0

    def happen(self, what, words):
        now = self.data.time
        if what == "press":
            for button in words[0].split("+"):
                if button == "L2":
                    self.gamepad.axes[TRIGGER] = 1.0
                else:
                    self.gamepad.buttons.add(BUTTONS[button])
            self.pressed_until = now + 0.15
        elif what == "stick":
            axis, sign = STICKS[words[0]]
            self.gamepad.axes[axis] = sign * float(words[1])
        elif what == "push":
            self.push, self.pushed_until = np.array([float(w) for w in words[:3]]), now + float(words[3])
        elif what == "band":
            self.band.length = float(words[0])
        elif what == "release":
            self.band.enable = False
        elif what == "end":
            self.ended = True
        else:
            sys.exit(f"--script: '{what}' is not known")

    def step(self):
        data, now = self.data, self.data.time
        while self.events and self.events[0][0] <= now + 1e-9:
            _, what, words = self.events.pop(0)
            self.happen(what, words)
        if now > self.pressed_until:
            self.gamepad.buttons.clear()
            self.gamepad.axes[TRIGGER] = -1.0
        data.xfrc_applied[:] = 0
        if self.band.enable:
            data.xfrc_applied[self.torso, :3] = self.band.Advance(data.qpos[:3], data.qvel[:3])
        if now < self.pushed_until:
            data.xfrc_applied[self.model.body("pelvis").id, :3] += self.push
        self.mujoco.mj_step(self.model, data)
        limit = self.model.actuator_ctrlrange[:, 1]
        self.fastest = max(self.fastest, np.abs(data.qvel[6:]).max())
        self.strongest = max(self.strongest, (np.abs(data.actuator_force) / limit).max())

    def report(self, slowness):
        x, y, z = self.data.qpos[:3]
        w, qx, qy, _ = self.data.qpos[3:7]
        tilt = float(np.arccos(np.clip(1 - 2 * (qx * qx + qy * qy), -1, 1)))
        print(f"{self.data.time:6.1f} s  base {x:+.2f} {y:+.2f} {z:.3f} m, tilt {tilt:.2f} rad, fastest joint "
              f"{self.fastest:.1f} rad/s, torque {100 * self.strongest:.0f} %, {slowness:.2f} × real time"
              f"{', on the band' if self.band.enable else ''}", flush=True)
        self.fastest = self.strongest = 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="made by tools/peer/setup.sh")
    parser.add_argument("--script", default="", help="what happens when, as in silc sim --dds")
    parser.add_argument("--dt", type=float, default=0.005, help="physics step [s]; theirs is 0.005")
    parser.add_argument("--band", type=float, default=0.55, help="length of the band [m]; theirs is 0: far above the floor")
    parser.add_argument("--domain", type=int, default=1)
    parser.add_argument("--interface", default="lo")
    peer = Peer(parser.parse_args())
    print(f"a G1 of {peer.model.nu} motors on the bridge, {1000 * peer.model.opt.timestep:g} ms a step", flush=True)
    due = second = time.perf_counter()
    steps_per_second = round(1 / peer.model.opt.timestep)
    step = 0
    while not peer.ended:
        peer.step()
        step += 1
        if step % steps_per_second == 0:
            peer.report(1 / (time.perf_counter() - second))
            second = time.perf_counter()
        # as theirs: a step is never caught up with
        due = max(due + peer.model.opt.timestep, time.perf_counter() - 0.05)
        time.sleep(max(0.0, due - time.perf_counter()))
    os._exit(0)  # their threads have no end


if __name__ == "__main__":
    main()

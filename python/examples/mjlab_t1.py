# SPDX-License-Identifier: Apache-2.0
"""silc's model of the Booster T1 in mjlab: it learns to stand while it is pushed, with a bound on stiffness.

    python mjlab_t1.py --envs 4096 --iterations 100 --device cuda:0 [--run silc|watch|plain] [--json OUT]

mjlab 1.6 brings no T1, so the environment is made here: the robot's own gains, pose and limits, four reward
terms, and the sensor of both feet that silc's terms read. What is printed is told in mjlab_g1.py.
"""

import math
import re

import mujoco
import torch
from mjlab.actuator import BuiltinPositionActuatorCfg
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.envs import ManagerBasedRlEnvCfg, mdp
from mjlab.envs.mdp.actions import JointPositionActionCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.observation_manager import ObservationGroupCfg, ObservationTermCfg
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.scene import SceneCfg
from mjlab.sensor import ContactMatch, ContactSensorCfg
from mjlab.sim import MujocoCfg, SimulationCfg
from mjlab.terrains import TerrainEntityCfg
from mjlab_g1 import main, unitree_g1_ppo_runner_cfg

import silc

ROBOT = silc.Robot.read("t1")
BASE_HEIGHT = 0.68  # [m] the pose "home" touches the ground at 0.676


def t1_spec() -> mujoco.MjSpec:
    spec = mujoco.MjSpec.from_file(ROBOT.model_file)
    for motor in list(spec.actuators):  # servos come in their place
        spec.delete(motor)
    return spec


def t1_robot() -> EntityCfg:
    gains, pose = ROBOT.gains[ROBOT.default_gains], ROBOT.poses[ROBOT.default_pose]
    servos = tuple(
        # the joints' limits of effort are in the model
        BuiltinPositionActuatorCfg(target_names_expr=(re.escape(joint),), stiffness=float(kp), damping=float(kd))
        for joint, kp, kd in zip(ROBOT.joints, gains.kp, gains.kd)
    )
    start = EntityCfg.InitialStateCfg(
        pos=(0, 0, BASE_HEIGHT), joint_pos={re.escape(j): float(q) for j, q in zip(ROBOT.joints, pose)}
    )
    return EntityCfg(
        init_state=start,
        spec_fn=t1_spec,
        articulation=EntityArticulationInfoCfg(actuators=servos, soft_joint_pos_limit_factor=0.9),
    )


def posture(env) -> torch.Tensor:
    """[1] 1 in the default pose, less the further the joints are from it."""
    return torch.exp(-mdp.joint_pos_rel(env).square().sum(1))


def t1():
    """What is trained: the environment, PPO's settings, whose feet and hands it has."""
    scale = ROBOT.gains[ROBOT.default_gains].action_scale
    terms = {
        "base_ang_vel": ObservationTermCfg(func=mdp.base_ang_vel),
        "projected_gravity": ObservationTermCfg(func=mdp.projected_gravity),
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel),
        "joint_vel": ObservationTermCfg(func=mdp.joint_vel_rel, scale=0.1),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    soles = ContactSensorCfg(
        name="feet_ground_contact",
        primary=ContactMatch(mode="subtree", pattern=r"^(left_foot_link|right_foot_link)$", entity="robot"),
        secondary=ContactMatch(mode="body", pattern="terrain"),
        fields=("found", "force"),
        reduce="netforce",
        num_slots=1,
    )
    push = {axis: (-0.4, 0.4) for axis in ("x", "y")}
    env_cfg = ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            terrain=TerrainEntityCfg(terrain_type="plane"), entities={"robot": t1_robot()}, sensors=(soles,)
        ),
        observations={name: ObservationGroupCfg(terms=dict(terms)) for name in ("actor", "critic")},
        actions={
            "joint_pos": JointPositionActionCfg(
                entity_name="robot",
                actuator_names=(".*",),
                scale={re.escape(j): float(s) for j, s in zip(ROBOT.joints, scale)},
            )
        },
        events={
            "base": EventTermCfg(
                func=mdp.reset_root_state_uniform, mode="reset", params={"pose_range": {"yaw": (-3.1, 3.1)}}
            ),
            "joints": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={"position_range": (-0.05, 0.05), "velocity_range": (0.0, 0.0)},
            ),
            "push": EventTermCfg(
                func=mdp.push_by_setting_velocity,
                mode="interval",
                interval_range_s=(1.0, 3.0),
                params={"velocity_range": push},
            ),
        },
        rewards={
            "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
            "posture": RewardTermCfg(func=posture, weight=1.0),
            "upright": RewardTermCfg(func=mdp.flat_orientation_l2, weight=-2.0),
            "action_rate": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.05),
        },
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "fell_over": TerminationTermCfg(func=mdp.bad_orientation, params={"limit_angle": math.radians(60)}),
        },
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.005)),
        decimation=4,
        episode_length_s=20.0,
    )
    return env_cfg, unitree_g1_ppo_runner_cfg(), "t1"


if __name__ == "__main__":
    main(t1)

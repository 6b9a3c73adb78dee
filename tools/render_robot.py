#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders a robot's MJCF to a PNG. Needs the Python packages mujoco, numpy and pillow; silc does not.

    python3 tools/render_robot.py robots/g1/g1.xml docs/images/g1.png

Without a screen set MUJOCO_GL=egl or MUJOCO_GL=osmesa.
"""
import argparse

import mujoco
import numpy as np
from PIL import Image

STRIDE = {  # [rad] a pose in mid-step
    "left_hip_pitch_joint": -0.50, "left_knee_joint": 0.35, "left_ankle_pitch_joint": 0.10,
    "right_hip_pitch_joint": 0.25, "right_knee_joint": 0.55, "right_ankle_pitch_joint": -0.35,
    "left_shoulder_pitch_joint": 0.50, "right_shoulder_pitch_joint": -0.30,
    "left_shoulder_roll_joint": 0.20, "right_shoulder_roll_joint": -0.20,
    "left_elbow_joint": 0.70, "right_elbow_joint": 0.70, "waist_yaw_joint": 0.12,
}
VIEWS = {  # joints that differ from the keyframe, azimuth and elevation of the camera [deg]
    "front": ({}, 180, -8),
    "three-quarter": ({}, 215, -12),
    "side": ({}, 270, -8),
    "stride": (STRIDE, 232, -10),
}


def add_scene(spec, width, height):
    """Floor, light and sky, much as silc's loader adds them."""
    spec.visual.global_.offwidth = width
    spec.visual.global_.offheight = height
    spec.visual.quality.shadowsize = 4096
    spec.visual.quality.offsamples = 8
    spec.visual.headlight.ambient = [0.32] * 3
    spec.visual.headlight.diffuse = [0.38] * 3
    spec.add_texture(name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
                     builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
                     rgb1=[0.92, 0.94, 0.96], rgb2=[0.62, 0.70, 0.80], width=64, height=384)
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05],
                            rgba=[0.58, 0.61, 0.65, 1])
    spec.worldbody.add_light(pos=[1.5, 1.5, 3.5], dir=[-0.4, -0.4, -1],
                             type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, diffuse=[0.55] * 3)


def lowest_point(model, data):
    """Lowest point of the shapes that can touch the floor [m]; spheres, capsules and boxes."""
    low = np.inf
    for geom in range(model.ngeom):
        kind = model.geom_type[geom]
        if model.geom_contype[geom] == 0 or kind == mujoco.mjtGeom.mjGEOM_PLANE:
            continue
        up = np.abs(data.geom_xmat[geom].reshape(3, 3)[2])
        size = model.geom_size[geom]
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            reach = size[0]
        elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            reach = size[0] + size[1] * up[2]
        else:
            reach = up @ size
        low = min(low, data.geom_xpos[geom][2] - reach)
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="MJCF of the robot alone")
    parser.add_argument("png", help="picture to write")
    parser.add_argument("--keyframe", default="home", help="pose (default home)")
    parser.add_argument("--views", default="three-quarter,side,stride",
                        help=f"comma list of {', '.join(VIEWS)}")
    parser.add_argument("--collision", action="store_true", help="show collision shapes instead")
    parser.add_argument("--height", type=int, default=620, help="[pixels] (default 620)")
    parser.add_argument("--lookat", type=float, default=0.65, help="height the camera looks at [m]")
    parser.add_argument("--distance", type=float, default=2.02, help="of the camera [m]")
    args = parser.parse_args()

    width = int(0.66 * args.height)
    spec = mujoco.MjSpec.from_file(args.model)
    add_scene(spec, width, args.height)
    model = spec.compile()
    data = mujoco.MjData(model)
    renderer = mujoco.Renderer(model, args.height, width)
    option = mujoco.MjvOption()
    option.geomgroup[:] = [1, 1, 0, 1, 0, 0] if args.collision else [1, 1, 1, 0, 0, 0]

    pictures = []
    for view in args.views.split(","):
        joints, azimuth, elevation = VIEWS[view]
        mujoco.mj_resetDataKeyframe(model, data, model.key(args.keyframe).id)
        for name, angle in joints.items():
            data.qpos[model.joint(name).qposadr[0]] = angle
        mujoco.mj_forward(model, data)
        data.qpos[2] -= lowest_point(model, data)
        mujoco.mj_forward(model, data)
        camera = mujoco.MjvCamera()
        camera.lookat[:] = [0, 0, args.lookat]
        camera.distance, camera.azimuth, camera.elevation = args.distance, azimuth, elevation
        renderer.update_scene(data, camera, option)
        pictures.append(renderer.render())
    Image.fromarray(np.concatenate(pictures, axis=1)).quantize(256).save(args.png, optimize=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Adapters: Jacobians of a batch against MuJoCo's own, and trainings of a few iterations.

The first part needs PyTorch, MuJoCo and silc._core, which meet in ./dev test; the trainings need mjlab
or holosoma, which ./dev test-python has.
"""

import copy
import dataclasses
import importlib
import pathlib
import sys
import types

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
np = pytest.importorskip("numpy")
mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
silc = pytest.importorskip("silc")
pytest.importorskip("silc._core", reason="silc._core is not built: pip install . does that")
from conftest import ROOT  # noqa: E402
from silc import known_robots  # noqa: E402
from silc.torch import BodyJacobians, contact_kinematics  # noqa: E402
from silc.torch.kinematics import RobotJacobians, TreeKinematics  # noqa: E402
from silc.torch.tree import FootContacts, TreeJacobians, point_in_model  # noqa: E402

torch.set_num_threads(1)
EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_jacobians_of_a_batch_are_mujocos(name):
    from silc.observer import _View

    robot = silc.Robot.read(name)
    model = mujoco.MjModel.from_xml_path(robot.model_file)
    data, view = mujoco.MjData(model), _View(robot, model, "")
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in robot.joints]
    points = [[point_in_model(model, p.body, p.site, p.offset) for p in ps] for ps in (robot.feet, robot.hands)]
    tree = TreeJacobians(model, view.base, joints, *points)
    rng = np.random.default_rng(1)
    kept, expected = [], []
    for _ in range(5):
        data.qpos[:] = rng.standard_normal(model.nq)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        mujoco.mj_forward(model, data)
        kept.append([np.array(getattr(data, f)) for f in ("xanchor", "xaxis", "xpos", "xmat", "subtree_com")])
        expected.append(
            [
                np.stack([view.jacobian(data, p) for p in view.feet]),
                view.com_jacobian(data),
                np.stack([view.jacobian(data, p)[:3] for p in view.hands]),
                view.gravity(data),
            ]
        )
    arrays = [torch.tensor(np.stack(a), dtype=torch.float32) for a in zip(*kept)]
    for found, wanted in zip(tree(*arrays), zip(*expected)):
        # float32 of numbers about one
        np.testing.assert_allclose(found.numpy(), np.stack(wanted), atol=3e-6)


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_poses_of_a_batch_are_mujocos(name):
    """From joint angles and the base's pose to the arrays of mj_kinematics and mj_comPos, and Jacobians."""
    from silc.observer import _View

    robot = silc.Robot.read(name)
    model = mujoco.MjModel.from_xml_path(robot.model_file)
    data, view = mujoco.MjData(model), _View(robot, model, "")
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in robot.joints]
    kinematics, jacobians = TreeKinematics(model, view.base, joints), RobotJacobians.of(robot)
    qpos = np.random.default_rng(2).standard_normal((5, model.nq))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    state = [torch.tensor(qpos[:, part], dtype=torch.float32) for part in (view.qpos, slice(0, 3), slice(3, 7))]
    arrays, found = kinematics(*state), jacobians(*state)
    for row in range(5):
        data.qpos[:] = qpos[row]
        mujoco.mj_forward(model, data)
        for field in ("xanchor", "xaxis"):
            # float32 of numbers about one, through a chain of ten
            np.testing.assert_allclose(getattr(arrays, field)[row, joints], getattr(data, field)[joints], atol=5e-6)
        for field in ("xpos", "xmat", "subtree_com"):
            wanted = np.array(getattr(data, field))[view.base :].reshape(getattr(arrays, field)[row, view.base :].shape)
            np.testing.assert_allclose(getattr(arrays, field)[row, view.base :], wanted, atol=5e-6, err_msg=field)
        np.testing.assert_allclose(found.com[row], view.com_jacobian(data), atol=1e-5)
        for side in range(2):
            np.testing.assert_allclose(found.foot[row, side], view.jacobian(data, view.feet[side]), atol=1e-5)
            np.testing.assert_allclose(found.hand[row, side], view.jacobian(data, view.hands[side])[:3], atol=1e-5)


TWO_HINGES = """
<mujoco>
  <worldbody>
    <body name="crate" pos="9 9 9"><geom size="0.1"/></body>
    <body name="trunk" pos="0 0 1" quat="0.8 0.6 0 0">
      <freejoint/>
      <geom size="0.1"/>
      <body name="arm" pos="0.1 0.2 0.3" quat="0.6 0 0.8 0">
        <joint name="swing" axis="0 1 0" pos="0.05 0 0.02" ref="20"/>
        <joint name="spread" axis="1 0 0"/>
        <geom size="0.1" pos="0.3 0 0"/>
        <body name="wrist" pos="0.4 0 0">
          <joint name="turn" axis="0.6 0 0.8" ref="-30"/>
          <geom size="0.05" pos="0 0.1 0"/>
        </body>
      </body>
      SLIDE
    </body>
  </worldbody>
</mujoco>
"""


def test_hinges_that_share_a_body_and_hinges_that_nobody_moves():
    model = mujoco.MjModel.from_xml_string(TWO_HINGES.replace("SLIDE", ""))
    data, number = mujoco.MjData(model), {n: model.joint(n).id for n in ("swing", "spread", "turn")}
    base = model.body("trunk").id
    # another order than the model's; the wrist stays where the model has it
    kinematics = TreeKinematics(model, base, [number["spread"], number["swing"]])
    data.qpos[:3], data.qpos[3:7] = (0.3, -0.2, 0.9), (0.5, 0.5, -0.5, 0.5)
    data.joint("spread").qpos, data.joint("swing").qpos = -0.7, 1.1
    mujoco.mj_forward(model, data)
    pose = (torch.tensor(np.array([data.qpos[part]])).float() for part in (slice(0, 3), slice(3, 7)))
    found = kinematics(torch.tensor([[-0.7, 1.1]]), *pose)
    for field in ("xpos", "xmat", "subtree_com"):
        wanted = np.array(getattr(data, field))[base:].reshape(getattr(found, field)[0, base:].shape)
        np.testing.assert_allclose(getattr(found, field)[0, base:], wanted, atol=2e-6, err_msg=field)
    for field in ("xanchor", "xaxis"):
        np.testing.assert_allclose(getattr(found, field)[0, 1:], getattr(data, field)[1:], atol=2e-6)
    slide = TWO_HINGES.replace("SLIDE", '<body><joint name="rail" type="slide"/><geom size="0.1"/></body>')
    for message, call in (
        (r"q: shape \(1, 3\), expected \(B, 2\)", lambda: kinematics(torch.zeros(1, 3))),
        (r"quat_wxyz: shape \(1, 3\)", lambda: kinematics(torch.zeros(1, 2), None, torch.zeros(1, 3))),
        ("joint rail: only hinges", lambda: TreeKinematics(mujoco.MjModel.from_xml_string(slide), base, [])),
        ("joint turn: does not move a body", lambda: TreeKinematics(model, model.body("crate").id, [number["turn"]])),
        ("model: has no joint 'r/turn'", lambda: RobotJacobians(model, ["turn"], [], prefix="r/")),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_the_lines_of_the_docs_that_bound_a_training_work():
    """The second block of docs/python.md, as it stands there."""
    lines = (ROOT / "docs" / "python.md").read_text().split("```python\n")[2].split("```")[0]
    assert "StiffnessPenalty(" in lines
    seen: dict = {}
    exec(lines, seen)
    penalty, actor = seen["penalty"], seen["actor"]
    assert float(seen["loss"].detach()) > float(seen["task_loss"].detach())
    assert all(bool(torch.isfinite(p.grad).all()) for p in actor.parameters() if p.grad is not None)
    figures = penalty.follow(0.0)
    assert figures["left_out"] == 0 and figures["sigma_mean"] > 0


def test_known_robots_are_those_of_the_robot_files():
    # the table is there so that a training needs no compiled module
    for name, known in known_robots.ROBOTS.items():
        robot = silc.Robot.read(name)
        assert tuple((p.body, p.site, tuple(p.offset)) for p in robot.feet) == known["feet"]
        assert tuple((p.body, p.site, tuple(p.offset)) for p in robot.hands) == known["hands"]
        assert robot.foot_force == known["force"]


def adapter(monkeypatch, name, package, stand_in):
    """A module of silc; where the package is not installed, what it imports of it is stood in for."""
    try:
        importlib.import_module(package)
        stand_in = {}
    except ImportError:
        pass
    for module_name, content in stand_in.items():
        module = types.ModuleType(module_name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module_name, module)
    yield importlib.import_module(name)
    if stand_in:  # what was imported over it goes with it
        del sys.modules[name]


@pytest.fixture
def mjlab_adapter(monkeypatch):
    config = {"ObservationGroupCfg": types.SimpleNamespace, "ObservationTermCfg": types.SimpleNamespace}
    stand_in = {
        "mjlab": {},
        "mjlab.rl": {},
        "mjlab.rl.config": {"RslRlPpoAlgorithmCfg": dataclasses.make_dataclass("RslRlPpoAlgorithmCfg", [])},
        "mjlab.managers": {},
        "mjlab.managers.observation_manager": config,
    }
    yield from adapter(monkeypatch, "silc.mjlab", "mjlab", stand_in)


@pytest.fixture
def holosoma_adapter(monkeypatch):
    names = ("holosoma", "holosoma.agents", "holosoma.agents.ppo")
    stand_in = {**{name: {} for name in names}, "holosoma.agents.ppo.ppo": {"PPO": object}}
    yield from adapter(monkeypatch, "silc.holosoma", "holosoma.agents.ppo.ppo", stand_in)


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_mjlab_terms_of_each_robot_on_a_stand_in(mjlab_adapter, name):
    """An environment with mjlab's fields around silc's own model: its terms are MuJoCo's Jacobians."""
    from silc.observer import _View
    from silc.packing import unpack_contacts

    robot, spec = silc.Robot.read(name), mujoco.MjSpec()
    own = mujoco.MjSpec.from_file(robot.model_file)
    spec.option.timestep = own.option.timestep
    spec.attach(own, prefix="robot/", frame=spec.worldbody.add_frame())
    model = spec.compile()
    view, data, n = _View(robot, model, "robot/"), mujoco.MjData(model), len(robot.joints)
    rng = np.random.default_rng(3)
    fields, kept, bodies = ("xanchor", "xaxis", "xpos", "xmat", "subtree_com"), [], []
    for _ in range(4):
        data.qpos[:] = 0.2 * rng.standard_normal(model.nq)
        data.qpos[3:7] = [1, 0, 0, 0] + 0.1 * rng.standard_normal(4)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        mujoco.mj_forward(model, data)
        kept.append([np.array(getattr(data, f)) for f in fields])
        feet, hands = (np.stack([view.jacobian(data, p) for p in points]) for points in (view.feet, view.hands))
        bodies.append((feet, view.com_jacobian(data), hands[:, :3], view.gravity(data)))
    arrays = {f: torch.tensor(np.stack(a), dtype=torch.float32) for f, a in zip(fields, zip(*kept))}
    # both feet stand, then the left, the right, none
    force = torch.tensor([[100.0, 100], [100, 0], [0, 100], [0, 0]])
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, "robot/" + j) for j in robot.joints]
    env = types.SimpleNamespace(
        num_envs=4,
        device="cpu",
        sim=types.SimpleNamespace(mj_model=model, data=types.SimpleNamespace(**arrays)),
        scene={
            "robot": types.SimpleNamespace(indexing=types.SimpleNamespace(joint_ids=joints, root_body_id=view.base)),
            "feet_ground_contact": types.SimpleNamespace(
                data=types.SimpleNamespace(force=torch.nn.functional.pad(force.unsqueeze(2), (2, 0)))
            ),
        },
    )
    sensors = [types.SimpleNamespace(name="feet_ground_contact")]
    scene = types.SimpleNamespace(sensors=sensors, entities={"robot": None})
    cfg = types.SimpleNamespace(scene=scene, observations={})
    mjlab_adapter.add_stiffness_terms(cfg, robot=name)
    term = cfg.observations["silc"].terms["stiffness"]
    compute = term.func(term, env)
    # at an episode's first moment nothing is known of the contacts
    assert unpack_contacts(compute(env), n).mode.tolist() == [255] * 4
    found = unpack_contacts(compute(env), n)
    assert found.mode.tolist() == [0, 1, 2, 3]
    body = BodyJacobians(*(torch.tensor(np.stack(b)) for b in zip(*bodies)))
    for field, wanted in contact_kinematics(body, found.mode)._asdict().items():
        np.testing.assert_allclose(getattr(found, field), wanted, atol=1e-4, err_msg=field)
    compute.reset([1])
    assert unpack_contacts(compute(env), n).mode.tolist() == [0, 255, 2, 3]
    with pytest.raises(ValueError, match="robot: 't2' is not one of g1, t1"):
        mjlab_adapter.add_stiffness_terms(cfg, robot="t2")
    with pytest.raises(ValueError, match="sensor: the scene has no 'soles' among feet_ground_contact"):
        mjlab_adapter.add_stiffness_terms(cfg, robot=name, sensor="soles")
    with pytest.raises(ValueError, match="entity: the scene has no 'climber' among robot"):
        mjlab_adapter.add_stiffness_terms(cfg, robot=name, entity="climber")
    # an entity that the configuration has and the environment has not
    scene.entities["climber"] = None
    mjlab_adapter.add_stiffness_terms(cfg, robot=name, entity="climber")
    term = cfg.observations["silc"].terms["stiffness"]
    with pytest.raises(ValueError, match="entity: the scene has no 'climber'"):
        term.func(term, env)


def mjlab_world(entity="climber"):
    """An mjlab environment's managers around two hinges; the actor's inputs come in two groups."""
    spec = mujoco.MjSpec()
    spec.attach(mujoco.MjSpec.from_string(TWO_HINGES.replace("SLIDE", "")), prefix=entity + "/", frame=spec.worldbody.add_frame())
    for joint, kp, kd in (("swing", 30.0, 2.0), ("spread", 40.0, 3.0), ("turn", 50.0, 4.0)):
        servo = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f"{entity}/{joint}")
        servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        servo.gainprm[0], servo.biasprm[:3] = kp, [0, -kp, -kd]
    model = spec.compile()
    names = ("swing", "spread", "turn")
    joints = [model.joint(f"{entity}/{n}").id for n in names]
    base = model.body(f"{entity}/trunk").id
    asset = types.SimpleNamespace(
        joint_names=names, indexing=types.SimpleNamespace(joint_ids=joints, root_body_id=base)
    )

    def shows(function, history=0, scale=None, **params):
        func = types.SimpleNamespace(__name__=function)
        return types.SimpleNamespace(func=func, params=params, history_length=history, scale=scale)

    own = types.SimpleNamespace(name=entity, joint_ids=slice(None))
    groups = {
        "joints": {
            "vel": (shows("joint_vel_rel", scale=0.1, asset_cfg=own), 3),
            # no entity named is mjlab's "robot", which is another one here
            "others": (shows("joint_pos_rel"), 5),
        },
        "rest": {
            "pos": (shows("joint_pos_rel", history=2, asset_cfg=own), 6),
            "action": (shows("last_action"), 2),
            "gravity": (shows("projected_gravity", asset_cfg=own), 3),
        },
        "silc": {"stiffness": (shows("stiffness_terms", entity=entity), 10)},
    }
    manager = types.SimpleNamespace(
        active_terms={g: list(terms) for g, terms in groups.items()},
        group_obs_term_dim={g: [(size,) for _, size in terms.values()] for g, terms in groups.items()},
        _group_obs_term_cfgs={g: [cfg for cfg, _ in terms.values()] for g, terms in groups.items()},
    )
    action = types.SimpleNamespace(target_ids=[2, 0], scale=0.5, cfg=types.SimpleNamespace(entity_name=entity))
    actions = types.SimpleNamespace(active_terms=["joint_pos"], get_term=lambda _: action)
    env = types.SimpleNamespace(
        sim=types.SimpleNamespace(mj_model=model),
        scene={entity: asset},
        observation_manager=manager,
        action_manager=actions,
        step_dt=0.02,
    )
    env.unwrapped = env
    return env, action


def test_an_mjlab_environment_is_described_with_its_own_names(mjlab_adapter):
    """The entity is that of the environment's term, the groups are the actor's."""
    env, action = mjlab_world()
    setup = mjlab_adapter.describe(env, ("joints", "rest"))
    assert setup.kp.tolist() == [30, 40, 50] and setup.kd.tolist() == [2, 3, 4] and setup.period == 0.02
    assert setup.alpha.tolist() == [0.5, 0, 0.5] and setup.channels.action_joint.tolist() == [2, 0]
    # vel 0..2, others 3..7, pos 8..13 (oldest first), action 14..15, gravity 16..18
    wanted = {name: torch.zeros(19, 3) for name in ("q0", "q", "v", "a", "g")}
    for i in range(3):
        wanted["v"][i, i], wanted["g"][16 + i, i] = 0.1, 1
        wanted["q"][8 + i, i] = wanted["q"][11 + i, i] = wanted["q0"][11 + i, i] = 1
    wanted["a"][14, 2] = wanted["a"][15, 0] = 1
    for name, matrix in wanted.items():
        assert torch.equal(getattr(setup.channels, name), matrix), name
    assert setup.channels.age.tolist() == [0] * 8 + [1] * 3 + [0] * 8
    # the second group alone is as wide as it is
    assert mjlab_adapter.describe(env, ["rest"]).channels.q.shape == (11, 3)
    for message, call in (
        (
            "observation group 'actor': the environment has none of that name among joints, rest, silc",
            lambda: mjlab_adapter.describe(env),
        ),
        ("entity: the scene has no 'robot'", lambda: mjlab_adapter.describe(env, ["rest"], entity="robot")),
        ("'joints': no term shows joint positions of 'climber'", lambda: mjlab_adapter.describe(env, ["joints"])),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    action.cfg.entity_name = "robot"
    with pytest.raises(ValueError, match="action term 'joint_pos': moves 'robot', and the penalty is of 'climber'"):
        mjlab_adapter.describe(env, ["rest"])


def holosoma_world(name):
    """An environment with holosoma's fields around silc's own model, and MuJoCo's Jacobians of its states."""
    from silc.observer import _View

    robot = silc.Robot.read(name)
    model = mujoco.MjModel.from_xml_path(robot.model_file)
    view, data, n = _View(robot, model, ""), mujoco.MjData(model), len(robot.joints)
    # an order of its own, as every simulator has one
    order = np.random.default_rng(5).permutation(n)
    columns = np.concatenate((np.arange(6), 6 + order))
    rng, qpos, bodies = np.random.default_rng(3), [], []
    for _ in range(4):
        data.qpos[:] = 0.2 * rng.standard_normal(model.nq)
        data.qpos[3:7] = [1, 0, 0, 0] + 0.1 * rng.standard_normal(4)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        mujoco.mj_forward(model, data)
        qpos.append(np.array(data.qpos))
        feet, hands = (np.stack([view.jacobian(data, p) for p in points]) for points in (view.feet, view.hands))
        rows = (feet, view.com_jacobian(data), hands[:, :3])
        bodies.append((*(J[..., columns] for J in rows), view.gravity(data)))
    qpos = torch.tensor(np.stack(qpos), dtype=torch.float32)
    names = [model.body(b).name for b in range(model.nbody)][::-1]
    force = torch.zeros(4, len(names), 3)
    for side, foot in enumerate(robot.feet):  # both feet stand, then the left, the right, none
        force[[0, 1 + side], names.index(foot.body), 2] = 100.0
    gains = robot.gains[robot.default_gains]
    per_joint = {
        "p_gains": torch.tensor(gains.kp[order]).float(),
        "d_gains": torch.tensor(gains.kd[order]).float(),
        "action_scales": torch.tensor(gains.action_scale[order]).float(),
    }
    groups = {
        "actor_obs": [("actions", 1.0, n), ("base_ang_vel", 0.25, 3), ("dof_pos", 1.0, n)],
        "history": [("dof_pos", 0.5, n), ("dof_vel", 0.05, n), ("projected_gravity", 1.0, 3)],
    }

    def layout(asked):
        where = "holosoma.managers.observation.terms.locomotion:"
        return [
            {"name": f, "func": where + f, "dim": dim, "history_length": 1 + 2 * (g == "history"), "scale": scale}
            for g in asked
            for f, scale, dim in groups[g]
        ]

    root = torch.cat((qpos[:, :3], qpos[:, [4, 5, 6, 3]], torch.zeros(4, 6)), 1)
    env = types.SimpleNamespace(
        num_envs=4,
        device="cpu",
        dt=0.02,
        dof_names=[robot.joints[i] for i in order],
        robot_config=types.SimpleNamespace(control=types.SimpleNamespace(control_type="P")),
        action_manager=types.SimpleNamespace(
            iter_terms=lambda: {"joint_control": types.SimpleNamespace(**per_joint)}.items()
        ),
        observation_manager=types.SimpleNamespace(
            cfg=types.SimpleNamespace(groups=groups), get_observation_layout=layout
        ),
        episode_length_buf=torch.tensor([5, 1, 0, 7]),
        simulator=types.SimpleNamespace(
            dof_pos=qpos[:, view.qpos[order]], robot_root_states=root, contact_forces=force, body_names=names
        ),
    )
    return robot, model, env, order, BodyJacobians(*(torch.tensor(np.stack(b)) for b in zip(*bodies)))


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_holosoma_terms_of_each_robot_on_a_stand_in(holosoma_adapter, name):
    robot, model, env, order, body = holosoma_world(name)
    n = len(robot.joints)
    holosoma_adapter.add_stiffness_terms(env, name, model, ("actor_obs", "history"))
    # the third has just begun: nothing is known of its contacts
    assert env.silc_contacts().mode.tolist() == [0, 1, 255, 3]
    env.episode_length_buf += 1
    found = env.silc_contacts()
    assert found.mode.tolist() == [0, 1, 2, 3]
    for field, wanted in contact_kinematics(body, found.mode)._asdict().items():
        np.testing.assert_allclose(getattr(found, field), wanted, atol=1e-4, err_msg=field)
    setup, gains = env.silc_setup(), robot.gains[robot.default_gains]
    np.testing.assert_allclose(setup.kp, gains.kp[order], rtol=1e-6)
    np.testing.assert_allclose(setup.kd, gains.kd[order], rtol=1e-6)
    np.testing.assert_allclose(setup.alpha, gains.action_scale[order], rtol=1e-6)
    assert setup.period == 0.02
    # actions, angular velocity, positions; then three frames each of positions, velocities, gravity
    eye, start = torch.eye(n), 2 * n + 3
    wanted = {name: torch.zeros(start + 6 * n + 9, n) for name in ("q0", "q", "v", "a")}
    wanted["a"][:n], wanted["q"][n + 3 : start] = eye, eye
    wanted["q0"] += wanted["q"]
    for frame in range(3):
        wanted["q"][start + frame * n : start + (frame + 1) * n] = 0.5 * eye
        wanted["v"][start + (3 + frame) * n : start + (4 + frame) * n] = 0.05 * eye
    wanted["q0"][start + 2 * n : start + 3 * n] = 0.5 * eye
    wanted["g"] = torch.cat([torch.zeros(start + 6 * n, 3)] + [torch.eye(3)] * 3)
    for field, matrix in wanted.items():
        np.testing.assert_allclose(getattr(setup.channels, field), matrix, atol=1e-7, err_msg=field)
    age = [0] * start + 2 * sum(([a] * n for a in (2, 1, 0)), []) + sum(([a] * 3 for a in (2, 1, 0)), [])
    assert setup.channels.age.tolist() == age


def test_what_a_holosoma_environment_has_not_is_named(holosoma_adapter):
    robot, model, env, _, _ = holosoma_world("g1")

    def terms(**more):
        return holosoma_adapter.StiffnessTerms(env, **{"model": model, **more})

    def changed(where, **fields):
        before = {name: getattr(where, name) for name in fields}
        vars(where).update(fields)
        try:
            terms().silc_setup()
        finally:
            vars(where).update(before)

    no_gains = types.SimpleNamespace(iter_terms=lambda: {"velocity": types.SimpleNamespace()}.items())
    two = types.SimpleNamespace(iter_terms=lambda: {"legs": None, "arms": None}.items())
    for message, call in (
        ("robot: 't2' is not one of g1, t1", lambda: terms(robot="t2")),
        ("model: has neither the site 'left_foot' nor the body 'left_foot_link'", lambda: foreign(terms)),
        ("env: its simulator has no body 'left_ankle_roll_link'", lambda: changed(env.simulator, body_names=["pelvis"])),
        ("observation group 'policy': the environment has none", lambda: terms(groups=["policy"]).silc_setup()),
        ("control_type 'V'", lambda: changed(env.robot_config.control, control_type="V")),
        ("action term 'velocity': has no p_gains", lambda: changed(env, action_manager=no_gains)),
        ("one action term is expected, there are legs, arms", lambda: changed(env, action_manager=two)),
        ("model: has no joint 'left_wing'", lambda: changed(env, dof_names=["left_wing"])),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def foreign(terms):
    # a model whose joints are the robot's and whose feet are not
    robot = silc.Robot.read("g1")
    tree = "".join(f'<body><joint name="{j}" axis="0 1 0"/><geom size="0.1"/></body>' for j in robot.joints)
    text = f"<mujoco><worldbody><body><freejoint/><geom size='0.1'/>{tree}</body></worldbody></mujoco>"
    terms(robot="t1", model=mujoco.MjModel.from_xml_string(text))


def test_feet_have_hysteresis():
    contacts = FootContacts(40, 16)
    forces = [[100, 0], [30, 30], [10, 45], [20, 20], [10, 10]]
    found = [int(contacts.update(torch.tensor([f], dtype=torch.float32))[0]) for f in forces]
    assert found == [1, 1, 2, 2, 3]
    with pytest.raises(ValueError, match="contact forces"):
        FootContacts(10, 20)


def test_packed_contacts_come_back():
    from silc.packing import pack_contacts, unpack_contacts
    from silc.torch import Contacts

    n = 29
    contacts = Contacts(
        torch.tensor([0, 255, 3]), torch.randn(3, 3, n), torch.randn(3, 2, 3, n), torch.randn(3, 6, n), torch.randn(3, 3, n)
    )
    for a, b in zip(unpack_contacts(pack_contacts(contacts), n), contacts):
        assert torch.equal(a, b)
    with pytest.raises(ValueError, match=r"group 'silc': shape \(3, 523\), expected \(B, 505\)"):
        unpack_contacts(pack_contacts(contacts), 28)


def sigma_before_and_after(train):
    """Mean σ and penalty of the last rollout's samples, by the first weights and by the last."""
    import silc.rsl_rl as adapter

    kept = {}
    update = adapter.SilcPPO.update

    def watch(self):
        kept["observations"] = self.storage.observations.flatten(0, 1).clone()
        kept.setdefault("first", copy.deepcopy(self._raw_actor.mlp.state_dict()))
        return update(self)

    adapter.SilcPPO.update = watch
    try:
        figures, runner = train()
    finally:
        adapter.SilcPPO.update = update
    alg, seen = runner.alg, kept["observations"]
    x = torch.cat([seen[g] for g in alg._raw_actor.obs_groups], -1)
    contacts = adapter.unpack_contacts(seen["silc"], alg.penalty.kp.shape[0])
    after = alg.penalty.evaluate(alg._network(), x, contacts)
    alg._raw_actor.mlp.load_state_dict(kept["first"])
    before = alg.penalty.evaluate(alg._network(), x, contacts)
    ok = before.ok & after.ok
    assert int(ok.sum()) > 10
    return figures, float(before.sigma[ok].mean()), float(after.sigma[ok].mean())


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_mjlab_trains_with_the_penalty_and_sigma_falls(name):
    pytest.importorskip("mjlab", reason="mjlab is not installed; ./dev test-python installs it")
    sys.path.insert(0, str(EXAMPLES))
    import mjlab_g1

    task = getattr(importlib.import_module(f"mjlab_{name}"), name)
    arguments = {"envs": 4, "iterations": 3, "hidden": (64, 32), "penalty": {"samples": 0}, "task": task}
    figures, before, after = sigma_before_and_after(lambda: mjlab_g1.train(**arguments))
    assert [f["iteration"] for f in figures] == [0, 1, 2]
    assert all(np.isfinite(list(f.values())).all() for f in figures)
    assert after < before, (before, after)
    # without it, the same training does not make the robot softer by as much
    _, plain_before, plain_after = sigma_before_and_after(lambda: mjlab_g1.train(run="watch", **arguments))
    assert after / before < plain_after / plain_before, (after / before, plain_after / plain_before)
    print(f"sigma {before:.2f} -> {after:.2f}; PPO alone {plain_before:.2f} -> {plain_after:.2f}")


def test_mjlab_terms_are_the_observers():
    """Contact kinematics of the environment's terms against MuJoCo's own Jacobians at the same states."""
    pytest.importorskip("mjlab", reason="mjlab is not installed; ./dev test-python installs it")
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.tasks.velocity.config.g1.env_cfgs import unitree_g1_flat_env_cfg

    from silc.mjlab import add_stiffness_terms, describe
    from silc.observer import _View
    from silc.packing import unpack_contacts

    cfg = unitree_g1_flat_env_cfg()
    cfg.scene.num_envs = 3
    add_stiffness_terms(cfg)
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    for _ in range(5):
        observations = env.step(0.1 * torch.randn(3, 29))[0]
    found = unpack_contacts(observations["silc"], 29)
    model, robot = env.sim.mj_model, silc.Robot.read("g1")
    assert env.scene["robot"].joint_names == robot.joints  # so that the columns are the observer's
    data, view, bodies = mujoco.MjData(model), _View(robot, model, "robot/"), []
    for i in range(3):
        data.qpos[:], data.qvel[:] = env.sim.data.qpos[i].numpy(), env.sim.data.qvel[i].numpy()
        mujoco.mj_forward(model, data)
        feet = np.stack([view.jacobian(data, p) for p in view.feet])
        hands = np.stack([view.jacobian(data, p)[:3] for p in view.hands])
        bodies.append((feet, view.com_jacobian(data), hands, view.gravity(data)))
    body = BodyJacobians(*(torch.tensor(np.stack(b)) for b in zip(*bodies)))
    wanted = contact_kinematics(body, torch.where(found.mode == 255, 0, found.mode))
    for name in ("hand_on_base", "gravity"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-4)
    # the task moves the trunk's centre of mass a little, at random: centimetres of one body
    np.testing.assert_allclose(found.com, wanted.com, atol=0.05)
    setup = describe(env)
    gains = robot.gains["mjlab"]
    np.testing.assert_allclose(setup.kp, gains.kp, rtol=1e-3)
    np.testing.assert_allclose(setup.alpha, gains.action_scale, rtol=1e-3)
    assert setup.channels.q.shape == (99, 29) and setup.channels.a is not None and setup.channels.g is not None
    # an actor that sees two groups, and a group that is not there
    both = describe(env, ("actor", "critic")).channels
    assert both.q.shape[0] == sum(observations[group].shape[1] for group in ("actor", "critic"))
    assert int(both.q.count_nonzero()) == 2 * int(setup.channels.q.count_nonzero())
    with pytest.raises(ValueError, match="observation group 'policy': the environment has none of that name among"):
        describe(env, ["policy"])


def test_the_lines_of_the_docs_for_mjlab_work():
    pytest.importorskip("mjlab", reason="mjlab is not installed; ./dev test-python installs it")
    from mjlab.tasks.velocity.config.g1.env_cfgs import unitree_g1_flat_env_cfg
    from mjlab.tasks.velocity.config.g1.rl_cfg import unitree_g1_ppo_runner_cfg

    (lines,) = [b for b in (ROOT / "docs" / "python.md").read_text().split("```") if b.startswith("python\nfrom silc.mjlab")]
    seen = {"env_cfg": unitree_g1_flat_env_cfg(), "agent_cfg": unitree_g1_ppo_runner_cfg()}
    own = dataclasses.asdict(seen["agent_cfg"].algorithm)
    exec(lines[len("python\n") :], seen)
    made = dataclasses.asdict(seen["agent_cfg"].algorithm)
    # the task's own settings stay
    assert {k: v for k, v in made.items() if k in own and k != "class_name"} == {
        k: v for k, v in own.items() if k != "class_name"
    }
    assert made["budget"] == "compliance" and "silc" in seen["env_cfg"].observations


def test_rsl_rl_trains_with_the_penalty_and_sigma_falls(tmp_path):
    """rsl_rl's own runner, without mjlab: checkpoints, what it keeps of the configuration, σ."""
    pytest.importorskip("rsl_rl", reason="rsl_rl is not installed; ./dev test-python installs it")
    sys.path.insert(0, str(EXAMPLES))
    import rsl_rl_springs

    ratio = {}
    for run in ("silc", "watch"):
        arguments = {"envs": 8, "iterations": 3, "hidden": (32, 24), "run": run, "penalty": {"samples": 0}}
        figures, before, after = sigma_before_and_after(lambda: rsl_rl_springs.train(**arguments))
        assert len(figures) == 3 and all(np.isfinite(list(f.values())).all() for f in figures)
        assert "symmetry" not in figures[0]
        ratio[run] = after / before
    assert ratio["silc"] < 1
    assert ratio["silc"] < ratio["watch"]
    print("sigma, after over before:", ratio)
    # λ and the bound go into a checkpoint and come back
    _, runner = rsl_rl_springs.train(8, 2, hidden=(32, 24), log_dir=str(tmp_path))
    assert "silc_setup" not in runner.cfg["algorithm"]
    (checkpoint,) = tmp_path.glob("model_1.pt")
    again = rsl_rl_springs.OnPolicyRunner(
        rsl_rl_springs.SpringsEnv(8), rsl_rl_springs.configuration(hidden=(32, 24)), None, "cpu"
    )
    again.load(str(checkpoint))
    assert again.alg.penalty.iteration == runner.alg.penalty.iteration == 2


def test_an_rsl_rl_actor_that_sees_more_than_the_channels_describe_is_named():
    pytest.importorskip("rsl_rl", reason="rsl_rl is not installed; ./dev test-python installs it")
    sys.path.insert(0, str(EXAMPLES))
    import rsl_rl_springs

    settings = rsl_rl_springs.configuration(hidden=(32, 24))
    settings["obs_groups"]["actor"] = ["policy", "silc"]
    with pytest.raises(ValueError, match=r"the actor sees 958 numbers \(policy, silc\), .* channels describe 435"):
        rsl_rl_springs.OnPolicyRunner(rsl_rl_springs.SpringsEnv(8), settings, None, "cpu")


def test_mixed_precision_leaves_the_penalty_in_full():
    """rsl_rl 5.5 works its losses out under autocast; the penalty's gradient is the same with it and without."""
    pytest.importorskip("rsl_rl", reason="rsl_rl is not installed; ./dev test-python installs it")
    sys.path.insert(0, str(EXAMPLES))
    import rsl_rl_springs

    _, runner = rsl_rl_springs.train(8, 1, hidden=(32, 24))
    alg, seen = runner.alg, runner.env.get_observations()
    found = []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            alg.collect_penalty(seen)
        found.append([g for _, g in alg._pairs])
    assert any(float(g.abs().max()) > 0 for g in found[0])
    for a, b in zip(*found):
        assert torch.equal(a, b)


def test_holosoma_trains_with_the_penalty_and_sigma_falls(tmp_path):
    """holosoma's own PPO on a toy: joints on springs, Jacobians of random stances."""
    pytest.importorskip("holosoma", reason="holosoma is not installed")
    sys.path.insert(0, str(EXAMPLES))
    import holosoma_toy

    sigma = {}
    for run, options in (("silc", {"samples": 0}), ("watch", {"samples": 0, "lambda_": 0.0})):
        algo, before, after = holosoma_toy.train(4, 3, str(tmp_path / run), options)
        assert np.isfinite(list(algo.figures.values())).all()
        sigma[run] = after / before
    assert sigma["silc"] < 1
    assert sigma["silc"] < sigma["watch"]
    print("sigma, after over before:", sigma)


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_holosomas_own_managers_robots_and_observations_are_read(name):
    """Its action and observation managers with its presets, around its own MJCF: columns by differences."""
    pytest.importorskip("holosoma", reason="holosoma is not installed")
    from holosoma.config_values import robot as robots
    from holosoma.managers.action import ActionManager
    from holosoma.managers.observation import ObservationManager

    from silc.holosoma import StiffnessTerms

    presets = f"holosoma.config_values.loco.{name}."
    observation = importlib.import_module(presets + "observation")
    action = importlib.import_module(presets + "action")
    config = {"g1": robots.g1_29dof, "t1": robots.t1_29dof_waist_wrist}[name]
    B, n, names = 3, len(config.dof_names), list(config.dof_names)
    torch.manual_seed(1)
    quat = torch.nn.functional.normalize(torch.randn(B, 4), dim=1)
    root = torch.cat((torch.zeros(B, 3), quat, torch.zeros(B, 6)), 1)
    simulator = types.SimpleNamespace(
        dof_pos=0.1 * torch.randn(B, n),
        dof_vel=torch.randn(B, n),
        robot_root_states=root,
        body_names=config.body_names,
        contact_forces=torch.full((B, len(config.body_names), 3), 100.0),
    )
    gait = types.SimpleNamespace(phase=torch.zeros(B, 2))
    command = types.SimpleNamespace(commands=torch.zeros(B, 3), get_state=lambda _: gait)
    env = types.SimpleNamespace(num_envs=B, num_dof=n, device="cpu", dt=0.02, dof_names=names, robot_config=config)
    env.simulator, env.command_manager, env.base_quat = simulator, command, quat
    env.default_dof_pos, env.episode_length_buf = torch.zeros(B, n), torch.ones(B)
    (actions,) = (v for k, v in vars(action).items() if k.endswith("joint_pos"))
    (shown,) = (v for k, v in vars(observation).items() if k.endswith("wolinvel"))
    noiseless = dataclasses.replace(shown.groups["actor_obs"], enable_noise=False, history_length=2)
    shown = dataclasses.replace(shown, groups={"actor_obs": noiseless})
    env.action_manager = ActionManager(actions, env, "cpu")
    env.observation_manager = ObservationManager(shown, env, "cpu")

    terms = StiffnessTerms(env, name)
    setup, channels = terms.silc_setup(), terms.silc_setup().channels
    scale = config.control.action_scale
    assert setup.channels.q.shape == (env.observation_manager.get_obs_dims()["actor_obs"], n)
    for i, joint in enumerate(names):
        found = [v for key, v in config.control.stiffness.items() if key in joint]
        assert float(setup.kp[i]) == pytest.approx(found[-1])
        if not config.control.action_scales_by_effort_limit_over_p_gain:
            assert float(setup.alpha[i]) == pytest.approx(scale)

    def frames():
        # the older frame, then the newest
        env.observation_manager.reset()
        env.observation_manager.compute()
        return env.observation_manager.compute()["actor_obs"][0].clone()

    before = frames()
    moved = {"q": simulator.dof_pos, "v": simulator.dof_vel, "a": env.action_manager.action}
    for field, value in moved.items():
        for i in (0, n // 2, n - 1):
            value[0, i] += 0.5
            np.testing.assert_allclose(2 * (frames() - before), getattr(channels, field)[:, i], atol=1e-5)
            value[0, i] -= 0.5
    newest = channels.age == 0
    assert torch.equal(channels.q0, channels.q * newest.unsqueeze(1)) and int(newest.sum()) > 3 * n
    # gravity: upright, then leaning to all sides
    for turned in torch.nn.functional.normalize(torch.eye(4)[3] + 0.2 * torch.randn(4, 4), dim=1):
        g = []
        for q in (quat[0].clone(), turned):
            quat[0] = q
            x, y, z, w = q.tolist()
            # third row of R, downwards
            g.append((torch.tensor([-2 * (x * z - w * y), -2 * (y * z + w * x), -1 + 2 * (x * x + y * y)]), frames()))
        np.testing.assert_allclose(g[1][1] - g[0][1], channels.g @ (g[1][0] - g[0][0]), atol=1e-5)
    # Jacobians of its own model, whose joints are in its own order
    contacts = terms.silc_contacts()
    assert contacts.mode.tolist() == [0] * B and contacts.com.shape == (B, 3, n)
    assert all(bool(torch.isfinite(t).all()) for t in contacts) and float(contacts.hand_on_base.abs().max()) > 0.1


def test_holosoma_goes_on_from_a_checkpoint(tmp_path):
    """λ, the bound and the iteration go into holosoma's checkpoint and come back; its infos stay its own."""
    pytest.importorskip("holosoma", reason="holosoma is not installed")
    sys.path.insert(0, str(EXAMPLES))
    import holosoma_toy

    options = {"samples": 0, "schedule": "multiplier", "bound_start": 2.0, "bound_rate": 0.05, "bound_lag": 1e9}
    algo, _, _ = holosoma_toy.train(4, 2, str(tmp_path), options)
    kept = algo.penalty.get_extra_state()
    assert kept["iteration"] == 2 and kept["log_bound"] != 0 and kept["log_multiplier"] != 0
    paths = [str(tmp_path / name) for name in ("plain.pt", "noted.pt")]
    algo.save(paths[0])
    algo.save(paths[1], {"note": "mine"})
    for path, infos in zip(paths, (None, {"note": "mine"})):
        again = holosoma_toy.make(4, str(tmp_path), options)
        assert again.penalty.get_extra_state() != kept
        assert again.load(path) == infos
        assert again.penalty.get_extra_state() == kept
    # a checkpoint of holosoma's own PPO begins anew
    plain = holosoma_toy.make(4, str(tmp_path), {}, plain=True)
    plain.save(paths[0])
    again = holosoma_toy.make(4, str(tmp_path), options)
    again.load(paths[0])
    assert again.penalty.iteration == 0
    assert again.load(None) is None

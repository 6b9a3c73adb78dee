# SPDX-License-Identifier: Apache-2.0
"""Adapters: Jacobians of a batch against MuJoCo's own, and trainings of a few iterations.

The first part needs PyTorch, MuJoCo and silc._core; the trainings need mjlab or holosoma. ./dev test-python has them.
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
from silc.torch import contact_kinematics  # noqa: E402
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


def test_known_robots_are_those_of_the_robot_files():
    # the table is there so that a training needs no compiled module
    source = (pathlib.Path(silc.__file__).parent / "mjlab.py").read_text()
    scope: dict = {}
    start = source.index("ROBOTS: Dict[str, dict] = {")
    exec("from typing import Dict\n" + source[start : source.index("\n}\n", start) + 3], scope)
    for name, known in scope["ROBOTS"].items():
        robot = silc.Robot.read(name)
        assert tuple((p.body, p.site, tuple(p.offset)) for p in robot.feet) == known["feet"]
        assert tuple((p.body, p.site, tuple(p.offset)) for p in robot.hands) == known["hands"]
        assert robot.foot_force == known["force"]


@pytest.fixture
def mjlab_adapter(monkeypatch):
    """silc.mjlab; where mjlab is not installed, what it imports of mjlab is stood in for."""
    try:
        import mjlab  # noqa: F401

        stand_in = {}
    except ImportError:
        config = {"ObservationGroupCfg": types.SimpleNamespace, "ObservationTermCfg": types.SimpleNamespace}
        stand_in = {
            "mjlab": {},
            "mjlab.rl": {},
            "mjlab.rl.config": {"RslRlPpoAlgorithmCfg": dataclasses.make_dataclass("RslRlPpoAlgorithmCfg", [])},
            "mjlab.managers": {},
            "mjlab.managers.observation_manager": config,
        }
    for name, content in stand_in.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    yield importlib.import_module("silc.mjlab")
    if stand_in:  # what was imported over it goes with it
        del sys.modules["silc.mjlab"]


@pytest.mark.parametrize("name", ["g1", "t1"])
def test_mjlab_terms_of_each_robot_on_a_stand_in(mjlab_adapter, name):
    """An environment with mjlab's fields around silc's own model: its terms are MuJoCo's Jacobians."""
    from silc.observer import _View
    from silc.packing import unpack_contacts
    from silc.torch import BodyJacobians

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
    cfg = types.SimpleNamespace(scene=types.SimpleNamespace(sensors=sensors), observations={})
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


def test_mjlab_trains_with_the_penalty_and_sigma_falls():
    pytest.importorskip("mjlab", reason="mjlab is not installed; ./dev test-python installs it")
    sys.path.insert(0, str(EXAMPLES))
    import mjlab_g1

    arguments = {"envs": 4, "iterations": 3, "hidden": (64, 32), "penalty": {"samples": 0}}
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
    from silc.torch import BodyJacobians

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

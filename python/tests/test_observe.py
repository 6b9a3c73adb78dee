# SPDX-License-Identifier: Apache-2.0
"""The observer from Python equals ``silc observe``; policies, layouts and budgets as the C++ reads them."""

import json
import pathlib
import subprocess

import pytest

np = pytest.importorskip("numpy")
silc = pytest.importorskip("silc")
pytest.importorskip("silc._core", reason="silc._core is not built: pip install . does that")

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLICY = str(ROOT / "policies" / "g1_loco_silc_compliance.onnx")
SMALL = str(ROOT / "policies" / "quick" / "g1_stand_silc.onnx")
POINTS = ("com", "left_hand_in_world", "right_hand_in_world", "left_hand_on_base", "right_hand_on_base")


def standing(mujoco):
    """The G1 on a floor, bent a little, as a user would load it."""
    robot = silc.Robot.read("g1")
    spec = mujoco.MjSpec.from_file(robot.model_file)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    model = spec.compile()
    data = mujoco.MjData(model)
    for name, value in zip(robot.joints, robot.poses[robot.default_pose]):
        data.joint(name).qpos = value
    data.qpos[2] = 0.7842 - 0.001
    mujoco.mj_forward(model, data)
    return robot, model, data


def states(mujoco, model, data, rows):
    """A slow sway with a turning base: no two rows alike, velocities in all channels."""
    rng = np.random.default_rng(4)
    qpos = np.tile(data.qpos, (rows, 1))
    qpos[:, 7:] += 0.05 * np.sin(0.3 * np.arange(rows)[:, None] + rng.uniform(0, 6, model.nq - 7))
    tilt = 0.05 * np.sin(0.2 * np.arange(rows))
    qpos[:, 3], qpos[:, 5] = np.cos(tilt / 2), np.sin(tilt / 2)
    return qpos, 0.2 * rng.standard_normal((rows, model.nv))


def close(found, expected):
    """Files round to seven digits; the rest is the same arithmetic on the same Jacobians."""
    expected = np.array(expected, dtype=float)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("policy_file, mode", [(POLICY, "compliance"), (SMALL, "firm"), (POLICY, "soft-hand")])
def test_observer_equals_the_command_line(silc_program, tmp_path, policy_file, mode):
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    qpos, qvel = states(mujoco, model, data, 12)
    np.savez(tmp_path / "states.npz", qpos=qpos, qvel=qvel)
    out = tmp_path / "observed.json"
    subprocess.run(
        [silc_program, "observe", policy_file, "--mode", mode, "--json", str(out)]
        + ["--states", str(tmp_path / "states.npz")],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    moments = json.loads(out.read_text())["moments"]
    assert len(moments) == 12
    policy = silc.load_policy(policy_file)
    observer = silc.Observer(policy, model, budget=mode)
    judged = 0
    for row, expected in enumerate(moments):
        data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
        mujoco.mj_forward(model, data)
        # contact forces depend on floor and solver settings of the model, so the mode is handed over
        moment = observer.observe(data, mode=expected["contact"])
        close(policy.observation, expected["observation"])
        close(policy.raw_action, expected["action"])
        for name in ("K_1", "K_s"):
            close(getattr(moment, name), expected[name])
        close(moment.loop_radius, expected["loop_radius"])
        for name, key in (("one_step", "budget_one_step"), ("quasi_static", "budget_static")):
            reading = getattr(moment, name)
            assert reading.status == expected[key]["status"]
            if reading.status == "ok":
                judged += 1
                close([reading.sigma, reading.worst], [expected[key]["sigma"], expected[key]["worst"]])
        for name in POINTS:
            point = getattr(moment, name)
            assert point.status == expected[name]["status"]
            if point.status == "ok":
                close(point.K_x, expected[name]["K_x"])
                close(point.one_axis, expected[name]["one_axis"])
            worst = expected[name]["worst"]
            assert np.isnan(point.worst) if worst is None else point.worst == pytest.approx(worst, rel=1e-6)
    assert judged > 12, "K_s was withheld nearly everywhere: the test would be empty"


def test_observe_settles_and_sees_the_feet():
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    policy = silc.load_policy(POLICY)
    moment = silc.observe(policy, model, data, budget="compliance")
    assert moment.mode == "double support" and moment.foot_force.min() > 40
    # the answer repeats itself: nothing the policy remembers moves any more
    before = policy.observation
    again = silc.observe(policy, model, data, budget="compliance")
    np.testing.assert_allclose(policy.observation, before, atol=1e-6)
    np.testing.assert_allclose(again.K_s, moment.K_s, rtol=1e-5, atol=1e-3)
    assert moment.holds() == (moment.sigma <= 1)
    data.qpos[2] += 1
    mujoco.mj_forward(model, data)
    assert silc.observe(policy, model, data).mode == "flight"


def test_a_model_without_silcs_sites_will_do():
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    spec = mujoco.MjSpec.from_file(robot.model_file)
    for name in ("left_foot", "right_foot", "left_palm", "right_palm"):
        spec.delete(spec.site(name))
    bare = spec.compile()
    other = mujoco.MjData(bare)
    other.qpos[:] = data.qpos
    mujoco.mj_forward(bare, other)
    policy = silc.load_policy(POLICY)
    a = silc.observe(policy, model, data, mode=0)
    b = silc.observe(policy, bare, other, mode=0)
    np.testing.assert_allclose(b.left_hand_in_world.K_x, a.left_hand_in_world.K_x, rtol=1e-9)
    assert b.sigma == pytest.approx(a.sigma, rel=1e-9)


def test_sweep_begins_at_the_static_stiffness():
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    observer = silc.Observer(silc.load_policy(SMALL), model)
    moment = [observer.observe(data, mode=0) for _ in range(20)][-1]
    assert moment.static_status == "ok"
    K = observer.sweep([0, 1])
    np.testing.assert_allclose(K[0].real, moment.K_s, rtol=1e-9, atol=1e-9)
    assert np.abs(K[1].imag).max() > 0
    # an answer, where a check of the core would end the interpreter
    for latency in (-0.01, float("nan"), float("inf"), 1e6):
        with pytest.raises(ValueError, match="latency: .* is outside"):
            observer.sweep([1], latency=latency)


def test_jacobians_at_an_observation_are_differences_of_the_network():
    policy = silc.load_policy(POLICY)
    rng = np.random.default_rng(0)
    obs = 0.3 * rng.standard_normal(policy.layout.width)
    jacobians = policy.jacobians(obs)
    columns = policy.layout.columns(policy.robot)
    rows = [policy.robot.joints.index(j) for j in policy.layout.action_joints]
    for name, blocks in (("q", jacobians.J_q), ("a", jacobians.J_a), ("tau", jacobians.J_tau), ("g", jacobians.J_g)):
        total = sum(blocks)
        direction = rng.standard_normal(total.shape[1])
        moved, h = columns[name] @ direction, 1e-6
        slope = (policy.evaluate(obs + h * moved) - policy.evaluate(obs - h * moved)) / (2 * h)
        np.testing.assert_allclose((total @ direction)[rows], slope, rtol=1e-5, atol=1e-7)
    # the fast path at the last observation says the same
    n = len(policy.robot.joints)
    policy.act(policy.default_pose + 0.1, np.zeros(n))
    fast, slow = policy.jacobians(), policy.jacobians(policy.observation)
    for a, b in zip(fast.J_q + fast.J_a + fast.J_v, slow.J_q + slow.J_a + slow.J_v):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_a_difference_of_frames_is_seen_as_one():
    # newest first: block i is i control steps old
    policy = silc.load_policy(POLICY)
    knee = policy.robot.joints.index("left_knee_joint")
    frames = np.count_nonzero(policy.layout.columns(policy.robot)["q"][:, knee])
    assert frames > 1
    assert len(policy.jacobians(np.zeros(policy.layout.width)).J_q) == frames


def test_the_first_lines_of_the_docs_work(monkeypatch, capsys):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(ROOT)
    lines = (ROOT / "docs" / "python.md").read_text().split("```python\n")[1].split("```")[0]
    assert len(lines.splitlines()) == 10
    seen: dict = {}
    exec(lines, seen)
    moment, printed = seen["moment"], capsys.readouterr().out
    verdict = "holds" if moment.holds() else "is broken"
    assert f"sigma {moment.sigma:.2f}: the budget {verdict}\n" in printed
    assert moment.sigma > 0 and np.isfinite(moment.left_hand_in_world.one_axis).all()


def test_the_notebook_runs(monkeypatch):
    for needed in ("mujoco", "pandas"):
        pytest.importorskip(needed)
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(ROOT)
    cells = json.loads((ROOT / "python" / "notebooks" / "observe.ipynb").read_text())["cells"]
    seen: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), seen)
    # what its last cells claim: another budget judges the same policy, and the joints are in the table
    assert seen["budget"].com == (400, 400, 20000)
    assert seen["judged"].sigma > 0 and list(seen["table"].index) == list(seen["policy"].robot.joints)


def test_tables_and_plots(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    pandas = pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    robot, model, data = standing(mujoco)
    moment = silc.observe(silc.load_policy(POLICY), model, data)
    table = moment.joint_table()
    assert isinstance(table, pandas.DataFrame) and list(table.index) == list(robot.joints)
    assert table.loc["left_knee_joint", "K_s"] == pytest.approx(moment.K_s[3, 3])
    assert moment.point_table().loc["com", "z"] == pytest.approx(moment.com.one_axis[2])
    moment = silc.observe(silc.load_policy(POLICY), model, data, budget="soft-hand")
    assert [line.get_label() for line in moment.plot("left_hand_in_world")[0].lines] == ["observed"]
    axes = moment.plot("left_hand_on_base")
    assert [line.get_label() for line in axes[0].lines] == ["observed", "budget"]
    axes[0].figure.savefig(tmp_path / "hand.png")
    assert (tmp_path / "hand.png").stat().st_size > 1000


def test_budgets_are_those_of_the_command_line(tmp_path):
    budget = silc.Budget.read("soft-hand,com=400,gravity=held")
    assert budget.com == (400, 400, 400) and budget.gravity == "held"
    assert budget.left_hand is not None
    path = tmp_path / "mine.yaml"
    path.write_text(budget.yaml())
    assert silc.Budget.read(str(path)) == budget


def test_bad_files_are_named(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no network")
    policy = silc.load_policy(POLICY)
    for message, call in (
        ("broken.onnx", lambda: silc.load_policy(str(broken))),
        ("nowhere.onnx", lambda: silc.load_policy("nowhere.onnx")),
        ("robots: no 'berkley' among .*did you mean 'berkeley'", lambda: silc.Robot.read("berkley")),
        ("layouts: no 'falcn'.*did you mean 'falcon'", lambda: silc.Layout.read("falcn")),
        ("configs/budgets: no 'complaince'.*compliance", lambda: silc.Budget.read("complaince")),
        ("from_metadata: is a vocabulary", lambda: silc.Layout.read("mjlab")),
        ("q: 3 numbers, expected 29", lambda: policy.act([0, 0, 0], np.zeros(29))),
        (f"observation: 3 numbers, the network takes {policy.layout.width}", lambda: policy.jacobians([1, 2, 3])),
        ("act\\(\\) comes first", lambda: (policy.reset(), policy.jacobians())),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_foreign_model_is_refused_by_name():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><body name='b'/></worldbody></mujoco>")
    with pytest.raises(ValueError, match="model: has no joint 'left_hip_pitch_joint'"):
        silc.Observer(silc.load_policy(POLICY), model)


def test_what_holds_unsaid_is_what_the_core_says():
    from silc import _core, files

    assert (files.DEFAULT_ROBOT, files.DEFAULT_MODE) == (_core.DEFAULT_ROBOT, _core.DEFAULT_MODE)

# SPDX-License-Identifier: Apache-2.0
"""The observer from Python equals ``silc observe``; policies, layouts and budgets as the C++ reads them."""

import json
import pathlib
import re
import subprocess
from dataclasses import asdict

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
        for name, key in (("one_step", "one_step"), ("quasi_static", "quasi_static")):
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
    # ranges, for policies that are told their budget: as a file, and as the numbers of one command
    ranges = silc.Budget.read("command,com=600..3000,gravity=followed")
    assert ranges.command.com == (600, 3000) and ranges.command.null_space == (20, 300)
    path.write_text(ranges.yaml())
    assert silc.Budget.read(str(path)) == ranges
    one = ranges.at(com=700, null_space=30)
    assert one.command is None and one.com == (700, 700, 20000) and one.left_hand == one.right_hand == (316,) * 3
    assert ranges.numbers_of(one) == {"com": 700, "hands": 316, "null_space": 30}


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


def commanded_file(path, budget="command", layout=None):
    """A random policy that is told its budget, and hears: [-1, 1] of each number moves its answer."""
    ranges = silc.Budget.read(budget)
    layout = layout or silc.Layout.read("g1_loco").with_budget_terms(ranges)
    rng = np.random.default_rng(6)

    def layer(outputs, inputs, activation):
        weight = (rng.standard_normal((outputs, inputs)) * inputs**-0.5).astype(np.float32)
        return weight, np.zeros(outputs, np.float32), activation, 1.0

    layers = [layer(24, layout.width, "elu"), layer(len(layout.action_joints), 24, "none")]
    _core().write_policy(str(path), None, [layers], layout._core, {}, asdict(ranges), budget)
    return str(path)


def _core():
    from silc import _core

    return _core


def test_a_commanded_policy_is_told_what_it_is_judged_by(silc_program, tmp_path):
    """``silc observe --budget`` on the same states: the same observations, the same σ."""
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    qpos, qvel = states(mujoco, model, data, 6)
    np.savez(tmp_path / "states.npz", qpos=qpos, qvel=qvel)
    file, out = commanded_file(tmp_path / "commanded.onnx"), tmp_path / "observed.json"
    sigma = {}
    for numbers in ({"com": 400.0, "hands": 900.0, "null_space": 25.0}, {"com": 3000.0}, {}):
        asked = ",".join(f"{k}={v:g}" for k, v in numbers.items())
        subprocess.run(
            [silc_program, "observe", file, "--json", str(out), "--states", str(tmp_path / "states.npz")]
            + (["--budget", asked] if asked else []),
            check=True,
            capture_output=True,
            cwd=ROOT,
        )
        moments = json.loads(out.read_text())["moments"]
        policy = silc.load_policy(file)
        budget = policy.tell(**numbers)
        assert policy.told == {**policy.command.middle(), **numbers}
        told, judging = silc.Observer(policy, model), silc.Observer(silc.load_policy(file), model, budget=budget)
        for row, expected in enumerate(moments):
            data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
            mujoco.mj_forward(model, data)
            # either way round: told first and judged by it, or told what judges
            for observer in (told, judging):
                moment = observer.observe(data, mode=expected["contact"])
                assert moment.budget == budget
                close(observer.policy.observation, expected["observation"])
                close(moment.one_step.sigma, expected["one_step"]["sigma"])
                close(moment.quasi_static.worst, expected["quasi_static"]["worst"])
        sigma[asked] = moment.one_step.sigma
        # (B3): what the network sees of it, in every frame
        ranges = policy.command.ranges().items()
        u = [(np.log(policy.told[k]) - np.log(a * b) / 2) / (np.log(b / a) / 2) for k, (a, b) in ranges]
        np.testing.assert_allclose(policy.observation.reshape(5, -1)[:, -3:], np.tile(u, (5, 1)), atol=1e-5)
    assert len(set(sigma.values())) == 3


def test_observe_tells_the_policy_and_follows_what_it_was_told(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    policy = silc.load_policy(commanded_file(tmp_path / "commanded.onnx"))
    assert policy.sees_budget and policy.command.hands == (100, 1000)
    assert policy.told == {"com": 775, "hands": 316, "null_space": 77.5}
    answer = policy.act(policy.default_pose, np.zeros(29))
    # a plain budget: its numbers are told, the hands it does not name stand at the middle
    plain = silc.Budget(com=(500, 500, 1000), null_space=100)
    moment = silc.observe(policy, model, data, budget=plain, mode=0)
    assert moment.budget == plain and policy.told == {"com": 500, "hands": 316, "null_space": 100}
    # one that was told is judged by what it was told
    stays = silc.observe(policy, model, data, mode=0)
    assert stays.budget == policy.budget and stays.budget.com == (500, 500, 20000)
    # and an observer of a robot in motion, when it is told another one meanwhile
    observer = silc.Observer(policy, model)
    first = observer.observe(data, mode=0)
    policy.tell(com=3000, null_space=300)
    second = observer.observe(data, mode=0)
    assert first.budget.com[0] == 500 and second.budget.com[0] == 3000
    assert second.one_step.sigma != first.one_step.sigma
    # a policy forgets its history, not its budget
    policy.reset()
    assert policy.told["com"] == 3000
    assert np.abs(policy.act(policy.default_pose, np.zeros(29)) - answer).max() > 1e-4


def test_what_a_policy_cannot_be_told_is_named(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    robot, model, data = standing(mujoco)
    plain, path = silc.load_policy(POLICY), tmp_path / "commanded.onnx"
    policy = silc.load_policy(commanded_file(path))
    assert plain.told is None and plain.command is None and not plain.sees_budget
    ranges = silc.Budget.read("command")
    layout = silc.Layout.read("g1_loco")
    # a layout that tells nothing of the file's ranges; a file without ranges, whose layout tells
    blind, mute = str(tmp_path / "blind.yaml"), str(tmp_path / "mute.onnx")
    told = layout.with_budget_terms(ranges).yaml()
    pathlib.Path(blind).write_text(re.sub(r"source: budget_\w+.*}", "source: constant, value: 0}", told))
    hands_alone = commanded_file(tmp_path / "hands.onnx", "command,com=400,null_space=50")
    _core().write_policy(
        mute,
        None,
        [[(np.zeros((29, 670), np.float32), np.zeros(29, np.float32), "none", 1.0)]],
        layout.with_budget_terms(ranges)._core,
        {},
        None,
        "",
    )
    for message, call in (
        ("is not told its budget", lambda: plain.tell(com=400)),
        (r"commanded.onnx: hands: 5000 is outside \[100, 1000\]", lambda: policy.tell(hands=5000)),
        ("hands.onnx: com: is not commanded, only hands", lambda: silc.load_policy(hands_alone).tell(com=400)),
        ("budget: has these numbers already; leave out com", lambda: policy.tell("compliance", com=400)),
        (
            "com: .*: a command has one number for x and y",
            lambda: silc.observe(policy, model, data, budget=silc.Budget(com=(400, 500, 20000))),
        ),
        (
            "hands: .*: a command has one number for both hands",
            lambda: policy.tell(silc.Budget(com=400, left_hand=200)),
        ),
        (
            r"commanded.onnx: com: 150 is outside \[200, 3000\]",
            lambda: silc.observe(policy, model, data, budget=silc.Budget(com=150)),
        ),
        ("weight: 'gains' where", lambda: policy.tell(silc.Budget(com=400, weight="gains", null_space=50))),
        ("budget: has ranges, and one number each", lambda: silc.observe(policy, model, data, budget="command")),
        ("budget: has ranges, and one number each", lambda: silc.observe(plain, model, data, budget=ranges)),
        (
            "sees its budget .*, but the file has no ranges",
            lambda: silc.observe(silc.load_policy(mute), model, data, budget="compliance"),
        ),
        ("sees its budget .*, but the file has no ranges", lambda: silc.observe(silc.load_policy(mute), model, data)),
        (
            "commanded.onnx: .*no term that tells it which",
            lambda: silc.observe(silc.load_policy(str(path), layout=blind), model, data),
        ),
        ("budget: has a range for com", lambda: commanded_file(tmp_path / "no.onnx", layout=layout)),
        ("budget: has no ranges", lambda: layout.with_budget_terms("compliance")),
        ("command: com: has a range but no number along z", lambda: silc.Budget(command={"com": (200, 3000)})),
        ("command: 'hand'.*did you mean 'hands'", lambda: silc.Budget(command={"hand": (200, 3000)})),
        ("command: hands: 200, expected 2 numbers", lambda: silc.Budget(command={"hands": 200})),
        ("null_stiffness: is called null_space", lambda: silc.Budget(com=400, null_stiffness=50)),
        ("command: compliance: expected a BudgetCommand", lambda: silc.Budget(command="compliance")),
        ("command: hands: .* upside down", lambda: silc.Budget(command={"hands": (3000, 200)})),
        ("null_space: 5 is outside", lambda: ranges.at(null_space=5)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    # nothing of it was heard
    assert policy.told == policy.command.middle()


def test_a_foreign_model_is_refused_by_name():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><body name='b'/></worldbody></mujoco>")
    with pytest.raises(ValueError, match="model: has no joint 'left_hip_pitch_joint'"):
        silc.Observer(silc.load_policy(POLICY), model)


def test_what_holds_unsaid_is_what_the_core_says():
    from silc import _core, files

    assert (files.DEFAULT_ROBOT, files.DEFAULT_MODE) == (_core.DEFAULT_ROBOT, _core.DEFAULT_MODE)

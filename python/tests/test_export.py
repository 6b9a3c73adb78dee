# SPDX-License-Identifier: Apache-2.0
"""silc.export: a PyTorch actor goes back into the command line."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: silc.export is not tested")
import numpy as np  # noqa: E402
from torch import nn  # noqa: E402

silc = pytest.importorskip("silc")
pytest.importorskip("silc._core", reason="silc._core is not built: pip install . does that")
from silc.torch import InputScaling, SideBySide  # noqa: E402


def mlp(inputs, outputs, activation=nn.ELU):
    return nn.Sequential(
        nn.Linear(inputs, 24), activation(), nn.Linear(24, 16), activation(), nn.Linear(16, outputs)
    )


def actors(layout):
    """One of each shape that can be written."""
    torch.manual_seed(2)
    n, nu = layout.width, len(layout.action_joints)
    mean, spread = torch.randn(n), 0.5 + torch.rand(n)
    yield mlp(n, nu)
    yield nn.Sequential(InputScaling(mean, spread), mlp(n, nu, nn.Tanh))
    yield SideBySide([mlp(n, 15), mlp(n, nu - 15)])
    yield nn.Sequential(nn.Linear(n, 8, bias=False), nn.LeakyReLU(0.1), nn.Linear(8, nu))


def test_the_file_answers_as_the_module(tmp_path):
    layout = silc.Layout.read("g1_loco")
    for i, actor in enumerate(actors(layout)):
        path = str(tmp_path / f"{i}.onnx")
        silc.export(actor, layout, path, budget="soft-hand", notes={"silc_method": "mine"})
        policy = silc.load_policy(path)
        x = torch.randn(layout.width)
        with torch.no_grad():
            expected = actor(x[None])[0].numpy()
        np.testing.assert_allclose(policy.evaluate(x.numpy()), expected, rtol=1e-4, atol=1e-5)
        assert policy.metadata["silc_method"] == "mine"
        assert policy.budget == silc.Budget.read("soft-hand")
        assert policy.layout.yaml() == layout.yaml()


def test_the_command_line_takes_it(silc_program, tmp_path):
    layout = silc.Layout.read("g1_loco")
    path, out = tmp_path / "mine.onnx", tmp_path / "mine.json"
    silc.export(next(actors(layout)), layout, str(path), budget=silc.Budget(com=400))
    subprocess.run(
        [silc_program, "observe", str(path), "--pose", "stand", "--json", str(out)],
        check=True,
        capture_output=True,
    )
    observed = json.loads(out.read_text())
    assert observed["budget"]["com"] == [400, 400, 400]
    # K_1 by the twin in PyTorch, from the observation that the command line saw
    moment, robot = observed["moments"][0], silc.Robot.read("g1")
    from silc.torch import linearise, one_step_stiffness

    x = torch.tensor(moment["observation"], dtype=torch.float32)[None]
    channels = layout.channels(robot)
    J = linearise(next(actors(layout)), x).jacobian(channels.q0)
    kp = torch.tensor(layout.kp(robot), dtype=torch.float32)
    alpha = torch.tensor(layout.action_scale(robot), dtype=torch.float32)
    K_1 = one_step_stiffness(J, kp, alpha)[0].numpy()
    np.testing.assert_allclose(K_1, np.array(moment["K_1"]), rtol=1e-4, atol=1e-3)


def test_a_commanded_actor_goes_back(silc_program, tmp_path):
    """Its penalty reads the budget that the command line told it out of what the command line saw."""
    ranges = silc.Budget.read("command")
    layout = silc.Layout.read("g1_loco").with_budget_terms(ranges)
    path, out = str(tmp_path / "commanded.onnx"), tmp_path / "commanded.json"
    silc.export(mlp(layout.width, len(layout.action_joints)), layout, path, budget="command")
    assert silc.load_policy(path).command == ranges.command
    command = [silc_program, "observe", path, "--pose", "stand", "--json", str(out)]
    subprocess.run(command + ["--budget", "com=400,hands=900"], check=True, capture_output=True)
    from silc.torch import commands_in

    x = torch.tensor(json.loads(out.read_text())["moments"][0]["observation"])[None]
    inputs = layout.command_inputs()
    assert [at.input for at in inputs.values()] == list(range(layout.width - 3, layout.width))
    np.testing.assert_allclose(commands_in(inputs, x).exp().numpy(), [[400, 900, 77.5]], rtol=1e-5)
    with pytest.raises(ValueError, match="budget: has a range for com, of which the layout does not tell"):
        layout = silc.Layout.read("g1_loco")
        silc.export(mlp(layout.width, len(layout.action_joints)), layout, path, budget="command")


def test_eval_view_and_deploy_take_it(silc_program, tmp_path):
    path, out, page = (str(tmp_path / name) for name in ("mine.onnx", "mine.json", "mine.html"))
    layout = silc.Layout.read("g1_loco")
    actor = mlp(layout.width, len(layout.action_joints))
    with torch.no_grad():  # hardly moves: what it does is not the question
        actor[-1].weight.mul_(0.01)
        actor[-1].bias.zero_()
    silc.export(actor, layout, path, budget="compliance")

    def answer(*arguments):
        done = subprocess.run([silc_program, *arguments], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    code, said = answer("eval", "stand", "--policy", path, "--episodes", "1", "--json", out)
    assert code == 0, said
    assert "mine" in json.loads(pathlib.Path(out).read_text().splitlines()[0])["policy"]
    if re.search(r"^ +view ", answer("--help")[1], re.M):  # a build without the viewer's packages has none
        code, said = answer("view", path, "--export", page, "--seconds", "0.5")
        assert code == 0, said
        assert pathlib.Path(page).stat().st_size > 10000
    # no robot is there: everything of the policy itself has been looked at by then
    code, said = answer(
        *("deploy", path, "--dry-run", "--preflight", "0", "--wait", "0.2", "--no-keys", "--network", "lo"),
        *("--domain", "219", "--log", str(tmp_path / "log")),
    )
    assert code != 0 and re.search("no robot answered|built without Cyclone", said), said


def test_what_cannot_be_written_is_named(tmp_path):
    layout, path = silc.Layout.read("g1_loco"), str(tmp_path / "no.onnx")
    n, nu = layout.width, len(layout.action_joints)
    for message, actor in (
        ("actor: Linear is no plain MLP", nn.Linear(n, nu)),
        ("actor: SiLU cannot be written", mlp(n, nu, nn.SiLU)),
        (f"actor: a layer takes 7 inputs, {n} come from the layout", mlp(7, nu)),
        (f"actor: answers with 3 numbers, the layout has {nu} actions", mlp(n, 3)),
        ("normaliser: 4 numbers", nn.Sequential(InputScaling(torch.zeros(4), torch.ones(4)), mlp(n, nu))),
    ):
        with pytest.raises(ValueError, match=message):
            silc.export(actor, layout, path)
    assert not (tmp_path / "no.onnx").exists()


@pytest.mark.parametrize("value, what", [(float("nan"), "a NaN"), (float("inf"), "an infinity")])
def test_weights_that_are_no_numbers_are_refused_by_name(tmp_path, value, what):
    layout = silc.Layout.read("g1_loco")
    actor = mlp(layout.width, len(layout.action_joints))
    with torch.no_grad():
        actor[2].weight[3, 4] = value
    path = tmp_path / "lost.onnx"
    with pytest.raises(ValueError, match=rf"actor\.0\.1\.weight: holds {what}"):
        silc.export(actor, layout, str(path))
    assert not path.exists()


def test_softmimics_file_becomes_a_commanded_policy(silc_program, tmp_path):
    """tools/peer/softmimic.py, on a file made as theirs is."""
    tools = pathlib.Path(__file__).resolve().parents[2] / "tools/peer"
    if not tools.exists():
        pytest.skip("tools/peer is not part of the package")

    class Scripted(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.normalizer = mlp(285, 29), nn.Identity()

        def forward(self, x):
            return self.actor(self.normalizer(x))

    torch.manual_seed(3)
    theirs, script = Scripted(), str(tools / "softmimic.py")
    name = re.search(r'^POLICY = "(.*)"$', (tools / "softmimic.py").read_text(), re.M).group(1)
    (tmp_path / name).parent.mkdir(parents=True)
    torch.jit.script(theirs).save(str(tmp_path / name))
    plain, commanded = str(tmp_path / "plain.onnx"), str(tmp_path / "commanded.onnx")
    robot = str(tmp_path / "g1_friction")
    subprocess.run([sys.executable, script, str(tmp_path), plain, "--robot", robot], check=True, capture_output=True)
    x = torch.randn(285)
    with torch.no_grad():
        expected = theirs(x[None])[0].numpy()
    np.testing.assert_allclose(silc.load_policy(plain).evaluate(x.numpy()), expected, rtol=1e-4, atol=1e-5)
    budget = ["--mode", str(tools / "softmimic_budget.yaml")]
    subprocess.run([silc_program, "export", plain, commanded] + budget, check=True, capture_output=True)
    out = tmp_path / "o.json"
    command = [silc_program, "observe", commanded, "--pose", "stand", "--budget", "hands=200", "--json", str(out)]
    command += ["--robot", robot + "/robot.yaml"]
    subprocess.run(command, check=True, capture_output=True)
    seen = json.loads(out.read_text())["moments"][0]["observation"]
    np.testing.assert_allclose(seen[-6:], [np.log(200)] * 3 + [np.log(200 / 60)] * 3, rtol=1e-5)
    # nothing there, or another network: said so
    for folder, message in ((tmp_path / "no", "no such file"), (tmp_path, "no plain MLP with ELU")):
        theirs.actor[1] = nn.Tanh()
        torch.jit.script(theirs).save(str(tmp_path / name))
        failed = subprocess.run([sys.executable, script, str(folder), plain], capture_output=True, text=True)
        assert failed.returncode == 1 and message in failed.stderr

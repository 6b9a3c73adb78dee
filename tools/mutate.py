#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged files and garbled command lines against the built silc.

Each kind of file that silc reads has a sound example here and a command that reads it. The example
is mutated, the command run, and its end looked at: 0, 1 or 2, within its time and memory, with a
line that begins with "silc: " where it is not 0. Anything else is a finding, and is kept with the
command that gives it again.

    tools/mutate.py build/release/bin/silc                 # 2,000 mutations of each kind
    tools/mutate.py build/release/bin/silc -n 20 --kinds robot,layout
"""

import argparse
import concurrent.futures
import io
import os
import pathlib
import random
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 120  # a command that takes longer is a finding; most take one
MEMORY = 12 << 30  # [byte] address space of each
TOO_LONG = f"took longer than {SECONDS} s"

# numbers and words that have been trouble
NASTY = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    ".nan",
    ".inf",
    "0",
    "-0",
    "-1",
    "1e300",
    "-1e300",
    "1e-300",
    "1e8",
    "65536",
    "2147483648",
    "-2147483649",
    "9223372036854775808",
    "18446744073709551616",
    "4294967295",
    "0x10",
    "1e",
    "''",
    "~",
    "null",
    "true",
    "[]",
    "{}",
    "[[[[",
    "*a",
    "&a",
    "---",
    "!!binary",
    "\x1b[2J",
    "\xff",
    "é",
    "..",
    "/",
    "/dev/null",
    "/dev/zero",
    " ",
    "\n",
    "\t",
    ":",
    "-",
    "#",
    "%s%n",
    "a" * 5000,
]


# in a command line they may become where something is written
HARMLESS = [word for word in NASTY if "/" not in word and ".." not in word]


def npy(values, shape):
    """A float64 array as NumPy writes it."""
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header.encode()
        + struct.pack("<%dd" % len(values), *values)
    )


def npz(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, (values, shape) in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(values, shape))
    return out.getvalue()


def mutate_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(7)
        if how == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif how == 1 and data:
            data[at % len(data)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif how == 2:
            del data[at : at + rng.choice([1, 4, 64])]
        elif how == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 8])))
        elif how == 4:
            size = rng.choice([4, 16, 256])
            data[at:at] = data[at : at + size] * rng.choice([1, 2, 8])
        elif how == 5 and len(data) > 8:
            at %= len(data) - 8  # a length or a float
            data[at : at + 8] = struct.pack(
                "<q", rng.choice([-1, 0, 1, 2**31, 2**63 - 1, -(2**63), 0x7FF8 << 48])
            )
        elif how == 6 and rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def mutate_text(data, rng, nasty=NASTY):
    """Words, numbers and lines, so that most of it is still what it was."""
    if rng.random() < 0.2 and nasty is NASTY:
        return mutate_bytes(data, rng)
    text = data.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        how = rng.randrange(6)
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif how == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            words = _words(lines[at])
            chosen = [k for k, word in enumerate(words) if word.strip()]
            if chosen:
                k = rng.choice(chosen)
                words[k] = rng.choice(nasty) if how < 5 else rng.choice(_words(text)[:4000] or [""])
                lines[at] = "".join(words)
        text = "\n".join(lines)
    return text.encode("utf-8", "surrogateescape")


def _words(line):
    """The line in pieces: what is joined together is the line again."""
    words, word = [], ""
    for c in line:
        if c.isalnum() or c in "._+-":
            word += c
        else:
            words += [word, c] if word else [c]
            word = ""
    return words + [word] if word else words


class Kind:
    """A file's name, its sound contents, the command that reads it, and what lies beside it."""

    def __init__(self, name, data, command, text=True, beside=None):
        self.name, self.data, self.command, self.text, self.beside = (
            name,
            data,
            command,
            text,
            beside or {},
        )


def make_kinds(silc, scratch):
    stand = str(ROOT / "policies/quick/g1_stand_silc.onnx")
    g1 = ROOT / "robots/g1"
    read = lambda path: (ROOT / path).read_bytes()
    motion = "".join(
        ",".join(["0", "0", "0.79", "0", "0", "0", "1"] + ["0.1"] * 29) + "\n" for _ in range(5)
    ).encode()
    mjlab = npz({"fps": ([50.0], "(1,)"), "joint_pos": ([0.1] * 29 * 4, "(4, 29)")})
    states = npz(
        {
            "qpos": (([0, 0, 0.79, 1, 0, 0, 0] + [0.0] * 29) * 2, "(2, 36)"),
            "qvel": ([0.0] * 35 * 2, "(2, 35)"),
        }
    )
    robot_file = (g1 / "robot.yaml").read_bytes()
    model = next(
        line.split(":", 1)[1].split("#")[0].strip()
        for line in robot_file.decode().splitlines()
        if line.startswith("model:")
    )
    model_file = (g1 / model).read_bytes()
    joints = [line for line in robot_file.decode().splitlines() if line.startswith("  - ") and line.endswith("_joint")]
    numbers = "".join(f"      {line[4:]}: 20\n" for line in joints)
    gains = "robot: g1\ngains:\n  g:\n" + "".join(
        f"    {key}:\n{numbers.replace(': 20', value)}"
        for key, value in (("kp", ": 20"), ("kd", ": 1"), ("action_scale", ": 0.25"))
    )
    small = [p for p in sorted((ROOT / "silc/policy/onnx/fuzz_corpus").glob("*.onnx"))]
    sim = "sim --robot robot.yaml --seconds 0.04 --backend mujoco"
    kinds = {
        "policy": Kind("p.onnx", pathlib.Path(stand).read_bytes(), "observe p.onnx", text=False),
        "graph": Kind(
            "p.onnx", small[len(small) // 2].read_bytes(), "export p.onnx out.onnx", text=False
        ),
        # the quick policies see one frame
        "layout": Kind(
            "l.yaml",
            read("layouts/g1_loco.yaml").replace(b"history: 5", b"history: 1"),
            f"observe {stand} --layout l.yaml",
        ),
        "budget": Kind(
            "b.yaml", read("configs/budgets/soft.yaml"), f"observe {stand} --mode b.yaml"
        ),
        "gains": Kind("g.yaml", gains.encode(), f"observe {stand} --gains g.yaml"),
        "robot": Kind("robot.yaml", robot_file, sim, beside={model: model_file}),
        "mjcf": Kind(model, model_file, sim, beside={"robot.yaml": robot_file}),
        "states": Kind("s.npz", states, f"observe {stand} --states s.npz", text=False),
        "motion_csv": Kind("m.csv", motion, "motion inspect m.csv"),
        "motion_npz": Kind("m.npz", mjlab, "motion inspect m.npz", text=False),
    }
    if "train" in subprocess.run([silc, "--help"], capture_output=True, text=True).stdout:
        small = (
            "learn.steps=4 learn.actor_hidden=[8] learn.critic_hidden=[8] --envs 4"
            " --threads 1 --iterations 1"
        )
        run = scratch / "seed_run"
        subprocess.run(
            [silc, *shlex.split(f"train g1-stand --preset quick {small} --out {run}")],
            check=True,
            capture_output=True,
            cwd=ROOT,
        )
        files = {
            str(p.relative_to(run)): p.read_bytes()
            for p in run.rglob("*")
            if p.is_file() and "events" not in p.name and p.name != "lock"
        }
        checkpoint = next(name for name in files if name.endswith(".silc"))
        without = lambda name: {"run/" + k: v for k, v in files.items() if k != name}
        resume = "train --resume run --iterations 1 --threads 1"
        kinds.update(
            {
                "checkpoint": Kind(
                    "run/" + checkpoint,
                    files[checkpoint],
                    resume,
                    text=False,
                    beside=without(checkpoint),
                ),
                "run_config": Kind(
                    "run/config.yaml",
                    files["config.yaml"],
                    "runs run",
                    beside=without("config.yaml"),
                ),
                "metrics": Kind(
                    "run/metrics.jsonl",
                    files["metrics.jsonl"],
                    "runs run",
                    beside=without("metrics.jsonl"),
                ),
                "sweep": Kind(
                    "s.yaml", read("configs/sweep.yaml"), "sweep s.yaml --list --out none"
                ),
                "task": Kind(
                    "t.yaml",
                    read("configs/tasks/g1_stand.yaml"),
                    f"train t.yaml {small} --out none",
                ),
                "preset": Kind(
                    "q.yaml",
                    read("configs/train/g1_stand_quick.yaml"),
                    f"train g1-stand --preset q.yaml {small} --out none",
                ),
            }
        )
    return kinds


# sound command lines; what they leave stays in the scratch folder. `view` is not here: without an error it never ends
COMMANDS = [
    "observe p.onnx --mode compliance --latency 0 --seed 1 --json o.json --csv o.csv",
    "observe p.onnx --rollout 0.1 --settle 0.1 --command 0,0,0 --height 0.75 --plot o.svg",
    "observe p.onnx --pose stand --gains falcon --check",
    "certify p.onnx --box joint_pos=0.01,gravity=0.01 --rollout 0.1 --settle 0 --moments 1 --samples 1 --json c.json",
    "sim --robot g1 --seconds 0.04 --stiffness 1 --push 50,0,0@0.02 --backend mujoco",
    "eval stand --policy p.onnx --episodes 1 --seed 1 --threads 1 --force-scale 0",
    "export p.onnx out.onnx --half --note silc_method=silc",
    "export p.onnx out.onnx --mode command",
    "gains --robot g1 --mode compliance --poses stand --samples 1 --write g.yaml",
    "gains --robot berkeley --mode compliance",
    "deploy p.onnx --dry-run --wait 0.1 --preflight 1 --log log",
    "motion inspect m.csv --robot g1 --plot m.svg",
    "train g1-stand --preset quick --envs 2 --iterations 1 --max-seconds 5 --threads 1 --out run",
    "train g1-stand --preset quick --method silc --mode command --envs 2 --iterations 1 --max-seconds 5 --threads 1 --out run",
    "runs .",
    "sweep s.yaml --list --jobs 1 --threads 1 --out none",
    "report --policies none --out none --quick --seeds 1 --threads 1",
    "bench observe --seconds 0.01",
]
# what these commands read lies beside them: a garbled line may write where it was to read
BESIDE = {"p.onnx": "policies/quick/g1_stand_silc.onnx", "s.yaml": "configs/sweep.yaml"}


def mutate_command(line, rng):
    words = shlex.split(line)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(words))
        how = rng.randrange(6)
        if how == 0:
            del words[at]
        elif how == 1:
            words.insert(at, words[rng.randrange(len(words))])
        elif how == 2:
            words[at] = rng.choice(HARMLESS)
        elif how == 3:
            words.insert(at, rng.choice(HARMLESS))
        elif how == 4:
            words[at] = mutate_text(words[at].encode(), rng, HARMLESS).decode(
                "utf-8", "surrogateescape"
            )
        else:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        if not words:
            words = ["observe"]
    return [word.replace("\0", "") for word in words]


def run_silc(silc, words, folder):
    """How it ended: None when well, else what was wrong."""

    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    environment = dict(
        os.environ,
        SILC_ROBOTS=str(ROOT / "robots"),
        SILC_LAYOUTS=str(ROOT / "layouts"),
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
    )
    try:
        done = subprocess.run(
            [silc, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            preexec_fn=limits,
        )
    except subprocess.TimeoutExpired:
        return TOO_LONG
    except (ValueError, OSError) as error:  # the words cannot be handed over at all
        return None if "embedded null" in str(error) or isinstance(error, OSError) else str(error)
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode not in (0, 1, 2):
        return f"ended with {done.returncode}: {said[-300:]}"
    if done.returncode != 0 and "silc: " not in said:
        return f"ended with {done.returncode} and said nothing: {said[-300:]}"
    if "\x1b" in said.replace("\x1b[K", ""):
        return f"printed an escape sequence: {said[-300:]!r}"
    return None


def trial(silc, name, kinds, scratch, findings, index, seed):
    rng = random.Random(f"{seed}/{name}/{index}")
    folder = scratch / f"{name}_{index}"
    folder.mkdir()
    try:
        if name == "command":
            (folder / "m.csv").write_bytes(kinds["motion_csv"].data)
            for beside, source in BESIDE.items():
                shutil.copy(ROOT / source, folder / beside)
            words = mutate_command(rng.choice(COMMANDS), rng)
        else:
            kind = kinds[name]
            for beside, data in kind.beside.items():
                (folder / beside).parent.mkdir(parents=True, exist_ok=True)
                (folder / beside).write_bytes(data)
            mutate = mutate_text if kind.text else mutate_bytes
            (folder / kind.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / kind.name).write_bytes(mutate(kind.data, rng))
            words = shlex.split(kind.command)
        wrong = run_silc(silc, words, folder)
        if name == "command" and wrong == TOO_LONG:
            return None  # a long training or an hour of simulation, asked for
        if wrong:
            kept = findings / f"{name}_{index}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            (kept / "command.txt").write_text(
                f"cd {kept} && {shlex.join([silc, *words])}\n{wrong}\n", errors="surrogateescape"
            )
            return f"{name} {index}: {wrong.strip()}\n  {kept}/command.txt"
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("silc")
    parser.add_argument("-n", type=int, default=2000, help="mutations of each kind [2000]")
    parser.add_argument("--kinds", help="these alone, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--findings", default="out/mutate", help="folder for what was found [out/mutate]"
    )
    arguments = parser.parse_args()
    silc = str(pathlib.Path(arguments.silc).resolve())
    findings = pathlib.Path(arguments.findings).resolve()

    with tempfile.TemporaryDirectory(prefix="silc_mutate_") as made:
        scratch = pathlib.Path(made)
        kinds = make_kinds(silc, scratch)
        names = arguments.kinds.split(",") if arguments.kinds else [*kinds, "command"]
        unknown = [name for name in names if name != "command" and name not in kinds]
        if unknown:
            sys.exit(f"no such kind: {', '.join(unknown)}; known: {', '.join(kinds)}, command")
        # the sound ones first: a command that refuses them would find nothing
        for name in names:
            if name == "command":
                continue
            folder = scratch / f"sound_{name}"
            for beside, data in {**kinds[name].beside, kinds[name].name: kinds[name].data}.items():
                (folder / beside).parent.mkdir(parents=True, exist_ok=True)
                (folder / beside).write_bytes(data)
            words = shlex.split(kinds[name].command)
            done = subprocess.run([silc, *words], cwd=folder, capture_output=True, text=True)
            # a graph that was read and is no plain MLP has done its work
            read = name == "graph" and "is no plain MLP" in done.stderr
            told = "silc: " in done.stderr and name != "sweep"
            if not read and (done.returncode not in (0, 1) or told):
                sys.exit(f"{name}: the sound file is refused: {done.stderr}")
        found = 0
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for name in names:
                tasks = [
                    pool.submit(trial, silc, name, kinds, scratch, findings, k, arguments.seed)
                    for k in range(arguments.n)
                ]
                wrong = [task.result() for task in tasks if task.result()]
                print(f"{name}: {arguments.n} mutations, {len(wrong)} findings", flush=True)
                for text in wrong:
                    print("  " + text, flush=True)
                found += len(wrong)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What files made to be too much cost before silc says no: seconds, memory, and the answer.

Each case is one of the readers of docs/limits.md with a file that would fill the memory or take for
ever. silc runs under a limit on its address space, as under `ulimit -v`. It must answer with 1 or 2
and a line that begins with "silc: ", and it must not have died of the limit: a message about memory
that ran out is a finding, too.

    tools/measure_limits.py build/release/bin/silc          # the table of docs/limits.md
"""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 60  # of processor time; a command that takes more is killed, and is a finding


def varint(n):
    out = b""
    while True:
        out += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
        n >>= 7
        if n == 0:
            return out


def field(number, payload):
    """A length-delimited protobuf field, or a varint one for an int."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def onnx_expand():
    """216 bytes that ask for a tensor of 2.4e9 numbers: a ConstantOfShape between input and output."""
    shape = field(1, 3) + field(2, 7) + field(8, b"s")
    shape += field(9, struct.pack("<3q", 2000, 1200, 1000))

    def value(name, width):
        dims = field(1, field(1, 1)) + field(1, field(1, width))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))

    node = field(1, b"s") + field(2, b"big") + field(4, b"ConstantOfShape")
    add = field(1, b"obs") + field(1, b"big") + field(2, b"actions") + field(4, b"Add")
    graph = field(1, node) + field(1, add) + field(2, b"g") + field(5, shape)
    graph += field(11, value(b"obs", 655)) + field(12, value(b"actions", 29))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def onnx_with(metadata):
    """The quick start's policy with one more entry of metadata: fields of a message may come in any order."""
    sound = (ROOT / "policies/quick/g1_stand_baseline.onnx").read_bytes()
    return sound + b"".join(field(14, field(1, k) + field(2, v)) for k, v in metadata.items())


def png(width, height, zeros):
    """A grey image; the header says one size, and the pixels are as many bytes as one likes."""

    def chunk(name, data):
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    pack = zlib.compressobj(1)
    block = bytes(1 << 20)
    pixels = b"".join(pack.compress(block) for _ in range(zeros >> 20))
    pixels += pack.compress(bytes(zeros & (1 << 20) - 1)) + pack.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def mjcf(body):
    return f"""<mujoco><worldbody>{body}</worldbody></mujoco>"""


def robot(folder, xml, change=lambda text: text, beside=None):
    """The G1 with another MJCF."""
    folder.mkdir()
    for name, data in (beside or {}).items():
        (folder / name).write_bytes(data)
    text = (ROOT / "robots/g1/robot.yaml").read_text()
    (folder / "robot.yaml").write_text(change(text))
    (folder / "g1.xml").write_text(xml)
    return folder / "robot.yaml"


def cases(folder):
    """(reader, what, command): files are written into `folder`."""
    g1 = (ROOT / "robots/g1/g1.xml").read_text()
    list_of = lambda n: "com: [" + "1," * n + "1]\n"

    def yaml(name, text):
        (folder / name).write_text(text)
        return str(folder / name)

    aliases = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n"
    for k in range(1, 10):
        aliases += f"a{k}: &a{k} [" + ",".join([f"*a{k - 1}"] * 9) + "]\n"
    depth = "com: " + "[" * 20000 + "]" * 20000 + "\n"
    policy = str(ROOT / "policies/quick/g1_stand_baseline.onnx")
    observe = ["observe", policy, "--rollout", "0.1", "--settle", "0"]
    yield "YAML", "17 MB", observe + ["--mode", yaml("large.yaml", list_of(17 << 19))]
    yield "YAML", "a word of 100 MB", observe + [
        "--mode",
        yaml("word.yaml", 'com: "' + "a" * (100 << 20) + '"\n'),
    ]
    os.remove(folder / "word.yaml")
    yield "YAML", "8 M values in 16 MB", observe + ["--mode", yaml("flat.yaml", list_of(8_000_000))]
    yield "YAML", "aliases, 10⁹ values in 0.5 kB", observe + ["--mode", yaml("alias.yaml", aliases)]
    yield "YAML", "20,000 lists inside each other", observe + ["--mode", yaml("deep.yaml", depth)]
    stars = robot(
        folder / "stars",
        g1,
        lambda text: text.replace("left_leg: [left_hip_*", "left_leg: ['" + "*a" * 24 + "*'"),
    )
    yield "robot.yaml", "a pattern of 25 stars", ["sim", "--seconds", "0.1", "--robot", str(stars)]
    groups = "".join(f"\n  g{k}: [left_knee_joint]" for k in range(20_000))
    many = robot(folder / "groups", g1, lambda text: text.replace("\ngroups:", "\ngroups:" + groups))
    yield "robot.yaml", "20,000 groups", ["sim", "--seconds", "0.1", "--robot", str(many)]
    sim = lambda name, xml, **files: [
        "sim", "--seconds", "0.1", "--robot", str(robot(folder / name, xml, **files))
    ]
    copies = mjcf('<replicate count="2000000" offset="1 0 0"><body><geom size="1"/></body></replicate>')
    yield "MJCF", "`replicate` of 2 M", sim("replicate", copies)
    yield "MJCF", "the same, written `&#50;000000`", sim("entity", copies.replace('"2', '"&#50;'))
    attach = g1.replace("<asset>", '<asset><model name="m" file="m.xml"/>').replace(
        "<worldbody>", '<worldbody><body><attach model="m" prefix="x"/></body>', 1
    )
    yield "MJCF", "the same, in a model that is attached", sim(
        "attach", attach, beside={"m.xml": copies.encode()}
    )
    again = '<mujoco><include file="again.xml"/></mujoco>'
    yield "MJCF", "a file that includes itself", sim(
        "again", g1.replace("<asset>", '<include file="sub.xml"/><asset>'), beside={"sub.xml": again.encode(), "again.xml": again.encode()}
    )
    field_xml = g1.replace(
        "<asset>", '<asset><hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/>'
    )
    yield "MJCF", "height field of 30,000²", sim("hfield", field_xml)
    with_asset = lambda text: g1.replace("<asset>", "<asset>" + text)
    field_png = with_asset('<hfield name="h" file="h.png" size="1 1 1 1"/>')
    large = {"h.png": png(30000, 30000, 30001 * 30000)}
    yield "MJCF", "the same, a PNG of 4 MB", sim("png", field_png, beside=large)
    yield "MJCF", "2 GB in a PNG of 10²", sim("bomb", field_png, beside={"h.png": png(10, 10, 2 << 30)})
    texture = with_asset('<texture name="t" type="2d" file="h.png"/>')
    yield "MJCF", "texture, a PNG of 4 MB", sim("texture", texture, beside=large)
    cube = with_asset('<texture name="t" type="cube" builtin="flat" width="30000"/>')
    yield "MJCF", "texture, six faces of 30,000²", sim("cube", cube)
    shape = with_asset('<mesh name="m" builtin="supersphere" params="20000 1 1"/>')
    yield "MJCF", "a mesh of 20,000² points by `builtin`", sim("shape", shape)
    with_element = lambda text: g1.replace("<worldbody>", text + "<worldbody>", 1)
    user = with_element('<sensor><user dim="400000000"/></sensor>')
    yield "MJCF", "a sensor of 400 M numbers", sim("sensor", user)
    option = '<option iterations="2000000000" tolerance="0" ls_tolerance="0" ls_iterations="2000000000"/>'
    yield "MJCF", "2 G iterations, tolerance 0", sim("iterations", with_element(option))
    cells = mjcf(
        '<flexcomp name="f" type="grid" count="3 3 3" spacing="0.1 0.1 0.1" dim="3" dof="trilinear" '
        'cellcount="40 40 40" radius="0.01" mass="1"/>'
    )
    yield "MJCF", "`flexcomp` of 40³ cells", sim("cells", cells)
    geoms = mjcf('<geom size="1"/>' * 200_000)
    yield "MJCF", "200,000 geoms", sim("geoms", geoms)
    sites = mjcf('<replicate count="2000">' + "<site/>" * 500 + "</replicate>")
    yield "MJCF", "1 M sites in 4 kB", sim("sites", sites)
    attributes = " ".join(f'a{k}="1"' for k in range(300_000))
    yield "MJCF", "300,000 attributes", sim("attributes", mjcf(f"<geom {attributes}/>"))
    yield "MJCF", "65 MB of spaces", sim("spaces", g1 + " " * (65 << 20))
    (folder / "expand.onnx").write_bytes(onnx_expand())
    yield "ONNX", "2.4 G numbers in 0.2 kB", ["observe", str(folder / "expand.onnx"), "--layout", "g1_loco"]
    with open(folder / "large.onnx", "wb") as file:
        file.truncate(300 << 20)
    yield "ONNX", "300 MB of zeros", ["observe", str(folder / "large.onnx"), "--layout", "g1_loco"]
    (folder / "entries.onnx").write_bytes(b"\x72\x00" * (50 << 20))
    yield "ONNX", "50 M empty entries", ["observe", str(folder / "entries.onnx")]
    os.remove(folder / "entries.onnx")
    (folder / "budget.onnx").write_bytes(onnx_with({b"silc_budget": b"#" * (200 << 20)}))
    yield "ONNX", "a budget of 200 MB inside", ["observe", str(folder / "budget.onnx")]
    os.remove(folder / "budget.onnx")
    (folder / "p/seeds").mkdir(parents=True)
    (folder / "p/seeds/index.yaml").write_text("- {file: r.json, method: baseline, seed: 2}\n")
    (folder / "p/seeds/r.json").write_text("[" + "[]," * (100 << 20) + "[]]")
    report = ["report", "--policies", str(folder / "p"), "--out", str(folder / "o"), "--quick"]
    yield "JSON", "a recorded result of 300 MB", report + ["--no-pictures", "--experiments", "walk"]
    seeds = sorted((ROOT / "policies/seeds").glob("*.json"))[0]
    result = json.loads(seeds.read_text())
    result["budget"] = "@deep"
    deep = json.dumps(result).replace('"@deep"', "[" * 2_000_000 + "]" * 2_000_000)
    (folder / "p/seeds/r.json").write_text(deep)
    yield "JSON", "2 M lists inside each other", report + ["--no-pictures", "--experiments", "walk"]
    os.remove(folder / "p/seeds/r.json")
    # zeros deflate by a factor of a thousand: 4 GB of joint angles
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (17000000, 29), }"
    header = header.ljust(118 - 1) + "\n"
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("joint_pos.npy", "w", force_zip64=True) as array:
            array.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            block = b"\0" * (1 << 24)
            for _ in range(17_000_000 * 29 * 8 // len(block) + 1):
                array.write(block)
    yield "`.npz`", "4 GB in 4 MB", ["motion", "inspect", str(folder / "bomb.npz")]
    with open(folder / "frames.csv", "w") as file:
        row = "0,0,0.79,0,0,0,1" + ",0" * 29 + "\n"
        for _ in range(1_100):
            file.write(row * 1000)
    yield "motion", "1.1 M frames of CSV", ["motion", "inspect", str(folder / "frames.csv")]
    with open(folder / "large.csv", "wb") as file:
        file.truncate((1 << 30) + 1)
    yield "motion", "1 GiB and a byte", ["motion", "inspect", str(folder / "large.csv")]


# A small process starts silc: the peak that the system counts begins with the one that forked.
START = """
import os, resource, sys
report, seconds, gib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
child = os.fork()
if child == 0:
    resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(sys.argv[4], sys.argv[4:])
_, status, usage = os.wait4(child, 0)
with open(report, "w") as file:
    print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, file=file)
"""


def run(silc, command, gib):
    """(exit code, processor seconds, peak MiB, text) of one run."""
    with tempfile.NamedTemporaryFile("r") as report:
        done = subprocess.run(
            [sys.executable, "-S", "-c", START, report.name, str(SECONDS), str(gib), silc, *command],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        code, seconds, peak = report.read().split()
    return int(code), float(seconds), int(peak), done.stdout.decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("silc")
    parser.add_argument("--gib", type=int, default=4, help="address space [GiB]")
    args = parser.parse_args()
    silc = os.path.abspath(args.silc)
    findings = 0
    print("| reader | file | processor time [s] | peak [MiB] | answer |")
    print("|---|---|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        for reader, what, command in cases(pathlib.Path(name)):
            code, seconds, peak, text = run(silc, command, args.gib)
            lines = [line for line in text.splitlines() if line.startswith("silc: ")]
            answer = lines[0] if lines else text[-200:]
            if answer.endswith("is not whole:"):  # the list below it has the reason
                answer = "silc: " + text.split(answer, 1)[1].strip().removeprefix("- ").splitlines()[0]
            good = code in (1, 2) and lines and "memory" not in answer.lower()
            findings += not good
            short = answer.replace(name + "/", "")[len("silc: ") :][:150]
            flag = "" if good else f"**FINDING, exit {code}** "
            print(f"| {reader} | {what} | {seconds:.1f} | {peak} | {flag}{short} |", flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

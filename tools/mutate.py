#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged files and garbled command lines against the built silc.

Each kind of file that silc reads has a sound example here and a command that reads it. The example
is mutated, the command run, and its end looked at: 0, 1 or 2, within its time and memory, with a
line that begins with "silc: " where it is not 0; what is refused (2) leaves the files it was given
as they were. Anything else is a finding, and is kept with the command that gives it again.

silc is loaded once and forked for every mutation (tools/fork_server.cc), which saves most of the
processor time. The sound commands are also run as programs of their own, and so is whatever a
finding was.

    tools/mutate.py build/release/bin/silc                 # 2,000 mutations of each kind
    tools/mutate.py build/release/bin/silc -n 20 --kinds robot,layout
"""

import argparse
import concurrent.futures
import io
import json
import os
import pathlib
import random
import re
import resource
import select
import shlex
import signal
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 120  # most take one; a command that takes longer, and five times as long again, is a finding
MEMORY = 12 << 30  # [byte] address space of each
LARGEST = 1 << 30  # [byte] a file that it writes
TRAINERS = ("train", "runs", "sweep")  # verbs of silc-trainer, which silc starts
TOO_LONG = "took too long"
AS_ASKED = "asked for more work than the sound line"

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


def varint(n):
    out = b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def fields(message):
    """(number, payload) of each field of a protobuf message: bytes, or an int for a varint."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or number()
        yield key >> 3, message[at : at + size]
        at += size


def field(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def with_external_data(policy, name):
    """(the policy, its weights): tensors of more than a hundred bytes lie in another file."""
    weights = b""

    def tensor(message):
        nonlocal weights
        raw = dict(fields(message)).get(9, b"")
        if len(raw) < 100:
            return message
        entries = {"location": name, "offset": str(len(weights)), "length": str(len(raw))}
        weights += raw
        kept = b"".join(field(k, v) for k, v in fields(message) if k != 9)
        for key, value in entries.items():
            kept += field(13, field(1, key.encode()) + field(2, value.encode()))
        return kept + field(14, 1)  # where: in another file

    def graph(message):
        return b"".join(field(k, tensor(v) if k == 5 else v) for k, v in fields(message))

    model = b"".join(field(k, graph(v) if k == 7 else v) for k, v in fields(policy))
    return model, weights


def without_weights(policy):
    """The policy that asks for nothing: its robot falls, and experiments on it are over at once."""

    def graph(message):
        return b"".join(field(k, tensor(v) if k == 5 else v) for k, v in fields(message))

    def tensor(message):
        return b"".join(field(k, bytes(len(v)) if k == 9 else v) for k, v in fields(message))

    return b"".join(field(k, graph(v) if k == 7 else v) for k, v in fields(policy))


def mutate_metadata(data, rng):
    """What the policy says beside its network: some of the keys and values, the network as it was."""
    parts = list(fields(data))
    entries = [k for k, (number, _) in enumerate(parts) if number == 14]
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.choice(entries)
        entry = dict(fields(parts[at][1]))
        which = rng.choice([1, 2, 2, 2])  # the key, or its value
        how = mutate_json if entry[which][:1] in (b"{", b"[") else mutate_text
        try:
            entry[which] = how(entry[which], rng)
        except (ValueError, RecursionError):  # no JSON any more
            entry[which] = mutate_text(entry[which], rng)
        parts[at] = (14, b"".join(field(k, v) for k, v in entry.items()))
    return b"".join(field(number, payload) for number, payload in parts)


def other_policy(width, joints, metadata):
    """A network of one layer, all zeros, as somebody else's trainer may have written it."""
    text = lambda number, value: field(number, value.encode())

    def value(name, numbers):
        shape = b"".join(field(1, field(1, n)) for n in (1, numbers))
        return text(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

    def zeros(name, *shape):
        size = 4
        for n in shape:
            size *= n
        dims = b"".join(field(1, n) for n in shape)
        return dims + field(2, 1) + text(8, name) + field(9, bytes(size))

    transposed = field(5, text(1, "transB") + field(3, 1) + field(20, 2))
    node = text(1, "obs") + text(1, "w") + text(1, "b") + text(2, "actions") + text(4, "Gemm")
    graph = field(1, node + transposed) + text(2, "policy")
    graph += field(5, zeros("w", joints, width)) + field(5, zeros("b", joints))
    graph += field(11, value("obs", width)) + field(12, value("actions", joints))
    model = field(1, 8) + field(8, field(2, 13)) + field(7, graph)
    return model + b"".join(field(14, text(1, k) + text(2, v)) for k, v in metadata.items())


def policies_of_others(joints):
    """What mjlab and holosoma write beside their networks, for a G1: (its width, metadata)."""
    many = lambda value: ",".join([value] * len(joints))
    terms = "base_lin_vel,base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command"
    each = lambda value, between: between.join([value] * 7)
    mjlab = {
        "run_path": "run",
        "joint_names": ",".join(joints),
        "joint_stiffness": many("40.179"),
        "joint_damping": many("2.558"),
        "default_joint_pos": many("0.1"),
        "action_scale": many("0.548"),
        "command_names": "twist",
        "observation_names": terms,
        "observation_terms_scale": each("1.000", ","),
        "observation_terms_flatten_history_dim": each("1.000", ","),
        "observation_terms_history_length": each("0.000", ","),
        "observation_terms_clip": each("-inf;inf", ","),
    }
    holosoma = {
        "dof_names": json.dumps(joints),
        "kp": json.dumps([40.2] * len(joints)),
        "kd": json.dumps([2.5] * len(joints)),
    }
    return {"mjlab": (99, mjlab), "holosoma": (100, holosoma)}


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height):
    """A grey image."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((r + c) % 256 for c in range(width)) for r in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )


def mutate_png(data, rng):
    """Half of the time its header, or pixels of another size, with checksums that are right."""
    if rng.random() < 0.5:
        return mutate_bytes(data, rng)
    numbers = [0, 1, 2, 8, 9, 4096, 4097, 30000, 65536, 2**31 - 1, 2**31, 2**32 - 1]
    header = struct.pack(
        ">IIBBBBB",
        rng.choice(numbers),
        rng.choice(numbers),
        rng.choice([1, 2, 4, 8, 8, 8, 16, 3]),
        rng.choice([0, 0, 0, 2, 3, 4, 6, 7]),
        0,
        0,
        rng.choice([0, 0, 1]),
    )
    pixels = zlib.compress(bytes(rng.choice([0, 1, 72, 10_000, 1 << 24])))
    return (
        data[:8]
        + png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", pixels)
        + png_chunk(b"IEND", b"")
    )


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


def mutate_npz(data, rng):
    """Half of the time inside an array, so that the archive's checksums are right."""
    if rng.random() < 0.5:
        return mutate_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(sorted(members))
    content = bytearray(members[name])
    for _ in range(rng.choice([1, 1, 4])):
        if rng.random() < 0.7 and len(content) >= 136:  # a number behind the header
            at = 128 + 8 * rng.randrange((len(content) - 128) // 8)
            value = rng.choice([float("nan"), float("inf"), 1e300, -1e300, 99, -1, 0, 5e-324])
            content[at : at + 8] = struct.pack("<d", value)
        else:
            content = bytearray(mutate_bytes(content, rng))
    members[name] = bytes(content)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def mutate_json(data, rng):
    """Half of the time one value of it, so that it is JSON still."""
    if rng.random() < 0.3:
        return mutate_text(data, rng)
    root = json.loads(data)
    for _ in range(rng.choice([1, 1, 3])):
        holder, key, at = None, None, root
        while isinstance(at, (dict, list)) and at and (holder is None or rng.random() < 0.9):
            holder, key = at, rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            at = holder[key]
        if holder is None:
            break
        how = rng.randrange(5)
        if how == 0 and isinstance(holder, dict):
            del holder[key]
        elif how == 1 and isinstance(holder, list):
            holder.append(at)
        else:
            holder[key] = rng.choice(
                [None, True, -1, 0, 2**63, 5e-324, 1e-300, 1e300, -1e308, 1.5, "", "x", [], {}]
            )
        if how == 4 and rng.random() < 0.1:
            holder[key] = "@deep"
    depth = rng.choice([100, 100_000, 1_000_000])
    deep = "[" * depth + "]" * depth if rng.random() < 0.5 else '{"a":' * depth + "1" + "}" * depth
    return json.dumps(root).replace('"@deep"', deep).encode()


CRC32C = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    CRC32C.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC32C[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def mutate_checkpoint(data, rng):
    """Half of the time one of its blobs, with a checksum that is right."""
    if rng.random() < 0.5:
        return mutate_bytes(data, rng)
    at, blobs = 16, {}
    for _ in range(struct.unpack_from("<Q", data, 8)[0]):
        pair = []
        for _ in range(2):
            size = struct.unpack_from("<Q", data, at)[0]
            pair.append(data[at + 8 : at + 8 + size])
            at += 8 + size
        blobs[pair[0]] = pair[1]
    name = rng.choice(sorted(blobs))
    if rng.random() < 0.3:
        name = b"iteration"
    blobs[name] = (
        rng.choice(NASTY).encode() if name == b"iteration" else mutate_bytes(blobs[name], rng)
    )
    out = data[:8] + struct.pack("<Q", len(blobs))
    for key, value in blobs.items():
        out += struct.pack("<Q", len(key)) + key + struct.pack("<Q", len(value)) + value
    return out + struct.pack("<Q", crc32c(out))


def mutate_safety(data, rng):
    """The thresholds of a robot.yaml, which silc deploy alone makes use of."""
    at = data.index(b"\nsafety:")
    return data[:at] + mutate_text(data[at:], rng)


TYPED = "-"  # the name of what stands on standard input


class Kind:
    """A file's name, its sound contents, the command that reads it, what lies beside it, and how
    the command ends when all is well."""

    def __init__(self, name, data, command, mutate=mutate_text, beside=None, ends=0):
        self.name, self.data, self.command, self.mutate, self.beside, self.ends = (
            name,
            data,
            command,
            mutate,
            beside or {},
            ends,
        )


def files_below(folder, prefix):
    """Everything a command has left, but for what changes from run to run."""
    return {
        prefix + str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and "events" not in p.name and p.name != "lock"
    }


def make(silc, line, folder=ROOT):
    """Runs a sound line, for what it leaves."""
    subprocess.run([silc, *shlex.split(line)], check=True, capture_output=True, cwd=folder)


def report_kinds(silc, scratch, policy):
    """What silc report reads beside policies: results of other seeds, and its own caches."""
    read = lambda name: (ROOT / name).read_bytes()
    seed = sorted((ROOT / "policies/seeds").glob("*.json"))[0].name
    other = sorted((ROOT / "policies/others").glob("*.json"))[0].name
    index = f"- {{file: {seed}, method: baseline, seed: 2}}\n".encode()
    recorded = {"p/seeds/index.yaml": index}
    for folder in ("seeds", "others"):
        for path in sorted((ROOT / "policies" / folder).glob("*.json")):
            if folder == "others" or path.name == seed:
                recorded[f"p/{folder}/{path.name}"] = path.read_bytes()
    recorded["p/others/index.yaml"] = read("policies/others/index.yaml")
    report = "report --policies p --out o --quick --no-pictures --threads 1 --experiments "

    def page(name, data, experiment, mutate=mutate_text):
        """A page of recorded results alone."""
        beside = {k: v for k, v in recorded.items() if k != name}
        return Kind(name, data, report + experiment, mutate=mutate, beside=beside)

    kinds = {
        "seeds_index": page("p/seeds/index.yaml", index, "walk"),
        "seeds_result": page("p/seeds/" + seed, recorded["p/seeds/" + seed], "walk", mutate_json),
        "others_index": page("p/others/index.yaml", recorded["p/others/index.yaml"], "punch"),
        "others_result": page(
            "p/others/" + other, recorded["p/others/" + other], "punch", mutate_json
        ),
        # a folder's own come before silc's
        "report_plan": page("configs/report.yaml", read("configs/report.yaml"), "walk,punch"),
        "paper": page("configs/paper.yaml", read("configs/paper.yaml"), "walk,punch"),
        "errata": page("docs/paper_errata.md", read("docs/paper_errata.md"), "walk"),
    }
    # Each cache has a whole result. What is no result is computed again, which com-impulse on a robot
    # that falls makes cheap. A certificate needs a robot that stands; of one moment it is cheapest.
    sound = policy.read_bytes()
    plan = read("configs/report.yaml").replace(b"  moments: 20\n  quick: 2\n", b"  moments: 1\n  quick: 1\n")
    for name, experiment, computed in (
        ("report_cache", "com-impulse", without_weights(sound)),
        ("certificate_cache", "certify", sound),
    ):
        cached = {}
        for data in dict.fromkeys((sound, computed)):
            folder = scratch / name / str(len(cached))
            put(folder, {"p/p.onnx": data, "configs/report.yaml": plan})
            make(silc, report + experiment, folder)
            (cached[data],) = (folder / "o/cache").iterdir()
        kinds[name] = Kind(
            "o/cache/" + cached[computed].name,
            cached[sound].read_bytes(),
            report + experiment,
            mutate=mutate_json if cached[sound].suffix == ".json" else mutate_text,
            beside={"p/p.onnx": computed, "configs/report.yaml": plan},
        )
    return kinds


# two rows of the run that make_kinds() trains, both of them done
SMALL_SWEEP = b"""defaults: {task: g1-stand, preset: quick, envs: 4, iterations: 1, overrides:
  [learn.steps=4, 'learn.actor_hidden=[8]', 'learn.critic_hidden=[8]']}
rows: [{name: a}, {name: b}]
"""


# what a robot's MJCF may name: meshes, images, models to attach, other files. What cannot be touched
# is left out before MuJoCo reads its file
ASSETS = b"""<mujoco>
  <compiler texturedir="." meshdir="."/>
  <asset>
    <hfield name="h" file="h.png" size="1 1 0.1 0.1"/>
    <hfield name="r" file="h.bin" size="1 1 0.1 0.1"/>
    <texture name="flat" type="2d" file="h.png"/>
    <texture name="faces" type="cube" fileup="h.png" filedown="h.png"/>
    <texture name="grid" type="cube" file="h.png" gridsize="1 1"/>
    <texture name="sky" type="skybox" builtin="gradient" width="8"/>
    <model name="m" file="other.xml"/>
    <mesh name="stl" file="m.stl"/>
    <mesh name="obj" file="m.obj"/>
    <mesh name="msh" file="m.msh"/>
  </asset>
  <worldbody>
    <geom type="mesh" mesh="stl" pos="80 0 0"/>
    <geom type="mesh" mesh="obj" pos="82 0 0"/>
    <geom type="mesh" mesh="msh" pos="84 0 0"/>
    <geom type="hfield" hfield="h" pos="90 0 0"/>
    <replicate count="&#50;" offset="0 0 1">
      <frame pos="50 0 0"><include file="more.xml"/></frame>
    </replicate>
    <body name="there" pos="60 0 0"><attach model="m" body="b" prefix="x"/></body>
    <body name="again" pos="70 0 0"><attach body="there" prefix="y"/></body>
  </worldbody>
</mujoco>
"""
OTHER_MODEL = b"""<mujoco model="o">
  <asset><texture name="t" type="2d" file="h.png"/></asset>
  <worldbody>
    <body name="b"><replicate count="2" offset="0 0 1"><geom size="0.1" contype="0" conaffinity="0"/></replicate></body>
  </worldbody>
</mujoco>
"""


def meshes():
    """A tetrahedron in each format that MuJoCo reads."""
    points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    stl = bytes(80) + struct.pack("<I", len(faces))
    for face in faces:
        stl += struct.pack("<3f", 0, 0, 0) + b"".join(struct.pack("<3f", *points[k]) for k in face)
        stl += bytes(2)
    obj = "".join("v %g %g %g\n" % point for point in points) + "vn 0 0 1\nvt 0 0\n"
    obj += "".join("f " + " ".join(f"{k + 1}/1/1" for k in face) + "\n" for face in faces)
    msh = struct.pack("<4i", len(points), 0, 0, len(faces))
    msh += b"".join(struct.pack("<3f", *point) for point in points)
    msh += b"".join(struct.pack("<3i", *face) for face in faces)
    return {"m.stl": stl, "m.obj": obj.encode(), "m.msh": msh}


def asset_kinds(robot_file, model, model_file, command):
    """A robot with all of them, and each of them damaged."""
    image = png(8, 8)
    sound = {
        "robot.yaml": robot_file,
        model: model_file.replace(b"<worldbody>", b'<include file="assets.xml"/><worldbody>', 1),
        "assets.xml": ASSETS,
        "other.xml": OTHER_MODEL,
        "more.xml": b'<mujoco><geom size="0.1" contype="0" conaffinity="0"/></mujoco>\n',
        "h.png": image,
        "h.bin": struct.pack("<2i4f", 2, 2, 0, 1, 2, 3),
        **meshes(),
    }
    mutations = {
        "mjcf_assets": ("assets.xml", mutate_text),
        "mjcf_attached": ("other.xml", mutate_text),
        "mjcf_png": ("h.png", mutate_png),
        "mjcf_height_field": ("h.bin", mutate_bytes),
        "mjcf_stl": ("m.stl", mutate_bytes),
        "mjcf_obj": ("m.obj", mutate_text),
        "mjcf_msh": ("m.msh", mutate_bytes),
    }
    return {
        name: Kind(
            file,
            sound[file],
            command,
            mutate=mutate,
            beside={k: v for k, v in sound.items() if k != file},
        )
        for name, (file, mutate) in mutations.items()
    }


def deploy_kinds(robot_file, beside, policy):
    """What silc deploy and its simulated robot read; the domains are nobody's."""
    script = (
        b"0.001 press B\n0.002 press start; 0.003 stick ly -0.5\n0.004 push 60 0 0 0.2\n"
        b"0.005 fault nan\n0.006 mend\n0.007 release\n0.03 end\n"
    )
    return {
        "script": Kind("s.txt", script, "sim --dds --end 0.05 --domain 99 --script @s.txt"),
        "typed": Kind(
            TYPED,
            b"press start\nstick ly -0.5\npush 60 0 0 0.2\nfault nan\nmend\nrelease\nmotors 0 0.01\n",
            "sim --dds --end 0.05 --domain 97",
        ),
        # no robot is there
        "safety": Kind(
            "robot.yaml",
            robot_file,
            f"deploy {policy} --robot robot.yaml --dry-run --no-keys --wait 0.1 --preflight 0"
            " --network lo --domain 98",
            mutate=mutate_safety,
            beside=beside,
            ends=1,
        ),
    }


def has_dds(silc):
    done = subprocess.run(
        [silc, *shlex.split("sim --dds --end 0.01 --domain 99")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return "without Cyclone DDS" not in done.stderr


RESUME = "train --resume run --iterations 1 --threads 1"


def rest_of_run(files, name):
    """The other files of a run, where the command looks for them."""
    return {"run/" + k: v for k, v in files.items() if k != name}


def more_training_kinds(silc, scratch, small, files, checkpoint):
    """What the trainer reads beside the run that it goes on with."""
    read = lambda path: (ROOT / path).read_bytes()
    train = f"train g1-stand --preset quick {small}"
    init = train + " --init run --out none"
    kinds = {
        "init_checkpoint": Kind(
            "run/" + checkpoint,
            files[checkpoint],
            init,
            mutate=mutate_checkpoint,
            beside=rest_of_run(files, checkpoint),
        ),
        "init_config": Kind(
            "run/config.yaml", files["config.yaml"], init, beside=rest_of_run(files, "config.yaml")
        ),
        "config_checksums": Kind(
            "run/config.crc32c", files["config.crc32c"], RESUME, beside=rest_of_run(files, "config.crc32c")
        ),
    }
    # networks that are the average of the last iterations' have more blobs
    run = scratch / "averaged_run"
    make(silc, f"{train} learn.average=2 --out {run}")
    averaged = files_below(run, "run/")
    name = next(name for name in averaged if name.endswith(".silc"))
    kinds["averaged_checkpoint"] = Kind(
        name,
        averaged.pop(name),
        RESUME,
        mutate=mutate_checkpoint,
        beside=averaged,
    )
    # a policy that is told its budget, and ranges that are written into it or trained
    run = scratch / "told_run"
    make(silc, f"{train} --method silc --mode command --out {run}")
    told = (run / "policy.onnx").read_bytes()
    ranges = read("configs/budgets/command.yaml")
    kinds["told"] = Kind(
        "told.onnx", told, "observe told.onnx --budget com=400", mutate=mutate_metadata
    )
    kinds["budget_ranges"] = Kind(
        "b.yaml", ranges, "export told.onnx out.onnx --mode b.yaml", beside={"told.onnx": told}
    )
    kinds["trained_ranges"] = Kind(
        "b.yaml", ranges, f"{train} --method silc --mode b.yaml --out none"
    )
    # what a sweep finds of its rows, and the cards of those that were collected before
    rows = {f"runs/{row}-seed1/{k}": v for row in "ab" for k, v in files.items()}
    folder = scratch / "collected"
    put(folder, {"s.yaml": SMALL_SWEEP, **rows})
    collect = "sweep s.yaml --list --out runs --collect collected"
    make(silc, collect, folder)
    swept = {"s.yaml": SMALL_SWEEP, **rows, **files_below(folder / "collected", "collected/")}
    for kind, name in (
        ("card", "collected/a.md"),
        ("collected_run", "runs/a-seed1/run.yaml"),
        ("collected_config", "runs/a-seed1/config.yaml"),
    ):
        others = {k: v for k, v in swept.items() if k != name}
        kinds[kind] = Kind(name, swept[name], collect, beside=others)
    # robots in the trainer's hands
    g1 = {"g1.xml": read("robots/g1/g1.xml"), "robot.yaml": read("robots/g1/robot.yaml")}
    g1["t.yaml"] = read("configs/tasks/g1_stand.yaml") + b"robot: robot.yaml\n"
    robot = f"train t.yaml {small} --out none"
    for kind, name in (("robot_trained", "robot.yaml"), ("mjcf_trained", "g1.xml")):
        others = {k: v for k, v in g1.items() if k != name}
        kinds[kind] = Kind(name, g1[name], robot, beside=others)
    return kinds


def make_kinds(silc, scratch, names):
    """All of them, by name; those for which something is trained where one of `names` is among
    them."""
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
    amass = npz(
        {"mocap_framerate": ([30.0], "(1,)"), "poses": ([0.1] * 66 * 2, "(2, 66)")}
    )
    log = npz(
        {
            "qpos": (([0, 0, 0.79, 1, 0, 0, 0] + [0.0] * 29) * 2, "(2, 36)"),
            "qvel": ([0.0] * 35 * 2, "(2, 35)"),
            "tau": ([0.0] * 29 * 2, "(2, 29)"),
            "gravity_B": ([0.0, 0.0, -1.0] * 2, "(2, 3)"),
            "command": ([0.0] * 5 * 2, "(2, 5)"),
            "contact_mode": ([0.0] * 2, "(2,)"),
            "session": ([0.0] * 2, "(2,)"),
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
        "policy": Kind("p.onnx", pathlib.Path(stand).read_bytes(), "observe p.onnx", mutate=mutate_bytes),
        "metadata": Kind(
            "p.onnx", pathlib.Path(stand).read_bytes(), "observe p.onnx", mutate=mutate_metadata
        ),
        "graph": Kind(
            "p.onnx", small[len(small) // 2].read_bytes(), "export p.onnx out.onnx", mutate=mutate_bytes
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
        "states": Kind("s.npz", states, f"observe {stand} --states s.npz", mutate=mutate_npz),
        "log": Kind(
            "log/chunk_000000.npz", log, f"observe {stand} --states log", mutate=mutate_npz
        ),
        "motion_csv": Kind("m.csv", motion, "motion inspect m.csv"),
        "motion_npz": Kind("m.npz", mjlab, "motion inspect m.npz", mutate=mutate_npz),
        "motion_amass": Kind("m.npz", amass, "motion inspect m.npz", mutate=mutate_npz),
        "exported": Kind(
            "p.onnx",
            pathlib.Path(stand).read_bytes(),
            "export p.onnx out.onnx",
            mutate=mutate_metadata,
        ),
        "certified": Kind(
            "p.onnx",
            pathlib.Path(stand).read_bytes(),
            "certify p.onnx --rollout 0.02 --settle 0 --moments 1 --samples 1 --threads 1",
            mutate=mutate_metadata,
        ),
        # a robot in other hands than the simulation's
        "robot_observed": Kind(
            "robot.yaml",
            robot_file,
            f"observe {stand} --robot robot.yaml",
            beside={model: model_file},
        ),
        "robot_gains": Kind(
            "robot.yaml",
            robot_file,
            "gains --robot robot.yaml --mode compliance --poses home --samples 0",
            beside={model: model_file},
        ),
        "mjcf_batch": Kind(
            model,
            model_file,
            sim.replace("mujoco", "batch"),
            beside={"robot.yaml": robot_file},
        ),
    }
    for name, (width, metadata) in policies_of_others([line[4:] for line in joints]).items():
        kinds[name + "_policy"] = Kind(
            "p.onnx",
            other_policy(width, len(joints), metadata),
            f"observe p.onnx --layout {name}",
            mutate=mutate_metadata,
        )
    policy, weights = with_external_data(pathlib.Path(stand).read_bytes(), "p.onnx.data")
    observe = "observe p.onnx"
    kinds["external_policy"] = Kind(
        "p.onnx", policy, observe, mutate=mutate_bytes, beside={"p.onnx.data": weights}
    )
    kinds["external_data"] = Kind(
        "p.onnx.data", weights, observe, mutate=mutate_bytes, beside={"p.onnx": policy}
    )
    # the robot that MuJoCo compiles fastest
    berkeley = ROOT / "robots/berkeley"
    kinds.update(
        asset_kinds(
            (berkeley / "robot.yaml").read_bytes(),
            "berkeley.xml",
            (berkeley / "berkeley.xml").read_bytes(),
            # with MuJoCo alone: the batch stepper knows no ground but planes
            "gains --robot robot.yaml --mode compliance --poses home --samples 0",
        )
    )
    if has_dds(silc):
        kinds.update(deploy_kinds(robot_file, {model: model_file}, stand))
    verbs = subprocess.run([silc, "--help"], capture_output=True, text=True).stdout
    kinds.update(report_kinds(silc, scratch, pathlib.Path(stand)))
    if "view" in verbs:
        kinds["view"] = Kind(
            "p.onnx",
            pathlib.Path(stand).read_bytes(),
            "view p.onnx --export v.html --seconds 0.1",
            mutate=mutate_bytes,
        )
    if "train" in verbs and any(name not in kinds for name in names):
        small = (
            "learn.steps=4 learn.actor_hidden=[8] learn.critic_hidden=[8] --envs 4"
            " --threads 1 --iterations 1"
        )
        run = scratch / "seed_run"
        make(silc, f"train g1-stand --preset quick {small} --out {run}")
        files = files_below(run, "")
        checkpoint = next(name for name in files if name.endswith(".silc"))
        kinds.update(more_training_kinds(silc, scratch, small, files, checkpoint))
        kinds.update(
            {
                "checkpoint": Kind(
                    "run/" + checkpoint,
                    files[checkpoint],
                    RESUME,
                    mutate=mutate_checkpoint,
                    beside=rest_of_run(files, checkpoint),
                ),
                "resumed_config": Kind(
                    "run/config.yaml",
                    files["config.yaml"],
                    RESUME,
                    beside=rest_of_run(files, "config.yaml"),
                ),
                "resumed_metrics": Kind(
                    "run/metrics.jsonl",
                    files["metrics.jsonl"],
                    "train --resume run --iterations 2 --threads 1",
                    beside=rest_of_run(files, "metrics.jsonl"),
                ),
                "run_config": Kind(
                    "run/config.yaml",
                    files["config.yaml"],
                    "runs run",
                    beside=rest_of_run(files, "config.yaml"),
                ),
                "metrics": Kind(
                    "run/metrics.jsonl",
                    files["metrics.jsonl"],
                    "runs run",
                    beside=rest_of_run(files, "metrics.jsonl"),
                ),
                "sweep": Kind(
                    "s.yaml", read("configs/sweep.yaml"), "sweep s.yaml --list --out none"
                ),
                "collected": Kind(
                    "runs/a-seed1/policy.onnx",
                    files["policy.onnx"],
                    "sweep s.yaml --list --out runs --collect collected",
                    mutate=mutate_bytes,
                    beside={
                        "s.yaml": SMALL_SWEEP,
                        **{"runs/a-seed1/" + k: v for k, v in files.items() if k != "policy.onnx"},
                        **{"runs/b-seed1/" + k: v for k, v in files.items()},
                    },
                ),
                "task": Kind(
                    "t.yaml",
                    read("configs/tasks/g1_stand.yaml"),
                    f"train t.yaml {small} --out none",
                ),
                # a layout of one's own under a bound over frequencies
                "bounded_layout": Kind(
                    "l.yaml",
                    read("layouts/g1_loco.yaml"),
                    f"train t.yaml --method silc {small} --out none"
                    " learn.penalty.frequencies=[1,2.5]",
                    beside={
                        "t.yaml": read("configs/tasks/g1_stand.yaml").replace(
                            b"layout: g1_loco", b"layout: l.yaml"
                        )
                    },
                ),
                "preset": Kind(
                    "q.yaml",
                    read("configs/train/g1_stand_quick.yaml"),
                    f"train g1-stand --preset q.yaml {small} --out none",
                ),
            }
        )
    return kinds


# sound command lines; what they leave stays in the scratch folder. `view` without --export never ends
COMMANDS = [
    "observe p.onnx --mode compliance --latency 0 --seed 1 --json o.json --csv o.csv",
    "observe p.onnx --rollout 0.1 --settle 0.1 --command 0,0,0 --height 0.75 --plot o.svg",
    "observe p.onnx --pose home --gains falcon",
    "observe p.onnx --states s.npz --json o.json",
    "certify p.onnx --box joint_pos=0.01,gravity=0.01 --rollout 0.1 --settle 0 --moments 1 --samples 1 --json c.json",
    "sim --robot g1 --seconds 0.04 --stiffness 1 --push 50,0,0@0.02 --backend mujoco",
    "eval stand --policy p.onnx --episodes 1 --seed 1 --threads 1 --force-scale 0",
    "eval frequency --policy p.onnx --episodes 1 --seed 1 --threads 1 --frequencies 4 --points com_x",
    "eval com-impulse --policy p.onnx --episodes 1 --seed 1 --threads 1 --json e.json",
    "export p.onnx out.onnx --half --note silc_method=silc",
    "gains --robot g1 --mode compliance --poses home --samples 1 --write g.yaml",
    "gains --robot berkeley --mode compliance",
    "motion inspect m.csv --robot g1 --plot m.svg",
    "report --policies shelf --out none --quick --no-pictures --seeds 1 --threads 1 --experiments com-impulse",
    "report --policies p --out none --quick --no-pictures --seeds 1 --threads 1 --experiments punch",
    "bench observe --seconds 0.01",
]
COMMANDS_THAT_VIEW = ["view p.onnx --export v.html --seconds 0.1 --mode soft"]
COMMANDS_WITH_DDS = [
    "sim --dds --robot g1 --network lo --domain 99 --end 0.02 --script '0.01 press A; 0.02 end'",
]
# 1, when all is well: there is no robot
COMMANDS_WITHOUT_ROBOT = ["deploy p.onnx --dry-run --wait 0.1 --preflight 1 --log log"]
COMMANDS_THAT_TRAIN = [
    "observe told.onnx --budget com=400,hands=200,null_space=100 --json o.json",
    "observe told.onnx --mode soft --budget com=400",
    "export told.onnx out.onnx --mode command",
    "train g1-stand --preset quick --envs 2 --iterations 1 --max-seconds 5 --threads 1 --out new",
    "train g1-stand --preset quick --method silc --mode command --envs 2 --iterations 1 --max-seconds 5 --threads 1 --out new",
    "train g1-stand --preset quick --method silc --mode firm --envs 2 --iterations 1 --max-seconds 5 --threads 1 --out new learn.penalty.frequencies=[1,2.5]",
    "train --resume run --iterations 2 --max-seconds 5 --threads 1 learn.checkpoint_every=1",
    "runs .",
    "sweep s.yaml --list --jobs 1 --threads 1 --out none",
    "sweep two.yaml --list --out runs --collect collected",
]
# a line without one of these, or with another value of it, may have asked for hours
BOUNDS = {
    "--backend",
    "--dds",
    "--end",
    "--box",
    "--envs",
    "--episodes",
    "--experiments",
    "--frequencies",
    "--iterations",
    "--list",
    "--max-seconds",
    "--moments",
    "--points",
    "--policies",
    "--preset",
    "--quick",
    "--rollout",
    "--samples",
    "--seconds",
    "--seeds",
    "--settle",
    "--wait",
}


def make_commands(kinds):
    """The lines, and what they read: a garbled line may write where it was to read."""
    policy = kinds["policy"].data
    beside = {
        "p.onnx": policy,
        "m.csv": kinds["motion_csv"].data,
        "s.npz": kinds["states"].data,
        "shelf/p.onnx": policy,
        **{k: v for k, v in kinds["others_index"].beside.items() if "/others/" in k},
        kinds["others_index"].name: kinds["others_index"].data,
    }
    lines = [*COMMANDS, *COMMANDS_WITHOUT_ROBOT]
    if "script" in kinds:
        lines += COMMANDS_WITH_DDS
    if "view" in kinds:
        lines += COMMANDS_THAT_VIEW
    if "checkpoint" in kinds:
        lines += COMMANDS_THAT_TRAIN
        beside["told.onnx"] = kinds["told"].data
        beside["s.yaml"] = kinds["sweep"].data
        beside["two.yaml"] = SMALL_SWEEP
        for name in ("collected", "checkpoint"):
            beside.update({**kinds[name].beside, kinds[name].name: kinds[name].data})
        beside["s.yaml"] = kinds["sweep"].data
    return lines, beside


def asks_for_more(line, words):
    """Whether a bound of the sound line is not in the garbled one as it was."""
    sound = shlex.split(line)
    if words[:1] != sound[:1]:
        return True
    for at, word in enumerate(sound):
        pair = sound[at : at + 2]
        if word in BOUNDS and not any(words[k : k + 2] == pair for k in range(len(words))):
            return True
    return False


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


class Ended:
    """How a command ended: its exit code (negative: a signal; None: it took too long), what it
    wrote, its processor time [s]."""

    def __init__(self, code, stdout, stderr, seconds=0.0):
        self.code, self.stdout, self.stderr, self.seconds = code, stdout, stderr, seconds


def environment():
    return dict(
        os.environ,
        SILC_ROBOTS=str(ROOT / "robots"),
        SILC_LAYOUTS=str(ROOT / "layouts"),
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
    )


class Server:
    """A program that is loaded once and forked for every command."""

    def __init__(self, program, library, scratch):
        theirs_in, self.requests = os.pipe()
        self.answers, theirs_out = os.pipe()
        self.out = scratch / f"server_{self.requests}_{threading.get_ident()}"
        self.program = program
        self.process = subprocess.Popen(
            [program],
            env=dict(
                environment(),
                LD_PRELOAD=str(library),
                SILC_FORK_SERVER=f"{theirs_in},{theirs_out}",
            ),
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def answer(self, form, seconds=None):
        """A number that the server sends; None where it did not come in time."""
        if seconds is not None and not select.select([self.answers], [], [], seconds)[0]:
            return None
        data = os.read(self.answers, struct.calcsize(form))
        if not data:
            raise RuntimeError(f"{self.program} under tools/fork_server.cc has ended")
        return struct.unpack(form, data)[0]

    def run(self, words, folder, stdin, seconds):
        out, err = f"{self.out}.out", f"{self.out}.err"
        texts = [str(folder), str(stdin), out, err, self.program, *words]
        request = struct.pack("<QQ", MEMORY, LARGEST)
        request += b"".join(os.fsencode(text) + b"\0" for text in texts)
        os.write(self.requests, struct.pack("<I", len(request)) + request)
        child = self.answer("<i")
        status = self.answer("<i", seconds)
        if late := status is None:
            os.killpg(child, signal.SIGKILL)
            status = self.answer("<i")
        used = self.answer("<d")
        code = None if late else os.waitstatus_to_exitcode(status)
        return Ended(code, pathlib.Path(out).read_bytes(), pathlib.Path(err).read_bytes(), used)

    def close(self):
        os.close(self.requests)
        self.process.wait()
        os.close(self.answers)


class Silc:
    """The program under test, and the servers of each thread."""

    def __init__(self, program, library, scratch):
        self.program, self.library, self.scratch = program, library, scratch
        self.own, self.servers = threading.local(), []

    def started(self, words, folder, stdin, seconds):
        """A program of its own."""

        def limits():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        with open(stdin, "rb") as typed:
            try:
                done = subprocess.run(
                    [self.program, *words],
                    cwd=folder,
                    env=environment(),
                    stdin=typed,
                    capture_output=True,
                    timeout=seconds,
                    preexec_fn=limits,
                )
            except subprocess.TimeoutExpired:
                return Ended(None, b"", b"")
        return Ended(done.returncode, done.stdout, done.stderr)

    def forked(self, words, folder, stdin, seconds):
        if not self.library:
            return self.started(words, folder, stdin, seconds)
        # silc would only hand these on
        program = self.program + ("-trainer" if words[:1] and words[0] in TRAINERS else "")
        if not os.path.exists(program):
            program = self.program
        servers = self.own.__dict__.setdefault("servers", {})
        if program not in servers:
            servers[program] = Server(program, self.library, self.scratch)
            self.servers.append(servers[program])
        return servers[program].run(words, folder, stdin, seconds)

    def close(self):
        for server in self.servers:
            server.close()


def judge(done, folder, given):
    """What was wrong with how it ended; None when nothing was."""
    if done.code is None:
        return TOO_LONG
    said = done.stderr.decode("utf-8", "replace")
    told = done.stdout.decode("utf-8", "replace")
    if done.code not in (0, 1, 2):
        return f"ended with {done.code}: {said[-300:]}"
    if done.code != 0 and not re.search("^silc: ", said, re.MULTILINE):
        return f"ended with {done.code} and said nothing: {said[-300:]}"
    if "\x1b" in said.replace("\x1b[K", "") or "\x1b" in told:
        return f"printed an escape sequence: {said[-300:]!r} {told[-300:]!r}"
    if done.code == 2:
        for name, data in given.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                return f"refused, and changed {name}: {said[-300:]}"
    return None


def put(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def lay_out(folder, given):
    """The files, and where standard input comes from."""
    put(folder, {name: data for name, data in given.items() if name != TYPED})
    if TYPED not in given:
        return "/dev/null"
    typed = folder.with_name(folder.name + ".typed")
    typed.write_bytes(given[TYPED])
    return typed


def trial(silc, name, kinds, commands, scratch, findings, index, seed):
    """(what was wrong, None when nothing; processor time [s])"""
    rng = random.Random(f"{seed}/{name}/{index}")
    folder = scratch / f"{name}_{index}"
    folder.mkdir()
    try:
        line = ""
        if name == "command":
            lines, given = commands
            line = rng.choice(lines)
            words = mutate_command(line, rng)
        else:
            kind = kinds[name]
            given = {**kind.beside, kind.name: kind.mutate(kind.data, rng)}
            words = shlex.split(kind.command)
        files = {k: v for k, v in given.items() if k != TYPED}
        try:
            done = silc.forked(words, folder, lay_out(folder, given), SECONDS)
        except OSError:
            return None, 0  # the words cannot be handed over at all
        wrong = judge(done, folder, files)
        if wrong == TOO_LONG and line and asks_for_more(line, words):
            return AS_ASKED, done.seconds
        if wrong:
            # a program of its own; a machine with other work is no finding
            shutil.rmtree(folder)
            folder.mkdir()
            alone = judge(
                silc.started(words, folder, lay_out(folder, given), 5 * SECONDS), folder, files
            )
            if wrong == TOO_LONG and not alone:
                return None, done.seconds
            if not alone:
                wrong += "\nnot seen again as a program of its own"
            kept = findings / f"{name}_{index}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            lay_out(kept, given)
            (kept / "command.txt").write_text(
                f"cd {kept} && {shlex.join([silc.program, *words])}\n{wrong}\n",
                errors="surrogateescape",
            )
            return f"{name} {index}: {wrong.strip()}\n  {kept}/command.txt", done.seconds
        return None, done.seconds
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_name(folder.name + ".typed").unlink(missing_ok=True)


def check_sound(silc, name, kinds, commands, scratch):
    """The sound ones first: a command that refuses them would find nothing. A program of its own
    and a fork must agree."""
    if name == "command":
        lines, given = commands
    else:
        lines, given = [kinds[name].command], {**kinds[name].beside, kinds[name].name: kinds[name].data}
    for k, line in enumerate(lines):
        ends = 1 if line in COMMANDS_WITHOUT_ROBOT else kinds[name].ends if name in kinds else 0
        for run in (silc.started, silc.forked):
            folder = scratch / f"sound_{name}_{k}"
            folder.mkdir()
            done = run(shlex.split(line), folder, lay_out(folder, given), SECONDS)
            shutil.rmtree(folder, ignore_errors=True)
            # a graph that was read and is no plain MLP has done its work
            if name == "graph" and b"is no plain MLP" in done.stderr:
                continue
            if done.code != ends:
                said = done.stderr.decode("utf-8", "replace")
                sys.exit(f"{name}: the sound line is refused: {line}\n{run.__name__}: {said}")


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
    program = str(pathlib.Path(arguments.silc).resolve())
    findings = pathlib.Path(arguments.findings).resolve()
    library = pathlib.Path(program).with_name("fork_server.so")
    if not library.exists():
        print(f"no {library}: silc is loaded for every mutation, which takes several times as long")
        library = None

    with tempfile.TemporaryDirectory(prefix="silc_mutate_") as made:
        scratch = pathlib.Path(made)
        silc = Silc(program, library, scratch)
        asked = arguments.kinds.split(",") if arguments.kinds else []
        kinds = make_kinds(program, scratch, asked or ["command"])
        names = asked or [*kinds, "command"]
        unknown = [name for name in names if name != "command" and name not in kinds]
        if unknown:
            sys.exit(f"no such kind: {', '.join(unknown)}; known: {', '.join(kinds)}, command")
        commands = make_commands(kinds) if "command" in names else ([], {})
        for name in names:
            check_sound(silc, name, kinds, commands, scratch)
        found = 0
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for name in names:
                began = time.monotonic()
                tasks = [
                    pool.submit(
                        trial, silc, name, kinds, commands, scratch, findings, k, arguments.seed
                    )
                    for k in range(arguments.n)
                ]
                results = [task.result() for task in tasks]
                ends = [end for end, _ in results]
                wrong = [end for end in ends if end and end != AS_ASKED]
                long = ends.count(AS_ASKED)
                asked = f", {long} cut off that asked for more work than is done here" if long else ""
                took = f"{time.monotonic() - began:.0f} s"
                if library:
                    used = sum(seconds for _, seconds in results) / max(1, arguments.n)
                    took += f", {1e3 * used:.1f} ms of processor time each"
                print(
                    f"{name}: {arguments.n} mutations, {len(wrong)} findings{asked} ({took})",
                    flush=True,
                )
                for text in wrong:
                    print("  " + text, flush=True)
                found += len(wrong)
        silc.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

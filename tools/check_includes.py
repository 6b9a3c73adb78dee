#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the includes between the folders of silc/ to the table in docs/architecture.md.

    tools/check_includes.py            exit 1 and a line for each include outside the table, each word of the
                                       table that no include needs, each folder without a row, each cycle, each
                                       room that the drawing has on another floor
    tools/check_includes.py --table    the table as the sources are now, to be put into docs/architecture.md

A room is a folder of silc/ that holds sources. Tests may see more than the code they test, hence the third column:
it is for *_test.cc, *_fuzz.cc, test_*.{h,cc} and *_check.cc.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
HEADER = "| room | may include | its tests also |"
SOURCES = {".h", ".cc", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"silc/([^"]+)/[^"/]+"', re.MULTILINE)
TEST = re.compile(r"(_test|_fuzz|_check)\.cc$|^test_[^/]*$")


def used_edges():
    """{room: {"code": {other: [file...]}, "tests": {...}}} of the sources."""
    rooms = {}
    for path in sorted((ROOT / "silc").rglob("*")):
        if path.suffix not in SOURCES:
            continue
        room = path.parent.relative_to(ROOT / "silc").as_posix()
        kind = "tests" if TEST.search(path.name) else "code"
        edges = rooms.setdefault(room, {"code": {}, "tests": {}})[kind]
        for other in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if other != room:
                edges.setdefault(other, []).append(path.relative_to(ROOT).as_posix())
    for edges in rooms.values():
        edges["tests"] = {k: v for k, v in edges["tests"].items() if k not in edges["code"]}
    return rooms


def allowed_edges():
    """{room: ({other...}, {other...})} of the page: for code, and for tests beyond it."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    if HEADER not in lines:
        sys.exit(f"{PAGE.name}: no table that begins with '{HEADER}'")
    rooms = {}
    for line in lines[lines.index(HEADER) + 2:]:
        if not line.startswith("|"):
            break
        cells = [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
        if len(cells) != 3 or len(cells[0]) != 1:
            sys.exit(f"{PAGE.name}: a row is not one room and two lists: {line}")
        rooms[cells[0][0]] = (set(cells[1]), set(cells[2]))
    return rooms


def cycle(graph):
    """Rooms that include each other in a circle, or nothing."""
    done, path = set(), []

    def visit(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return None
        path.append(room)
        found = next(filter(None, map(visit, sorted(graph.get(room, ())))), None)
        path.pop()
        done.add(room)
        return found

    return next(filter(None, map(visit, sorted(graph))), None)


def floors(graph):
    """{room: its floor}: one above the highest room that it includes."""
    found = {}

    def floor(room):
        if room not in found:
            found[room] = max((floor(other) + 1 for other in graph.get(room, ())), default=0)
        return found[room]

    for room in graph:
        floor(room)
    return found


def drawn_floors():
    """{room: floor} of the drawing: lines that begin with a number, rooms before the first wide gap."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = re.match(r"^(\d)  (\S.*?) {4,}", line)
        for room in match.group(2).split() if match else []:
            found[room] = int(match.group(1))
    return found


def table(used):
    """Rows from the bottom up: a room stands below all that it includes."""
    def words(rooms):
        return ", ".join(f"`{room}`" for room in sorted(rooms))

    rows, placed = [], set()
    while len(placed) < len(used):
        ready = [room for room in sorted(used.keys() - placed) if used[room]["code"].keys() <= placed]
        ready = ready or sorted(used.keys() - placed)  # a circle: the rest as it comes
        placed.update(ready)
        rows += [f"| `{room}` | {words(used[room]['code'])} | {words(used[room]['tests'])} |" for room in ready]
    return "\n".join([HEADER, "|---|---|---|"] + rows)


def main():
    used = used_edges()
    if sys.argv[1:] == ["--table"]:
        print(table(used))
        return 0
    if sys.argv[1:]:
        sys.exit(__doc__)
    allowed, wrong = allowed_edges(), []
    for room in sorted(used.keys() - allowed.keys()):
        wrong.append(f"silc/{room} has no row")
    for room in sorted(allowed.keys() - used.keys()):
        wrong.append(f"the row of {room}: there is no such folder with sources")
    for room in sorted(used.keys() & allowed.keys()):
        code, tests = allowed[room]
        for kind, may in (("code", code), ("tests", code | tests)):
            for other in sorted(used[room][kind].keys() - may):
                wrong.append(f"{used[room][kind][other][0]}: includes silc/{other}, which the row of {room} does not allow")
        for other in sorted(code - used[room]["code"].keys()):
            wrong.append(f"the row of {room}: no source includes silc/{other}; take it out")
        for other in sorted(tests - used[room]["tests"].keys()):
            wrong.append(f"the row of {room}: no test needs silc/{other} beyond the code's; take it out")
    circle = cycle({room: code for room, (code, _) in allowed.items()})
    if circle:
        wrong.append("a circle: " + " → ".join(circle))
    else:
        drawn, real = drawn_floors(), floors({room: code for room, (code, _) in allowed.items()})
        for room in sorted(drawn.keys() | real.keys()):
            if drawn.get(room) != real.get(room):
                wrong.append(f"the drawing has {room} on floor {drawn.get(room)}; it is {real.get(room)}")
    if wrong:
        print("\n".join(wrong))
        print(f"{PAGE.relative_to(ROOT)} says what may include what; tools/check_includes.py --table prints the table "
              "as the sources are. A new arrow is a decision: can the code live in the other room instead?")
        return 1
    print(f"{len(used)} rooms, {sum(len(code) for code, _ in allowed.values())} arrows, as {PAGE.relative_to(ROOT)} says")
    return 0


if __name__ == "__main__":
    sys.exit(main())

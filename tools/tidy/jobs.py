#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clang-tidy must do for some sources: tools/tidy/jobs.py BUILD <SOURCES >JOBS

The tidy preset compiles several sources as one unit. Most checks run on the unit: headers are read
and matched once for all of its sources, which is most of the work. The analyzer looks at functions
of the main file alone, so it runs on each source by itself.

Reads sources, one a line, the most urgent first. Writes jobs, one a line: "unit FILE", "analyzer
FILE UNIT" or, for a source that is a unit by itself, "both FILE". Tells on standard error which
sources no target of this configuration compiles. Leaves BUILD/sources/compile_commands.json, which has the
command of each source.
"""

import json
import os
import pathlib
import re
import sys

build = pathlib.Path(sys.argv[1])
unit_of = {}
commands = []
for entry in json.loads((build / "compile_commands.json").read_text()):
    unit = os.path.relpath(entry["file"])
    sources = [unit]
    if unit.endswith("_cxx.cxx"):
        sources = [os.path.relpath(s) for s in re.findall(r'#include "(.*)"', pathlib.Path(unit).read_text())]
    for source in sources:
        if source in unit_of:
            continue  # a source that two targets compile is looked at once
        unit_of[source] = unit
        command = entry["command"].replace(entry["file"], os.path.abspath(source))
        commands.append({**entry, "file": os.path.abspath(source), "command": command})
(build / "sources").mkdir(exist_ok=True)
(build / "sources" / "compile_commands.json").write_text(json.dumps(commands, indent=1))

skipped, begun = [], set()
for source in sys.stdin.read().split():
    unit = unit_of.get(source)
    if unit is None:
        skipped.append(source)
    elif unit == source:
        print("both", source)
    else:
        if unit not in begun:
            print("unit", unit)
            begun.add(unit)
        print("analyzer", source, unit)
if skipped:
    print("not looked at, since the tidy preset does not build them:", *skipped, file=sys.stderr)

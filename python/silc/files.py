# SPDX-License-Identifier: Apache-2.0
"""Where the robots, layouts and budgets lie that go by name."""

from __future__ import annotations

import difflib
import os
import pathlib
from typing import List

# What holds where a user names nothing: those of silc._core, repeated since silc.torch does without the
# compiled module; test_observe.py holds the two together.
DEFAULT_ROBOT = "g1"
DEFAULT_MODE = "compliance"


def data_folders(kind: str, variable: str = "") -> List[pathlib.Path]:
    """Folders to look in, in this order: $variable, the working folder, the package."""
    folders = [pathlib.Path(f) for f in os.environ.get(variable, "").split(":") if f]
    package = pathlib.Path(__file__).resolve().parent
    folders += [pathlib.Path(kind), package / "share" / kind]
    # a checkout that Python imports from
    folders.append(package.parents[1] / kind)
    return [f for f in folders if f.is_dir()]


def find(kind: str, name: str, pattern: str, variable: str = "") -> str:
    """The file that `name` means; `pattern` has {} in the name's place. A path stands for itself."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = pathlib.Path(name)
        if path.is_dir():
            path = path / pathlib.Path(pattern).name
        if not path.is_file():
            raise ValueError(f"{name}: there is no such file")
        return str(path)
    known = []
    for folder in data_folders(kind, variable):
        path = folder / pattern.format(name)
        if path.is_file():
            return str(path)
        known += [p.relative_to(folder).parts[0] for p in folder.glob(pattern.format("*"))]
    known = sorted({k[: -len(".yaml")] if k.endswith(".yaml") else k for k in known})
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise ValueError(f"{kind}: no '{name}' among {', '.join(known) or 'nothing found'}{hint}")


def find_budget(mode: str) -> str:
    """A budget as ``--mode`` takes it, its name replaced by the file's path."""
    name, comma, changes = mode.partition(",")
    name = name if "/" in name or "." in name else name.replace("-", "_")
    return find("configs/budgets", name, "{}.yaml") + comma + changes

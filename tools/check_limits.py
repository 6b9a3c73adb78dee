#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the numbers of docs/limits.md to the constants of the code.

    tools/check_limits.py    exit 1 and a line for each constant whose value is not in its row, each name
                             that no source defines, each constant of silc/base/limits.h that no row names

A row names its constants in the column "constant", in the order of its numbers; a number that no constant
stands for (the 0 of "0 to 10⁴") has none.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "limits.md"
LIMITS = ROOT / "silc" / "base" / "limits.h"
COLUMN = "constant"
DEFINITION = re.compile(r"\bconstexpr\s+[\w:]+\s+(k[A-Z]\w*)\s*=\s*([^;,]+);")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "M": 2**20}
NUMBER = re.compile(rf"(\d[\d,]*(?:\.\d+)?)([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*)(?:\s*({'|'.join(UNITS)})\b)?")
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def value(expression):
    """Of a constant's right side, or None where it is more than literals."""
    text = re.sub(r"\b(?:std::)?\w+\{(\w+)\}", r"\1", expression).replace("'", "")
    if not re.fullmatch(r"[\d.eE+\-*<() ]+", text):
        return None
    return eval(text)  # digits and operators alone


def constants():
    """{name: {value: file}} of the sources."""
    found = {}
    for path in sorted((ROOT / "silc").rglob("*")):
        if path.suffix not in (".h", ".cc") or path.name.endswith("_test.cc"):
            continue
        for name, expression in DEFINITION.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, {})[value(expression)] = path.relative_to(ROOT).as_posix()
    return found


def numbers(cell):
    return [
        (float(digits.replace(",", "")) ** int(power.translate(RAISED) or 1)) * UNITS.get(unit, 1)
        for digits, power, unit in NUMBER.findall(cell)
    ]


def rows():
    """(line number, the cell of numbers, [constant...]) of the tables that have such a column."""
    head = None
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        if head is None:
            head = cells
        elif COLUMN in head and not line.startswith("|--"):
            if len(cells) != len(head):
                sys.exit(f"{PAGE.name}:{number}: {len(cells)} cells under {len(head)} headings")
            at = head.index(COLUMN)
            yield number, cells[at - 1], re.findall(r"`(\w+)`", cells[at])


def main():
    known, named, wrong = constants(), set(), []
    for number, cell, names in rows():
        left = numbers(cell)
        named.update(names)
        for name in names:
            values = known.get(name, {})
            if len(values) != 1 or None in values:
                wrong.append(f"{PAGE.name}:{number}: {name}: the sources give it {len(values)} values that can be read")
                continue
            ((is_value, file),) = values.items()
            fits = [k for k, said in enumerate(left) if abs(said - is_value) <= 1e-12 * abs(is_value)]
            if not fits:
                wrong.append(f"{PAGE.name}:{number}: {name} is {is_value} in {file}; the row says '{cell}'")
                continue
            left = left[fits[0] + 1 :]
    of_files = {name for name, _ in DEFINITION.findall(LIMITS.read_text(encoding="utf-8"))}
    for name in sorted(of_files - named):
        wrong.append(f"{LIMITS.relative_to(ROOT)}: {name} has no row in {PAGE.relative_to(ROOT)}")
    if not named:
        wrong.append(f"{PAGE.name}: no row names a constant")
    if wrong:
        print("\n".join(wrong))
        return 1
    print(f"{len(named)} constants are as {PAGE.relative_to(ROOT)} says")
    return 0


if __name__ == "__main__":
    sys.exit(main())

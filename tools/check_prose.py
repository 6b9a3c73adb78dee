#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the documentation to its form: prose wrapped at 100 columns, the README at 120 lines.

    tools/check_prose.py          exit 1 and a line for each place that is longer
    tools/check_prose.py --wrap   wraps the paragraphs that are too wide

Tables, code, headings, pictures and formulas are as wide as they are; so is a line that is one long word.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 100
README_LINES = 120
FREE = re.compile(r"^\s*(\||#|!\[|\$\$|<)")  # table, heading, picture, formula, markup
ITEM = re.compile(r"^(\s*)([-*]|\d+\.)(\s+)")


def pages():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()]


def prose(lines):
    """Numbers of the lines that are prose: outside of fences, formulas and indented code."""
    fence = formula = False
    for number, line in enumerate(lines):
        if line.lstrip().startswith("```"):
            fence = not fence
        elif line.startswith("$$"):
            formula = line.count("$$") % 2 == 1
        elif formula:
            formula = "$$" not in line
        elif not fence and line.strip() and not FREE.match(line) and not line.startswith("      "):
            yield number


def too_wide(line):
    return len(line) > WIDTH and " " in line.strip()


def wrap(lines):
    """The lines with every paragraph wrapped that holds one which is too wide."""
    numbers = set(prose(lines))
    out, at = [], 0
    while at < len(lines):
        if at not in numbers:
            out.append(lines[at])
            at += 1
            continue
        end = at + 1
        while end in numbers and not ITEM.match(lines[end]):
            end += 1
        paragraph = lines[at:end]
        if any(too_wide(line) for line in paragraph):
            item = ITEM.match(paragraph[0])
            first = item.group(0) if item else re.match(r"\s*", paragraph[0]).group(0)
            text = " ".join(line.strip() for line in paragraph)[len(first.lstrip()) if item else 0 :]
            paragraph = textwrap.wrap(
                text,
                WIDTH,
                initial_indent=first,
                subsequent_indent=" " * len(first),
                break_long_words=False,
                break_on_hyphens=False,
            )
        out += paragraph
        at = end
    return out


def main():
    found = []
    for page in pages():
        lines = page.read_text(encoding="utf-8").split("\n")
        if "--wrap" in sys.argv[1:]:
            page.write_text("\n".join(wrap(lines)), encoding="utf-8")
            continue
        for number in prose(lines):
            if too_wide(lines[number]):
                found.append(f"{page.relative_to(ROOT)}:{number + 1}: {len(lines[number])} columns; {WIDTH} at most")
        if page == ROOT / "README.md" and len(lines) - 1 > README_LINES:
            found.append(f"README.md: {len(lines) - 1} lines; {README_LINES} at most")
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is fetched from others is fetched by its checksum.

    tools/check_locks.py [FOLDER]    exit 1 and a line for each package of FOLDER/*.lock [tools/setup] that has no
                                     version or no SHA-256, and for each pip that takes a lock without asking for them
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def faults(folder):
    locks = sorted(folder.glob("*.lock"))
    if not locks:
        yield f"{folder}: no *.lock"
    for lock in locks:
        text = re.sub(r"\\\n", " ", lock.read_text(encoding="utf-8"))
        for line in text.splitlines():
            package = line.split("#")[0].strip()
            if not package:
                continue
            if not re.match(r"[\w.-]+==[\w.!+-]+(\s|$)", package):
                yield f"{lock.name}: {package.split()[0]}: no version"
            if not re.search(r"--hash=sha256:[0-9a-f]{64}(\s|$)", package):
                yield f"{lock.name}: {package.split()[0]}: no SHA-256"
    for script in [ROOT / "dev", *sorted((ROOT / "tools/setup").glob("*.sh"))]:
        for command in re.sub(r"\\\n", " ", script.read_text(encoding="utf-8")).splitlines():
            words = command.split("#")[0].split()
            takes_lock = "--requirement" in words and re.search(r"\.lock|\$lock", command)
            if takes_lock and "--require-hashes" not in words:
                yield f"{script.name}: {' '.join(words[:6])} …: without --require-hashes"


def main():
    found = list(faults(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tools/setup"))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clang-tidy has found nothing in, by content: tools/tidy/clean.py left|note <SOURCES

    left   writes the sources that are not as they were then
    note   notes them as they are now

Reads sources, one a line. tools/tidy/clean has a line for each that was found clean, with a digest
of the source, the header of its name and .clang-tidy. Contents outlive what becomes of commits: a
rebased branch, a shallow clone and an unpacked archive tell the same. A change in another header is
not seen; ./dev lint without --changed looks at all.
"""

import hashlib
import pathlib
import sys

LEDGER = pathlib.Path("tools/tidy/clean")


def digest(source: str) -> str:
    content = hashlib.sha256()
    for path in (pathlib.Path(source), pathlib.Path(source).with_suffix(".h"), pathlib.Path(".clang-tidy")):
        data = path.read_bytes() if path.is_file() else b""
        content.update(b"%d\n" % len(data) + data)
    return content.hexdigest()[:12]


def main() -> None:
    sources = sys.stdin.read().split()
    clean = dict(line.split() for line in LEDGER.read_text().splitlines()) if LEDGER.is_file() else {}
    if sys.argv[1:] == ["left"]:
        for source in sources:
            if clean.get(source) != digest(source):
                print(source)
    elif sys.argv[1:] == ["note"]:
        clean.update((source, digest(source)) for source in sources)
        lines = sorted(f"{source} {value}\n" for source, value in clean.items() if pathlib.Path(source).is_file())
        LEDGER.write_text("".join(lines))
    else:
        sys.exit(__doc__)


main()

# SPDX-License-Identifier: Apache-2.0
"""What the tests are told of the build: programs that answer for the C++ side."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# packages to look for where the Python at hand has none of its own (run.sh)
sys.path += [folder for folder in os.environ.get("SILC_PYTHON_LAST", "").split(":") if folder]


def program(variable: str) -> str:
    """Path of a program that the build made, or a skipped test that says what is missing."""
    path = os.environ.get(variable, "")
    if not path or not os.path.exists(path):
        pytest.skip(f"{variable} is not set: run ./dev test, which builds the program")
    return path


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """Inputs, values and gradients of the C++ penalties, made now."""
    numpy = pytest.importorskip("numpy")
    out = tmp_path_factory.mktemp("penalty") / "samples.npz"
    subprocess.run([program("SILC_PENALTY_SAMPLES"), str(out)], check=True)
    with numpy.load(out) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="session")
def silc_program():
    return program("SILC_PROGRAM")

"""Tests what `import fomoe` says in a checkout whose Python module was not built."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the package's source at its place, and nothing that a build or `pip install` would add."""
    shutil.copytree(ROOT / "experiments/python/fomoe", tmp_path / "experiments/python/fomoe",
                    ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def run(folder, *arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=folder,
                          env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"})


@pytest.mark.parametrize("arguments", [("-c", "import fomoe"), ("-m", "fomoe", "--help")])
def test_the_source_says_how_to_install_it(checkout, arguments):
    ran = run(checkout / "experiments/python", *arguments)
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    # `python -m` puts its own words before the message.
    assert re.search(f"got {checkout}/experiments/python/fomoe, which has no compiled module; expected an installed package; ", last), last
    assert f"mine/bin/pip install .` in {checkout} (" in last


def test_another_missing_module_is_named(checkout):
    (checkout / "experiments/python/fomoe/_fomoe.py").write_text("import no_such_module\n")
    ran = run(checkout / "experiments/python", "-c", "import fomoe")
    assert ran.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'no_such_module'"

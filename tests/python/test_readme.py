"""Runs the examples of Python in the READMEs, as a reader would."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "experiments/python/README.md"])
def test_the_first_example_runs(page, capsys):
    matplotlib = pytest.importorskip("matplotlib", reason="the library matplotlib is not installed")
    matplotlib.use("agg")
    code = re.search(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[1]
    assert len(code.splitlines()) <= 6
    exec(compile(code, page, "exec"), {})  # noqa: S102 - our own text
    assert re.match(r"[0-9.]+ ", capsys.readouterr().out)  # the wall clock
    assert matplotlib.pyplot.gca().lines
    matplotlib.pyplot.close("all")

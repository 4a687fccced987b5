"""Numbers for people are formatted by one rule: Python asks the C++ code (experiments/text/human.cpp), and the page of `fomoe explore`, which has
its own copy in JavaScript, gives the same texts."""

import json
import pathlib
import random
import shutil
import subprocess

import pytest
from fomoe import _fomoe

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {"human_time": "humanTime", "human_bytes": "humanBytes", "human_count": "humanCount", "human_percent": "humanPercent"}


def values():
    """Of all sizes, and beside the limits at which units change."""
    numbers = random.Random(5)
    drawn = [10 ** numbers.uniform(-10, 12) for _ in range(3000)]
    limits = [1e-9, 0.9995e-3, 0.9995, 119.95, 3600, 2 * 86400, 999.95, 999.95e3, 999.95e6, 0.1]
    return [0, *drawn, *(limit * factor for limit in limits for factor in (0.9999, 0.99999999, 1, 1.00000001, 1.0001))]


def test_python_formats_as_the_program_does():
    assert _fomoe.human_time(5 * 3600 + 12 * 60) == "5 h 12 min"
    assert _fomoe.human_bytes(1.234e6) == "1.234 MB"
    assert _fomoe.human_percent(0.1234) == "12.3 %"
    assert _fomoe.human_money(1234.4, "USD") == "1,234 USD"
    with pytest.raises(TypeError):
        _fomoe.human_time("a")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_formats_as_the_program_does():
    script = (ROOT / "experiments/explore/formats.js").read_text()
    numbers = values()
    program = f"""const of = new Function({json.dumps(script)} + "; return {{{', '.join(NAMES.values())}, humanMoney}};")();
const numbers = {json.dumps(numbers)};
const texts = {{}};
for (const name of {json.dumps(list(NAMES.values()))}) texts[name] = numbers.map(of[name]);
texts.humanMoney = numbers.map((value) => of.humanMoney(value, "EUR"));
console.log(JSON.stringify(texts));"""
    texts = json.loads(subprocess.run(["node", "-"], input=program, capture_output=True, text=True, check=True).stdout)
    for name, of_page in NAMES.items():
        ours = [getattr(_fomoe, name)(value) for value in numbers]
        # In shares of 1e9, doubles have halves of the last digit, which the two languages round differently.
        different = [(value, a, b) for value, a, b in zip(numbers, ours, texts[of_page]) if a != b and (name != "human_percent" or value < 1e9)]
        assert not different, (name, different[:5], len(different))
    ours = [_fomoe.human_money(value, "EUR") for value in numbers]
    different = [(value, a, b) for value, a, b in zip(numbers, ours, texts["humanMoney"]) if a != b]
    assert not different, (different[:5], len(different))

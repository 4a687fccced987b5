"""A scenario as the program `fomoe` understands it: its traffic plan, its resolved numbers, and its text for the report.

The plan and all numbers come from `fomoe simulate`; nothing is computed twice. Only the table [trainer], which `fomoe` ignores,
and the text of the scenario are read here.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from .. import InputError, Scenario, _as_file
from ..__main__ import PROGRAM

# Keys that name a file, as in experiments/scenario/scenario_source.cpp: what they name is written into the report.
_FILE_KEYS = (("model", "hf_config"), ("model", "shape"), ("strategy", "routing_counts"), ("compute", "profile"), ("platform", "file"),
              ("platform", "trace"), ("prices", "file"), ("quality", "file"))


def run_fomoe(*arguments: str) -> str:
    """What the program prints to standard output. Raises InputError with its message if it refuses."""
    done = subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise InputError(done.stderr.strip().removeprefix("fomoe: "))
    return done.stdout


def toml_module() -> Any:
    try:
        import tomllib
    except ImportError:
        try:
            import tomli as tomllib
        except ImportError as error:
            raise InputError("scenario: got a TOML file with a Python older than 3.11; expected Python 3.11, the package tomli, or the "
                             "scenario as JSON or as a dict; for example pip install tomli") from error
    return tomllib


def tables_of(scenario: Scenario) -> dict[str, Any]:
    """The scenario's tables as written, before defaults."""
    if isinstance(scenario, Mapping):
        return json.loads(json.dumps(scenario, default=lambda number: number.item()))
    text = pathlib.Path(scenario).read_bytes()
    if str(os.fspath(scenario)).endswith(".json"):
        return json.loads(text)
    return toml_module().loads(text.decode())


@dataclasses.dataclass
class Outer:
    """The outer optimiser's settings, of which the plan knows only that there are outer steps.

    kind: nesterov, adam or yogi. kept_share: α of Streaming DiLoCo (arXiv 2501.18512, section 2.3).
    """

    kind: str
    learning_rate: float
    momentum: float
    kept_share: float
    beta1: float = 0.9
    beta2: float = 0.99
    adaptivity: float = 1e-3
    residual_decay: float = 1.0  # of the error feedback


@dataclasses.dataclass
class Answered:
    """What `fomoe simulate` says about a scenario."""

    plan: dict[str, Any]  # fomoe.plan/1
    report: dict[str, Any]  # fomoe.run/1, simulated
    toml: str  # the scenario as written
    files: dict[str, str]  # those that it names, as they were then: name in the TOML -> content
    outer: Outer


def _fraction(value: Any, key: str) -> float:
    """A share or a rate as `fomoe` reads it: a number, or a text such as "70%"."""
    try:
        text = str(value).strip()
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"trainer.{key}: got {value!r}; expected a number; for example {key} = 0.7") from None


def _outer(tables: Mapping[str, Any], resolved: Mapping[str, Any]) -> Outer:
    kind = str(resolved["scenario"]["strategy"].get("outer_optimizer", "nesterov"))
    given = tables.get("trainer", {})
    # Defaults of `fomoe list keys`: a rate of 0.7 for nesterov, 0.1 for adam and yogi; no momentum beside the error feedback of sparse_loco.
    rate = given.get("outer_learning_rate", 0.1 if kind in ("adam", "yogi") else 0.7)
    momentum = given.get("outer_momentum", 0.0 if resolved["scenario"]["strategy"]["method"] == "sparse_loco" else 0.9)
    return Outer(kind, _fraction(rate, "outer_learning_rate"), _fraction(momentum, "outer_momentum"),
                 _fraction(given.get("kept_share", 0.5), "kept_share"),
                 residual_decay=_fraction(given.get("error_feedback_decay", 1.0), "error_feedback_decay"))


def _all_described(plan: Mapping[str, Any]) -> bool:
    """Whether the described rounds suffice to know every round (experiments/plans/README.md)."""
    classes = plan["classes"]
    in_turn = len(classes) == 1 or (len(classes) == 2 and classes[1]["count"] == 1)
    return all(len(one["rounds"]) == one["count"] for one in classes) or (in_turn and all(one.get("identical", True) for one in classes))


def _simulated(path: str, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="fomoe-plan-") as folder:
        file = os.path.join(folder, "plan.json")
        report = json.loads(run_fomoe("simulate", path, "--sensitivity", "none", "--output", "-", "--write-plan", file, *options))
        return json.loads(pathlib.Path(file).read_text()), report


def ask(scenario: Scenario, plan_file: str | os.PathLike | None = None) -> Answered:
    """Runs `fomoe simulate`. plan_file: a traffic plan to execute instead of that of the scenario's method."""
    with _as_file(scenario) as path:
        if plan_file is not None:
            plan = json.loads(pathlib.Path(plan_file).read_text())
            report = json.loads(run_fomoe("simulate", path, "--sensitivity", "none", "--output", "-"))
        else:
            plan, report = _simulated(path)
            if not _all_described(plan):
                plan, report = _simulated(path, "--rounds", "all")
    tables = tables_of(scenario)  # which `fomoe` has accepted
    folder = pathlib.Path.cwd() if isinstance(scenario, Mapping) else pathlib.Path(os.path.abspath(scenario)).parent
    return Answered(plan, report, *_source_of(tables, folder), _outer(tables, report))


# ---- the scenario's text, as a report contains it ----


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return value.isoformat()  # a date


def toml_text(tables: Mapping[str, Any], prefix: str = "") -> str:
    """The tables as TOML: first the plain keys, then tables and arrays of tables."""
    nested = {key: value for key, value in tables.items() if isinstance(value, dict)}
    arrays = {key: value for key, value in tables.items() if isinstance(value, list) and value and all(isinstance(v, dict) for v in value)}
    lines = [f"{key} = {_value(value)}" for key, value in tables.items() if key not in nested and key not in arrays]
    text = "\n".join(lines) + "\n" if lines else ""
    for key, value in nested.items():
        text += f"\n[{prefix}{key}]\n" + toml_text(value, f"{prefix}{key}.")
    for key, items in arrays.items():
        for item in items:
            text += f"\n[[{prefix}{key}]]\n" + toml_text(item, f"{prefix}{key}.")
    return text


def _source_of(as_written: dict[str, Any], folder: pathlib.Path) -> tuple[str, dict[str, str]]:
    """The scenario as TOML, and the files that it names: name in the TOML -> content, so that a run can be predicted anywhere. folder: to which
    paths in the tables are relative."""
    tables = copy.deepcopy(as_written)
    for key in ("data", "validation_data"):
        tables.get("trainer", {}).pop(key, None)
    files: dict[str, str] = {}

    def take(table: dict[str, Any], key: str, owner: str) -> None:
        named = table.get(key)
        if not isinstance(named, str) or named.startswith("published:"):
            return
        path = folder / named
        if not path.is_file():  # not read by the run
            return
        content, name = path.read_text(), path.name
        if key == "file" and owner == "platform" and path.suffix == ".toml":
            root = toml_module().loads(content)
            if "paths_csv" in root:
                paths = path.parent / root["paths_csv"]
                files[paths.name] = paths.read_text()
                content = toml_text({**root, "paths_csv": paths.name})
        while name in files:
            name = f"{owner}-{name}"
        files[name] = content
        table[key] = name

    for owner, key in _FILE_KEYS:
        if isinstance(tables.get(owner), dict):
            take(tables[owner], key, owner)
    for site in tables.get("site", []):
        take(site, "profile", "site")
    return toml_text(tables), files

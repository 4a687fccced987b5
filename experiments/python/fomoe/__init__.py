"""Predicts the cost of mixture-of-experts training across data centres.

>>> import fomoe
>>> report = fomoe.simulate("experiments/scenarios/two-sites.toml", set={"strategy.local_steps": 64})
>>> report["wall_clock_s"], report["compute_utilization"]

A scenario is the path of a TOML file, or a dict with the same tables. Paths in a file are relative to the file, and
paths in a dict are relative to the current folder. `set` overrides single keys: {"platform.bandwidth": "10Gbps"}. Each
function returns the JSON of `fomoe COMMAND --output -`, in SI units; `sweep` returns only its rows, and `explain`
returns text. Wrong input raises fomoe.InputError, a ValueError that names the place, the wrong value and the expected
value.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

import tomli_w

from . import _transformers
from ._fomoe import InputError, answer as _answer

__all__ = ["InputError", "cost", "explain", "model_from_transformers", "plan", "simulate", "solve", "sweep", "validate"]

Scenario = Union[str, os.PathLike, Mapping[str, Any]]
Overrides = Union[Mapping[str, Any], None]


@contextlib.contextmanager
def _as_file(scenario: Scenario) -> Iterator[str]:
    if not isinstance(scenario, Mapping):
        yield os.fspath(scenario)
        return
    try:
        text = tomli_w.dumps(scenario)
    except TypeError as error:
        raise InputError(f"scenario: got {error}; expected strings, numbers, booleans, lists and dicts; "
                         'for example {"strategy": {"method": "diloco"}}') from error
    # The file is in the current folder, because the paths in the dict are relative to it.
    with tempfile.NamedTemporaryFile("w", prefix=".scenario-", suffix=".toml", dir=os.curdir) as file:
        file.write(text)
        file.flush()
        yield os.path.relpath(file.name)


def _written(value: Any) -> str:
    """The value as TOML. Texts, numbers, booleans and lists have the same form in JSON and TOML."""
    return json.dumps(value)


def _values(values: Union[str, Iterable[Any]]) -> str:
    """The values as --vary takes them: "16,64", or a range given as text, such as "100Mbps..10Gbps*2"."""
    if isinstance(values, str):
        return values
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _run(command: str, scenario: Scenario, set: Overrides, *options: Any) -> str:
    with _as_file(scenario) as path:
        arguments = [command, path]
        for key, value in (set or {}).items():
            arguments += ["--set", f"{key}={_written(value)}"]
        arguments += [str(option) for option in options]
        return _answer(arguments)


def _options(**options: Any) -> list[str]:
    return [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]


def simulate(scenario: Scenario, *, set: Overrides = None, seed: int | None = None, rounds: int | str | None = None,
             engine: str = "simulated") -> dict[str, Any]:
    """Predicts how long the scenario takes, what it waits for and how many bytes it sends (schema fomoe.run/1).

    engine: "simulated" or "closed-form". rounds: number of rounds to execute of each kind of round, or "all".
    """
    return json.loads(_run("simulate", scenario, set, "--output", "-",
                           *_options(seed=seed, rounds=rounds, engine=engine)))


def cost(scenario: Scenario, *, set: Overrides = None) -> dict[str, Any]:
    """Computes parameters, FLOPs, memory and bytes without a simulation."""
    return json.loads(_run("cost", scenario, set, "--output", "-"))


def sweep(scenario: Scenario, vary: Mapping[str, Any], *, set: Overrides = None, engine: str = "simulated",
          jobs: int | None = None) -> list[dict[str, Any]]:
    """Computes every combination of the values. Returns one dict per row, as pandas.DataFrame takes them; the last key
    varies fastest.

    vary: {"strategy.local_steps": [16, 64], "platform.bandwidth": "100Mbps..10Gbps*1/decade"}.
    """
    axes = [text for key, values in vary.items() for text in ("--vary", f"{key}={_values(values)}")]
    return json.loads(_run("sweep", scenario, set, *axes, *_options(engine=engine, jobs=jobs), "--output", "-"))["rows"]


def plan(scenario: Scenario, *, set: Overrides = None, minimise: str = "time", within: Mapping[str, Any] | None = None,
         top: int = 10, vary: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Recommends the method, K, O_e, placement, collective, number format and sites.

    minimise: "time", "cost" or "energy". within: limits such as {"time": "3d", "cost": 5000}.
    """
    limits = ",".join(f"{name}={value}" for name, value in (within or {}).items()) or None
    axes = [text for key, values in (vary or {}).items() for text in ("--vary", f"{key}={_values(values)}")]
    return json.loads(_run("plan", scenario, set, *axes, *_options(minimise=minimise, within=limits, top=top),
                           "--output", "-"))


def solve(scenario: Scenario, key: str, target: str | None = None, *, set: Overrides = None,
          engine: str | None = None) -> dict[str, Any]:
    """Finds the smallest value of a key that reaches a target:

        solve(s, "platform.bandwidth", "compute_utilization=0.95")

    Without a target it finds the values for 50, 80, 90, 95 and 99 % utilisation.
    """
    return json.loads(_run("solve", scenario, set, "--for", key, *_options(target=target, engine=engine),
                           "--output", "-"))


def explain(scenario: Scenario, *, set: Overrides = None) -> str:
    """Returns the closed form with the scenario's numbers, line by line."""
    return _run("explain", scenario, set)


def validate(runs: Iterable[str | os.PathLike], *, network_model: str | os.PathLike | None = None,
             set: Overrides = None) -> dict[str, Any]:
    """Compares measured reports with their predictions: errors of every run, by method and in total.

    runs: files that fomoe-train wrote. network_model: the file that `fomoe calibrate` wrote. set: overrides of keys of
    network_model.
    """
    arguments = ["validate", *(os.fspath(run) for run in runs)]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={_written(value)}"]
    return json.loads(_answer([*arguments, *(str(o) for o in _options(**{"network-model": network_model})),
                               "--output", "-"]))


def model_from_transformers(config: Any, path: Union[str, os.PathLike, None] = None) -> dict[str, Any]:
    """Builds a model with the library transformers, without weights, and describes its shape (schema fomoe.model/1).

    config: a folder with a config.json, the path of a config.json, or a config of transformers. path: file for the shape,
    which a scenario names with model.shape. The list under "guessed" says what was guessed, such as which parameters were
    taken as experts; please confirm it. It is empty if fomoe knows the architecture. Needs torch and transformers.
    """
    return _transformers.describe(config, path, _answer, InputError)

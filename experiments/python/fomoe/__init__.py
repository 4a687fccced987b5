"""Predicts the cost of mixture-of-experts training across data centres.

>>> import fomoe
>>> report = fomoe.simulate(fomoe.example("two-sites"), set={"strategy.local_steps": 64})
>>> report.wall_clock_s, report["compute_utilization"], report.round.duration_s

A scenario is the path of a TOML or JSON file, or a dict with the same tables. Paths in a file are relative to the file, and
paths in a dict are relative to the current folder. `set` overrides single keys: {"platform.bandwidth": "10Gbps"}. Each
function returns the JSON of `fomoe COMMAND --output -`, in SI units: a dict whose entries are attributes too, with
to_dict(), to_pandas(), plot() and a table in notebooks. `sweep` returns a list of rows, and `explain` returns text. Wrong
input raises fomoe.InputError, a ValueError that names the place, the wrong value and the expected value.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

try:
    from ._fomoe import InputError
    from ._fomoe import answer as _answer
except ModuleNotFoundError as error:
    _here = pathlib.Path(__file__).resolve().parent
    _root = _here.parent.parent.parent
    if error.name != f"{__name__}._fomoe" or not (_root / "pyproject.toml").exists():
        raise
    raise ImportError(f"fomoe: got {_here}, which has no compiled module; expected an installed package; for example, run "
                      f"`python3 -m venv mine && mine/bin/pip install .` in {_root} (needs python3-venv and python3-dev), "
                      f"and then mine/bin/python outside of {_here.parent}", name=error.name) from None
from . import _cluster, _transformers
from ._answers import Answer, Comparison, Recommendation, Record, Report, Solution, Table, joined, read

__version__ = "1.0.0"
__all__ = ["Answer", "Comparison", "InputError", "Recommendation", "Record", "Report", "Solution", "Table", "compare", "cost",
           "example", "examples", "explain", "model_from_transformers", "plan", "schema", "simulate", "solve", "sweep",
           "validate"]



def __getattr__(name: str) -> Any:
    if name == "torch":  # needs PyTorch, which the rest does not
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


Scenario = Union[str, os.PathLike, Mapping[str, Any]]
Overrides = Union[Mapping[str, Any], Iterable[str], None]  # {"key": value, …}, or "key=value" texts as in a recommendation's `set`

_EXAMPLES = pathlib.Path(__file__).parent / "examples" / "experiments" / "scenarios"


def examples() -> list[str]:
    """The names of the scenarios that are installed with fomoe; example() gives the path of one."""
    return sorted(path.stem for path in _EXAMPLES.glob("*.toml"))


def example(name: str) -> pathlib.Path:
    """The path of a scenario file that is installed with fomoe: example("four-regions")."""
    if name not in examples():
        raise InputError(f"example: got \"{name}\"; expected one of {', '.join(examples())}; for example \"two-sites\"")
    return _EXAMPLES / f"{name}.toml"


def _plain_number(value: Any) -> Any:
    if hasattr(value, "item"):  # a number of NumPy or PyTorch
        return value.item()
    raise TypeError(f"a {type(value).__name__}")


def _json(value: Any, what: str, separators: tuple[str, str] | None = None) -> str:
    try:
        # TOML forbids surrogate pairs, and this one character that JSON allows.
        return json.dumps(value, default=_plain_number, allow_nan=False, ensure_ascii=False, separators=separators).replace("\x7f", "\\u007f")
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: got {error}; expected strings, numbers, booleans, lists and dicts; "
                         'for example {"strategy": {"method": "diloco"}}') from error


@contextlib.contextmanager
def _as_file(scenario: Scenario) -> Iterator[str]:
    if isinstance(scenario, (str, os.PathLike)):
        path = os.fspath(scenario)
        yield os.path.join(os.curdir, path) if path.startswith("-") else path  # a file, and no option
        return
    if not isinstance(scenario, Mapping):
        raise InputError(f'scenario: got a {type(scenario).__name__}; expected the path of a file, or a dict; for example "scenario.toml"')
    text = _json(scenario, "scenario")
    # The file is in the current folder, because the paths in the dict are relative to it.
    try:
        named = tempfile.NamedTemporaryFile("w", prefix=".scenario-", suffix=".json", dir=os.curdir, encoding="utf-8")
    except OSError as error:
        raise InputError(f"scenario: got a dict in a folder that cannot be written ({error.strerror}); expected one to which its paths are relative; "
                         "for example os.chdir(tempfile.mkdtemp())") from error
    with named as file:
        file.write(text)
        file.flush()
        yield os.path.relpath(file.name)


def _values(values: str | Iterable[Any]) -> str:
    """The values as --vary takes them: "16,64", or a range given as text, such as "100Mbps..10Gbps*2"."""
    if isinstance(values, str):
        return values
    if not isinstance(values, Iterable):
        raise InputError(f"vary: got {values!r}; expected a list of values, or a text as --vary takes it; for example [{values!r}]")
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _overridden(set: Overrides) -> list[str]:
    """The overrides as options. Texts, numbers, booleans and lists have the same form in JSON and TOML."""
    if set is None or isinstance(set, Mapping):
        return [text for key, value in (set or {}).items() for text in ("--set", f"{key}={_json(value, key)}")]
    texts = list(set) if isinstance(set, Iterable) and not isinstance(set, str) else [None]
    if not all(isinstance(one, str) for one in texts):
        raise InputError(f'set: got {set!r}; expected a dict, or a list of "key=value" texts; for example {{"strategy.local_steps": 64}}')
    return [text for one in texts for text in ("--set", one)]


def _run(command: str, scenario: Scenario, set: Overrides, *options: Any) -> str:
    with _as_file(scenario) as path:
        return _answer([command, path, *_overridden(set), *(str(option) for option in options)])


def _options(**options: Any) -> list[str]:
    return [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]


def _axes(vary: Mapping[str, Any]) -> list[str]:
    return [text for key, values in vary.items() for text in ("--vary", f"{key}={_values(values)}")]


def simulate(scenario: Scenario, *, set: Overrides = None, seed: int | None = None, rounds: int | str | None = None,
             engine: str = "simulated") -> Report:
    """Predicts how long the scenario takes (seconds), what it waits for and how many bytes it sends.

    engine: "simulated" or "closed-form". rounds: number of rounds to execute of each kind of round, or "all".
    """
    return Report(read(_run("simulate", scenario, set, "--output", "-",
                            *_options(seed=seed, rounds=rounds, engine=engine))))


def cost(scenario: Scenario, *, set: Overrides = None) -> Answer:
    """Computes parameters, FLOPs, memory (bytes) and payloads (bytes) without a simulation."""
    return Answer(read(_run("cost", scenario, set, "--output", "-")))


def sweep(scenario: Scenario, vary: Mapping[str, Any], *, set: Overrides = None, engine: str = "simulated",
          jobs: int | None = None, client: Any = None, shards: int | None = None) -> Table:
    """Computes every combination of the values: one dict per row, as pandas.DataFrame takes them; the last key varies
    fastest.

    vary: {"strategy.local_steps": [16, 64], "platform.bandwidth": "100Mbps..10Gbps*1/decade"}. jobs: number of processes
    (default: one for each core). client: a dask.distributed.Client; its workers then compute the rows, in `shards` parts
    (default: four for each of their threads). The files of the scenario must have the same paths on the workers, and the
    workers the same version of fomoe. The rows are the same in all cases.
    """
    options = [*_overridden(set), *_axes(vary), *_options(engine=engine), "--output", "-"]
    if client is not None:
        if isinstance(scenario, Mapping):
            return joined(_cluster.sweep(client, shards, "-", _json(scenario, "scenario"), options))
        return joined(_cluster.sweep(client, shards, os.path.abspath(scenario), None, options))
    with _as_file(scenario) as path:
        return joined([_answer(["sweep", path, *options, *_options(jobs=jobs)])])


def compare(scenario: Scenario, cases: Iterable[Mapping[str, Any]], *, set: Overrides = None, seed: int | None = None,
            engine: str = "simulated") -> Comparison:
    """Simulates variants of a scenario: compare(s, [{"strategy.method": "ddp"}, {"strategy.local_steps": 64}]).

    cases: the overrides of each variant; {} is the unchanged scenario.
    """
    options: list[str] = []
    for case in cases:
        if not isinstance(case, Mapping):
            raise InputError(f'cases: got {case!r}; expected a list of dicts; for example [{{}}, {{"strategy.local_steps": 64}}]')
        for key, value in case.items():
            if isinstance(value, str) and len(value.split()) != 1:
                raise InputError(f"cases: {key}: got \"{value}\"; expected a value without spaces; for example \"10Gbps\"")
        options += ["--case", " ".join(f"{key}={_json(value, key, (',', ':'))}" for key, value in case.items())]
    answer = Comparison(read(_run("compare", scenario, set, *options, "--output", "-", *_options(seed=seed, engine=engine))))
    for case in answer["cases"]:
        case["report"] = Report(case["report"])
    return answer


def _remove_commands(answer: Any) -> None:
    """Of a plan for a dict, whose file is gone when somebody reads them."""
    if isinstance(answer, dict):
        answer.pop("command", None)
    for inner in answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ():
        _remove_commands(inner)


def plan(scenario: Scenario, *, set: Overrides = None, minimise: str = "time", within: Mapping[str, Any] | None = None,
         top: int = 10, vary: Mapping[str, Any] | None = None) -> Recommendation:
    """Recommends the method, K, O_e, placement, collective, number format and sites.

    minimise: "time", "cost" or "energy". within: limits such as {"time": "3d", "cost": 5000}, with the cost in the currency
    of the scenario's prices.
    """
    limits = ",".join(f"{name}={value}" for name, value in (within or {}).items()) or None
    answer = read(_run("plan", scenario, set, *_axes(vary or {}), *_options(minimise=minimise, within=limits, top=top), "--output", "-"))
    if isinstance(scenario, Mapping):
        _remove_commands(answer)
    return Recommendation(answer)


def solve(scenario: Scenario, key: str, target: str | None = None, *, set: Overrides = None,
          engine: str | None = None) -> Solution:
    """Finds the smallest value of a key that reaches a target, in SI units:

        solve(s, "platform.bandwidth", "compute_utilization=0.95")

    Without a target it finds the values for 50, 80, 90, 95 and 99 % utilisation.
    """
    return Solution(read(_run("solve", scenario, set, "--for", key, *_options(target=target, engine=engine), "--output", "-")))


def explain(scenario: Scenario, *, set: Overrides = None) -> str:
    """Returns the closed form with the scenario's numbers, line by line."""
    return _run("explain", scenario, set)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a scenario: types, choices, units, defaults and descriptions of all keys."""
    return json.loads(_answer(["list", "keys", "--json-schema"]))


def validate(runs: str | os.PathLike | Iterable[str | os.PathLike], *, network_model: str | os.PathLike | None = None,
             set: Overrides = None) -> Answer:
    """Compares measured reports with their predictions: errors of every run, by method and in total.

    runs: a file that fomoe-train wrote, or several. network_model: the file that `fomoe calibrate` wrote. set: overrides of keys of
    network_model.
    """
    if isinstance(runs, (str, os.PathLike)):
        runs = [runs]
    return Answer(read(_answer(["validate", *(os.fspath(run) for run in runs), *_overridden(set),
                                *_options(**{"network-model": network_model}), "--output", "-"])))


def model_from_transformers(config: Any, path: str | os.PathLike | None = None) -> dict[str, Any]:
    """Builds a model with the library transformers, without weights, and describes its shape (schema fomoe.model/1).

    config: a folder with a config.json, the path of a config.json, or a config of transformers. path: file for the shape,
    which a scenario names with model.shape. The list under "guessed" says what was guessed, such as which parameters were
    taken as experts; please confirm it. It is empty if fomoe knows the architecture. Needs torch and transformers.
    """
    return _transformers.describe(config, path, _answer, InputError)

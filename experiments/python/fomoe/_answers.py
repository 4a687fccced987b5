"""The answers of fomoe's commands as objects: dicts whose entries are attributes too, with tables and plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from . import _html, _plots


class Record(dict):
    """A dict whose entries are also attributes: report.round.duration_s is report["round"]["duration_s"]."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no entry {name!r}; it has {', '.join(map(str, self))}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self if isinstance(name, str) and name.isidentifier())]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command, as plain dicts and lists."""
        return _plain(self)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def read(text: str) -> Any:
    """JSON, with a Record for each object."""
    return json.loads(text, object_hook=Record)


def flat(record: dict[str, Any], inside: str = "") -> dict[str, Any]:
    """The single values of a record in one row: {"round": {"count": 3}} gives {"round.count": 3}. Lists are left out."""
    row: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            if name != "scenario":  # the input, as it was read
                row.update(flat(value, f"{inside}{name}."))
        elif not isinstance(value, list):
            row[inside + name] = value
    return row


class Answer(Record):
    """The answer of a command. It is a dict with the command's JSON, in SI units, and its entries are attributes too."""

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(self)]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Needs the library pandas."""
        return _pandas().DataFrame(self._rows())


class Report(Answer):
    """What `fomoe simulate` predicts (schema fomoe.run/1). Entries that do not apply are absent.

    Times are in seconds, sizes in bytes. "Per round" is the mean over the rounds and sites.

    schema: "fomoe.run/1"
    executor: what computed the report: "simulated" or "closed-form"
    wall_clock_s: duration of the whole run, in seconds
    compute_utilization: share of the wall clock in which the GPUs compute, 0 to 1
    tokens_per_s: training tokens per second, over all sites
    bytes_per_token: bytes that all sites send, per training token
    bytes_sent_per_site_per_round: bytes that a site sends in a round
    flops_per_token: floating-point operations per training token
    optimizer_steps: optimiser steps of the run
    tokens: training tokens of the run, over all sites
    round: count; duration_s, compute_s, exposed_communication_s, idle_s, … of a round, in seconds
    sites: name, bytes_sent, bytes_received, memory_bytes, compute_s, … of each site
    critical_path: the operations that determine the duration of a round, with their seconds
    bottleneck: what limits the run: limited_by, link, link_busy_share, waits_for (bandwidth, latency, …; empty: unknown)
    provenance: the origin of each input: measured, calibrated, computed or assumed
    notes: remarks about this answer
    scenario: the scenario as it was read, in SI units
    """

    schema: str
    executor: str
    wall_clock_s: float
    compute_utilization: float
    tokens_per_s: float
    bytes_per_token: float
    bytes_sent_per_site_per_round: float
    flops_per_token: float
    optimizer_steps: int
    tokens: int
    round: Record
    sites: list[Record]
    critical_path: list[Record]
    bottleneck: Record
    provenance: list[Record]
    notes: list[str]
    scenario: Record

    def plot(self, ax: Any = None) -> Any:
        """Draws the parts of a round as bars, one for each site, and returns matplotlib's Axes."""
        return _plots.round_parts(self, ax)

    def _repr_html_(self) -> str:
        return _html.report(self)


class Comparison(Answer):
    """What `fomoe compare` answers (schema fomoe.compare/1).

    schema: "fomoe.compare/1"
    cases: case (its overrides), report (a Report), fits (into the GPUs' memory), problem
    """

    schema: str
    cases: list[Record]

    def _rows(self) -> list[dict[str, Any]]:
        return [{"case": case["case"], "fits": case["fits"], **flat(case["report"])} for case in self["cases"]]

    def plot(self, ax: Any = None) -> Any:
        """Draws the wall clock of each case, by what it is spent on, and returns matplotlib's Axes."""
        return _plots.comparison(self, ax)

    def _repr_html_(self) -> str:
        return _html.comparison(self)


class Recommendation(Answer):
    """What `fomoe plan` recommends (schema fomoe.planner/1).

    schema: "fomoe.planner/1"
    minimise: "time", "cost" or "energy"
    currency: of all costs; None without prices
    within: the limits: time_s, cost, energy_kwh, perplexity, gpu_memory_bytes
    choice: the best configuration; None if no quality model covers the configurations
    rows: the recommended configurations, whose `set` is that of simulate(): `ranking` (the choice and what comes after it), or
        without a choice `frontier` (the best configuration for each level of risk to quality)
    methods: the best configuration of each method
    scenario_as_it_is: the scenario without changes
    candidates: number of configurations that were computed by formula
    simulated: number of configurations that were also simulated
    scenario: the scenario without changes, with all defaults
    provenance: where its numbers come from: what, origin, detail
    """

    schema: str
    minimise: str
    currency: str | None
    within: Record
    choice: Record | None
    methods: list[Record]
    scenario_as_it_is: Record
    candidates: int
    simulated: int
    scenario: Record
    provenance: list[Record]

    @property
    def rows(self) -> list[Record]:
        """The recommended configurations: `ranking`, or `frontier` if there is no choice."""
        return self["frontier" if self["choice"] is None else "ranking"]

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(row) for row in self.rows]

    def plot(self, ax: Any = None) -> Any:
        """Draws the minimised amount of each recommended configuration, and returns matplotlib's Axes."""
        return _plots.recommendation(self, ax)

    def _repr_html_(self) -> str:
        return _html.recommendation(self)


class Solution(Answer):
    """What `fomoe solve` answers (schema fomoe.solve/1).

    schema: "fomoe.solve/1"
    unit: unit of the values
    executor: what computed the values: "simulated" or "closed-form"
    answers: one for each target: target, target_value, value (in `unit`), text, reached, why
    """

    schema: str
    unit: str
    executor: str
    answers: list[Record]

    def _rows(self) -> list[dict[str, Any]]:
        return [flat(row) for row in self["answers"]]

    def _repr_html_(self) -> str:
        return _html.table(self._rows(), ("target", "target_value", "text", "reached", "why"))


class Table(list):
    """The rows of a sweep: a list of dicts, as pandas.DataFrame takes them. Numbers are in SI units, as the names say."""

    #: columns that plot() draws against each other unless told otherwise
    usual_y: ClassVar[str] = "compute_utilization"

    def __init__(self, answer: dict[str, Any]):
        super().__init__(answer["rows"])
        self._head = {name: value for name, value in answer.items() if name != "rows"}

    @property
    def axes(self) -> list[str]:
        """The columns that were varied; the last one varies fastest."""
        return list(self._head["axes"])

    @property
    def executor(self) -> str:
        """What computed the rows: "simulated" or "closed-form"."""
        return self._head["executor"]

    @property
    def columns(self) -> list[str]:
        """The names of all columns. Rows of impossible combinations have only those of the axes, and `problem`."""
        return list(dict.fromkeys(name for row in self for name in row))

    def column(self, name: str) -> list[Any]:
        """The values of one column, None where a row has none; the unit may be left out, as in "platform.bandwidth"."""
        name = self.full_name(name)
        return [row.get(name) for row in self]

    def full_name(self, name: str) -> str:
        """The column's name with its unit: "platform.bandwidth" gives "platform.bandwidth_bytes_per_s"."""
        if name in self.columns:
            return name
        found = [column for column in self.columns if column.startswith(name + "_")]
        if len(found) != 1:
            raise KeyError(f"{name}: no such column; the columns are {', '.join(self.columns)}")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command (schema fomoe.sweep/1), as plain dicts and lists."""
        return {**_plain(self._head), "rows": _plain(list(self))}

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each combination. Needs the library pandas."""
        return _pandas().DataFrame([dict(row) for row in self])

    def plot(self, x: str | None = None, y: str | None = None, by: str | None = None, ax: Any = None) -> Any:
        """Draws column y against column x, with one line for each value of column `by`, and returns matplotlib's Axes.

        By default x is the axis that varies fastest, y is the utilisation, and each combination of the other axes has a line.
        """
        return _plots.sweep(self, x, y or self.usual_y, by, ax)

    def _repr_html_(self) -> str:
        return _html.table(self, [*self.axes, *_html.SWEEP_COLUMNS])


def joined(parts: Sequence[str]) -> Table:
    """The rows of all shards of a sweep, in their order, as one table."""
    answers = [read(part) for part in parts]
    whole = dict(next((answer for answer in answers if "scenario" in answer), answers[0]))  # some shards have no possible row
    whole["rows"] = [row for answer in answers for row in answer["rows"]]
    return Table(whole)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas() needs the library pandas; install it with: pip install pandas") from error
    return pandas

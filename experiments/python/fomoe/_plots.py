"""Plots of answers. matplotlib is imported only when something is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._fomoe import InputError
from ._html import short_case

PARTS = (("compute_s", "compute"), ("exposed_communication_s", "exposed communication"), ("idle_s", "idle"))


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot() needs the library matplotlib; install it with: pip install matplotlib") from error
    return plt.subplots(layout="constrained")[1]  # long names have room


def _stacked(ax: Any, names: Sequence[str], parts: Sequence[tuple[str, Sequence[float]]]) -> None:
    left = [0.0] * len(names)
    for label, values in parts:
        ax.barh(range(len(names)), values, left=left, label=label)
        left = [a + b for a, b in zip(left, values)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(parts), frameon=False)  # covers no bar


def round_parts(report: Mapping[str, Any], ax: Any) -> Any:
    ax = _axes(ax)
    sites = report["sites"]
    _stacked(ax, [site["name"] for site in sites],
             [(label, [site[key] for site in sites]) for key, label in PARTS])
    ax.set_xlabel("time in a round (s)")
    return ax


def comparison(answer: Mapping[str, Any], ax: Any) -> Any:
    ax = _axes(ax)
    cases = answer["cases"]
    rounds = [case["report"]["round"] for case in cases]
    _stacked(ax, [short_case(case["case"]) for case in cases],
             [(label, [part[key] * part["count"] / 3600 for part in rounds]) for key, label in PARTS])
    ax.set_xlabel("wall clock (h)")
    return ax


def recommendation(answer: Any, ax: Any) -> Any:
    ax = _axes(ax)
    rows = answer.rows
    names = [f"{row['method']} K={row['local_steps']} {row['payload_dtype']}" for row in rows]
    cost = f"cost ({answer.get('currency')})"
    scale, unit = {"time": (3600, "wall clock (h)"), "cost": (1, cost), "energy": (1, "energy (kWh)")}[answer["minimise"]]
    ax.barh(range(len(rows)), [row["value"] / scale for row in rows])
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    ax.set_xlabel(unit)
    return ax


def sweep(table: Any, x: str | None, y: str, by: str | None, ax: Any) -> Any:
    ax = _axes(ax)
    axes = table.axes
    x = table.full_name(x or axes[-1])
    y = table.full_name(y)
    others = [name for name in axes if name != x]
    groups = [table.full_name(by)] if by is not None else others
    left = [name for name in others if name not in groups and len(set(table.column(name))) > 1]
    if left:
        raise InputError(f'by: got "{by}"; expected one line for each combination of the other axes, of which {", ".join(left)} varies too; for example '
                         "plot() without by")
    lines: dict[Any, list[tuple[Any, Any]]] = {}
    for row in table:
        if row.get(y) is not None:  # an impossible combination has no results
            lines.setdefault(tuple(row[name] for name in groups), []).append((row[x], row[y]))
    for values, points in lines.items():
        ax.plot(*zip(*points), "o-", markersize=3, label=", ".join(f"{name} = {value}" for name, value in zip(groups, values)) or None)
    numbers = [value for value in table.column(x) if isinstance(value, (int, float))]
    if len(numbers) == len(table) and numbers and min(numbers) > 0 and max(numbers) >= 30 * min(numbers):
        ax.set_xscale("log")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.3)
    if groups:
        ax.legend()
    return ax

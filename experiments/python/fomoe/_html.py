"""Answers as HTML, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._fomoe import human_bytes, human_money, human_percent, human_time

MOST_ROWS = 20  # of a long table, the first ones
SWEEP_COLUMNS = ("wall_clock_s", "cost_total", "currency", "compute_utilization", "bytes_sent_per_site_per_round", "limited_by")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def _rows(rows: Iterable[Sequence[Any]]) -> str:
    return "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows)


def table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> str:
    """The columns that any row has a value for."""
    shown = [name for name in columns if any(row.get(name) not in (None, "") for row in rows)]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
    rest = f"<p>… {len(rows) - MOST_ROWS} more rows</p>" if len(rows) > MOST_ROWS else ""
    body = _rows([row.get(name) for name in shown] for row in rows[:MOST_ROWS])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def report(answer: Mapping[str, Any]) -> str:
    part = answer["round"]
    lines = [("wall clock", f"{human_time(answer['wall_clock_s'])} in {part['count']} rounds, {answer['executor']}"),
             ("GPUs compute", human_percent(answer["compute_utilization"]) + " of the time"),
             ("a round", (f"{human_time(part['duration_s'])}: {human_time(part['compute_s'])} of compute, "
                          f"{human_time(part['exposed_communication_s'])} of exposed communication")),
             ("limited by", answer["bottleneck"]["limited_by"]),
             ("sent per site and round", human_bytes(answer["bytes_sent_per_site_per_round"]))]
    if "cost" in answer:
        lines.append(("cost", money(answer['cost']['cost_total'], answer['cost']['currency'])))
    assumed = [entry["what"] for entry in answer["provenance"] if entry["origin"] == "assumed"]
    if assumed:
        lines.append(("assumed", ", ".join(assumed)))
    return f"<table><tbody>{_rows(lines)}</tbody></table>"


def money(amount: float | None, currency: str | None) -> str | None:
    return None if amount is None else human_money(amount, currency or "")


def short_case(case: str) -> str:
    """"diloco K=64" for 'strategy.method="diloco" strategy.local_steps=64'; the method comes first."""
    method, rest = "", []
    for word in case.split():
        key, equals, value = word.partition("=")
        name, value = key.rpartition(".")[2], value.strip('"')
        if not equals or "." not in key:
            return case
        if key == "strategy.method":
            method = value
        else:
            rest.append({"local_steps": "K", "expert_overlap": "O_e"}.get(name, name) + "=" + value)
    return " ".join([method, *rest]).strip() or "(unchanged)"


def recommendation(answer: Any) -> str:
    rows = [{"method": row["method"], "K": row["local_steps"], "O_e": row["expert_overlap"],
             "wall clock": human_time(row["simulated"]["wall_clock_s"]),
             "cost": money(row["simulated"].get("cost_total"), row["simulated"].get("currency")),
             "energy, kWh": row["simulated"].get("energy_kwh"), "perplexity": row.get("perplexity"),
             "GPUs compute": human_percent(row["compute_utilization"]), "wire": row["payload_dtype"],
             "collective": row["collective"], "sites": len(row["sites"]),
             "sent per site and round": human_bytes(row["bytes_sent_per_site_per_round"]), "problem": row["problem"]}
            for row in answer.rows]
    return table(rows, rows[0] if rows else ())


def comparison(answer: Mapping[str, Any]) -> str:
    costs = [case["report"].get("cost", {}) for case in answer["cases"]]
    rows = [{"case": short_case(case["case"]), "wall clock": human_time(case["report"]["wall_clock_s"]),
             "cost": money(cost.get("cost_total"), cost.get("currency")),
             "GPUs compute": human_percent(case["report"]["compute_utilization"]),
             "sent per site and round": human_bytes(case["report"]["bytes_sent_per_site_per_round"]),
             "problem": case["problem"]} for case, cost in zip(answer["cases"], costs)]
    return table(rows, rows[0])

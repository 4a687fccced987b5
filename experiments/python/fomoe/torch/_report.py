"""The report of a run, with the fields that `fomoe-train run --output` writes (schema fomoe.run/1, costmodel/report/run_report.hpp), so that
`fomoe validate` and `fomoe report` read it."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import platform
import resource
import secrets
from typing import Any

import torch

from ._plan_file import TrafficPlan
from ._scenario import Answered
from ._timeline import Interval, critical_path, drawn_round, means_of, upkeep_delay_s

_LISTED_ROUNDS = 10_000
_UPKEEP = "validation, checkpoints, logs"


@dataclasses.dataclass
class Observation:
    """What one site saw. intervals: (operation, round, activity, start, end); sent: (receiving node, traffic class) -> bytes."""

    node: int
    intervals: list[tuple[int, int, str, float, float]] = dataclasses.field(default_factory=list)
    sent: dict[tuple[int, str], int] = dataclasses.field(default_factory=dict)
    memory_bytes: int = 0
    upkeep_s: float = 0.0


def peak_memory_bytes(device: torch.device) -> int:
    """Of this process: of the GPU, or of the host."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown CPU"


def _busiest(scenario: dict[str, Any], per_round: dict[tuple[int, int], float], duration_s: float) -> tuple[str, float]:
    """The busiest uplink, downlink or path, and its bytes ÷ capacity over the mean round."""
    sites = scenario["platform"]["sites"]
    loads = []
    for index, site in enumerate(sites):
        for name, end in (("uplink", 0), ("downlink", 1)):
            rate = site.get(f"{name}_bytes_per_s")
            if rate:
                loads.append((f"{name} of {site['name']}", sum(size for pair, size in per_round.items() if pair[end] == index) / rate))
    rates = {(path["from"], path["to"]): path.get("bandwidth_bytes_per_s") for path in scenario["platform"].get("paths", ())}
    for (a, b), size in per_round.items():
        rate = rates.get((sites[a]["name"], sites[b]["name"]))
        if rate and size / rate >= max((load for _, load in loads), default=0):
            loads.append((f"path {sites[a]['name']} to {sites[b]['name']}", size / rate))
    link, busy_s = max(loads, key=lambda load: load[1], default=("", 0.0))
    return (link, busy_s / duration_s) if busy_s > 0 else ("none: nothing is sent", 0.0)


def measured_report(answered: Answered, plan: TrafficPlan, seen: list[Observation], *, first_round: int, steps: int, device: torch.device,
                    started_at: datetime.datetime) -> dict[str, Any]:
    """first_round: of the executed ones, above 0 if the run was resumed. steps: executed."""
    scenario = answered.report["scenario"]
    names = [site["name"] for site in scenario["platform"]["sites"]]
    site_of = [node["site"] for node in plan.nodes]
    rounds = plan.rounds - first_round
    intervals = [Interval(one.node, op, max(0, round - first_round), activity, start, end)
                 for one in seen for op, round, activity, start, end in one.intervals]
    means = means_of(intervals, len(plan.nodes), rounds)
    duration_s = means.wall_clock_s / rounds
    tokens = steps * scenario["workload"]["global_batch_sequences"] * scenario["model"]["sequence_length"]
    between: dict[tuple[int, int], float] = {}  # bytes between sites
    for one in seen:
        for (node, _), size in one.sent.items():
            pair = (site_of[one.node], site_of[node])
            if pair[0] != pair[1]:
                between[pair] = between.get(pair, 0) + float(size)
    sites = []
    for site, name in enumerate(names):
        own = [one for one in seen if site_of[one.node] == site]
        compute_s = sum(means.compute_s[one.node] for one in own)
        exposed_s = sum(means.exposed_s[one.node] for one in own)
        rest_s = max(0.0, duration_s - compute_s - exposed_s)
        upkeep_s = min(rest_s, max((one.upkeep_s / rounds for one in own), default=0.0))
        sites.append({"name": name, "bytes_sent": sum(size for (a, _), size in between.items() if a == site) * 1.0,
                      "bytes_received": sum(size for (_, b), size in between.items() if b == site) * 1.0,
                      "memory_bytes": float(max((one.memory_bytes for one in own), default=0)), "compute_s": compute_s,
                      "exposed_communication_s": exposed_s, "idle_s": rest_s - upkeep_s, "upkeep_s": upkeep_s})

    def mean(key: str) -> float:
        return sum(site[key] for site in sites) / len(sites)

    sent = sum(between.values())
    durations = [end - begin for begin, end in zip([0.0, *means.round_ends_s], means.round_ends_s)]
    mean_round = {"count": rounds, "duration_s": duration_s, "compute_s": mean("compute_s"), "communication_s": means.communication_s,
                  "exposed_communication_s": mean("exposed_communication_s"), "transferring_s": means.transferring_s,
                  "overlap_achieved": max(0.0, 1 - mean("exposed_communication_s") / means.transferring_s) if means.transferring_s > 0 else 0.0,
                  "idle_s": mean("idle_s"), "first_duration_s": 0.0 if plan.overlapping else durations[0], "upkeep_s": mean("upkeep_s"),
                  "upkeep_delay_s": upkeep_delay_s(intervals, len(plan.nodes)) / rounds}
    link, busy = _busiest(scenario, {pair: size / rounds for pair, size in between.items()}, duration_s)
    limited = "compute" if mean_round["compute_s"] >= mean_round["exposed_communication_s"] else "communication"
    position = max(0, rounds - 3) if plan.overlapping else rounds - 1

    def name_of(interval: Interval) -> str:
        return _UPKEEP if interval.activity == "upkeep" else plan.ops(interval.round + first_round)[interval.op].name

    path = critical_path(intervals, means.round_ends_s, position, name_of, lambda node: names[site_of[node]])
    report = {
        "schema": "fomoe.run/1", "executor": "measured", "wall_clock_s": means.wall_clock_s,
        "compute_utilization": mean_round["compute_s"] * rounds / means.wall_clock_s, "tokens_per_s": tokens / means.wall_clock_s,
        "bytes_per_token": sent / tokens if tokens else 0.0, "bytes_sent_per_site_per_round": sent / len(sites) / rounds,
        "flops_per_token": answered.report.get("flops_per_token", 0.0), "optimizer_steps": steps, "tokens": tokens, "round": mean_round,
        "sites": sites, "critical_path": path, "bottleneck": {"limited_by": limited, "link": link, "link_busy_share": busy},
        "provenance": [{"what": "times", "origin": "measured", "detail": f"this run on {device_name(device)}"},
                       {"what": "bytes sent", "origin": "measured", "detail": "counted at each send"},
                       {"what": "memory", "origin": "measured", "detail": "peak memory of the process that trained the site"}],
        "notes": _notes(plan, first_round)}
    if not plan.overlapping and rounds <= _LISTED_ROUNDS:
        report["round_durations_s"] = durations
    report["scenario"] = scenario
    report["run"] = {"id": secrets.token_hex(8), "started_at": started_at.strftime("%Y-%m-%dT%H:%M:%SZ"), "paced": False, "in_turn": False,
                     "whole": first_round == 0, "scenario_toml": answered.toml, "files": answered.files, "code": f"fomoe.torch, PyTorch {torch.__version__}"}
    report["round_timeline"] = drawn_round(intervals, means.round_ends_s, first_round, name_of, [names[site] for site in site_of])
    return report


_IN_LOOP = ("fomoe.torch executed the plan in the user's own training loop; what this loop did between its steps counts as computation, unless it was in "
            "plan.pause()")
_LINKS = ("the run used the real connections between its processes, not the scenario's links; link_busy_share compares the measured bytes with the "
          "scenario's links")


def _notes(plan: TrafficPlan, first_round: int) -> list[str]:
    notes = [*plan.notes, _IN_LOOP]
    if any(op.work == "backward" for ops in plan.described() for op in ops):
        notes.append("transfers that the plan lets overlap with the backward pass began after it")
    if first_round > 0:
        notes.append(f"the run resumed after round {first_round}; times, bytes and tokens cover only the later rounds")
    return [*notes, _LINKS]

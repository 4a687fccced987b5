"""Reads a traffic plan (schema fomoe.plan/1, experiments/plans/README.md): rounds, operations, groups, and who holds which expert.

The plan decides what an executor does; no training method is known by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .. import InputError

EXPERT = "expert"
# Dense work is done by the user's own step; outer_step by this package.
STEP_WORK = ("whole_step", "gradients", "forward", "backward", "optimizer")


@dataclasses.dataclass(frozen=True)
class Group:
    """Parameters that are sent together; layers and experts are half-open ranges."""

    classes: tuple[str, ...]
    layers: tuple[int, int]
    experts: tuple[int, int]
    elements: int

    def of_experts(self) -> bool:
        return EXPERT in self.classes

    def text(self) -> str:
        where = f"layers {self.layers[0]} to {self.layers[1] - 1}" if self.layers[1] - self.layers[0] != 1 else f"layer {self.layers[0]}"
        return f"{', '.join(self.classes)} of {where}" + (f", expert {self.experts[0]}" if self.of_experts() else "")


@dataclasses.dataclass(frozen=True)
class Payload:
    content: str
    traffic: str
    groups: tuple[int, ...]
    elements: int
    format: Mapping[str, Any]
    chunk: int = 0
    chunks: int = 1


@dataclasses.dataclass(frozen=True)
class Exchange:
    nodes: tuple[int, ...]
    payloads: tuple[Payload, ...]


@dataclasses.dataclass(frozen=True)
class Op:
    """An operation: `work` of `nodes`, or a transfer (`pattern`, `collective`, `exchanges`)."""

    name: str
    after: tuple[int, ...]
    after_earlier: tuple[tuple[int, int], ...]  # operation, rounds back
    detached: bool
    work: str = ""
    nodes: tuple[int, ...] = ()
    repeat: int = 1
    share: float = 1  # of the work
    whole_model: bool = True
    pattern: str = ""
    collective: str = "direct"
    exchanges: tuple[Exchange, ...] = ()

    @property
    def migrates(self) -> bool:
        """Whether the transfer moves experts to other owners."""
        return any(payload.traffic == "migration" for exchange in self.exchanges for payload in exchange.payloads)


Owners = dict[tuple[int, int], tuple[int, ...]]  # (layer, expert) -> nodes


def _refuse(what: str, got: Any, expected: str, example: str) -> InputError:
    return InputError(f"plan: {what}: got {got}; expected {expected}; for example {example}")


def _payload(json: Mapping[str, Any]) -> Payload:
    if "bytes" in json:
        raise _refuse("payload", f"{json['bytes']} bytes without groups", "elements with groups, which say what is sent", '"groups": [0]')
    return Payload(json.get("content", "parameter"), json.get("traffic", "dense"), tuple(json.get("groups", ())), json["elements"],
                   json["format"], json.get("chunk", 0), json.get("chunks", 1))


def _op(json: Mapping[str, Any]) -> Op:
    if json.get("receive_after"):
        raise _refuse(f'operation "{json["name"]}"', "receive_after", "no queue of transfers: fomoe.torch does not execute them", "a method without stages")
    after_earlier = [(op, 1) for op in json.get("after_previous_round", ())]
    after_earlier += [(entry["op"], entry["rounds_back"]) for entry in json.get("after_earlier", ())]
    common = (json["name"], tuple(json.get("after", ())), tuple(after_earlier), json.get("detached", False))
    if "compute" in json:
        work = json["compute"]
        return Op(*common, work=work["work"], nodes=tuple(work["nodes"]), repeat=work.get("repeat", 1), share=work.get("share", 1),
                  whole_model=work.get("whole_model", True))
    transfer = json["transfer"]
    exchanges = tuple(Exchange(tuple(one["nodes"]), tuple(_payload(payload) for payload in one["payloads"])) for one in transfer["exchanges"])
    return Op(*common, pattern=transfer["pattern"], collective=transfer.get("collective", "direct"), exchanges=exchanges)


class TrafficPlan:
    """A plan whose every round is known: `ops(index)` for 0 ≤ index < rounds."""

    def __init__(self, json: Mapping[str, Any]) -> None:
        schema = json.get("schema") if isinstance(json, Mapping) else None
        if schema != "fomoe.plan/1":
            raise _refuse("schema", schema, '"fomoe.plan/1"', "a file that `fomoe simulate --write-plan` wrote")
        self.nodes: list[Mapping[str, Any]] = list(json["nodes"])
        self.groups = [Group(tuple(group["classes"]), tuple(group["layers"]), tuple(group["experts"]), group["elements"])
                       for group in json.get("groups", ())]
        self.rounds = sum(one["count"] for one in json["classes"])
        self.steps: int = json.get("optimizer_steps") or sum(one["count"] * one["steps"] for one in json["classes"])
        self.overlapping = any(one.get("overlapping", False) for one in json["classes"])
        self.notes: list[str] = list(json.get("notes", ()))
        if any(node.get("kind", "worker") == "server" for node in self.nodes):
            raise _refuse("nodes", "a server", "workers only: fomoe.torch has no process that only averages", 'strategy.method = "diloco"')
        if any(node.get("kind", "worker") == "store" for node in self.nodes):
            raise _refuse("nodes", "a store", "workers only: fomoe.torch has no exchange through a store", 'strategy.collective = "direct"')
        self._described: dict[int, tuple[Op, ...]] = {}
        for entry in json["rounds"]:
            ops = tuple(_op(op) for op in entry["ops"])
            self._described.update((index, ops) for index in entry["indices"])
        self._stand_ins = self._missing(json["classes"])
        self._placements: dict[int, Owners] | None = None
        if "placements" in json:
            written = self._written(json["placements"])
            if any(len(nodes) < len(self.nodes) for owners in written.values() for nodes in owners.values()):
                self._placements = written
        elif self._placed():
            self._placements = {}

    def _missing(self, classes: list[Mapping[str, Any]]) -> list[tuple[int, int, int]]:
        """Ranges of rounds that are not described, each with the round that stands for it: (begin, end, stand-in)."""
        ranges, begin = [], 0
        for one in classes:
            end = begin + one["count"]
            described = [index for index in one["rounds"] if index in self._described]
            if len(described) < one["count"]:
                if not one.get("identical", True) or not all(begin <= index < end for index in described):
                    raise _refuse("rounds", f"{len(described)} of {one['count']} rounds, which differ", "all rounds",
                                  "a file that `fomoe simulate --rounds all --write-plan` wrote")
                last = described[-1] if not one.get("overlapping", False) else described[-2]
                ranges.append((begin, end, last))
            begin = end
        return ranges

    def ops(self, index: int) -> tuple[Op, ...]:
        if index in self._described:
            return self._described[index]
        for begin, end, stand_in in self._stand_ins:
            if begin <= index < end:
                return self._described[stand_in]
        raise IndexError(index)

    def described(self) -> list[tuple[Op, ...]]:
        """One list of operations for each kind of round."""
        seen: dict[int, tuple[Op, ...]] = {id(ops): ops for ops in self._described.values()}
        return list(seen.values())

    # ---- who holds which expert ----

    def _expert_groups(self) -> dict[tuple[int, int], int]:
        return {(group.layers[0], group.experts[0]): number for number, group in enumerate(self.groups) if group.of_experts()}

    def _placed(self) -> bool:
        """Whether nodes hold different experts, as far as the exchanges tell."""
        ops = [op for round_ops in self.described() for op in round_ops]
        if any(op.migrates for op in ops):
            return True
        averaged: set[int] = set()
        in_regions = False  # averages among some nodes are those of regions, if dense parameters are averaged in them too
        for op in ops:
            for exchange in op.exchanges if op.pattern == "all_reduce" else ():
                for payload in exchange.payloads:
                    dense = any(not self.groups[group].of_experts() for group in payload.groups)
                    in_regions |= dense and payload.chunks == 1 and len(exchange.nodes) < len(self.nodes)
        for op in ops:
            for exchange in op.exchanges:
                for payload in exchange.payloads:
                    experts = {group for group in payload.groups if self.groups[group].of_experts()}
                    among_some = payload.chunks == 1 and op.pattern == "all_reduce" and len(exchange.nodes) < len(self.nodes)
                    if experts and among_some and not in_regions:
                        return True
                    averaged |= experts
        never = [number for number in self._expert_groups().values() if number not in averaged]
        if never and len(self.nodes) > 1:
            raise self._unknown(self.groups[never[0]])
        return False

    @staticmethod
    def _unknown(group: Group) -> InputError:
        return _refuse("placements", f"no owners of the {group.text()}, which the exchanges do not tell", "the key placements",
                       "a plan that this version's `fomoe simulate --write-plan` wrote, or strategy.expert_overlap = 2")

    def _written(self, entries: list[Mapping[str, Any]]) -> dict[int, Owners]:
        layers = sorted({group.layers[0] for group in self.groups if group.of_experts()})
        placements: dict[int, Owners] = {}
        for entry in entries:
            owners = {(layers[at], expert): tuple(nodes) for at, row in enumerate(entry["owners"]) for expert, nodes in enumerate(row)}
            placements.update((index, owners) for index in entry["rounds"])
        return placements

    @property
    def placed(self) -> bool:
        """Whether nodes hold different experts."""
        return self._placements is not None

    def owners(self, index: int) -> Owners | None:
        """The nodes that hold each (layer, expert) while round `index` trains; None: every node holds all. 0 ≤ index ≤ rounds."""
        if self._placements is None:
            return None
        if index not in self._placements:
            self._placements[index] = self._stood_in(index) or self._derived(index)
        return self._placements[index]

    def _stood_in(self, index: int) -> Owners | None:
        for begin, end, stand_in in self._stand_ins:
            if begin <= index <= end and self._placements and stand_in in self._placements:
                return self._placements[stand_in]
        return None

    def _derived(self, index: int) -> Owners:
        """From the exchanges in which owners average an expert. After the last round no exchange tells the owners, and nobody trains: they
        stay as they were."""
        if index == self.rounds:
            return self.owners(index - 1)
        owners: dict[int, set[int]] = {}
        for op in self.ops(index):
            for exchange in op.exchanges:
                for payload in exchange.payloads:
                    for group in payload.groups:
                        if self.groups[group].of_experts() and not op.migrates:
                            owners.setdefault(group, set()).update(exchange.nodes)
        out: Owners = {}
        for key, group in self._expert_groups().items():
            if group not in owners:
                raise self._unknown(self.groups[group])
            out[key] = tuple(sorted(owners[group]))
        return out

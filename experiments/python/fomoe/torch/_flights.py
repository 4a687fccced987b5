"""Transfers that are under way while the node computes, as in fomoe-train (trainer/execution/executor_transfers.cpp).

Before each operation, every transfer whose prerequisites are done is started, each in a thread. What it received is written into the
model only where an operation waits for it, or at the end of the round unless it is detached. Whether a transfer starts depends on the
place in the plan, never on the clock, so that the result does not depend on the speed of the network.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import torch

from ._plan_file import Op, Payload
from ._transport import Key, TransferRun, Transport

Which = tuple[int, int]  # round, operation
THREADS = 16


@dataclasses.dataclass
class Flight:
    op: Op
    future: Future | None
    start_s: float
    end_s: float
    steps: int  # that the node had made when the transfer read what it sends
    results: list[tuple[Payload, torch.Tensor]]
    losses: list[tuple[Payload, torch.Tensor]]  # what this node's encodings took; known when the transfer has ended


def _written(op: Op, partial: bool) -> set[int]:
    """The groups that a transfer reads from the model or writes into it, without chunks that stay between transfers."""
    groups: set[int] = set()
    for exchange in op.exchanges:
        for payload in exchange.payloads:
            if payload.chunks == 1 and not partial:
                groups.update(payload.groups)
    return groups


class _Threads:
    """Runs tasks in the order in which they come, on threads that do not keep a process alive whose loop has failed: the transfers of a site
    wait for the others, which wait for it."""

    def __init__(self, most: int) -> None:
        self._most, self._tasks, self._threads = most, queue.SimpleQueue(), []

    def run(self, task: Callable[[], None]) -> Future:
        future: Future = Future()
        self._tasks.put((task, future))
        if len(self._threads) < self._most:
            self._threads.append(threading.Thread(target=self._work, daemon=True, name="fomoe-transfer"))
            self._threads[-1].start()
        return future

    def _work(self) -> None:
        while True:
            task, future = self._tasks.get()
            if task is None:
                return
            try:
                task()
                future.set_result(None)
            except BaseException as error:  # noqa: BLE001 - raised where the transfer is waited for
                future.set_exception(error)

    def close(self) -> None:
        for _ in self._threads:
            self._tasks.put((None, None))


class Flights:
    def __init__(self, transport: Transport, bucket_bytes: int, like: torch.Tensor, now: Callable[[], float]) -> None:
        self.transport, self.bucket_bytes, self.like, self.now = transport, bucket_bytes, like, now
        self.under_way: dict[Which, Flight] = {}
        self.partial: dict[Key, torch.Tensor] = {}
        self.channels = 0  # number of transfers so far; the same at every process
        self._threads = _Threads(THREADS if transport.concurrent else 1)

    def number(self, ops: tuple[Op, ...]) -> dict[int, int]:
        """A number for each transfer of a round, which tells its messages apart."""
        numbers = {}
        for index, op in enumerate(ops):
            if op.pattern:
                numbers[index] = self.channels % (1 << 16)
                self.channels += 1
        return numbers

    def reads_result_of(self, sends: Op, which: Which) -> bool:
        """Whether `sends` reads from the model what the transfer under way, or one before it, will still write into it."""
        flight = self.under_way.get(which)
        if flight is None:
            return False
        reads = _written(sends, sends.pattern == "all_gather")
        writes = _written(flight.op, flight.op.pattern == "reduce_scatter")
        return bool(reads & writes) or any(self.reads_result_of(sends, (which[0], before)) for before in flight.op.after)

    def run(self, op: Op, round: int, channel: int) -> TransferRun:
        return TransferRun(op, round, self.transport, channel, self.like, self.bucket_bytes, self.partial)

    def start(self, which: Which, op: Op, run: TransferRun, steps: int) -> None:
        """The run has read what it sends."""
        follows = [self.under_way[which[0], before].future for before in op.after if (which[0], before) in self.under_way]
        follows = [future for future in follows if future is not None]
        flight = Flight(op, None, self.now(), 0.0, steps, [], [])
        device = self.like.device

        def exchange() -> None:
            if device.type == "cuda":
                torch.cuda.set_device(device)
            for future in follows:
                future.result()
            if follows:
                flight.start_s = self.now()
            run.exchange()
            flight.end_s = self.now()
            flight.results, flight.losses = run.results, run.losses

        flight.future = self._threads.run(exchange)
        self.under_way[which] = flight

    def wait(self, which: Which) -> Flight:
        """Removes a transfer that is under way when it has ended. Raises what its thread raised."""
        flight = self.under_way.pop(which)
        if flight.future is not None:
            flight.future.result()
        return flight

    def run_now(self, run: TransferRun) -> None:
        self._threads.run(run.exchange).result()

    def close(self) -> None:
        self._threads.close()

    # ---- checkpoints ----

    def wait_for_all(self) -> None:
        """Until all transfers have ended. What they received is not written yet."""
        for flight in self.under_way.values():
            if flight.future is not None:
                flight.future.result()

    def state(self) -> dict[str, Any]:
        """After all transfers have ended; what they received is part of the state. What they lost is part of the worker's."""
        self.wait_for_all()
        flights = [(which, flight.steps, [values.clone() for _, values in flight.results]) for which, flight in self.under_way.items()]
        return {"channels": self.channels, "partial": dict(self.partial), "flights": flights}

    def load(self, state: dict[str, Any], op_of: Callable[[Which], Op]) -> None:
        self.channels, self.partial = state["channels"], dict(state["partial"])
        self.under_way = {}
        for which, steps, values in state["flights"]:
            op = op_of(tuple(which))
            payloads = list(_delivered(op, self.transport.node))
            self.under_way[tuple(which)] = Flight(op, None, 0.0, 0.0, steps, list(zip(payloads, values)), [])


def _delivered(op: Op, node: int) -> Iterator[Payload]:
    """The payloads whose results the node gets from a transfer, in their order."""
    for exchange in op.exchanges:
        if node not in exchange.nodes or op.pattern == "reduce_scatter":
            continue
        first = exchange.nodes[0] == node
        gets = {"reduce": first and len(exchange.nodes) > 1, "broadcast": not first, "point_to_point": not first}.get(op.pattern, True)
        for payload in exchange.payloads:
            if gets and payload.chunks == 1:
                yield payload

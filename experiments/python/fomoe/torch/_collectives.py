"""The messages of each step of a communication pattern, and what a node does with them (costmodel/plan/collective_steps.hpp and
trainer/comm/pattern_run.cpp, of which this is the part of one node).

S is the data of an exchange among n nodes; it is cut into n chunks. p is the position of this node. Indices are mod n.

    ring        all-reduce: step s = 0 … n−2 sends chunk p − s to p + 1, which adds it; then the sums go around once
    recursive   halving and doubling among 2ᵏ nodes
    direct      all-reduce: each node sends chunk j to node j, which adds in the order of the nodes and sends the mean to all
"""

from __future__ import annotations

import dataclasses

import torch

from .. import InputError
from ._codec import Codec


@dataclasses.dataclass(frozen=True)
class Sending:
    """Position `source` sends the chunks [first, first + count) to position `target`; count 0: all of S, that of position `first`."""

    source: int
    target: int
    first: int
    count: int


class Steps:
    """The sendings of one pattern that concern position p, step by step."""

    def __init__(self, pattern: str, collective: str, n: int) -> None:
        self.pattern, self.n = pattern, n
        chunked = pattern in ("all_reduce", "reduce_scatter", "all_gather")
        self.ring = collective == "ring" and (chunked or pattern == "all_to_all_broadcast")
        self.halves = collective == "recursive" and chunked
        self.log = max(0, (n - 1).bit_length())
        if self.halves and 1 << self.log != n:
            raise InputError(f"strategy.collective: got recursive among {n} nodes; expected a power of two; for example \"direct\"")

    def count(self) -> int:
        if self.n < 2:
            return 0
        parts = 2 if self.pattern == "all_reduce" else 1
        return parts * (self.n - 1 if self.ring else self.log if self.halves else 1)

    def reducing(self) -> int:
        """The number of leading steps in which a receiver adds what arrives."""
        if self.pattern == "all_reduce":
            return self.count() // 2
        return self.count() if self.pattern in ("reduce_scatter", "reduce") else 0

    def reduced_chunk(self, p: int) -> int:
        """The chunk whose complete sum position p has after the reducing steps."""
        return (p + 1) % self.n if self.ring and self.pattern == "all_reduce" else p

    def of(self, s: int, p: int) -> list[Sending]:
        """The sendings of step s from or to position p, in the order in which all positions list them."""
        n = self.n
        if self.halves:
            halving = s < self.reducing()
            distance = n >> (s + 1) if halving else 1 << (s % self.log)
            q = p ^ distance
            return [Sending(a, b, (b if halving else a) // distance * distance, distance) for a, b in sorted([(p, q), (q, p)])]
        if self.ring:
            if self.pattern == "all_reduce":
                shift = -s if s < n - 1 else 1 - (s - n + 1)
            else:
                shift = -1 - s if self.pattern == "reduce_scatter" else -s
            count = 0 if self.pattern == "all_to_all_broadcast" else 1
            return [Sending(a, (a + 1) % n, (a + shift) % n, count) for a in sorted({p, (p - 1) % n})]
        if self.pattern == "reduce":
            return [Sending(a, 0, a, 0) for a in range(1, n) if p in (0, a)]
        if self.pattern in ("broadcast", "point_to_point"):
            return [Sending(0, b, 0, 0) for b in range(1, n) if p in (0, b)]
        of_receiver = (self.pattern == "all_reduce" and s == 0) or self.pattern == "reduce_scatter"
        count = 0 if self.pattern == "all_to_all_broadcast" else 1
        pairs = sorted([(p, q) for q in range(n) if q != p] + [(q, p) for q in range(n) if q != p])
        return [Sending(a, b, b if of_receiver else a, count) for a, b in pairs]


class Run:
    """One piece of a payload at position p: what it sends in each step, and what it makes of what arrives.

    value: fp32 or fp64 [elements], or only the own chunk for an all-gather. Nothing writes to what `give` received.
    """

    def __init__(self, steps: Steps, p: int, elements: int, codec: Codec) -> None:
        self.steps, self.p, self.elements, self.codec = steps, p, elements, codec
        self.value = torch.empty(0)

    contributes = True
    gets_result = True
    tracks_losses = False  # set before `give` if lost() will be asked

    def given(self) -> int:
        return self.elements

    def give(self, value: torch.Tensor) -> None:
        self.value = value

    def size(self, chunk: int) -> int:
        n = self.steps.n
        return self.elements // n + (1 if chunk < self.elements % n else 0)

    def chunk(self, flat: torch.Tensor, chunk: int) -> torch.Tensor:
        n = self.steps.n
        return flat.narrow(0, self.elements // n * chunk + min(chunk, self.elements % n), self.size(chunk))

    def lengths(self, sending: Sending) -> list[int]:
        """Elements of each segment of the sending."""
        return [self.elements] if sending.count == 0 else [self.size(c) for c in range(sending.first, sending.first + sending.count)]

    def before(self, step: int) -> None:
        """Called before each step."""

    def after(self, step: int) -> None:
        """Called after each step."""

    def send(self, step: int, sending: Sending, segment: int) -> torch.Tensor:
        raise NotImplementedError

    def receive(self, step: int, sending: Sending, segment: int, data: torch.Tensor) -> None:
        raise NotImplementedError

    def result(self) -> torch.Tensor:
        return self.value

    def lost(self) -> torch.Tensor:
        """What this node's encodings took from the sum of all contributions: flat [elements]."""
        return self.value - self.codec.round_trip(self.value)


class Reduces(Run):
    """Keeps what each encoding of a chunk takes."""

    losses: torch.Tensor | None = None

    def lost(self) -> torch.Tensor:
        return self.value.new_zeros(self.elements) if self.losses is None else self.losses  # fewer elements than nodes

    def _keep_loss(self, chunk: int, loss: torch.Tensor, share: float) -> None:
        if self.losses is None:
            self.losses = loss.new_zeros(self.elements)
        self.chunk(self.losses, chunk).add_(loss, alpha=1 / share)

    def _encoded(self, chunk: int, values: torch.Tensor, share: float = 1.0) -> torch.Tensor:
        """share: the part of `values` that is this node's, 1 of a sum and 1/n of a mean, of which it keeps 1/share of what is lost."""
        data = self.codec.encode(values)
        if self.tracks_losses:
            self._keep_loss(chunk, values - self.codec.decode(data, values.numel(), values), share)
        return data


class Direct(Reduces):
    """Direct all-reduce. The own contribution is rounded like the others, so that it does not matter who adds."""

    def before(self, step: int) -> None:
        if step == 0:
            self.heard: list[torch.Tensor | None] = [None] * self.steps.n

    def send(self, step: int, sending: Sending, segment: int) -> torch.Tensor:
        return self._encoded(sending.first, self.chunk(self.value, sending.first)) if step == 0 else self.encoded

    def receive(self, step: int, sending: Sending, segment: int, data: torch.Tensor) -> None:
        values = self.codec.decode(data, self.size(sending.first), self.value)
        if step == 0:
            self.heard[sending.source] = values
        else:
            self.chunk(self.value, sending.first).copy_(values)

    def after(self, step: int) -> None:
        if step != 0:
            return
        own = self.chunk(self.value, self.p)
        self.heard[self.p] = self.codec.round_trip(own)
        if self.tracks_losses:
            self._keep_loss(self.p, own - self.heard[self.p], 1)
        total = self.heard[0].clone()
        for values in self.heard[1:]:
            total += values
        total /= self.steps.n
        self.encoded = self._encoded(self.p, total, 1 / self.steps.n)
        self.value = self.value.clone()  # a source may hand out its own tensor
        self.chunk(self.value, self.p).copy_(self.codec.decode(self.encoded, total.numel(), self.value))


class Chunked(Reduces):
    """All-reduce, reduce-scatter or all-gather around a ring or by halving and doubling: partial sums travel, then means."""

    def given(self) -> int:
        return self.size(self.p) if self.steps.pattern == "all_gather" else self.elements

    def before(self, step: int) -> None:
        if step > 0:
            return
        self.encoded: dict[int, torch.Tensor] = {}
        if self.steps.pattern != "all_gather":
            self.value = self.value.clone()
            return
        own, self.value = self.value, self.value.new_empty(self.elements)
        self.chunk(self.value, self.p).copy_(own)
        self._encode(self.p, 1)

    def _encode(self, chunk: int, share: float) -> None:
        """From here on this node, too, goes on with the values that the others decode."""
        mine = self.chunk(self.value, chunk)
        self.encoded[chunk] = self._encoded(chunk, mine, share).clone()
        mine.copy_(self.codec.decode(self.encoded[chunk], mine.numel(), mine))

    def send(self, step: int, sending: Sending, segment: int) -> torch.Tensor:
        chunk = sending.first + segment
        return self._encoded(chunk, self.chunk(self.value, chunk)) if step < self.steps.reducing() else self.encoded[chunk]

    def receive(self, step: int, sending: Sending, segment: int, data: torch.Tensor) -> None:
        chunk = sending.first + segment
        mine = self.chunk(self.value, chunk)
        values = self.codec.decode(data, mine.numel(), mine)
        if step < self.steps.reducing():
            mine += values
        else:
            mine.copy_(values)
            self.encoded[chunk] = data

    def after(self, step: int) -> None:
        if step + 1 != self.steps.reducing():
            return
        chunk = self.steps.reduced_chunk(self.p)
        self.chunk(self.value, chunk).div_(self.steps.n)
        if self.steps.pattern == "all_reduce":
            self._encode(chunk, 1 / self.steps.n)

    def result(self) -> torch.Tensor:
        return self.chunk(self.value, self.p) if self.steps.pattern == "reduce_scatter" else self.value


class Broadcasts(Run):
    """All-to-all broadcast: every node sends its payload to every node, and all take the same mean."""

    def before(self, step: int) -> None:
        if step == 0:
            self.heard = {self.p: self.codec.encode(self.value)}

    def send(self, step: int, sending: Sending, segment: int) -> torch.Tensor:
        return self.heard[sending.first]

    def receive(self, step: int, sending: Sending, segment: int, data: torch.Tensor) -> None:
        self.heard[sending.first] = data

    def result(self) -> torch.Tensor:
        if self.steps.n < 2:
            return self.value
        total = self.codec.decode(self.heard[0], self.elements, self.value).clone()
        for p in range(1, self.steps.n):
            total += self.codec.decode(self.heard[p], self.elements, self.value)
        return total / self.steps.n


class Rooted(Run):
    """Reduce (the first node takes the mean over the others), broadcast and point-to-point (the first sends to the others)."""

    def __init__(self, steps: Steps, p: int, elements: int, codec: Codec, like: torch.Tensor) -> None:
        super().__init__(steps, p, elements, codec)
        self.to_first, self.like = steps.pattern == "reduce", like
        self.heard: dict[int, torch.Tensor] = {}
        self.contributes = self.to_first == (p > 0)
        self.gets_result = self.to_first == (p == 0) and steps.n > 1

    def send(self, step: int, sending: Sending, segment: int) -> torch.Tensor:
        return self.codec.encode(self.value)

    def receive(self, step: int, sending: Sending, segment: int, data: torch.Tensor) -> None:
        self.heard[sending.source] = self.codec.decode(data, self.elements, self.like)

    def result(self) -> torch.Tensor:
        if not self.to_first:
            return self.heard[0]
        total = self.heard[1].clone()
        for source in range(2, self.steps.n):
            total += self.heard[source]
        return total / (self.steps.n - 1)


def make_run(pattern: str, collective: str, n: int, p: int, elements: int, codec: Codec, like: torch.Tensor) -> Run:
    """The run of one piece at position p among n. Raises InputError for a pattern that is not executed."""
    steps = Steps(pattern, collective, n)
    if pattern == "all_reduce":
        return Direct(steps, p, elements, codec) if collective == "direct" else Chunked(steps, p, elements, codec)
    if pattern in ("reduce_scatter", "all_gather") and collective != "direct":
        return Chunked(steps, p, elements, codec)
    if pattern == "all_to_all_broadcast":
        return Broadcasts(steps, p, elements, codec)
    if pattern in ("reduce", "broadcast", "point_to_point"):
        return Rooted(steps, p, elements, codec, like)
    raise InputError(f"plan: pattern: got {pattern} with collective {collective}; expected all_reduce, reduce_scatter or all_gather (ring or "
                     "recursive), all_to_all_broadcast, reduce, broadcast or point_to_point; for example strategy.collective = \"ring\"")

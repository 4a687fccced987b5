"""Tests the wire formats and the collectives of fomoe.torch, between threads of one process."""

import math
import threading

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from fomoe.torch import _codec, _plan_file, _transport  # noqa: E402


def int_codes(values, bits, block):
    """QSGD's buckets, written out value by value in fp32 as codec_row.hpp has them."""
    largest, codes, scales = numpy.float32(2 ** (bits - 1) - 1), [], []
    for begin in range(0, len(values), block):
        part = numpy.asarray(values[begin:begin + block], dtype=numpy.float32)
        scale = numpy.float32(max((abs(x) for x in part if not math.isnan(x)), default=0))
        scales.append(scale)
        for x in part:
            q = float(x / scale * largest) if scale > 0 and not math.isnan(x) and not math.isinf(scale) else 0.0
            codes.append(int(math.copysign(math.floor(abs(q)), q)) + (0 if abs(q) % 1 < 0.5 else int(math.copysign(1, q))) + 2 ** (bits - 1))
    packed = bytearray((len(values) * bits + 7) // 8)
    for place, code in enumerate(codes):
        packed[place * bits // 8] |= code << (place * bits % 8)
    return bytes(packed) + b"".join(scale.tobytes() for scale in scales)


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("values", [[], [0.0, 0.0], [1.0, -0.5, 0.25, float("nan"), -1.0], [1.0, math.inf, -2.0], [float(x) - 100 for x in range(300)],
                                    numpy.random.default_rng(1).standard_normal(1001).tolist(), [2.0, 1.0, -1.0, 127.0, 0.5, -0.5, 62.5, -63.5]])
def test_integers_are_encoded_as_fomoe_train_does(bits, values):
    codec = _codec.Codec({"type": f"int{bits}", "block_elements": 256, "scale_bits": 32})
    data = codec.encode(torch.tensor(values))
    assert bytes(data.tolist()) == int_codes(values, bits, 256)
    assert len(data) == codec.bytes(len(values))
    decoded = codec.decode(data, len(values), torch.empty(0))
    for begin in range(0, len(values), 256):
        part = torch.tensor(values[begin:begin + 256]).nan_to_num(0)
        if math.inf in values:
            assert decoded.isnan().all()
            continue
        step = part.abs().max() / (2 ** (bits - 1) - 1)
        assert (decoded[begin:begin + 256] - part).abs().max() <= step * 0.5001


def test_halves_are_rounded_away_from_zero():
    """With a scale of 127, the codes are the values themselves: 0.5 becomes 1 and −62.5 becomes −63."""
    codec = _codec.Codec({"type": "int8", "block_elements": 256, "scale_bits": 32})
    values = torch.tensor([127.0, 0.5, -0.5, 62.5, -62.5, 1.5, 0.4999])
    assert codec.round_trip(values).round().tolist() == [127, 1, -1, 63, -63, 2, 0]


def test_every_code_is_rounded_as_std_lround_does():
    """The floats beside each half, for a scale of 127: the code is that of lround, computed in fp64."""
    codec = _codec.Codec({"type": "int8", "block_elements": 4, "scale_bits": 32})
    halves = numpy.arange(-126.5, 127, 1, dtype=numpy.float32)
    for near in (halves, numpy.nextafter(halves, numpy.float32(0)), numpy.nextafter(halves, numpy.float32(numpy.inf))):
        values = numpy.stack([numpy.full_like(near, 127), near, numpy.zeros_like(near), -near], 1).ravel()
        q = values / numpy.float32(127) * numpy.float32(127)
        expected = numpy.sign(q) * numpy.floor(numpy.abs(q.astype(numpy.float64)) + 0.5) + 128
        codes = codec.encode(torch.from_numpy(values))[: len(values)]
        assert codes.tolist() == expected.astype(int).tolist()


def test_parts_of_a_large_payload_are_encoded_as_the_whole(monkeypatch):
    values = torch.randn(40_000)
    for bits, block in ((8, 256), (4, 100), (2, 24)):
        codec = _codec.Codec({"type": f"int{bits}", "block_elements": block, "scale_bits": 32})
        whole = codec.encode(values)
        assert bytes(whole.tolist()) == int_codes(values.tolist(), bits, block)
        monkeypatch.setattr(_codec, "_PART", 8192)
        assert torch.equal(codec.encode(values), whole)
        decoded = codec.decode(whole, 40_000, values)
        monkeypatch.undo()
        assert torch.equal(codec.decode(whole, 40_000, values), decoded)


@pytest.mark.parametrize("kind,size", [("fp32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1)])
def test_plain_formats_have_their_bytes(kind, size):
    codec = _codec.Codec({"type": kind})
    values = torch.tensor([1.0, -2.5, 0.1])
    assert len(codec.encode(values)) == codec.bytes(3) == 3 * size
    assert torch.equal(codec.decode(codec.encode(values), 3, values), codec.round_trip(values))


@pytest.mark.parametrize("format,lossy", [({"type": "fp32"}, False), ({"type": "bf16"}, False), ({"type": "fp8"}, True),
                                          ({"type": "int8", "block_elements": 256}, True)])
def test_errors_are_fed_back_in_less_than_16_bits(format, lossy):
    assert _codec.Codec(format).lossy == lossy


# ---- collectives ----


class Wires:
    """Messages between threads, in place of torch.distributed."""

    def __init__(self, nodes):
        self.boxes = {(a, b): [] for a in range(nodes) for b in range(nodes)}
        self.ready = threading.Condition()

    def transport(self, node):
        transport = _transport.Transport(node, 1, None, torch.device("cpu"))

        def exchange(out, sizes, channel):
            with self.ready:
                for target, data in out.items():
                    self.boxes[node, target].append(data.clone())
                self.ready.notify_all()
                assert self.ready.wait_for(lambda: all(self.boxes[source, node] for source in sizes), timeout=20)
                arrived = {source: self.boxes[source, node].pop(0) for source in sizes}
            assert {source: len(data) for source, data in arrived.items()} == sizes
            return arrived

        transport.exchange = exchange
        return transport


def run_ops(ops, values, nodes):
    """Runs transfers one after the other at `nodes` threads; gives the last results and the bytes that each node sent."""
    wires, results, sent, failures = Wires(nodes), [None] * nodes, [0] * nodes, []

    def at(node):
        try:
            transport, partial = wires.transport(node), {}
            for op in ops:
                run = _transport.TransferRun(op, 0, transport, 0, torch.empty(0), 0, partial)
                run.read(lambda payload: values[node], None)
                run.exchange()
                results[node] = run.results[0][1] if run.results else results[node]
            sent[node] = sum(transport.sent.values())
        except BaseException as failure:  # noqa: BLE001 - shown by the main thread
            failures.append(failure)

    threads = [threading.Thread(target=at, args=(node,)) for node in range(nodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return results, sent


def op_of(pattern, collective, nodes, elements, format="fp32", exchanges=None, **payload):
    one = _plan_file.Payload("parameter", "dense", (0,), elements, {"type": format}, **payload)
    exchanges = tuple(_plan_file.Exchange(tuple(group), (one,)) for group in exchanges or [range(nodes)])
    return _plan_file.Op("t", (), (), False, pattern=pattern, collective=collective, exchanges=exchanges)


@pytest.mark.parametrize("collective,nodes", [("direct", 2), ("direct", 5), ("ring", 2), ("ring", 5), ("recursive", 4), ("recursive", 8)])
@pytest.mark.parametrize("elements", [1, 64, 203])
def test_an_all_reduce_gives_the_mean_at_every_node(collective, nodes, elements):
    values = [torch.randn(elements, dtype=torch.float64) for _ in range(nodes)]
    results, sent = run_ops([op_of("all_reduce", collective, nodes, elements)], [value.float() for value in values], nodes)
    mean = sum(value.float().double() for value in values) / nodes
    for result in results:
        assert torch.equal(result, results[0])
        assert torch.allclose(result.double(), mean, atol=1e-6)
    # Each chunk is sent by n − 1 nodes to be added and n − 1 times as a mean: 2(n − 1)·S in all, 4 bytes an element.
    assert sum(sent) == 2 * (nodes - 1) * elements * 4


def test_a_hierarchical_all_reduce_leaves_chunks_between_its_transfers():
    """Two regions of two nodes: sums within regions, chunks between them, and back (costmodel/plan)."""
    regions, across = [(0, 1), (2, 3)], [(0, 2), (1, 3)]
    values = [torch.randn(7) for _ in range(4)]
    middle = op_of("all_reduce", "ring", 2, 4, exchanges=[across[0]], chunk=0, chunks=2), op_of("all_reduce", "ring", 2, 3, exchanges=[across[1]], chunk=1, chunks=2)
    joined = _plan_file.Op("t", (), (), False, pattern="all_reduce", collective="ring", exchanges=middle[0].exchanges + middle[1].exchanges)
    ops = [op_of("reduce_scatter", "ring", 2, 7, exchanges=regions), joined, op_of("all_gather", "ring", 2, 7, exchanges=regions)]
    results, _ = run_ops(ops, values, 4)
    for result in results:
        assert torch.allclose(result, sum(values) / 4, atol=1e-6)


@pytest.mark.parametrize("pattern,expected", [("reduce", [1.5, None, None]), ("broadcast", [None, 0.0, 0.0]), ("all_to_all_broadcast", [1.0] * 3)])
def test_other_patterns(pattern, expected):
    results, _ = run_ops([op_of(pattern, "direct", 3, 1)], [torch.tensor([float(node)]) for node in range(3)], 3)
    assert [None if result is None else result.item() for result in results] == expected

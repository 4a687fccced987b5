"""Tests fomoe.torch in one process: wire formats, collectives, the outer optimisers, groups of parameters, messages, and profiles."""

import json
import math
import subprocess
import sys
import threading

import fomoe
import numpy
import pytest
from torch_sites import scenario

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from fomoe.torch import _codec, _groups, _outer, _plan_file, _scenario, _transport  # noqa: E402

MODEL = {"d_model": 16, "layers": 2, "heads": 2, "experts": 4, "active_experts": 2, "d_expert": 8, "vocabulary": 32, "sequence_length": 8}


class Layer(torch.nn.Module):
    """A layer with the parameters of the paper's family: attention of 4·d², four norms, a router, and experts of two matrices."""

    def __init__(self, d=16, experts=4, hidden=8, batched=True):
        super().__init__()
        self.attention = torch.nn.Linear(d, 4 * d, bias=False)
        self.norms = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(d)) for _ in range(4))
        self.router = torch.nn.Linear(d, experts, bias=False)
        if batched:
            self.experts = torch.nn.ParameterDict({"up": torch.randn(experts, d, hidden), "down": torch.randn(experts, hidden, d)})
        else:
            self.experts = torch.nn.ModuleList(torch.nn.ModuleDict({"up": torch.nn.Linear(d, hidden, bias=False),
                                                                    "down": torch.nn.Linear(hidden, d, bias=False)}) for _ in range(experts))


class Model(torch.nn.Module):
    def __init__(self, layers=2, **more):
        super().__init__()
        self.embedding = torch.nn.Embedding(32, 16)
        self.embedding_norm, self.final_norm = torch.nn.Parameter(torch.ones(16)), torch.nn.Parameter(torch.ones(16))
        self.layers = torch.nn.ModuleList(Layer(**more) for _ in range(layers))


def plan_for(document, **more):
    model = Model()
    return fomoe.torch.Plan(document, model, torch.optim.AdamW(model.parameters()), **more)


def one_site(**strategy):
    return scenario(MODEL, 8, sites=1, sequence_length=8, **{"method": "diloco", "local_steps": 4, **strategy})


# ---- imports ----


def test_fomoe_does_not_import_torch_until_it_is_asked_for():
    code = "import fomoe, sys; assert 'torch' not in sys.modules; fomoe.torch.Plan; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pytorch_the_message_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport fomoe\nfomoe.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "ImportError: fomoe.torch needs PyTorch; install it with: pip install torch"


# ---- wire formats ----


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
@pytest.mark.parametrize("values", [[], [0.0, 0.0], [1.0, -0.5, 0.25, float("nan"), -1.0], [float(x) - 100 for x in range(300)],
                                    numpy.random.default_rng(1).standard_normal(1001).tolist(), [2.0, 1.0, -1.0, 127.0, 0.5, -0.5, 62.5, -63.5]])
def test_integers_are_encoded_as_fomoe_train_does(bits, values):
    codec = _codec.Codec({"type": f"int{bits}", "block_elements": 256, "scale_bits": 32})
    data = codec.encode(torch.tensor(values))
    assert bytes(data.tolist()) == int_codes(values, bits, 256)
    assert len(data) == codec.bytes(len(values))
    decoded = codec.decode(data, len(values), torch.empty(0))
    for begin in range(0, len(values), 256):
        part = torch.tensor(values[begin:begin + 256]).nan_to_num(0)
        step = part.abs().max() / (2 ** (bits - 1) - 1)
        assert (decoded[begin:begin + 256] - part).abs().max() <= step * 0.5001


def test_halves_are_rounded_away_from_zero():
    """With a scale of 127, the codes are the values themselves: 0.5 becomes 1 and −62.5 becomes −63."""
    codec = _codec.Codec({"type": "int8", "block_elements": 256, "scale_bits": 32})
    values = torch.tensor([127.0, 0.5, -0.5, 62.5, -62.5, 1.5, 0.4999])
    assert codec.round_trip(values).round().tolist() == [127, 1, -1, 63, -63, 2, 0]


@pytest.mark.parametrize("kind,size", [("fp32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1)])
def test_plain_formats_have_their_bytes(kind, size):
    codec = _codec.Codec({"type": kind})
    values = torch.tensor([1.0, -2.5, 0.1])
    assert len(codec.encode(values)) == codec.bytes(3) == 3 * size
    assert torch.equal(codec.decode(codec.encode(values), 3, values), codec.round_trip(values))


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


# ---- the outer optimiser ----


def test_nesterov_is_pytorchs_sgd():
    torch.manual_seed(1)
    theirs = torch.nn.Parameter(torch.randn(50, dtype=torch.float64))
    sgd = torch.optim.SGD([theirs], lr=0.7, momentum=0.9, nesterov=True)
    ours, momentum = theirs.detach().clone(), torch.zeros(50, dtype=torch.float64)
    for _ in range(3):
        difference = torch.randn(50, dtype=torch.float64)
        theirs.grad = difference.clone()
        sgd.step()
        _outer.outer_step(_scenario.Outer("nesterov", 0.7, 0.9, 0.5), ours, momentum, None, difference)
    assert torch.allclose(ours, theirs.detach(), rtol=1e-14)


@pytest.mark.parametrize("kind,second", [("adam", 0.99 * 4 + 0.01 * 9), ("yogi", 4 + 0.01 * 9)])
def test_adaptive_outer_optimisers_by_hand(kind, second):
    """d = 3, m = 1, v = 4: m becomes 0.9 + 0.3; yogi's v grows by (1 − β2)·d², since v < d²."""
    anchor, m, v = (torch.tensor([x], dtype=torch.float64) for x in (10.0, 1.0, 4.0))
    _outer.outer_step(_scenario.Outer(kind, 0.1, 0.9, 0.5), anchor, m, v, torch.tensor([3.0], dtype=torch.float64))
    assert (m.item(), v.item()) == pytest.approx((1.2, second))
    assert anchor.item() == pytest.approx(10 - 0.1 * 1.2 / (math.sqrt(second) + 1e-3))


# ---- groups of parameters ----


@pytest.mark.parametrize("batched", [True, False])
def test_a_group_of_an_expert_has_its_matrices_and_its_row_of_the_router(batched):
    document = scenario(MODEL, 8, sites=2, sequence_length=8, method="diloco", local_steps=4)
    plan = _plan_file.TrafficPlan(_scenario.ask(document).plan)
    model = Model(batched=batched)
    names = _groups.Names(model, plan.groups, "...experts.{e}...." if not batched else None, None)
    wanted = next(group for group in plan.groups if group.of_experts() and group.layers[0] == 1 and group.experts[0] == 2)
    slices = names.slices(wanted, 2, None)
    layer = model.layers[1]
    own = [layer.experts[2]["up"].weight, layer.experts[2]["down"].weight] if not batched else [layer.experts["down"][2], layer.experts["up"][2]]
    flat = torch.cat([part.of(names.all[part.index].parameter).reshape(-1) for part in slices])
    assert torch.equal(flat, torch.cat([layer.router.weight[2], *(values.reshape(-1) for values in own)]))


@pytest.mark.parametrize("pattern,name,expected", [
    ("mlp.experts.{e}", "model.layers.3.mlp.experts.5.w1.weight", {"e": "5"}),
    ("...experts.{e}....", "model.layers.3.mlp.experts.5.w1.weight", {"e": "5"}),
    ("layers.{layer}.*.experts", "model.layers.3.mlp.experts.gate_up_proj", {"layer": "3"}),
    ("mlp.experts", "model.layers.3.mlp.experts_bias", None),
    ("experts", "model.layers.3.shared_experts.w1", None),
])
def test_patterns_of_names(pattern, name, expected):
    found = _groups.compiled(pattern).search(name)
    assert (found is not None) == (expected is not None)
    for key, value in (expected or {}).items():
        assert found[key] == value


@pytest.mark.parametrize("name,kind,layer", [
    ("tok_embeddings.weight", "embedding", -1), ("layers.1.attention.wq.weight", "attention", 1), ("layers.1.attention_norm.weight", "norm", 1),
    ("layers.1.moe.experts.w1", "expert", 1), ("layers.1.moe.shared_experts.w1", "attention", 1), ("layers.1.moe.router.gate.weight", "router", 1),
    ("norm.weight", "norm", -1), ("output.weight", "embedding", -1), ("layers.1.output.weight", "attention", 1)])
def test_parameters_of_torchtitan_have_their_classes(name, kind, layer):
    """Its names, without the library. Two layers of four experts; the unembedding goes with the embedding unless the plan sends it alone."""
    model = torch.nn.Module()
    model.named_parameters = lambda: [("layers.0.moe.experts.w1", torch.nn.Parameter(torch.ones(4, 2, 2))),
                                      ("layers.1.moe.experts.w2", torch.nn.Parameter(torch.ones(4, 2, 2))), (name, torch.nn.Parameter(torch.ones(4, 3)))]
    groups = [_plan_file.Group(("router", "expert"), (at, at + 1), (expert, expert + 1), 1) for at in range(2) for expert in range(4)]
    one = _groups.Names(model, groups, None, None).all[-1]
    assert (one.kind, one.layer) == (kind, layer)


# ---- messages ----


def test_a_scenario_of_another_model_is_refused():
    document = one_site()
    document["model"] = {**MODEL, "d_expert": 12}
    with pytest.raises(fomoe.InputError, match=r"got 272 elements in the model's router, expert of layer 0, expert 0 \(layers.0.router.weight, .*expected 400"):
        plan_for(document)


def test_experts_that_are_not_found_are_named():
    with pytest.raises(fomoe.InputError, match=r"experts: got 'mlp.moe', which matches no parameter; .*embedding_norm"):
        plan_for(one_site(), experts="mlp.moe")


def test_processes_are_as_many_as_sites():
    with pytest.raises(fomoe.InputError, match="got no process group; expected one process for each of the 3 sites; for example"):
        plan_for(scenario(MODEL, 8, sequence_length=8, method="diloco", local_steps=4))


def test_the_steps_of_the_plan_are_all():
    plan = plan_for(one_site())
    assert plan.steps == 8
    for _ in range(8):
        plan.step()
    assert plan.done
    with pytest.raises(fomoe.InputError, match="step: got step 9; expected at most 8 steps"):
        plan.step()


def test_gradients_are_exchanged_before_the_optimisers_step():
    plan = plan_for(one_site(method="ddp"))
    with pytest.raises(fomoe.InputError, match=r"step: got a call without a step of the optimiser before it"):
        plan.step()
    plan.before_step()
    plan.step()
    assert plan.steps_done == 1


def test_what_is_not_executed_is_refused():
    with pytest.raises(fomoe.InputError, match="top-k"):
        plan_for(scenario(MODEL, 8, sites=1, sequence_length=8, method="sparse_loco", local_steps=4))
    document = one_site()
    document["strategy"]["granularity"] = "tensor"
    with pytest.raises(fomoe.InputError, match="strategy.granularity"):
        plan_for(document)
    with pytest.raises(fomoe.InputError, match="strategy.local_step: got an unknown key"):
        plan_for(one_site(local_step=4))


def test_a_plan_that_does_not_say_who_holds_an_expert_is_refused(tmp_path):
    document = scenario(MODEL, 8, sites=2, sequence_length=8, method="fomoe", local_steps=4, expert_overlap=1, placement="fixed")
    plan = _scenario.ask(document).plan
    plan.pop("placements", None)
    with pytest.raises(fomoe.InputError, match="placements: got no owners of the router, expert of layer 0, expert 0"):
        _plan_file.TrafficPlan(plan)
    plan["placements"] = [{"rounds": [0, 1, 2], "owners": [[[0], [0], [1], [1]]] * 2}]
    assert _plan_file.TrafficPlan(plan).owners(2)[1, 3] == (1,)


# ---- profiles and shapes ----


def test_a_profile_of_whole_steps_is_read_by_fomoe(tmp_path):
    model = Model()

    def step_of(held):
        return lambda: sum(layer.experts["up"][:held].square().sum() for layer in model.layers).backward()

    points = fomoe.torch.profile(step_of, tmp_path / "p.json", model={**MODEL, "name": "custom"}, sequences=2, sequence_length=8, local_experts=[2, 4],
                                 dtype="fp32", repeats=5, warmup=1)
    assert [(point.local_experts, len(point.samples)) for point in points] == [(2, 5), (4, 5)]
    assert all(point.median_s > 0 and point.spread >= 0 for point in points)
    document = scenario(MODEL, 8, sequence_length=8, method="diloco", local_steps=4)
    document["compute"] = {"profile": str(tmp_path / "p.json"), "micro_batch_sequences": 2}
    report = fomoe.simulate(document)
    # Without its samples' scatter, a round has four steps of the median.
    assert report.round.compute_s == pytest.approx(4 * points[1].median_s, rel=1e-6)
    assert next(entry for entry in report["provenance"] if "step" in entry["what"])["origin"] == "measured"


def test_a_step_that_yields_is_timed_in_three_parts(tmp_path):
    def step():
        torch.randn(400, 400) @ torch.randn(400, 400)
        yield
        yield
        torch.ones(1)

    (point,) = fomoe.torch.profile(step, tmp_path / "p.json", model=MODEL, sequences=1, sequence_length=8, dtype="fp32", repeats=3)
    assert all(sample["forward_s"] > sample["backward_s"] for sample in point.samples)
    assert not json.loads((tmp_path / "p.json").read_text())["origin"]["whole_steps"]
    with pytest.raises(fomoe.InputError, match="yields 1 times; expected none, or two"):
        fomoe.torch.profile(lambda: (None for _ in range(1)), tmp_path / "p.json", model=MODEL, sequences=1, sequence_length=8, dtype="fp32", repeats=3)


def test_the_shape_of_a_model_of_ones_own_describes_it(tmp_path):
    model = Model()
    document = fomoe.torch.shape(model, tmp_path / "shape.json", active_experts=2)
    counts = document["model"]["opaque"]
    assert counts["expert_parameters"] == sum(p.numel() for name, p in model.named_parameters() if "experts" in name)
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters())
    plan = plan_for(scenario({"shape": str(tmp_path / "shape.json"), "sequence_length": 8}, 8, sites=1, sequence_length=8, method="diloco", local_steps=4))
    assert plan.steps == 8
